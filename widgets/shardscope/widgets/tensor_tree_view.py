"""The module tree of a catalogue on the screen: names, counts, types and bytes of each branch, drawn as they come in sight."""

import threading
from collections.abc import Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import on, work
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.worker import get_current_worker

from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.tensors import TensorTable
from shardscope.widgets.figures import plural
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.tensor_marks import TensorMarks
from shardscope.widgets.tensor_tree import Grouped, ModuleTree
from shardscope.widgets.virtual_tree import VirtualTree

COUNT: Final = 9
KIND: Final = 22
BYTES: Final = 10
"""Cells of the columns at the right: how many tensors, of which types or of what shape, and their bytes."""
COUNT_FROM: Final = 72
KIND_FROM: Final = 56
"""Cells of a tree that has room for the first two."""
GAP: Final = 2


class TensorTree(VirtualTree):
    """A `ModuleTree` with the columns of a table.

    `TensorTree(marks, *, empty="...", glyphs=None, id=None)`, then `show_table(table, marks)`. The top, and branches of many
    tensors, are grouped in a thread of its own.

    Messages: those of `VirtualTree`; a `row` is a node, a tensor below the count of the catalogue and otherwise a branch.
    """

    PINNED = 1
    BINDING_GROUP_TITLE = "Module tree"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "Sort", id="modules.sort", tooltip="Put the largest first, or go by name again"),
    ]

    class _Grouped(Message):
        """The worker knows what a branch holds."""

        def __init__(self, modules: ModuleTree, node: int | None, groups: Grouped) -> None:
            super().__init__()
            self.modules = modules
            self.node = node
            self.groups = groups

    def __init__(
        self,
        marks: TensorMarks,
        *,
        empty: str = "No tensor is listed",
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
    ) -> None:
        """`marks` are the tensors that were selected."""
        self.modules = ModuleTree(TensorTable())
        self.marked = marks
        self._none = empty
        self._wanted: int | None = None
        """The row to go to once the top is grouped."""
        self._growing: int | None = None
        """The branch that a worker is grouping."""
        self._columns: list[int] = []
        super().__init__(self.modules, empty=empty, glyphs=glyphs, id=id)

    def show_table(self, table: TensorTable, marks: TensorMarks) -> None:
        """Show another catalogue, closed but for a single branch at the top."""
        self.modules, self.marked = ModuleTree(table), marks
        self._wanted = self._growing = None
        self.show(ModuleTree(TensorTable()))
        self.say_empty(f"Arranging {plural(len(table), 'tensor')}" if len(table) else self._none)
        self._group(self.modules, None)

    @work(thread=True, exclusive=True, group="modules", exit_on_error=False)
    def _group(self, modules: ModuleTree, node: int | None) -> None:
        cancel: threading.Event = get_current_worker().cancelled_event
        try:
            groups = modules.group(node, cancel)
        except Cancelled:
            return
        self.post_message(self._Grouped(modules, node, groups))

    @on(_Grouped)
    def _adopt(self, event: _Grouped) -> None:
        event.stop()
        if event.modules is not self.modules:
            return
        self.modules.adopt(event.node, event.groups)
        if event.node is not None:
            self._growing = None if self._growing == event.node else self._growing
            self._open_node(event.node)
            return
        self.say_empty(self._none)
        self.show(self.modules)
        branches = [line for line in range(self.row_count()) if self.modules.is_branch(self._rows[line])]
        if len(branches) == 1:
            self.open_line(branches[0])
        if self._wanted is not None:
            self.show_row(self._wanted)

    def show_row(self, row: int) -> bool:
        """Put the cursor on the tensor of a row, opening what holds it; False where that would take a worker."""
        if not self._rows:
            self._wanted = row
            return True
        way = self.modules.way(row)
        if way is None:
            return False
        for branch in way:
            self.open_line(self._rows.index(branch))
        self.move_to(self._rows.index(row))
        return True

    def open_line(self, line: int) -> None:
        """Show the children of the branch at `line`, which a worker groups first where there are many."""
        node = self._rows[line]
        if self.modules.is_branch(node) and not self.modules.is_ready(node):
            if self._growing != node:
                self._growing = node
                self._group(self.modules, node)
                self.refresh_nodes()
        else:
            super().open_line(line)

    def _open_node(self, node: int) -> None:
        if node in self._rows:
            super().open_line(self._rows.index(node))

    def action_sort(self) -> None:
        """Put children in the other order; the cursor stays on its node."""
        node = self.node
        self.modules.largest_first = not self.modules.largest_first
        self._fill()
        self.rows_changed(0 if node is None else self._rows.index(node))

    # Drawing.

    def fit_rows(self, room: int) -> None:
        """Choose the columns that there is room for."""
        super().fit_rows(room)
        self._columns = [
            width for width, least in ((COUNT, COUNT_FROM), (KIND, KIND_FROM), (BYTES, 0)) if room >= least
        ]
        self.detail_width = sum(self._columns) + GAP * (len(self._columns) - 1)

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return the node at `line` in segments: stem, mark, name and the columns."""
        node = self._rows[line]
        stem = self._stem(line)
        quiet = style or self.tone_style(Tone.MUTED)
        segments = [Segment(stem, quiet)]
        taken = len(stem) + self.detail_width + GAP
        if self.marked.count:
            sign = self.marked.sign(self.modules.rows(node))
            segments.append(self.segment((f"{sign} ", Tone.HERE), 2, style))
            taken += 2
        if letters := self.modules.marks(node):
            segments.append(self.segment((f"{letters[0][0]} ", letters[0][1]), 2, style))
            taken += 2
        segments.append(self._label(line, max(8, self.room - taken), style))
        return segments + self._aside(self._facts(node), style)

    def draw_pinned(self, y: int) -> list[Segment]:  # noqa: ARG002 - there is one such line
        """Return the titles of the columns."""
        header = self.get_component_rich_style("rows--header")
        sign = f"{self.glyphs.descending}" if self.modules.largest_first else ""
        name = "module" if self.modules.largest_first else f"module {self.glyphs.ascending}"
        title = self.segment(name, max(8, self.room - self.detail_width - GAP), header)
        return [title, *self._aside(("tensors", "type and shape", f"bytes {sign}".rstrip()), header)]

    def _facts(self, node: int) -> tuple[Part, Part, Part]:
        modules = self.modules
        branch = modules.is_branch(node)
        count = f"{len(modules.rows(node)):,}" if branch else ""
        if node == self._growing:
            return count, ("arranging", Tone.HERE), modules.detail(node)
        return count, (modules.kind(node), Tone.MUTED if branch else Tone.PLAIN), modules.detail(node)

    def _aside(self, facts: Sequence[Part], style: Style | None) -> list[Segment]:
        gap = Segment(" " * GAP, style or self.tone_style(Tone.PLAIN))
        segments = []
        for fact, width in zip(facts[-len(self._columns) :], self._columns, strict=True):
            segments += [gap, self.segment(fact, width, style, right=width != KIND)]
        return segments
