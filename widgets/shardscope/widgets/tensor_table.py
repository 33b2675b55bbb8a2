"""The tensors of a checkpoint: a table of any length with a search line and an order."""

import threading
from collections.abc import Sequence
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.tensors import TensorSpec, TensorTable
from shardscope.widgets.figures import plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, content, elide, visible
from shardscope.widgets.search_line import SearchLine
from shardscope.widgets.tensor_detail import shape_words
from shardscope.widgets.tensor_query import COLUMNS, Ranks, matching_rows, sorted_rows
from shardscope.widgets.virtual_table import Column, VirtualTable

FILE_FROM: Final = 100
"""Cells of a table that has room for the files; where it is narrower, the foot names the file of the cursor."""
SHAPES: Final = 10_000
"""Distinct shapes that are looked at for the width of their column."""
PLACEHOLDER: Final = "name  !not  dtype:bf16  shape:4096  file:  shard:  rank:  >1GiB"


class TensorRows:
    """A catalogue of tensors as rows of a table. A row is read when it is drawn."""

    def __init__(self, table: TensorTable) -> None:
        """Show what `table` holds now; make another when it has grown."""
        self.row_count = len(table)
        self._names = table.names
        self._columns = {name: table.column(name) for name in ("dtype", "shape", "file", "begin", "end")}
        self._dtypes = table.dtypes
        self._shapes = table.shapes
        files = table.files
        ends = {file.rpartition(".")[2] for file in files}
        end = f".{ends.pop()}" if len(ends) == 1 else ""
        self._files = [file.removesuffix(end) for file in files]

    def columns(self) -> list[Column]:
        """Return columns that are as wide as what stands in them; names get the room that is left."""
        shapes = (len(shape_words(shape)) for shape in self._shapes[:SHAPES])
        columns = [
            Column("name", 24, grow=3, tail=1),
            Column("dtype", min(12, max([7, *map(len, self._dtypes)]))),
            Column("shape", min(24, max([7, *shapes]))),
            Column("bytes", 10, right=True),
        ]
        if len(self._files) > 1:
            width = min(32, max(map(len, self._files)))
            columns.append(Column("file", width, tail=1, from_room=FILE_FROM))
        return columns

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row, names as they are."""
        columns = self._columns
        match column:
            case 0:
                return self._names[row]
            case 1:
                return self._dtypes[columns["dtype"][row]]
            case 2:
                shape = self._shapes[columns["shape"][row]]
                return shape_words(shape)
            case 3:
                return size(columns["end"][row] - columns["begin"][row])
        return self._files[columns["file"][row]], Tone.MUTED


class TensorPanel(Vertical):
    """The table, a search line above it, and below it the count and the tensor of the cursor in full.

    `TensorPanel(table=None, *, ranks=None, glyphs=None, id=None, classes=None)`, then `show(table, ranks=...)`. It
    searches and sorts in a thread of its own. `search()` gives the keys to the search line; escape clears it.

    Messages: `TensorHighlighted` and `TensorSelected` with the `TensorSpec` (its name is raw).
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

        def __init__(self, rows: Sequence[int], query: str, column: int | None, *, descending: bool) -> None:
            super().__init__()
            self.rows = rows
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
        super().__init__(id=id, classes=classes)
        self._table = TensorTable() if table is None else table
        self._ranks = ranks
        self._wholes: Sequence[LogicalTensor] = ()
        self._offer = ""
        self._query = ""
        self._none = "Not examined yet" if table is None else "No tensor is listed"
        rows = TensorRows(self._table)
        self.rows = VirtualTable(rows.columns(), rows, empty=self._none, glyphs=glyphs)

    def compose(self) -> ComposeResult:
        """Draw the search line, the table and its foot."""
        yield SearchLine(
            placeholder=PLACEHOLDER, id="tensor-query", max_length=256, compact=True, select_on_focus=False
        )
        yield self.rows
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
        self._table, self._ranks, self._none = table, ranks, none
        self._wholes, self._offer = wholes, offer
        self.rows.sort_column = None
        self.rows.say_empty(none)
        rows = TensorRows(table)
        self.rows.show(rows, columns=rows.columns())
        self._tell()
        if self._query:
            self._arrange(self._query, None, descending=False)

    @property
    def tensor(self) -> TensorSpec | None:
        """The tensor under the cursor."""
        row = self.rows.row
        return None if row is None else self._table[row]

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
        self.rows.move_to_row(row)
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
        self.remove_class("-searching")
        self.rows.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Leave escape to others while there is no search to clear."""
        return action != "clear_search" or self.has_class("-searching")

    @on(Input.Changed)
    def _query_changed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self._query:
            self._query = event.value
            self._arrange(self._query, self.rows.sort_column, descending=self.rows.descending)

    @on(Input.Submitted)
    def _query_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not event.value.strip():
            self.remove_class("-searching")
        self.rows.focus()

    @on(VirtualTable.SortRequested)
    def _sort_requested(self, event: VirtualTable.SortRequested) -> None:
        event.stop()
        self._arrange(self._query, event.column, descending=event.descending)

    @work(thread=True, exclusive=True, group="arrange", exit_on_error=False)
    def _arrange(self, query: str, column: int | None, *, descending: bool) -> None:
        cancel: threading.Event = get_current_worker().cancelled_event
        try:
            rows = matching_rows(self._table, query, cancel, ranks=self._ranks)
            if column is not None:
                rows = sorted_rows(self._table, rows, COLUMNS[column], cancel, descending=descending)
        except Cancelled:
            return
        self.post_message(self._Arranged(rows, query, column, descending=descending))

    @on(_Arranged)
    def _show_arranged(self, event: _Arranged) -> None:
        event.stop()
        if event.query != self._query:  # a newer search is on its way
            return
        self.rows.say_empty("No tensor matches" if event.query.strip() else self._none)
        self.rows.show_sorted(event.rows, event.column, descending=event.descending)
        self._tell()

    def on_resize(self) -> None:
        """Give the foot the new width."""
        self._tell()

    def _foot(self) -> Content:
        shown, total = len(self.rows.order), len(self._table)
        if shown == total:
            parts: list[Part] = [(plural(total, "tensor"), Tone.MUTED)]
        else:
            parts = [(f"{shown:,} of {total:,}", Tone.HERE), (" tensors", Tone.MUTED)]
        row = self.rows.row
        if row is None:
            return content(*parts, *self._offered())
        tensor = self._table[row]
        width = max(16, self.size.width - 2)
        file = f"  {tensor.file}"
        name = elide(visible(tensor.name), max(16, width - len(file)), self.rows.glyphs.ellipsis, tail=0.8)
        parts += [(f"  {shape_words(tensor.shape)}", Tone.MUTED), (f"  {size(tensor.bytes)}", Tone.MUTED)]
        parts += self._made_of(self.whole(row))
        return content(*parts, *self._offered()) + Content("\n") + content(name, (file, Tone.MUTED))

    def _offered(self) -> list[Part]:
        return [(f"  {self._offer}", Tone.HERE)] if self._offer else []

    def _made_of(self, whole: LogicalTensor | None) -> list[Part]:
        """Say in a few words what a decoded tensor is made of."""
        if whole is None:
            return []
        words = plural(len(whole.fragments), "fragment")
        if whole.replicas:
            words += f" + {plural(len(whole.replicas), 'copy', 'copies')}"
        parts: list[Part] = [(f"  {words}, enter lists them", Tone.MUTED)]
        if whole.alias_of is not None:
            parts.insert(0, ("  alias", Tone.CAUTION))
        if whole.role in ("frozen", "buffer"):
            parts.insert(0, (f"  {whole.role}", Tone.MUTED))
        return parts

    def _tell(self) -> None:
        self.query_one("#tensor-foot", Static).update(self._foot(), layout=False)

    # Telling.

    @on(VirtualRows.RowHighlighted)
    def _row_highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()
        self._tell()
        self.post_message(self.TensorHighlighted(self, self._table[event.row]))

    @on(VirtualRows.RowSelected)
    def _row_selected(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        self.post_message(self.TensorSelected(self, self._table[event.row], self.whole(event.row)))
