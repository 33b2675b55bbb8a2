"""Boxes that should make up a tensor: how far they reach, what none of them holds, what two of them hold.

Everything is arithmetic on offsets and sizes, exact for any number of axes; no element is ever walked. Work follows the
number of boxes, and the part that hostile offsets could blow up is counted against a bound.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Fault

Span = tuple[int, int]
"""A half-open stretch along one axis."""

LARGEST: Final = (1 << 63) - 1
"""The highest place that a tensor's axis can have."""


class Fragment(Struct, frozen=True, gc=False):
    """One box of a tensor, in elements along each axis."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]
    file: int
    """Which of the files holds it, by its place in the caller's list."""

    @property
    def elements(self) -> int:
        """How many elements it holds."""
        return prod(self.shape)


class Work:
    """A bound on the steps of covering, shared by all tensors of one inspection."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.steps = 0

    def spend(self, steps: int) -> None:
        """Count `steps`; raises `Fault` `limit.fragment_steps` beyond the limit."""
        self.steps += steps
        if self.steps > self.limit:
            raise Fault("limit.fragment_steps", limit=self.limit, found=self.steps)


class Coverage(Struct, frozen=True):
    """How fragments lie in their tensor."""

    missing: int
    """Elements that no fragment holds."""
    hole: tuple[Span, ...] | None
    """One box of them, a stretch for each axis."""
    repeated: int
    """Elements that more than one fragment holds, each counted once."""
    overlap: tuple[int, int] | None
    """Two fragments that share some, by their places in the list."""


def reach(fragments: Sequence[Fragment]) -> tuple[int, ...]:
    """Return how far fragments (at least one, all of one rank) reach along each axis: the largest offset plus size."""
    ends = (map(sum, zip(item.offset, item.shape, strict=True)) for item in fragments)
    return tuple(max(along) for along in zip(*ends, strict=True))


def cover(fragments: Sequence[Fragment], extent: Sequence[int], work: Work) -> Coverage:
    """Return how fragments lie in a tensor of the shape `extent`, which all of them stay within.

    Raises `Fault` `limit.fragment_steps`.
    """
    if not prod(extent):
        return Coverage(0, None, 0, None)
    held = [number for number, item in enumerate(fragments) if item.elements]
    sweep = _Sweep(fragments, extent, work)
    filled = sweep.along(0, held, 1, ())
    return Coverage(prod(extent) - filled, sweep.hole, sweep.repeated, sweep.overlap)


class _Sweep:
    """A cut into slabs, axis by axis: along each slab the same fragments lie side by side."""

    def __init__(self, fragments: Sequence[Fragment], extent: Sequence[int], work: Work) -> None:
        self._fragments = fragments
        self._extent = extent
        self._work = work
        self.hole: tuple[Span, ...] | None = None
        self.repeated = 0
        self.overlap: tuple[int, int] | None = None

    def along(self, axis: int, active: Sequence[int], weight: int, place: tuple[Span, ...]) -> int:
        """Return how many elements of the slab at `place` (of thickness `weight` so far) the active fragments fill."""
        self._work.spend(len(active) + 1)
        if not active:
            self._lacks((*place, *((0, size) for size in self._extent[axis:])))
            return 0
        if axis == len(self._extent):
            if len(active) > 1:
                self.repeated += weight
                self.overlap = self.overlap or (min(active), max(active))
            return weight
        if len(active) == 1:
            return self._single(axis, self._fragments[active[0]], weight, place)
        spans = {number: self._span(number, axis) for number in active}
        cuts = sorted({0, self._extent[axis], *(end for span in spans.values() for end in span)})
        waiting = sorted(active, key=lambda number: spans[number], reverse=True)
        inside: list[int] = []
        filled = 0
        for begin, end in pairwise(cuts):
            inside = [number for number in inside if spans[number][1] > begin]
            while waiting and spans[waiting[-1]][0] == begin:
                inside.append(waiting.pop())
            filled += self.along(axis + 1, inside, weight * (end - begin), (*place, (begin, end)))
        return filled

    def _span(self, number: int, axis: int) -> Span:
        item = self._fragments[number]
        return item.offset[axis], item.offset[axis] + item.shape[axis]

    def _single(self, axis: int, item: Fragment, weight: int, place: tuple[Span, ...]) -> int:
        """Fill a slab with the one fragment that lies in it."""
        spans: list[Span] = []
        for along in range(axis, len(self._extent)):
            begin, size, extent = item.offset[along], item.shape[along], self._extent[along]
            if size < extent:
                rest = (begin + size, extent) if begin == 0 else (0, begin)
                self._lacks((*place, *spans, rest, *((0, further) for further in self._extent[along + 1 :])))
            spans.append((begin, begin + size))
        return weight * prod(item.shape[axis:])

    def _lacks(self, hole: tuple[Span, ...]) -> None:
        if self.hole is None:
            self.hole = hole


def ends_short(fragments: Sequence[Fragment]) -> bool:
    """Tell whether the last piece along every cut axis is smaller than the first.

    An even cut (torch.chunk, as FSDP and DTensor cut) makes equal pieces but for the last, so a smaller last piece
    speaks for being the end; equal pieces say nothing.
    """
    cut = False
    for offsets, sizes in zip(
        zip(*(item.offset for item in fragments), strict=True),
        zip(*(item.shape for item in fragments), strict=True),
        strict=True,
    ):
        pieces = sorted(set(zip(offsets, sizes, strict=True)))
        if len({begin for begin, _ in pieces}) > 1:
            cut = True
            if pieces[-1][1] >= pieces[0][1]:
                return False
    return cut


def settles(fragments: Sequence[Fragment], extent: Sequence[int], shards: int) -> bool:
    """Tell whether a whole tensor of known `extent`, evenly cut into `shards` pieces along one axis, leaves no room for one more.

    Among one shard more, an even cut would have made smaller pieces.
    """
    if len(fragments) != shards or len({item.file for item in fragments}) != shards:
        return False
    cut = [axis for axis in range(len(extent)) if any(item.offset[axis] for item in fragments)]
    if len(cut) != 1 or shards < 2:
        return False
    first = max(item.shape[cut[0]] for item in fragments)
    return -(-extent[cut[0]] // shards) == first > -(-extent[cut[0]] // (shards + 1))
