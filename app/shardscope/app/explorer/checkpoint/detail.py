"""The dialog about one decoded tensor: what it is as a whole, and every stretch of a file that holds a part of it."""

from collections.abc import Callable
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.tensor_detail import FragmentRows, tensor_words
from shardscope.widgets.virtual_table import VirtualTable

TALLEST: Final = 24
"""Rows that the table has without scrolling."""
SHARE: Final = 0.92
"""Of the screen, that a dialog takes at most."""
FRAME: Final = 3
"""Lines of the dialog around words and table."""


class Detail(ModalScreen[str | None]):
    """One tensor. Ends with the file that was chosen, or with None."""

    AUTO_FOCUS = "VirtualTable"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape", "close", "Back", id="detail.close", tooltip="Close this dialog; nothing else happens"
        ),
        Binding(
            "m", "shard_map", "Shard map", id="detail.shard_map", tooltip="Draw which rank holds what of it"
        ),
        Binding("p", "peek", "Numbers", id="detail.peek", tooltip="Look at its numbers"),
    ]

    def __init__(
        self,
        tensor: LogicalTensor,
        show_map: Callable[[], object] | None = None,
        show_numbers: Callable[[], object] | None = None,
    ) -> None:
        """`show_map` draws which rank holds what of it, `show_numbers` shows its numbers."""
        super().__init__()
        self._show_map = show_map
        self._show_numbers = show_numbers
        self.tensor = tensor
        self._fragments = FragmentRows(tensor)
        self.rows = VirtualTable(
            self._fragments.columns(), self._fragments, empty="It has no bytes in this checkpoint"
        )

    def compose(self) -> ComposeResult:
        """Draw the tensor over its fragments."""
        with Vertical(classes="dialog -wide") as box:
            box.border_title = "Tensor"
            box.border_subtitle = "enter: the file   m: shard map   p: numbers   esc: back"
            yield Static(Content.assemble(tensor_words(self.tensor, self.rows.glyphs)), classes="whole")
            yield self.rows

    def on_resize(self) -> None:
        """Give the table the lines that it needs, as far as there are any below the words."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        words = self.query_one(".whole").outer_size.height
        room = int(self.size.height * SHARE) - FRAME - words
        self.rows.styles.height = 1 + max(1, min(self._fragments.row_count, TALLEST, room - 1))

    def action_close(self) -> None:
        """Close the dialog."""
        self.dismiss(None)

    def action_shard_map(self) -> None:
        """Draw which rank holds what, in front of this dialog."""
        if self._show_map is not None:
            self._show_map()

    def action_peek(self) -> None:
        """Show its numbers, in front of this dialog."""
        if self._show_numbers is not None:
            self._show_numbers()

    @on(VirtualTable.SortRequested)
    def _sort(self, event: VirtualTable.SortRequested) -> None:
        event.stop()
        rows = self._fragments
        order = list(range(rows.row_count)) if event.column is None else rows.order(event.column)
        if event.descending:
            order.reverse()
        self.rows.show_sorted(order, event.column, descending=event.descending)

    @on(VirtualRows.RowHighlighted)
    def _highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()

    @on(VirtualRows.RowSelected)
    def _selected(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        self.dismiss(self._fragments.file(event.row))
