"""Bytes of files that were never stored, and zeros that go on to the end of a file: what a disk that was full or a copy that was stopped
leaves of a checkpoint whose header is whole.
"""

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from msgspec import Struct

from shardscope.engine.model.catalogue import Fragment, LogicalTensor
from shardscope.engine.model.progress import check
from shardscope.engine.model.tensors import DTYPES, array_bytes
from shardscope.engine.source.read import OpenFile

PAGE: Final = 4 << 10
"""Bytes of zeros in a tensor that count."""
SLACK: Final = 2 * PAGE
"""Bytes within which ends of stretches are the same, since zeros in tensors are counted in pages."""
MOST_HOLES: Final = 1 << 16
"""Holes of a file that are looked up. Of a file with more it is not told whether there are others."""
_STEP: Final = 1 << 20
_ZEROS: Final = bytes(_STEP)


class Span(NamedTuple):
    """Where a tensor lies in a file."""

    begin: int
    end: int
    tensor: int
    """Its position among those that are looked at."""


class Stretch(NamedTuple):
    """Bytes of a file."""

    begin: int
    end: int


class Unwritten(Struct, frozen=True):
    """What was found about one file."""

    file: str
    size: int
    holes: tuple[Stretch, ...]
    """Those that reach into tensors, cut to these."""
    hit: tuple[int, ...]
    """The tensors that holes reach into, by their order in the file."""
    tail: Stretch | None
    """Zeros up to the end of the file, of two tensors at least."""
    emptied: tuple[int, ...]
    """The tensors that the tail has, by their order in the file."""
    zeros: tuple[Stretch, ...]
    """Holes and tail in rising order, those that are nearly side by side as one."""
    told: bool
    """The file system tells which bytes are stored."""

    @property
    def unstored(self) -> int:
        """Bytes of the tail that are holes."""
        if self.tail is None:
            return 0
        return sum(max(0, hole.end - max(hole.begin, self.tail.begin)) for hole in self.holes)

    @property
    def elsewhere(self) -> tuple[Stretch, ...]:
        """Holes before the tail."""
        return tuple(hole for hole in self.holes if self.tail is None or hole.begin < self.tail.begin)

    def explains(self, begin: int, end: int) -> bool:
        """Tell whether bytes of the file are zero on account of its holes or its tail."""
        at = bisect_right(self.zeros, begin + SLACK, key=lambda each: each.begin) - 1
        if at < 0:
            return False
        low, high = self.zeros[at]
        return high + SLACK >= end and low < end and begin < high


def spans(tensors: Sequence[LogicalTensor]) -> dict[str, list[Span]]:
    """Return where tensors lie, by file, in rising order."""
    found: dict[str, list[Span]] = {}
    for number, tensor in enumerate(tensors):
        for fragment in tensor.fragments:
            place = place_of(tensor, fragment)
            if place.end > place.begin:
                found.setdefault(fragment.record.file, []).append(Span(*place, number))
    for some in found.values():
        some.sort()
    return found


def place_of(tensor: LogicalTensor, fragment: Fragment) -> Stretch:
    """Return the bytes of a file that hold a fragment: all of its record where they cannot be told apart."""
    record = fragment.record
    dtype = fragment.dtype or tensor.dtype
    size = array_bytes(dtype, fragment.shape)
    if record.coding != "plain" or size is None:
        return Stretch(record.begin, record.begin + record.length)
    if fragment.strides is not None:
        reach = 1 + sum((n - 1) * s for n, s in zip(fragment.shape, fragment.strides, strict=False) if n)
        size = -(-reach * DTYPES[dtype].bits // 8) if size and dtype in DTYPES else size
    begin = record.begin + fragment.offset
    return Stretch(begin, min(begin + size, record.begin + record.length))


def look_at(
    name: str, file: OpenFile, places: Sequence[Span], cancel: threading.Event | None = None
) -> Unwritten:
    """Look for holes and for a tail of zeros. Of a file that has none, a page at its end is read. Raises `Fault`, `Cancelled`."""
    holes, whole = _holes(file, cancel)
    told = whole and (bool(holes) or file.size - file.entry.allocated < PAGE)
    furthest = list(accumulate((span.end for span in places), max))
    cut = [part for hole in holes for part in _within(hole, places, furthest)]
    hit = dict.fromkeys(
        span.tensor for hole in holes for span in _overlapping(hole.begin, hole.end, places, furthest)
    )
    begin = _tail(file, holes, cancel)
    emptied = dict.fromkeys(
        span.tensor
        for span in _overlapping(begin, file.size, places, furthest)
        if span.begin >= begin or span.end - begin >= PAGE
    )
    long = file.size - begin >= PAGE and len(emptied) > 1
    tail = Stretch(begin, file.size) if long else None
    zeros = tuple(_joined([*cut, tail] if tail is not None else cut))
    return Unwritten(
        name, file.size, tuple(cut), tuple(hit), tail, tuple(emptied) if long else (), zeros, told
    )


def _joined(ranges: Sequence[Stretch]) -> Iterator[Stretch]:
    """Yield stretches in rising order, those that are nearly side by side as one."""
    held: Stretch | None = None
    for each in sorted(ranges):
        if held is not None and each.begin <= held.end + SLACK:
            held = Stretch(held.begin, max(held.end, each.end))
            continue
        if held is not None:
            yield held
        held = each
    if held is not None:
        yield held


def _overlapping(begin: int, end: int, places: Sequence[Span], furthest: Sequence[int]) -> Iterator[Span]:
    """Yield the spans that share bytes with a stretch."""
    at = bisect_right(furthest, begin)
    while at < len(places) and places[at].begin < end:
        if places[at].end > begin:
            yield places[at]
        at += 1


def _within(hole: Stretch, places: Sequence[Span], furthest: Sequence[int]) -> Iterator[Stretch]:
    """Yield the parts of a hole that tensors have, those side by side as one."""
    held: Stretch | None = None
    for span in _overlapping(hole.begin, hole.end, places, furthest):
        low, high = max(hole.begin, span.begin), min(hole.end, span.end)
        if held is not None and low <= held.end:
            held = Stretch(held.begin, max(held.end, high))
            continue
        if held is not None:
            yield held
        held = Stretch(low, high)
    if held is not None:
        yield held


def _holes(file: OpenFile, cancel: threading.Event | None) -> tuple[list[Stretch], bool]:
    """Return the holes of a file, and whether these are all."""
    found: list[Stretch] = []
    at = 0
    while at < file.size:
        check(cancel)
        at += file.data_at(at)
        hole = file.hole_at(at) if at < file.size else 0
        if hole:
            found.append(Stretch(at, at + hole))
        elif at < file.size:
            return found, False
        at += hole
        if len(found) >= MOST_HOLES:
            return found, at >= file.size
    return found, True


def _tail(file: OpenFile, holes: Sequence[Stretch], cancel: threading.Event | None) -> int:
    """Return where the zeros begin that go on to the end of a file; its size, where there are none."""
    at, step = file.size, PAGE
    ends = [hole.end for hole in holes]
    while at:
        check(cancel)
        after = bisect_left(ends, at)
        if after < len(holes) and holes[after].begin < at:
            at = holes[after].begin
            continue
        low = max(0, at - step)
        data = file.pread(low, at - low)
        if data != _ZEROS[: len(data)]:
            return low + len(data.rstrip(b"\0"))
        at, step = low, min(2 * step, _STEP)
    return 0
