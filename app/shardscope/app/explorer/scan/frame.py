"""The frame of the Scan screen: the answer, the progress, the table, the row in full. It shows what it is told."""

from enum import Enum, auto
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from shardscope.app.explorer.checkpoint.tensors_at import Place
from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.scan.keys import BINDINGS
from shardscope.app.explorer.scan.words import Lines
from shardscope.engine.model.decoded import Listed
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.safe import Part, Tone, content
from shardscope.widgets.scan_detail import FindingText
from shardscope.widgets.scan_table import ScanTable
from shardscope.widgets.search_line import SearchLine
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine


class At(Enum):
    """What the screen is at."""

    PLANNING = auto()
    ASKING = auto()
    """It is known what would be read; nothing has been."""
    REFUSED = auto()
    """There is nothing to read."""
    READING = auto()
    PARTIAL = auto()
    """Reading ended before its end."""
    DONE = auto()


class Frame(Screen[Place | str | None]):
    """What is drawn of a scan. Ends with tensors to look at, with a wish to decode, or with None."""

    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - no ClassVar in its base
    BINDINGS: ClassVar[list[BindingType]] = BINDINGS

    def __init__(self, crumbs: tuple[str, ...], *, decoded: bool) -> None:
        super().__init__()
        self.at = At.PLANNING
        self.component: Listed = "model"
        self.table = ScanTable()
        self.detail = FindingText()
        self._crumbs = crumbs
        self._decoded = decoded

    def compose(self) -> ComposeResult:
        """Draw the frame; what fills it comes from workers."""
        with Horizontal(id="top"):
            yield Breadcrumbs(*self._crumbs, "scan")
            yield StatusLine(*self._facts())
        with Vertical(id="scan"):
            yield Static(id="answer")
            yield ProgressLine()
            yield Static(id="kinds")
            yield SearchLine(
                placeholder="words of a name, a kind or a sentence",
                id="find",
                compact=True,
                select_on_focus=False,
            )
            yield self.table
            yield self.detail
        yield Hints()

    def _facts(self) -> tuple[Part, ...]:
        words: dict[At, Part] = {
            At.READING: "reading",
            At.PARTIAL: ("partial", Tone.CAUTION),
            At.DONE: "all read",
        }
        return (
            self.component,
            words.get(self.at, "nothing read"),
            "decoded as data" if self._decoded else "nothing decoded",
        )

    def _say(self, lines: Lines) -> None:
        self.query_one("#answer", Static).update(Content("\n").join(content(*line) for line in lines))

    def _show_parts(self) -> None:
        """Show what there is room and reason for."""
        ended = self.at in (At.PARTIAL, At.DONE)
        listed = self.at is At.READING or (ended and self.table.rows.row_count > 0)
        self.query_one(ProgressLine).display = self.at in (At.PLANNING, At.READING)
        self.table.display = self.detail.display = listed
        self.query_one("#kinds").display = listed
        if not listed:
            self.query_one("#find").display = False
        self.query_one(StatusLine).facts = self._facts()
        self.refresh_bindings()

    def _go(self, at: At) -> None:
        self.at = at
        if at not in (At.PLANNING, At.READING):
            self.query_one(ProgressLine).clear()
        self._show_parts()
