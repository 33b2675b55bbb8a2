"""Tiles filled from sources by bounded reads, whatever the sources are and whatever happens to elements on their way.

What tiles need of each source is read in rising order, with reads that touch put together.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from shardscope.engine.geometry.execution.cutting import gathered, reads, within
from shardscope.engine.geometry.execution.move import Bytes
from shardscope.engine.geometry.execution.program import Copy, IndexedCopy
from shardscope.engine.geometry.execution.routes import Route, Target
from shardscope.engine.model.blocker import Fault

Readable: TypeAlias = bytes | bytearray | memoryview
Read: TypeAlias = Callable[[int, int, int], Readable]
"""`read(rank, offset, length)`: exactly these bytes of a source rank's shard. Called from several threads at a time."""

Carry: TypeAlias = Callable[[Copy | IndexedCopy, Bytes, Bytes], object]
"""`carry(copy, source, target)`: run a copy between two buffers that it is bounded by, with whatever it changes."""

GAP = 16 << 10
"""Bytes that take as long to read as another call does."""

MOST_READS = 4096
"""Parts of one step; a step that would need more is done in halves, so that what is planned stays small too."""


class Area(Protocol):
    """A stretch of what is being made, to be filled."""

    @property
    def low(self) -> int: ...

    @property
    def high(self) -> int: ...

    @property
    def routes(self) -> tuple[Route, ...]: ...

    @property
    def data(self) -> Bytes:
        """Where it is filled in. `carry` gets it with copies whose targets count from `low`."""
        ...

    def cut(self, low: int, high: int) -> Self: ...


class Tile(NamedTuple):
    """A stretch of one target's shard."""

    target: Target
    low: int
    high: int
    routes: tuple[Route, ...]
    """Those that reach into it."""
    data: Bytes
    buffer: Bytes
    """That `data` is a part of."""

    def cut(self, low: int, high: int) -> Self:
        """Return a part of the tile."""
        return self._replace(low=low, high=high, data=self.data[low - self.low : high - self.low])


class _Request(NamedTuple):
    """A copy from a source shard into a tile."""

    low: int
    high: int
    """Source bytes between which it reads."""
    copy: Copy
    data: Bytes
    """Of the tile that the copy's target is measured from."""


class Filling:
    """Fills tiles. One thread uses it at a time where `read` hands out a buffer that it uses again."""

    def __init__(self, read: Read, carry: Carry, step: int, grain: int) -> None:
        self._read = read
        self._carry = carry
        self._step = step
        """Bytes of one read; a single run between two addresses of an index may be longer."""
        self._grain = grain
        """Bytes that a tile's ends are multiples of, so that no element is cut."""

    def read(self, rank: int, offset: int, length: int) -> Bytes:
        """Return bytes of a source shard.

        Raises `Fault` `map.short_read`.
        """
        data = np.frombuffer(self._read(rank, offset, length), np.uint8)
        if len(data) != length:
            raise Fault("map.short_read", rank=rank, offset=offset, found=len(data), expected=length)
        return data

    def fill(self, tiles: Sequence[Area]) -> None:
        """Read what tiles are made of and put it in its place. What no copy reaches stays as it is.

        Raises `Fault` `map.short_read`, and those of scaling.
        """
        parts: list[tuple[int, Copy, Area]] = []
        count = 0
        for tile in tiles:
            for route in tile.routes:
                if isinstance(route.copy, IndexedCopy) or route.start >= tile.high or route.end <= tile.low:
                    continue
                for part in within(route.copy, tile.low, tile.high):
                    parts.append((route.source_rank, part, tile))
                    count += reads(part, GAP)
            if count > MOST_READS and any(tile.high - tile.low > self._grain for tile in tiles):
                for half in _halves(tiles, self._grain):
                    self.fill(half)
                return
        requests: dict[int, list[_Request]] = {}
        for rank, part, tile in parts:
            for copy in gathered(part, GAP):
                low = copy.source.offset
                request = _Request(low, low + copy.source_span, copy.moved(0, tile.low), tile.data)
                requests.setdefault(rank, []).append(request)
        for rank in sorted(requests):
            self._serve(rank, requests[rank])
        for tile in tiles:
            for route in tile.routes:
                if isinstance(route.copy, IndexedCopy):
                    self._serve_indexed(route.source_rank, route.copy, tile)

    def _serve(self, rank: int, requests: list[_Request]) -> None:
        """Read the stretches of a source shard that requests touch, each once, and run the requests."""
        requests.sort(key=lambda request: request.low)
        start = 0
        while start < len(requests):
            low, high, end = requests[start].low, requests[start].high, start + 1
            while end < len(requests) and requests[end].low <= high + GAP:
                reach = max(high, requests[end].high)
                if reach - low > self._step and requests[end].low >= high:
                    break
                high = reach
                end += 1
            self._run(rank, low, high, requests[start:end])
            start = end

    def _run(self, rank: int, low: int, high: int, requests: Sequence[_Request]) -> None:
        if high - low <= self._step:
            data = self.read(rank, low, high - low)
            for request in requests:
                self._carry(request.copy.moved(low, 0), data, request.data)
            return
        for begin in range(low, high, self._step):
            end = min(begin + self._step, high)
            data = self.read(rank, begin, end - begin)
            for request in requests:
                if request.low < end and request.high > begin:
                    for part in within(request.copy.turned(), begin, end):
                        self._carry(part.turned().moved(begin, 0), data, request.data)

    def _serve_indexed(self, rank: int, copy: IndexedCopy, tile: Area) -> None:
        unit = copy.unit
        target = np.frombuffer(copy.target, "<i8")
        first, last = np.searchsorted(target, (-(-tile.low // unit), -(-tile.high // unit)))
        source = np.frombuffer(copy.source, "<i8")[first:last]
        order = np.argsort(source, kind="stable")
        source, target = source[order], target[first:last][order] - tile.low // unit
        breaks = np.flatnonzero(np.diff(source) > (GAP + copy.run) // unit) + 1
        ends = [*breaks.tolist(), len(source)]
        at, place = 0, 0
        while at < len(source):
            while ends[place] <= at:
                place += 1
            low = int(source[at])
            far = int(np.searchsorted(source, low + (self._step - copy.run) // unit, "right"))
            end = min(ends[place], max(at + 1, far))
            length = (int(source[end - 1]) - low) * unit + copy.run
            data = self.read(rank, low * unit, length)
            some = IndexedCopy(
                copy.run, unit, (source[at:end] - low).tobytes(), target[at:end].tobytes(), copy.scale
            )
            self._carry(some, data, tile.data)
            at = end


def _halves(tiles: Sequence[Area], grain: int) -> Iterator[list[Area]]:
    middles = [tile.low + max(grain, (tile.high - tile.low) // 2 // grain * grain) for tile in tiles]
    pairs = list(zip(tiles, middles, strict=True))
    yield [tile.cut(tile.low, min(middle, tile.high)) for tile, middle in pairs]
    later = [tile.cut(middle, tile.high) for tile, middle in pairs if middle < tile.high]
    if later:
        yield later
