"""Choices of a plan, one a line: a key, a word, and what was chosen."""

from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message

from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone

KEY: Final = 3
"""Cells of the key."""
LABEL: Final = 14
"""Cells of the word."""


class Setting(Struct, frozen=True):
    """One choice. Texts may be raw."""

    name: str
    key: str
    """What is pressed for it, wherever the cursor is."""
    label: str
    value: Part


class SettingRows(VirtualRows):
    """Choices with a cursor. Enter, or the key of a choice, asks for it to be changed; left and right turn it.

    `SettingRows(settings=(), *, glyphs=None, id=None, classes=None)`, then `show(settings)`. A subclass binds the keys of its
    choices to `pick`.
    """

    BINDING_GROUP_TITLE = "Choices"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "space", "turn(1)", "Next choice", show=False, id="settings.next", tooltip="Take the next choice"
        ),
    ]

    class Turned(Message):
        """The person wants the next choice of a setting, or the one before."""

        def __init__(self, rows: "SettingRows", name: str, by: int) -> None:
            super().__init__()
            self.rows = rows
            self.name = name
            self.by = by

        @property
        def control(self) -> "SettingRows":
            """The list it happened in."""
            return self.rows

    class Picked(Message):
        """The person wants to change a setting."""

        def __init__(self, rows: "SettingRows", name: str) -> None:
            super().__init__()
            self.rows = rows
            self.name = name

        @property
        def control(self) -> "SettingRows":
            """The list it happened in."""
            return self.rows

    def __init__(
        self,
        settings: Sequence[Setting] = (),
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """Show `settings`."""
        super().__init__(empty="Nothing to choose", glyphs=glyphs, id=id, classes=classes)
        self.settings = tuple(settings)

    def show(self, settings: Sequence[Setting]) -> None:
        """Show other choices; the cursor stays on its one, as far as that is there."""
        here = self.settings[self.cursor].name if self.cursor < len(self.settings) else None
        self.settings = tuple(settings)
        names = [item.name for item in self.settings]
        self.rows_changed(names.index(here) if here in names else None)

    def row_count(self) -> int:
        """Return how many choices there are."""
        return len(self.settings)

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return one choice in segments."""
        item = self.settings[line]
        left = Tone.HERE if style is None else Tone.PLAIN
        return [
            self.segment((f" {item.key}", left), KEY, style),
            self.segment((item.label, Tone.MUTED), LABEL, style),
            self.segment(item.value, max(1, self.room - KEY - LABEL), style, tail=0.6),
        ]

    def action_leftwards(self) -> None:
        """Take the choice before."""
        self.action_turn(-1)

    def action_rightwards(self) -> None:
        """Take the next choice."""
        self.action_turn(1)

    def action_turn(self, by: int) -> None:
        """Ask for another choice of the setting under the cursor."""
        if self.settings:
            self.post_message(self.Turned(self, self.settings[self.cursor].name, by))

    def action_select(self) -> None:
        """Ask to change the setting under the cursor."""
        if self.settings:
            self.post_message(self.Picked(self, self.settings[self.cursor].name))

    def action_pick(self, name: str) -> None:
        """Go to a setting and ask to change it."""
        names = [item.name for item in self.settings]
        if name in names:
            self.cursor = names.index(name)
            self.post_message(self.Picked(self, name))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tell which keys work: those of the settings that are shown."""
        return action != "pick" or any(item.name == parameters[0] for item in self.settings)
