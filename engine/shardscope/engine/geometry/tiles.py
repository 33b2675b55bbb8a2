"""Tiles of target shards, filled from source shards by bounded reads: the machinery of `stream`.

The target shards advance together in steps. A step's tiles are filled by reading what they need of each source shard in
rising order, with reads that touch put together, so that targets which share a source's rows read them once.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from shardscope.engine.geometry.cutting import gathered, reads, within
from shardscope.engine.geometry.move import Bytes
from shardscope.engine.geometry.program import Copy, IndexedCopy
from shardscope.engine.geometry.routes import Route, Target, targets
from shardscope.engine.geometry.scale import Element, carry, named
from shardscope.engine.geometry.work import in_order
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.transfer import TransferPlan

Readable: TypeAlias = bytes | bytearray | memoryview
Read: TypeAlias = Callable[[int, int, int], Readable]
"""`read(rank, offset, length)`: exactly these bytes of a source rank's shard. Called from several threads at a time."""

BUDGET = 64 << 20
LEAST = 1 << 20
"""Bytes of buffers: by default, and the fewest that are worth working with."""

STEP = 2 << 20
"""Bytes of the tiles of one step and of one read: together they stay in cache."""

TILE = 64 << 10
"""Bytes of a target's tile below which targets are not filled together."""

GAP = 16 << 10
"""Bytes that take as long to read as another call does."""

MOST_READS = 4096
"""Parts of one step; a step that would need more is done in halves, so that what is planned stays small too."""


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

    def cut(self, low: int, high: int) -> "Tile":
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


class Stream:
    """What both kinds of work share: targets in steps, and tiles filled from source shards."""

    def __init__(
        self,
        plan: TransferPlan,
        source: Lowered,
        target: Lowered,
        dtype: str,
        read: Read,
        budget_bytes: int,
        workers: int,
    ) -> None:
        self.element: Element = named(dtype)
        self._read = read
        self._workers = max(1, workers)
        # Each worker has the tiles of one step and one read; the main thread, while it writes, the tiles of another step.
        share = max(LEAST, budget_bytes) // (2 * self._workers + (self._workers > 1))
        self._step = min(STEP, share) // 4096 * 4096
        self._buffers: list[Bytes] = []
        item = max(1, self.element.bits // 8)
        self._grain = 4096 if 4096 % item == 0 else 4096 * item
        self.targets = targets(plan, source, target, self.element)

    def read(self, rank: int, offset: int, length: int) -> Bytes:
        """Return bytes of a source shard.

        Raises `Fault` `map.short_read`.
        """
        data = np.frombuffer(self._read(rank, offset, length), np.uint8)
        if len(data) != length:
            raise Fault("map.short_read", rank=rank, offset=offset, found=len(data), expected=length)
        return data

    def steps(
        self,
        some: Sequence[Target],
        work: Callable[[Sequence[Tile]], Sequence[Tile]],
        cancel: threading.Event | None,
    ) -> Iterator[Sequence[Tile]]:
        """Yield the tiles of each step of some targets after `work` was done on them, in order; then their buffers are used again."""
        held = [one for one in some if one.size]
        most = max(1, self._step // TILE)
        for start in range(0, len(held), most):
            tasks = (partial(work, tiles) for tiles in self._tiles(held[start : start + most]))
            for tiles in in_order(tasks, self._workers, cancel):
                yield tiles
                self._buffers.append(tiles[0].buffer)

    def _tiles(self, group: Sequence[Target]) -> Iterator[list[Tile]]:
        """Yield the tiles of each step of some targets. Shards of different sizes advance in proportion."""
        grain = self._grain
        each = max(grain, self._step // len(group) // grain * grain - grain)
        count = max(-(-one.size // each) for one in group)
        most = len(group) * (each + grain)  # a tile's ends are rounded down to the grain, each by itself
        active: list[list[Route]] = [[] for _ in group]
        position = [0] * len(group)
        for step in range(count):
            buffer = self._buffers.pop() if self._buffers else np.empty(0, np.uint8)
            if len(buffer) < most:
                buffer = np.empty(most, np.uint8)
            tiles = []
            used = 0
            for number, target in enumerate(group):
                low, high = (
                    target.size
                    if at == count
                    else min(target.size, target.size * at // count // grain * grain)
                    for at in (step, step + 1)
                )
                if low == high:
                    continue
                routes = [route for route in active[number] if route.end > low]
                while position[number] < len(target.routes) and target.routes[position[number]].start < high:
                    routes.append(target.routes[position[number]])
                    position[number] += 1
                active[number] = routes
                data = buffer[used : used + high - low]
                used += high - low
                tiles.append(Tile(target, low, high, tuple(routes), data, buffer))
            if tiles:
                yield tiles

    def fill(self, tiles: Sequence[Tile]) -> None:
        """Read what tiles are made of and put it in its place. What no copy reaches stays as it is.

        Raises `Fault` `map.short_read`, and those of scaling.
        """
        parts: list[tuple[int, Copy, Tile]] = []
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
                carry(request.copy.moved(low, 0), data, request.data, self.element)
            return
        for begin in range(low, high, self._step):
            end = min(begin + self._step, high)
            data = self.read(rank, begin, end - begin)
            for request in requests:
                if request.low < end and request.high > begin:
                    for part in within(request.copy.turned(), begin, end):
                        carry(part.turned().moved(begin, 0), data, request.data, self.element)

    def _serve_indexed(self, rank: int, copy: IndexedCopy, tile: Tile) -> None:
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
            carry(some, data, tile.data, self.element)
            at = end


def _halves(tiles: Sequence[Tile], grain: int) -> Iterator[list[Tile]]:
    middles = [tile.low + max(grain, (tile.high - tile.low) // 2 // grain * grain) for tile in tiles]
    pairs = list(zip(tiles, middles, strict=True))
    yield [tile.cut(tile.low, min(middle, tile.high)) for tile, middle in pairs]
    later = [tile.cut(middle, tile.high) for tile, middle in pairs if middle < tile.high]
    if later:
        yield later
