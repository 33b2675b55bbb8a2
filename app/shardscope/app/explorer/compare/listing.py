"""The rows of the Compare screen: which of them are listed, in which order, and which one is in hand."""

from typing import TYPE_CHECKING, Final

from textual import on
from textual.widgets import Input, Static

from shardscope.app.explorer.compare.frame import Frame
from shardscope.app.explorer.target import Target
from shardscope.widgets.compare_detail import CompareDetail
from shardscope.widgets.compare_filter import DiffFilter
from shardscope.widgets.compare_table import EMPTY, DiffRows
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import content
from shardscope.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from shardscope.engine.model.difference import Fold, TensorDifference

NONE: Final = "No name has this in it; esc lists all again"


class Listing(Frame):
    """What is different, in rows."""

    def __init__(self, target: Target, crumbs: tuple[str, ...]) -> None:
        super().__init__(target, crumbs)
        self.everything = False
        """Whether tensors that are the same are listed, too."""
        self.filter = DiffFilter()

    @property
    def _folds(self) -> "tuple[Fold, ...]":
        if self.folded is None:
            return ()
        return self.folded.everything if self.everything else self.folded.different

    def _list(self) -> None:
        """List what is different, or everything, as far as it is asked for."""
        if self.folded is None:
            return
        folds, tensors = self._folds, self.folded.compared.document.tensors
        if self.filter.state not in (None, *(fold.state for fold in folds)):
            self.filter.state = None
        listed = self.filter.listed(folds, tensors)
        self.table.show_differences(DiffRows(tensors, listed))
        self.table.say_empty(NONE if self.filter.on else EMPTY)
        line = self.query_one("#listed", Static)
        line.display = self.filter.on
        line.update(content(*self.filter.words(len(listed), len(folds))))
        self._show_row()
        self.refresh_bindings()

    def _show_row(self) -> None:
        item = self._item
        self.query_one(CompareDetail).show(() if item is None else (item,))

    @property
    def _number(self) -> int | None:
        """The number of the tensor of the row, the first one of several."""
        row = self.table.row
        return None if row is None else self.table.rows.members(row)[0]

    @property
    def _item(self) -> "TensorDifference | None":
        """The tensor of the row, the first one of several."""
        number = self._number
        return None if number is None else self.table.rows.tensors[number]

    @on(VirtualRows.RowHighlighted)
    def _highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()
        if event.rows is self.table:
            self._show_row()

    @on(VirtualTable.SortRequested)
    def _sort(self, event: VirtualTable.SortRequested) -> None:
        event.stop()
        self.table.sort_by(event.column, descending=event.descending)
        self._show_row()

    # Listing some

    def action_all(self) -> None:
        """List tensors that are the same, too, or not."""
        self.everything = not self.everything
        self._list()

    def action_kind(self, by: int) -> None:
        """List one state alone."""
        self.filter.step(self._folds, by)
        self._list()

    def action_search(self) -> None:
        """Show the line to search with."""
        field = self.query_one("#find", Input)
        field.display = True
        field.focus()

    @on(Input.Changed, "#find")
    def _find(self, event: Input.Changed) -> None:
        event.stop()
        text = event.value.strip().lower()
        if text != self.filter.text:
            self.filter.text = text
            self._list()

    @on(Input.Submitted, "#find")
    def _found_it(self, event: Input.Submitted) -> None:
        event.stop()
        self._leave_search()

    def _leave_search(self) -> None:
        self.query_one("#find", Input).display = bool(self.filter.text)
        self.set_focus(self.table)

    def _list_all(self) -> None:
        """List all again, with the cursor on the same tensor."""
        self._forget_search()
        self._list()
        self.set_focus(self.table)

    def _forget_search(self) -> None:
        self.filter.clear()
        field = self.query_one("#find", Input)
        field.value = ""
        field.display = False

    def action_difference(self, by: int) -> None:
        """Go to the next row that is not the same, around the ends."""
        rows, count = self.table.rows, self.table.row_count()
        here = self.table.row or 0
        for step in range(1, count + 1):
            row = (here + step * by) % count
            if rows.state(row) != "same":
                self.table.move_to_row(row)
                self._show_row()
                return
