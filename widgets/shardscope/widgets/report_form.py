"""What goes into a report, as a list to go through: each row says what it holds, and is changed where it stands."""

from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message

from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Tone

LABEL: Final = 12
STATE: Final = 15
"""Cells of what is chosen."""


class Choice(Struct, frozen=True):
    """One row."""

    id: str
    label: str
    state: str
    """What is chosen: `[x]`, or a word."""
    says: str
    """What that means. It may be raw."""
    tone: Tone = Tone.PLAIN
    """Of the state."""


class ReportForm(VirtualRows):
    """The rows. What a change means is for whoever shows them: it hears `Changed` and calls `show`."""

    BINDING_GROUP_TITLE = "What goes in"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "space",
            "change(1)",
            "Change",
            id="form.change",
            tooltip="Take it in, leave it out, or the next choice",
        ),
        Binding("right,l", "rightwards", "Change", show=False, id="form.next", tooltip="The next choice"),
        Binding("left,h", "leftwards", "Change", show=False, id="form.before", tooltip="The choice before"),
    ]

    class Changed(Message):
        """The person wants the next choice of a row, or the one before."""

        def __init__(self, choice: str, by: int) -> None:
            super().__init__()
            self.choice = choice
            """The id of the row."""
            self.by = by

    def __init__(
        self,
        choices: Sequence[Choice] = (),
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
    ) -> None:
        """Show `choices`."""
        self.choices = tuple(choices)
        super().__init__(glyphs=glyphs, id=id)

    def show(self, choices: Sequence[Choice]) -> None:
        """Show other choices; the cursor stays."""
        self.choices = tuple(choices)
        self.rows_changed()

    def row_count(self) -> int:
        """Return how many rows there are."""
        return len(self.choices)

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return one row."""
        choice = self.choices[line]
        here = self.glyphs.here if style is not None else " "
        return [
            self.segment((here, Tone.HERE), 2),
            self.segment(choice.label, LABEL, style),
            self.segment((choice.state, choice.tone), STATE, style),
            self.segment((choice.says, Tone.MUTED), max(0, self.room - 2 - LABEL - STATE), style, tail=0),
        ]

    def action_change(self, by: int) -> None:
        """Ask for another choice of the row of the cursor."""
        if self.choices:
            self.post_message(self.Changed(self.choices[self.cursor].id, by))

    def action_rightwards(self) -> None:
        """Ask for the next choice."""
        self.action_change(1)

    def action_leftwards(self) -> None:
        """Ask for the choice before."""
        self.action_change(-1)

    def line_clicked(self, line: int, x: int) -> None:  # noqa: ARG002 - a row is one thing
        """Change what was clicked."""
        self.move_to(line)
        self.action_change(1)
