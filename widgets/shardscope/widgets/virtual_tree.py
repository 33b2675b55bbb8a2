"""A tree of any size: branches are read when they open, rows are drawn when they come in sight.

The rows in view are three arrays: the node, its depth, and a bit for each ancestor that has further children (where a
guide runs). Opening a branch splices its children in, closing cuts them out; both move memory, no objects.
"""

from array import array
from collections.abc import Sequence
from typing import Final, Protocol

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.message import Message

from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, visible

DEEPEST: Final = 63
"""Levels that are drawn with guides of their own; deeper ones stand at the same indent."""


def _text(part: Part) -> str:
    return visible(part if isinstance(part, str) else part[0])


def _alike(one: str, other: str) -> int:
    """Return how many characters two names have in common at the beginning."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


class TreeSource(Protocol):
    """Where nodes come from. A node is a number from 0; texts may be raw, the tree neutralises what it draws."""

    def children(self, node: int | None) -> Sequence[int]:
        """Return the children of a branch, in order; those of the root for None. Called when it opens."""
        ...

    def parent(self, node: int) -> int | None:
        """Return the branch that holds a node; None for the root."""
        ...

    def is_branch(self, node: int) -> bool:
        """Tell whether a node can be opened."""
        ...

    def label(self, node: int) -> Part:
        """Return the name of a node."""
        ...

    def detail(self, node: int) -> Part:
        """Return what stands at the right of a node, such as its size."""
        ...

    def marks(self, node: int) -> Sequence[tuple[str, Tone]]:
        """Return the marks of a node: a letter each, with its tone."""
        ...


class VirtualTree(VirtualRows):
    """A tree over a `TreeSource`.

    `VirtualTree(source, *, detail_width=0, mark_width=0, empty="...", glyphs=None, id=None, classes=None)`

    Messages: `RowHighlighted` and `RowSelected` (their `row` is the node), `BranchToggled`. Enter and a click open and
    close a branch; right opens, left closes or goes to the parent.
    """

    BINDING_GROUP_TITLE = "Tree"

    class BranchToggled(Message):
        """A branch was opened or closed."""

        def __init__(self, tree_view: "VirtualTree", node: int, *, is_open: bool) -> None:
            super().__init__()
            self.tree_view = tree_view
            self.node = node
            self.is_open = is_open

        @property
        def control(self) -> "VirtualTree":
            """The tree it happened in."""
            return self.tree_view

    def __init__(
        self,
        source: TreeSource,
        *,
        detail_width: int = 0,
        mark_width: int = 0,
        empty: str = "Nothing to show",
        glyphs: Glyphs | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`detail_width` and `mark_width` are the cells of the columns at the right; 0 leaves them out."""
        super().__init__(empty=empty, glyphs=glyphs, name=name, id=id, classes=classes)
        self.source = source
        self.detail_width = detail_width
        self.mark_width = mark_width
        self._rows = array("L")
        self._depths = array("H")
        self._runs = array("Q")
        """Bit d is set where the ancestor at depth d, or the row itself, has further siblings."""
        self._open: set[int] = set()
        self._fill()

    # The rows.

    def row_count(self) -> int:
        """Return how many nodes are in view."""
        return len(self._rows)

    def source_row(self, line: int) -> int:
        """Return the node at `line`."""
        return self._rows[line]

    @property
    def node(self) -> int | None:
        """The node under the cursor; None in an empty tree."""
        return self._rows[self.cursor] if self._rows else None

    def show(self, source: TreeSource) -> None:
        """Show another tree, closed."""
        self.source = source
        self._open.clear()
        self._fill()
        self.rows_changed(0)

    def refresh_nodes(self) -> None:
        """Draw the same nodes anew: labels, details or marks have changed."""
        self.rows_changed()

    def _fill(self) -> None:
        self._rows, self._depths, self._runs = self._below(None, 0, 0)

    def _below(self, node: int | None, depth: int, runs: int) -> "tuple[array[int], array[int], array[int]]":
        """Return the rows of what hangs below `node`, open branches included."""
        nodes = array("L", self.source.children(node))
        depths = array("H", [depth]) * len(nodes)
        own = 1 << min(depth, DEEPEST)
        masks = array("Q", [runs | own]) * len(nodes)
        if nodes:
            masks[-1] = runs & ~own
        if self._open:
            opened = [line for line, child in enumerate(nodes) if child in self._open]
            for line in reversed(opened):
                inner = self._below(nodes[line], depth + 1, masks[line])
                for rows, more in zip((nodes, depths, masks), inner, strict=True):
                    rows[line + 1 : line + 1] = more
        return nodes, depths, masks

    def _end_of(self, line: int) -> int:
        """Return the line after the last one that hangs below `line`."""
        depth = self._depths[line]
        end = line + 1
        count = len(self._depths)
        while end < count and self._depths[end] > depth:
            end += 1
        return end

    # Opening and closing.

    def is_open(self, node: int) -> bool:
        """Tell whether the children of a branch are shown (once its own parents are)."""
        return node in self._open

    def open_line(self, line: int) -> None:
        """Show the children of the branch at `line`."""
        node = self._rows[line]
        if node in self._open or not self.source.is_branch(node):
            return
        inner = self._below(node, self._depths[line] + 1, self._runs[line])
        self._open.add(node)
        for rows, more in zip((self._rows, self._depths, self._runs), inner, strict=True):
            rows[line + 1 : line + 1] = more
        self.rows_changed()
        self.post_message(self.BranchToggled(self, node, is_open=True))

    def close_line(self, line: int) -> None:
        """Hide the children of the branch at `line`."""
        node = self._rows[line]
        if node not in self._open:
            return
        end = self._end_of(line)
        self._open.discard(node)
        for rows in (self._rows, self._depths, self._runs):
            del rows[line + 1 : end]
        self.rows_changed()
        self.post_message(self.BranchToggled(self, node, is_open=False))

    def reveal(self, node: int) -> None:
        """Open the branches above a node and put the cursor on it."""
        above: list[int] = []
        parent = self.source.parent(node)
        while parent is not None:
            above.append(parent)
            parent = self.source.parent(parent)
        for branch in reversed(above):
            self.open_line(self._rows.index(branch))
        self.move_to(self._rows.index(node))

    # Drawing.

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return the node at `line` in segments."""
        node = self._rows[line]
        stem = self._stem(line)
        sides = self.detail_width + self.mark_width
        label_width = max(8, self.room - cell_len(stem) - sides - (2 if self.detail_width else 1))
        segments = [
            Segment(stem, style or self.tone_style(Tone.MUTED)),
            self._label(line, label_width, style),
        ]
        gap = Segment(" ", style or self.tone_style(Tone.PLAIN))
        if self.detail_width:
            segments += [gap, self.segment(self.source.detail(node), self.detail_width, style, right=True)]
        if self.mark_width:
            marks = self.source.marks(node)[: self.mark_width]
            segments += [gap, *(self.segment(mark, 1, style) for mark in marks)]
            segments.append(self.segment("", self.mark_width - len(marks), style))
        return segments

    def _label(self, line: int, width: int, style: Style | None) -> Segment:
        part = self.source.label(self._rows[line])
        text = _text(part)
        keep = -1
        if len(text) > width:  # show what tells it from the rows beside it
            beside = [other for other in (line - 1, line + 1) if 0 <= other < len(self._rows)]
            keep = max(
                (_alike(text, _text(self.source.label(self._rows[other]))) for other in beside), default=0
            )
        return self.segment(part, width, style, keep=keep)

    def _stem(self, line: int) -> str:
        glyphs = self.glyphs
        node, depth, runs = self._rows[line], self._depths[line], self._runs[line]
        guides = "".join(
            glyphs.pipe if runs >> level & 1 else glyphs.blank for level in range(1, min(depth, DEEPEST))
        )
        if depth:
            guides += glyphs.branch if runs >> min(depth, DEEPEST) & 1 else glyphs.last
        if not self.source.is_branch(node):
            return guides + "  "
        return f"{guides}{glyphs.open if node in self._open else glyphs.closed} "

    # Acting.

    def action_select(self) -> None:
        """Open or close the branch of the cursor, or choose the leaf."""
        if self._rows and self.source.is_branch(self._rows[self.cursor]):
            self.toggle_line(self.cursor)
        else:
            super().action_select()

    def toggle_line(self, line: int) -> None:
        """Open the branch at `line`, or close it."""
        if self._rows[line] in self._open:
            self.close_line(line)
        else:
            self.open_line(line)

    def action_rightwards(self) -> None:
        """Open the branch of the cursor; go to its first child where it is open."""
        if not self._rows:
            return
        node = self._rows[self.cursor]
        if node in self._open:
            if self._end_of(self.cursor) > self.cursor + 1:
                self.move_to(self.cursor + 1)
        else:
            self.open_line(self.cursor)

    def action_leftwards(self) -> None:
        """Close the branch of the cursor; go to its parent where it is closed."""
        if not self._rows:
            return
        node = self._rows[self.cursor]
        if node in self._open:
            self.close_line(self.cursor)
            return
        parent = self.source.parent(node)
        if parent is not None:
            self.move_to(self._rows.index(parent))

    def line_clicked(self, line: int, x: int) -> None:  # noqa: ARG002 - a row is one thing
        """Put the cursor on a node, and open or close it where it is a branch."""
        chosen = line == self.cursor or self.source.is_branch(self._rows[line])
        self.move_to(line)
        if chosen:
            self.action_select()
