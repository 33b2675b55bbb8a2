"""Every change of a fix, before it is made: how many, then each of them; enter tells one in full."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from shardscope.app.explorer.dialogs import Dialog
from shardscope.app.explorer.fix.made import Made
from shardscope.widgets.fix_rows import FixRows, Line
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, content


class WholeChange(Dialog):
    """One row of the changes without a cut."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self.line = line

    def compose(self) -> ComposeResult:
        """Draw what it says over why."""
        with Vertical(classes="dialog") as box:
            box.border_title = content("In full")
            box.border_subtitle = content("esc closes")
            yield Static(content(self.line.says), id="message")
            if self.line.why:
                yield Static(content((self.line.why, Tone.MUTED)), classes="note")


class ChangesStep(Vertical):
    """The changes to look through."""

    def __init__(self) -> None:
        super().__init__(id="changes")
        self.rows = FixRows()

    def compose(self) -> ComposeResult:
        """Draw two lines of what there is over the rows."""
        yield Static(id="facts")
        yield Static(id="counts")
        yield self.rows

    def show(self, made: Made | None, *, losing: bool = False, without: str = "") -> None:
        """Show the changes of a fix; `without` says why there are none where there is no plan."""
        if made is None:
            self.query_one("#facts", Static).update(content((without, Tone.STRONG)))
            self.query_one("#counts", Static).update(content(""))
            self.rows.say_when_empty("No change to show")
            self.rows.show(())
            return
        counted: Part = (made.changing, Tone.STOP if losing else Tone.MUTED)
        self.query_one("#facts", Static).update(content((made.summary, Tone.STRONG)))
        self.query_one("#counts", Static).update(
            content(counted, ("   enter tells a row in full", Tone.MUTED))
        )
        self.rows.say_when_empty("Nothing would change: the output would be the source over again")
        self.rows.show(made.lines)

    @on(VirtualRows.RowHighlighted)
    def _highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()

    @on(VirtualRows.RowSelected)
    def _selected(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        if event.row < len(self.rows.lines):
            self.app.push_screen(WholeChange(self.rows.lines[event.row]))
