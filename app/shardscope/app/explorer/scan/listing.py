"""The findings of the Scan screen: which of them are listed, in which order, and what is said of the one under the cursor."""

from typing import TYPE_CHECKING

from textual import on
from textual.widgets import Input, Static

from shardscope.app.explorer.scan import words
from shardscope.app.explorer.scan.frame import At, Frame
from shardscope.app.explorer.scan.spots import Names, spot_of
from shardscope.engine.model.blocker import Severity
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import content
from shardscope.widgets.scan_detail import Spot
from shardscope.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from shardscope.engine.model.catalogue import LogicalTensor


class Listing(Frame):
    """A frame that knows its findings and not where they come from."""

    def __init__(self, crumbs: tuple[str, ...], *, decoded: bool) -> None:
        super().__init__(crumbs, decoded=decoded)
        self._names = Names(())
        self._owners: dict[str, str] = {}
        """By file, the rank whose it is."""

    def _tell_listed(self) -> None:
        """Say which kinds there are, and show the row."""
        table = self.table
        empty = "Nothing was found so far" if self.at is At.READING else "Nothing stands out in what was read"
        table.say_empty("Nothing matches; esc lists all again" if table.filter.on else empty)
        parts = words.kinds(table.kinds, table.filter, table.row_count())
        self.query_one("#kinds", Static).update(content(*parts))
        self._show_row()

    # Rows

    @property
    def tensor(self) -> "LogicalTensor | None":
        """The tensor of the finding under the cursor."""
        item = self.table.item if self.table.display else None
        return None if item is None else self._names.of(item)

    @property
    def spot(self) -> Spot:
        """Where the finding under the cursor is."""
        item = self.table.item
        return Spot() if item is None else spot_of(item, self._names.of(item), self._owners)

    def _show_row(self) -> None:
        self.detail.show(self.table.item, self.spot)
        self.refresh_bindings()

    @on(VirtualRows.RowHighlighted)
    def _highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()
        if event.rows is self.table:
            self._show_row()

    @on(VirtualRows.RowSelected)
    def _selected(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        if event.rows is self.table and self.table.item is not None:
            from shardscope.app.explorer.scan.detail import FindingDetail

            self.app.push_screen(FindingDetail(self.table.item, self.spot))

    @on(VirtualTable.SortRequested)
    def _sort(self, event: VirtualTable.SortRequested) -> None:
        event.stop()
        self.table.sort_by(event.column, descending=event.descending)
        self._show_row()

    # Listing some

    def action_kind(self, by: int) -> None:
        """List one kind alone."""
        self.table.filter.step([code for code, _ in self.table.kinds], by)
        self._relist()

    def action_least(self, least: str) -> None:
        """List findings from a severity on."""
        self.table.filter.least = Severity(least)
        self._relist()

    def _relist(self) -> None:
        self.table.refilter()
        self._tell_listed()

    def action_search(self) -> None:
        """Show the line to search with."""
        field = self.query_one("#find", Input)
        field.display = True
        field.focus()

    @on(Input.Changed)
    def _find(self, event: Input.Changed) -> None:
        event.stop()
        self.table.filter.search(event.value)
        self._relist()

    @on(Input.Submitted)
    def _found_it(self, event: Input.Submitted) -> None:
        event.stop()
        event.input.display = bool(event.value.strip())
        self.set_focus(self.table)

    def _list_all(self) -> None:
        field = self.query_one("#find", Input)
        field.value = ""
        field.display = False
        self.table.filter.kind, self.table.filter.least = None, Severity.INFO
        self.table.filter.search("")
        self._relist()
        self.set_focus(self.table)
