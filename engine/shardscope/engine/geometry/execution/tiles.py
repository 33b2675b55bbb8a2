"""Target shards in steps of tiles, which `filling` fills: the machinery of `stream`.

The target shards advance together, so that targets which share a source's rows read them once.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from shardscope.engine.geometry.execution.filling import Filling, Read, Tile
from shardscope.engine.geometry.execution.move import Bytes
from shardscope.engine.geometry.execution.program import Copy, IndexedCopy
from shardscope.engine.geometry.execution.routes import Route, Target, targets
from shardscope.engine.geometry.execution.scale import Element, carry, named
from shardscope.engine.geometry.execution.work import in_order
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.transfer import TransferPlan

BUDGET = 64 << 20
LEAST = 1 << 20
"""Bytes of buffers: by default, and the fewest that are worth working with."""

STEP = 2 << 20
"""Bytes of the tiles of one step and of one read: together they stay in cache."""

TILE = 64 << 10
"""Bytes of a target's tile below which targets are not filled together."""


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
        self._workers = max(1, workers)
        # Each worker has the tiles of one step and one read; the main thread, while it writes, the tiles of another step.
        share = max(LEAST, budget_bytes) // (2 * self._workers + (self._workers > 1))
        self._step = min(STEP, share) // 4096 * 4096
        self._buffers: list[Bytes] = []
        item = max(1, self.element.bits // 8)
        self._grain = 4096 if 4096 % item == 0 else 4096 * item
        self.filling = Filling(read, self._carry, self._step, self._grain)
        self.targets = targets(plan, source, target, self.element)

    def _carry(self, copy: Copy | IndexedCopy, source: Bytes, target: Bytes) -> None:
        carry(copy, source, target, self.element)

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
