"""The tensors of a checkpoint, as a table of any length or as a tree by module, with a search line, an order and a selection."""

import threading
from collections.abc import Sequence
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.tensors import TensorSpec, TensorTable
from shardscope.widgets.figures import size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Tone, content, elide, visible
from shardscope.widgets.search_line import SearchLine
from shardscope.widgets.tensor_detail import shape_words
from shardscope.widgets.tensor_foot import Listing, first_line, made_of
from shardscope.widgets.tensor_query import COLUMNS, Ranks, loose_words, matching_rows, sorted_rows
from shardscope.widgets.tensor_rank import ranked_rows
from shardscope.widgets.tensor_views import TensorViews
from shardscope.widgets.virtual_table import VirtualTable

PLACEHOLDER: Final = "name  'exact  !not  dtype:bf16  shape:4096  file:  shard:  rank:  >1GiB"


class TensorPanel(TensorViews):
    """The tensors, a search line above them, and below them the count and the tensor of the cursor in full.

    `TensorPanel(table=None, *, ranks=None, glyphs=None, id=None, classes=None)`, then `show(table, ranks=...)`. It
    searches and sorts in a thread of its own. `search()` gives the keys to the search line; escape clears it. What a search
    finds is a table, the best answers first; without one the person chooses between table and tree.

    Messages: `TensorHighlighted` and `TensorSelected` with the `TensorSpec` (its name is raw), `NamesWanted`.
    """

    BINDING_GROUP_TITLE = "Tensors"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape",
            "clear_search",
            "Clear search",
            show=False,
            id="tensors.clear_search",
            tooltip="Show all tensors again",
        ),
    ]
    DEFAULT_CSS = """
    TensorPanel {
        height: 1fr;
        #tensor-query { display: none; }
        &.-searching #tensor-query { display: block; }
        #tensor-foot { height: 2; padding: 0 1; }
    }
    """

    class TensorHighlighted(Message):
        """The cursor came to another tensor."""

        def __init__(self, panel: "TensorPanel", tensor: TensorSpec) -> None:
            super().__init__()
            self.panel = panel
            self.tensor = tensor

        @property
        def control(self) -> "TensorPanel":
            """The panel it happened in."""
            return self.panel

        def can_replace(self, message: Message) -> bool:
            """Only the newest place of the cursor matters."""
            return isinstance(message, type(self)) and message.panel is self.panel

    class TensorSelected(Message):
        """A tensor was chosen."""

        def __init__(self, panel: "TensorPanel", tensor: TensorSpec, whole: LogicalTensor | None) -> None:
            super().__init__()
            self.panel = panel
            self.tensor = tensor
            self.whole = whole
            """With its fragments, where it was decoded."""

        @property
        def control(self) -> "TensorPanel":
            """The panel it happened in."""
            return self.panel

    class _Arranged(Message):
        """The worker has found and ordered the rows."""

        def __init__(
            self,
            rows: Sequence[int],
            typed: int | None,
            query: str,
            column: int | None,
            *,
            descending: bool,
        ) -> None:
            super().__init__()
            self.rows = rows
            self.typed = typed
            self.query = query
            self.column = column
            self.descending = descending

    def __init__(
        self,
        table: TensorTable | None = None,
        *,
        ranks: Ranks | None = None,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`table` is None while nothing was examined; `ranks` is what `rank:` finds files by (`rank_labels`)."""
        self._none = "Not examined yet" if table is None else "No tensor is listed"
        super().__init__(
            TensorTable() if table is None else table, empty=self._none, glyphs=glyphs, id=id, classes=classes
        )
        self._ranks = ranks
        self._wholes: Sequence[LogicalTensor] = ()
        self._offer = ""
        self._typed: int | None = None
        """How many of the listed tensors hold the words of the search as they were typed."""

    def compose(self) -> ComposeResult:
        """Draw the search line, the table or the tree, and its foot."""
        yield SearchLine(
            placeholder=PLACEHOLDER, id="tensor-query", max_length=256, compact=True, select_on_focus=False
        )
        yield self.rows
        yield self.tree_rows
        yield Static(self._foot(), id="tensor-foot")

    def show(
        self,
        table: TensorTable,
        *,
        ranks: Ranks | None = None,
        none: str = "No tensor is listed",
        wholes: Sequence[LogicalTensor] = (),
        offer: str = "",
    ) -> None:
        """Show another catalogue.

        `none` says why where it is empty: all files opaque, for instance. `wholes` are the decoded tensors of its first rows, in
        their order, with their fragments. `offer` is what could be done about files that are not listed.
        """
        self._ranks, self._none = ranks, none
        self._wholes, self._offer, self._typed = wholes, offer, None
        self.rows.say_empty(none)
        self.show_tensors(table)
        self.tell()
        if self._query:
            self._arrange(self._query, None, descending=False)

    def whole(self, row: int) -> LogicalTensor | None:
        """Return the decoded tensor of a row of the catalogue, with its fragments."""
        return self._wholes[row] if row < len(self._wholes) else None

    def find(self, name: str) -> bool:
        """Put the cursor on the tensor of an exact name; False where it is not there."""
        try:
            row = self._table.names.index(name)
        except ValueError:
            return False
        if row not in self.rows.order:
            self._set_query("")
            self.rows.show_rows(range(len(self._table)))
        self.go_to_row(row)
        return True

    # Searching.

    def search(self, query: str | None = None) -> None:
        """Give the keys to the search line; with a query, search for that."""
        self.add_class("-searching")
        if query is not None:
            self._set_query(query)
        self.query_one(SearchLine).focus()

    def _set_query(self, query: str) -> None:
        self.query_one(SearchLine).value = query

    def action_clear_search(self) -> None:
        """Show all tensors again and give the keys to the table."""
        self._set_query("")
        self._query = ""  # now, and not when the line has told: the keys go to what is in front then
        self._arrange("", self.rows.sort_column, descending=self.rows.descending)
        self.remove_class("-searching")
        self._turn()
        self.keys_widget.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Leave escape to others while there is no search to clear."""
        return action != "clear_search" or self.has_class("-searching")

    @on(Input.Changed)
    def _query_changed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self._query:
            self._query = event.value
            self._turn()
            self._arrange(self._query, self.rows.sort_column, descending=self.rows.descending)

    @on(Input.Submitted)
    def _query_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not event.value.strip():
            self.remove_class("-searching")
        self.keys_widget.focus()

    @on(VirtualTable.SortRequested)
    def _sort_requested(self, event: VirtualTable.SortRequested) -> None:
        event.stop()
        self._arrange(self._query, event.column, descending=event.descending)

    @work(thread=True, exclusive=True, group="arrange", exit_on_error=False)
    def _arrange(self, query: str, column: int | None, *, descending: bool) -> None:
        cancel: threading.Event = get_current_worker().cancelled_event
        typed = None
        try:
            rows = matching_rows(self._table, query, cancel, ranks=self._ranks)
            if words := loose_words(query):
                ranked = ranked_rows(self._table, rows, words, cancel)
                rows, typed = ranked.rows, ranked.typed
            if column is not None:
                rows, typed = (
                    sorted_rows(self._table, rows, COLUMNS[column], cancel, descending=descending),
                    None,
                )
        except Cancelled:
            return
        self.post_message(self._Arranged(rows, typed, query, column, descending=descending))

    @on(_Arranged)
    def _show_arranged(self, event: _Arranged) -> None:
        event.stop()
        if event.query != self._query:  # a newer search is on its way
            return
        self.rows.say_empty("No tensor matches" if event.query.strip() else self._none)
        self._typed = event.typed
        self.rows.show_sorted(event.rows, event.column, descending=event.descending)
        if event.typed is not None:
            self.rows.move_to(0)  # the best answer
        self.tell()

    def on_resize(self) -> None:
        """Give the foot the new width."""
        self.tell()

    def _foot(self) -> Content:
        listing = Listing(
            len(self._table) if self.is_tree else len(self.rows.order),
            len(self._table),
            self._typed,
            self.marks.words,
            self._offer,
        )
        row, node = self.row, self.tree_rows.node
        width = max(16, self.size.width - 2)
        ellipsis = self.rows.glyphs.ellipsis
        if row is None:
            module = "" if not self.is_tree or node is None else self.tree_rows.modules.words(node)
            below = content((elide(visible(module), width, ellipsis, tail=0.5), Tone.MUTED))
            return content(*first_line(listing, width)) + Content("\n") + below
        tensor = self._table[row]
        file = f"  {tensor.file}"
        name = elide(visible(tensor.name), max(16, width - len(file)), ellipsis, tail=0.8)
        facts = (
            (f"   this one {shape_words(tensor.shape)}  {size(tensor.bytes)}", Tone.MUTED),
            *made_of(self.whole(row)),
        )
        return content(*first_line(listing, width, facts)) + Content("\n") + content(name, (file, Tone.MUTED))

    def tell(self) -> None:
        """Say what is listed and selected, and what the cursor is on."""
        self.query_one("#tensor-foot", Static).update(self._foot(), layout=False)

    # Telling.

    @on(VirtualRows.RowHighlighted)
    def _row_highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()
        if event.rows is self.keys_widget:
            self.tell()
            if (tensor := self.tensor) is not None:
                self.post_message(self.TensorHighlighted(self, tensor))

    @on(VirtualRows.RowSelected)
    def _row_selected(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        self.post_message(self.TensorSelected(self, self._table[event.row], self.whole(event.row)))
