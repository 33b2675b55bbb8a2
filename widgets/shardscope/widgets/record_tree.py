"""What decoded pickles say, as a tree: one branch a stream, its object below it, folded."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from shardscope.engine.model.outline import Outline, OutlineNode
from shardscope.widgets.figures import plural
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.safe import Part, Tone, visible
from shardscope.widgets.virtual_tree import VirtualTree

FOREIGN = "foreign"


class RecordNodes:
    """Outlines as nodes of a tree. The first node of each is its stream; what it holds follows in its own order."""

    def __init__(self, outlines: Sequence[Outline]) -> None:
        self.outlines = outlines
        self._starts = list(accumulate((len(each.nodes) + 1 for each in outlines), initial=0))
        self._below: dict[int, array[int]] = {}

    def outline_of(self, node: int) -> tuple[Outline, int]:
        """Return the stream that a node belongs to, and its place in it: -1 for the stream itself."""
        number = bisect_right(self._starts, node) - 1
        return self.outlines[number], node - self._starts[number] - 1

    def record(self, node: int) -> OutlineNode | None:
        """Return what a node shows; None for a stream."""
        outline, place = self.outline_of(node)
        return None if place < 0 else outline.nodes[place]

    def children(self, node: int | None) -> Sequence[int]:
        """Return what a node holds."""
        if node is None:
            return self._starts[:-1]
        return self._held(node)

    def _held(self, node: int) -> "array[int]":
        number = bisect_right(self._starts, node) - 1
        start = self._starts[number]
        if start not in self._below:
            for place in range(len(self.outlines[number].nodes) + 1):
                self._below[start + place] = array("L")
            for place, each in enumerate(self.outlines[number].nodes):
                self._below[start + each.parent + 1].append(start + place + 1)
        return self._below[node]

    def parent(self, node: int) -> int | None:
        """Return the node that holds another; None for a stream."""
        outline, place = self.outline_of(node)
        return None if place < 0 else node - place + outline.nodes[place].parent

    def is_branch(self, node: int) -> bool:
        """Tell whether a node holds others."""
        return len(self._held(node)) > 0

    def label(self, node: int) -> Part:
        """Return the key of a node, or the file of a stream."""
        record = self.record(node)
        return self.outline_of(node)[0].file if record is None else record.key

    def detail(self, node: int) -> Part:
        """Return what stands behind the key."""
        record = self.record(node)
        if record is None:
            outline = self.outline_of(node)[0]
            more = " and more that is not shown" if outline.left_out else ""
            return f"{plural(len(outline.nodes), 'node')}{more}", Tone.MUTED
        tone = Tone.CAUTION if record.foreign else Tone.HERE if record.kind == "tensor" else Tone.MUTED
        return record.words + (f", {record.left_out:,} not shown" if record.left_out else ""), tone

    def marks(self, node: int) -> Sequence[tuple[str, Tone]]:  # noqa: ARG002 - foreign names are told by a word
        """Return no mark."""
        return ()

    def way(self, node: int) -> str:
        """Return the keys that lead to a node."""
        keys: list[str] = []
        at: int | None = node
        while at is not None and (record := self.record(at)) is not None:
            keys.append(record.key)
            at = self.parent(at)
        return " > ".join(reversed(keys))

    def texts(self) -> list[str]:
        """Return what a search looks at, by node."""
        found = []
        for outline in self.outlines:
            found.append(outline.file)
            found += [
                f"{each.key} {each.words}{' foreign' if each.foreign else ''}" for each in outline.nodes
            ]
        return found


class RecordTree(VirtualTree):
    """The tree. `RecordTree(*, glyphs=None)`, then `show_outlines(outlines)`."""

    BINDING_GROUP_TITLE = "Records"

    def __init__(self, *, glyphs: Glyphs | None = None) -> None:
        """Make an empty tree."""
        self.records = RecordNodes(())
        super().__init__(self.records, empty="What the pickles say was not kept", glyphs=glyphs)

    def show_outlines(self, outlines: Sequence[Outline]) -> None:
        """Show other streams; a single one is open."""
        self.records = RecordNodes(outlines)
        self.show(self.records)
        for _ in range(2):
            if self.row_count() < 3 and self.row_count():
                self.open_line(self.row_count() - 1)

    @property
    def text_lines(self) -> list[str]:
        """What a search looks at, by node."""
        return self.records.texts()

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return a node in segments: stem, key, a word where it is foreign, and what it says."""
        node = self._rows[line]
        record = self.records.record(node)
        stem = self._stem(line)
        room = max(8, self.room - cell_len(stem))
        key = visible(_text(self.records.label(node)))
        foreign = record is not None and record.foreign
        sign = f"  {self.glyphs.caution} {FOREIGN}" if foreign else ""
        width = min(cell_len(key), max(8, room * (2 if record is None else 1) // 3))
        tone = Tone.STRONG if record is None else Tone.CAUTION if foreign else Tone.PLAIN
        segments = [Segment(stem, style or self.tone_style(Tone.MUTED))]
        segments.append(self.segment((key, tone), width, style, tail=0.6))
        segments.append(self.segment((f"{sign}  ", Tone.CAUTION), cell_len(sign) + 2, style))
        rest = max(0, room - width - cell_len(sign) - 2)
        segments.append(self.segment(self.records.detail(node), rest, style, tail=0.3))
        return segments


def _text(part: Part) -> str:
    return part if isinstance(part, str) else part[0]
