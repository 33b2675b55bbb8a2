"""The frame of the Compare screen: both paths, the answer, the table, the row in full. It shows what it is told."""

import os
from enum import Enum, auto
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from shardscope.app.explorer.compare.keys import BINDINGS
from shardscope.app.explorer.compare.messages import Folded
from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.target import Target
from shardscope.engine.model.decoded import Listed
from shardscope.widgets.compare_detail import CompareDetail
from shardscope.widgets.compare_table import CompareTable, DiffRows
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.safe import Part, Tone, content
from shardscope.widgets.search_line import SearchLine
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine


class At(Enum):
    """What the screen is at."""

    ASKING = auto()
    """There is no second checkpoint yet."""
    LOOKING = auto()
    READY = auto()
    READING = auto()
    """Values are compared."""


class Frame(Screen[None]):
    """What is drawn of two checkpoints."""

    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - no ClassVar in its base
    BINDINGS: ClassVar[list[BindingType]] = BINDINGS

    def __init__(self, target: Target, crumbs: tuple[str, ...]) -> None:
        super().__init__()
        self.target = target
        self.at = At.ASKING
        self.component: Listed = "model"
        self.decoded = False
        """Whether pickles of a side were decoded."""
        self.folded: Folded | None = None
        """What is different; None until it is known."""
        self.table = CompareTable(DiffRows((), ()))
        self._crumbs = crumbs

    def compose(self) -> ComposeResult:
        """Draw the frame with the question; what fills it comes from workers."""
        with Horizontal(id="top"):
            yield Breadcrumbs(*self._crumbs, "compare")
            yield StatusLine(*self._facts())
        with Vertical(id="compare"):
            with Horizontal(classes="side"):
                yield Static("A", classes="letter")
                yield Static(content(self.target.path), id="first")
            with Horizontal(classes="side"):
                yield Static("B", classes="letter")
                yield SearchLine(
                    _beside(self.target.path),
                    placeholder="path of the other checkpoint; tab completes it",
                    id="other",
                    compact=True,
                    select_on_focus=False,
                )
            with Horizontal(classes="side", id="merged"):
                yield Static("+", classes="letter")
                yield SearchLine(
                    placeholder="path of a LoRA adapter that was merged into B; empty for none",
                    id="adapter",
                    compact=True,
                    select_on_focus=False,
                )
            yield Static(id="answer")
            yield ProgressLine()
            yield SearchLine(
                placeholder="a part of the names to list", id="find", compact=True, select_on_focus=False
            )
            yield Static(id="listed")
            yield self.table
            yield CompareDetail(())
        yield Hints()

    def on_mount(self) -> None:
        """Ask for the other checkpoint."""
        self.query_one("#merged").display = False
        self._show_parts()
        self.query_one("#other").focus()
        words = "Which other checkpoint? Any family, any topology; nothing of it will be run."
        self._say(words, Tone.MUTED, "tab completes the path, enter compares.")

    def _facts(self) -> tuple[Part, ...]:
        document = None if self.folded is None else self.folded.compared.document
        facts: list[Part] = [self.component]
        facts.append("values" if document is not None and document.values else "structure only")
        facts.append("decoded as data" if self.decoded else "nothing decoded")
        return tuple(facts)

    def _say(self, said: str, tone: Tone, *more: str) -> None:
        """Say something, and more in quiet lines below."""
        lines = [content((said, tone)), *(content((each, Tone.MUTED)) for each in more)]
        self.query_one("#answer", Static).update(Content("\n").join(lines))

    def _show_parts(self) -> None:
        """Show what there is room and reason for."""
        busy = self.at in (At.LOOKING, At.READING)
        self.query_one(ProgressLine).display = busy
        self.table.display = self.folded is not None
        if self.folded is None:
            self.query_one("#find").display = self.query_one("#listed").display = False
        self.query_one(CompareDetail).display = self.folded is not None
        self.query_one(StatusLine).facts = self._facts()
        self.refresh_bindings()

    def _go(self, at: At) -> None:
        self.at = at
        if at is At.LOOKING:  # what is about to be hidden would hand the focus on to anything
            self.set_focus(None)
        if at in (At.READY, At.ASKING):
            self.query_one(ProgressLine).clear()
        self._show_parts()


def _beside(path: str) -> str:
    """Return the folder that a checkpoint stands in, as the beginning of the other one's path."""
    folder = os.path.dirname(os.path.normpath(path))
    return f"{folder}/" if folder and folder != "/" else folder
