"""The dialogs of the shard map: a target, an element, the transfer matrix."""

from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from shardscope.app.explorer.dialogs import Dialog
from shardscope.engine.model.transfer import TransferPlan
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Tone, content
from shardscope.widgets.transfer_matrix import TransferRows
from shardscope.widgets.virtual_table import VirtualTable

T = TypeVar("T")
TALLEST = 22
"""Rows of the matrix without scrolling."""


class Question(ModalScreen["T | None"], Generic[T]):
    """Asks for one line. Ends with what it was read as, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Cancel", id="question.close", tooltip="Close this; nothing changes"),
    ]

    def __init__(
        self, title: str, words: str, example: str, read: "Callable[[str], T | str]", typed: str = ""
    ) -> None:
        """`read` returns what a text means, or a sentence of ours on what is wrong with it."""
        super().__init__()
        self._title = title
        self._words = words
        self._example = example
        self._read = read
        self._typed = typed

    def compose(self) -> ComposeResult:
        """Draw the question over the line."""
        with Vertical(classes="dialog -question") as box:
            box.border_title = content(self._title)
            box.border_subtitle = "enter: go   esc: nothing changes"
            yield Static(content(self._words), classes="words")
            yield Input(self._typed, placeholder=self._example, compact=True, max_length=4_096)
            yield Static(id="said")

    @on(Input.Changed)
    def _changed(self) -> None:
        self.query_one("#said", Static).update(content(""))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        found = self._read(event.value)
        if isinstance(found, str):
            self.query_one("#said", Static).update(content((found, Tone.CAUTION)))
        else:
            self.dismiss(found)

    def action_close(self) -> None:
        """Close the dialog."""
        self.dismiss(None)


class Transfer(Dialog):
    """Which source rank gives how many bytes to which rank of a target."""

    AUTO_FOCUS = "VirtualTable"

    def __init__(self, plan: TransferPlan, bits: int, words: str) -> None:
        super().__init__()
        self._rows = TransferRows(plan, bits)
        self._plan = plan
        self._words = words
        self.table = VirtualTable(self._rows.columns(), self._rows, empty="Nothing moves")

    def compose(self) -> ComposeResult:
        """Draw the sums over the matrix."""
        rows, found = self._rows, self._plan.statistics
        with Vertical(classes="dialog -transfer") as box:
            box.border_title = content(self._words)
            box.border_subtitle = "esc closes"
            yield Static(
                content(
                    (f"{rows.total}", Tone.STRONG),
                    (f" in {found.segments:,} copies between {rows.pairs:,} pairs of ranks", Tone.MUTED),
                ),
                classes="whole",
            )
            yield self.table

    def on_resize(self) -> None:
        """Give the matrix the lines that it needs, as far as there are any."""
        room = int(self.size.height * 0.92) - 5
        self.table.styles.height = 1 + max(1, min(self._rows.row_count, TALLEST, room - 1))

    @on(VirtualTable.SortRequested)
    @on(VirtualRows.RowHighlighted)
    @on(VirtualRows.RowSelected)
    def _kept(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()
