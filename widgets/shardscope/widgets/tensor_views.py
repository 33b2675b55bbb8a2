"""Tensors as a table or as a tree by module, and the selection that both show."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message

from shardscope.engine.model.tensors import TensorSpec, TensorTable
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.tensor_marks import TensorMarks
from shardscope.widgets.tensor_rows import TensorRows
from shardscope.widgets.tensor_tree_view import TensorTree
from shardscope.widgets.virtual_table import VirtualTable


class TensorViews(Vertical):
    """The table and the tree of one catalogue, one of them in front. What they are shown by is `TensorPanel`.

    Message: `NamesWanted` with names to copy.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "t",
            "view",
            "Tree",
            id="tensors.view",
            tooltip="Show the tensors by module, layers that are alike in one row, or as a table again",
        ),
        Binding(
            "space",
            "mark",
            "Select",
            show=False,
            id="tensors.mark",
            tooltip="Select the tensor or the module of the cursor, or take that back",
        ),
        Binding(
            "a",
            "mark_listed",
            "Select listed",
            show=False,
            id="tensors.mark_listed",
            tooltip="Select every tensor that is listed, or take that back",
        ),
        Binding(
            "u", "unmark", "Select none", show=False, id="tensors.unmark", tooltip="Select no tensor any more"
        ),
        Binding(
            "c",
            "names",
            "Copy names",
            show=False,
            id="tensors.names",
            tooltip="Copy the names of the selected tensors, or that of the cursor",
        ),
    ]
    DEFAULT_CSS = """
    TensorViews {
        TensorTree { display: none; }
        &.-tree TensorTree { display: block; }
        &.-tree VirtualTable { display: none; }
    }
    """

    class NamesWanted(Message):
        """The names of tensors are to be copied."""

        def __init__(self, panel: "TensorViews", names: Sequence[str]) -> None:
            super().__init__()
            self.panel = panel
            self.names = names
            """Exact."""

        @property
        def control(self) -> "TensorViews":
            """The panel it happened in."""
            return self.panel

    def __init__(
        self,
        table: TensorTable,
        *,
        empty: str,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """Show `table`; `empty` is said where it has no rows."""
        super().__init__(id=id, classes=classes)
        self._table = table
        self._query = ""
        self.marks = TensorMarks(table)
        rows = TensorRows(table, self.marks)
        self.rows = VirtualTable(rows.columns(), rows, empty=empty, glyphs=glyphs)
        self.tree_rows = TensorTree(self.marks, glyphs=glyphs)
        self._by_module = False
        """Whether the person wants the tree; while a search is on there is the table."""
        self._grown = False
        """Whether the tree shows the tensors that there are now."""

    def on_mount(self) -> None:
        """Give the table the keys, until a person wants the tree."""
        self._turn()

    def show_tensors(self, table: TensorTable) -> None:
        """Show another catalogue, nothing of it selected."""
        self._table = table
        self.marks = TensorMarks(table)
        self._grown = False
        rows = TensorRows(table, self.marks)
        self.rows.sort_column = None
        self.rows.show(rows, columns=rows.columns())
        self._turn()

    def tell(self) -> None:
        """Say what is listed and selected. What has words for it does."""

    @property
    def tensor(self) -> TensorSpec | None:
        """The tensor under the cursor; None on a module."""
        row = self.row
        return None if row is None else self._table[row]

    @property
    def row(self) -> int | None:
        """The row of the catalogue under the cursor."""
        if not self.is_tree:
            return self.rows.row
        node = self.tree_rows.node
        return None if node is None or node >= len(self._table) else node

    @property
    def is_tree(self) -> bool:
        """Whether the tree is in front."""
        return self._by_module and not self._query.strip()

    @property
    def keys_widget(self) -> VirtualRows:
        """What takes the keys: the table or the tree."""
        return self.tree_rows if self.is_tree else self.rows

    # Table and tree.

    def go_to_row(self, row: int) -> None:
        """Put the cursor on a row that is listed; where the tree cannot go there at once, the table comes to the front."""
        self.rows.move_to_row(row)
        if self.is_tree and not (self._grown and self.tree_rows.show_row(row)):
            self._by_module = False
            self._turn()

    def action_view(self) -> None:
        """Show the other one of table and tree, with the cursor on the same tensor."""
        row, node = self.row, self.tree_rows.node
        self._by_module = not self._by_module
        self._turn()
        if self._by_module and row is not None:
            self.tree_rows.show_row(row)
        elif not self._by_module and node is not None:
            self.rows.move_to_row(self.tree_rows.modules.rows(node)[0])
        self.tell()

    def _turn(self) -> None:
        """Bring the table or the tree to the front, and its keys with it."""
        front = self.keys_widget
        had_keys = self.rows.has_focus or self.tree_rows.has_focus
        if self.is_tree and not self._grown:
            self._grown = True
            self.tree_rows.show_table(self._table, self.marks)
        self.set_class(self.is_tree, "-tree")
        for widget in (self.rows, self.tree_rows):
            widget.set_class(widget is front, "-front")
        if had_keys:
            front.focus()

    # Selecting.

    def action_mark(self) -> None:
        """Select what is under the cursor, or take that back, and go on to the next row."""
        if self.is_tree and self.tree_rows.node is not None:
            self.marks.toggle(self.tree_rows.modules.rows(self.tree_rows.node))
        elif not self.is_tree and self.rows.row is not None:
            self.marks.toggle((self.rows.row,))
        self._marked()
        self.keys_widget.action_cursor(1)

    def action_mark_listed(self) -> None:
        """Select everything that is listed, or take that back."""
        self.marks.toggle(range(len(self._table)) if self.is_tree else self.rows.order)
        self._marked()

    def action_unmark(self) -> None:
        """Select nothing."""
        self.marks.clear()
        self._marked()

    def _marked(self) -> None:
        self.keys_widget.rows_changed()
        self.tell()

    def action_names(self) -> None:
        """Ask for a copy of the names of what is selected, or of the tensor of the cursor."""
        tensor = self.tensor
        names = self.marks.names() or ([] if tensor is None else [tensor.name])
        if names:
            self.post_message(self.NamesWanted(self, names))
