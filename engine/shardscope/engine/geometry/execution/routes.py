"""A transfer plan as copies into each target shard, in bytes and within bounds."""

from typing import NamedTuple

import numpy as np

from shardscope.engine.geometry.execution.cutting import within
from shardscope.engine.geometry.execution.program import Copy, IndexedCopy, bounded, compiled
from shardscope.engine.geometry.execution.scale import Element
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.transfer import IndexedSegment, Segment, TransferPlan


class Route(NamedTuple):
    """One copy into a target's shard."""

    source_rank: int
    copy: Copy | IndexedCopy
    start: int
    end: int
    """Target bytes between which it writes."""

    def writes(self, address: int) -> bool:
        """Tell whether it writes a byte of the target."""
        if isinstance(self.copy, IndexedCopy):
            return bool((np.frombuffer(self.copy.target, "<i8") == address // self.copy.unit).any())
        return any(True for _ in within(self.copy, address, address + 1))


class Target(NamedTuple):
    rank: int
    size: int
    """Bytes of the shard."""
    padded: bool
    routes: tuple[Route, ...]
    """By rising start."""

    @property
    def mapped(self) -> int:
        """Bytes that copies write, each counted as often as it is written."""
        return sum(route.copy.size for route in self.routes)


def targets(plan: TransferPlan, source: Lowered, target: Lowered, element: Element) -> list[Target]:
    """Return every target rank with the copies into its shard, all within the shards' bounds.

    Raises `Fault`: `map.sub_byte`, `map.unproven`, `map.outside`, `map.shard_unknown`.
    """
    given = {shard.rank: element.bytes_of(shard.elements) for shard in source.ranks}
    made = {shard.rank: element.bytes_of(shard.elements) for shard in target.ranks}
    routes: dict[int, list[Route]] = {}
    items: tuple[Segment | IndexedSegment, ...] = (*plan.segments, *plan.indexed)
    for item in items:
        for rank, sizes in ((item.source_rank, given), (item.target_rank, made)):
            if rank not in sizes:
                raise Fault("map.shard_unknown", rank=rank)
        limits = given[item.source_rank], made[item.target_rank]
        route = (
            _route(
                item.source_rank,
                compiled(item.shape, item.source, item.target, element.bits, item.scale),
                *limits,
            )
            if isinstance(item, Segment)
            else _indexed_route(item, element.bytes_of(1), *limits)
        )
        if route is not None:
            routes.setdefault(item.target_rank, []).append(route)
    return [
        Target(
            shard.rank,
            made[shard.rank],
            shard.padding > 0,
            tuple(sorted(routes.get(shard.rank, ()), key=lambda route: (route.start, route.end))),
        )
        for shard in target.ranks
    ]


def _route(rank: int, copy: Copy | None, source_bytes: int, target_bytes: int) -> Route | None:
    if copy is None:
        return None
    bounded(copy, source_bytes, target_bytes)
    return Route(rank, copy, copy.target.offset, copy.target.offset + copy.target_span)


def _indexed_route(item: IndexedSegment, size: int, source_bytes: int, target_bytes: int) -> Route | None:
    source, target = np.frombuffer(item.source, "<i8"), np.frombuffer(item.target, "<i8")
    if not len(target):
        return None
    for addresses, limit in ((source, source_bytes), (target, target_bytes)):
        low, high = int(addresses.min()) * size, (int(addresses.max()) + 1) * size
        if low < 0 or high > limit:
            raise Fault("map.outside", start=low, end=high, limit=limit)
    if (np.diff(target) <= 0).any():
        raise Fault("map.unproven", reason="the addresses of an index do not rise")
    copy = IndexedCopy(size, size, item.source, item.target, item.scale)
    return Route(item.source_rank, copy, int(target[0]) * size, (int(target[-1]) + 1) * size)
