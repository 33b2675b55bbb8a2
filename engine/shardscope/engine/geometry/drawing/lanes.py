"""The stretches of files in which the shards of a tensor lie, with what lies before and behind them: a ribbon for each.

A partition of ZeRO is one long line: parameters end to end, cut where ranks begin, padded at the end. Each shard's record is a
lane, in bytes of the record; a tensor whose shards lie alone in their records has lanes of itself.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import prod

from msgspec import Struct

from shardscope.engine.geometry.drawing.axis import cut
from shardscope.engine.geometry.drawing.lines import TALLEST
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.picture import CLASH, OUTSIDE, PADDING, Mark
from shardscope.engine.model.shardmap import FlatRange, TensorMap
from shardscope.engine.model.shardview import Drawing, Label, Spot, Window
from shardscope.engine.model.tensors import DTYPES

BEFORE, AFTER = "<", ">"
"""Letters of neighbours: other tensors before and behind the one that is looked at."""


class Stretch(Struct, frozen=True):
    """Bytes of a lane that one tensor has."""

    begin: int
    end: int
    tensor: str
    """Raw name."""
    own: bool


class Lane(Struct, frozen=True):
    """One record with shards of a tensor."""

    label: int
    """Of the first shard in it."""
    record: Record
    stretches: tuple[Stretch, ...]
    """Sorted; bytes between them are padding, or belong to what was not listed."""
    own: tuple[int, ...]
    """Which of them are the tensor's."""

    def at(self, byte: int) -> Stretch | None:
        """Return what a byte belongs to; null for nothing that is known."""
        number = bisect_right(self.stretches, byte, key=_begin) - 1
        return self.stretches[number] if number >= 0 and byte < self.stretches[number].end else None

    @property
    def neighbours(self) -> tuple[str | None, str | None]:
        """The raw names of what lies directly before the tensor and behind it."""
        if not self.own:
            return None, None
        before, behind = self.own[0] - 1, self.own[-1] + 1
        return (
            self.stretches[before].tensor if before >= 0 else None,
            self.stretches[behind].tensor if behind < len(self.stretches) else None,
        )

    def edges(self, first: int, last: int, most: int) -> list[int] | None:
        """Return where stretches begin and end among some bytes; null where these are more than `most` stretches."""
        low = max(0, bisect_right(self.stretches, first, key=_begin) - 1)
        high = bisect_left(self.stretches, last, key=_begin)
        if high - low > most:
            return None
        return [edge for one in self.stretches[low:high] for edge in (one.begin, one.end)]


def _begin(stretch: Stretch) -> int:
    return stretch.begin


def lanes(tensor: LogicalTensor, tensors: Sequence[LogicalTensor]) -> tuple[Lane, ...]:
    """Return a lane for each record of a tensor, in the order of its shards; `tensors` are all that may be its neighbours."""
    found: dict[tuple[str, int], tuple[Fragment, list[Stretch]]] = {}
    for fragment in tensor.fragments:
        found.setdefault((fragment.record.file, fragment.record.begin), (fragment, []))
    for other in tensors:
        own = other is tensor
        if not own and (other.alias_of is not None or other.dtype not in DTYPES):
            continue
        for fragment in other.fragments:
            lane = found.get((fragment.record.file, fragment.record.begin))
            if lane is not None and (known := DTYPES.get(fragment.dtype or other.dtype)) is not None:
                size = -(-prod(fragment.shape) * known.bits // 8)
                if size:
                    lane[1].append(Stretch(fragment.offset, fragment.offset + size, other.name, own))
    return tuple(_lane(first, some) for first, some in found.values())


def _lane(first: Fragment, some: list[Stretch]) -> Lane:
    stretches = tuple(sorted(some, key=lambda one: (one.begin, not one.own)))
    own = tuple(number for number, one in enumerate(stretches) if one.own)
    return Lane(first.label, first.record, stretches, own)


def longest(found: Sequence[Lane]) -> int:
    """Return the bytes of the longest lane."""
    return max((lane.record.size for lane in found), default=0)


def around(found: Sequence[Lane]) -> Window:
    """Return the window with the tensor and its next neighbours, in all lanes."""
    low, high = longest(found), 0
    for lane in found:
        if lane.own:
            before, behind = max(0, lane.own[0] - 1), lane.own[-1] + 1
            end = lane.stretches[behind].end if behind < len(lane.stretches) else lane.record.size
            low, high = min(low, lane.stretches[before].begin), max(high, end)
    return Window(0, len(found), low, max(0, high - low))


def ribbon(
    found: Sequence[Lane],
    letters: Sequence[str],
    names: Sequence[str],
    window: Window,
    width: int,
    height: int,
) -> Drawing:
    """Return a window of lanes; `letters` and `names` are those of their shards."""
    rows = cut(window.row, window.rows, height, (), repeat=TALLEST)
    shown = [found[row] for row in rows.starts]
    edges = [lane.edges(window.column, window.column + window.columns, width) for lane in shown]
    known = sorted({edge for some in edges for edge in some or ()})
    columns = cut(window.column, window.columns, width, known, known=None not in edges)
    cells = []
    for row, lane in zip(rows.starts, shown, strict=True):
        cells.append("".join(_letter(lane, start, letters[row]) for start in columns.starts))
    seen = set("".join(cells))
    means = {
        BEFORE: "before it",
        AFTER: "behind it",
        PADDING: "padding, or not listed",
    }
    means[CLASH] = "shared bytes"
    return Drawing(
        view="files",
        extent=(len(found), longest(found)),
        window=window,
        rows=rows,
        columns=columns,
        folds=(None,) * len(cells),
        cells=tuple(cells),
        marks=tuple(Mark(letter, words) for letter, words in means.items() if letter in seen),
        labels=tuple(
            Label(line, names[row])
            for line, row in enumerate(rows.starts)
            if not line or rows.starts[line - 1] != row
        ),
        note="" if rows.exact and columns.exact else "a cell shows its first byte",
    )


def _letter(lane: Lane, byte: int, own: str) -> str:
    if byte >= lane.record.size:
        return OUTSIDE
    stretch = lane.at(byte)
    if stretch is None:
        return PADDING
    if stretch.own:
        return own
    first = lane.stretches[lane.own[0]].begin if lane.own else 0
    return BEFORE if stretch.begin < first else AFTER


def lane_spot(lane: Lane, byte: int, own: str) -> Spot:
    """Return what a byte of a lane belongs to, in words."""
    letter = _letter(lane, byte, own)
    if letter == OUTSIDE:
        return Spot(letter, None, says="behind the end of the record")
    stretch = lane.at(byte)
    if stretch is None:
        return Spot(letter, None, says="padding, or bytes of what is not listed")
    return Spot(letter, None, says="" if stretch.own else stretch.tensor)


def is_partition(tensor: LogicalTensor) -> bool:
    """Tell whether shards of a tensor are stretches of flattened buffers, as ZeRO's are: best seen in their files."""
    flat = isinstance(tensor.map, TensorMap) and isinstance(tensor.map.map, FlatRange)
    stretched = len(tensor.shape) > 1 and any(len(fragment.shape) == 1 for fragment in tensor.fragments)
    return flat or stretched
