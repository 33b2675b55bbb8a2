"""Shard to shard through bounded buffers: every target shard written once, from its first byte to its last.

The target shards advance together in steps. A step's tiles are filled by reading what they need of each source shard in rising
order, with reads that touch put together, so that targets which share a source's rows read them once. Neither the full
tensor nor any whole shard is ever held.
"""

import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

from shardscope.engine.geometry.execution.filling import Read, Tile
from shardscope.engine.geometry.execution.move import first_difference
from shardscope.engine.geometry.execution.tiles import BUDGET, Stream
from shardscope.engine.geometry.execution.work import Meter
from shardscope.engine.geometry.pieces.factors import factor
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import ONE, Lowered
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.transfer import IndexedSegment, Segment, TransferPlan

Write: TypeAlias = Callable[[int, int, memoryview], object]
"""`write(rank, offset, data)`: for each target rank with rising offsets, without gaps, from one thread. `data` is only good
during the call."""


def transfer(
    plan: TransferPlan,
    source: Lowered,
    target: Lowered,
    *,
    dtype: str,
    read: Read,
    write: Write,
    budget_bytes: int = BUDGET,
    scales: bool = False,
    workers: int = 1,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> None:
    """Make the shards of every rank of `target` from those of `source`, as `plan` says. Padding is written as zeros.

    `dtype` is the elements' name in safetensors. At most `budget_bytes` are held in buffers, all workers together. Factors are
    refused unless `scales` allows them: only the values of parameters may be multiplied. Replicas of the source are not
    compared here (`compare_replicas`).

    Raises `Fault`: `map.incomplete`, `map.scaled`, `map.short_read`, and those of programs and of scaling.
    """
    stream = Stream(plan, source, target, dtype, read, budget_bytes, workers)
    if not scales:
        items: tuple[Segment | IndexedSegment, ...] = (*plan.segments, *plan.indexed)
        for item in items:
            if item.scale != ONE:
                raise Fault("map.scaled", rank=item.source_rank, factor=factor(item.scale))
    for one in stream.targets:
        if one.mapped > one.size or (one.mapped < one.size and not one.padded):
            raise Fault("map.incomplete", found=one.mapped, expected=one.size)
    meter = Meter("transfer", sum(one.size for one in stream.targets), progress)

    def fill(tiles: Sequence[Tile]) -> Sequence[Tile]:
        for tile in tiles:
            if tile.target.padded:
                tile.data[:] = 0
        stream.filling.fill(tiles)
        return tiles

    for tiles in stream.steps(stream.targets, fill, cancel):
        for tile in tiles:
            write(tile.target.rank, tile.low, tile.data.data)
            meter.add(tile.high - tile.low)


def compare_replicas(
    plan: TransferPlan,
    source: Lowered,
    *,
    dtype: str,
    read: Read,
    budget_bytes: int = BUDGET,
    workers: int = 1,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> None:
    """Compare, byte for byte, what several ranks of `source` hold alike. `plan` takes the map to itself: what each rank would
    be given if the holders of choice handed out their elements is compared with what it has.

    Raises `Fault` `map.replicas_disagree` with the ranks and the offset in the second one's shard; otherwise as `transfer`.
    """
    segments = tuple(item for item in plan.segments if item.source_rank != item.target_rank)
    indexed = tuple(item for item in plan.indexed if item.source_rank != item.target_rank)
    needed = TransferPlan(plan.shape, segments, indexed, plan.traffic, plan.statistics)
    stream = Stream(needed, source, source, dtype, read, budget_bytes, workers)
    compared = [one for one in stream.targets if one.routes]
    meter = Meter("replicas", sum(one.size for one in compared), progress)

    def compare(tiles: Sequence[Tile]) -> Sequence[Tile]:
        held = [stream.filling.read(tile.target.rank, tile.low, tile.high - tile.low) for tile in tiles]
        for tile, data in zip(tiles, held, strict=True):
            tile.data[:] = data
        stream.filling.fill(tiles)
        for tile, data in zip(tiles, held, strict=True):
            at = first_difference(tile.data, data)
            if at is not None:
                raise _disagreement(stream, tile, tile.low + at)
        return tiles

    for tiles in stream.steps(compared, compare, cancel):
        meter.add(sum(tile.high - tile.low for tile in tiles))


def _disagreement(stream: "Stream", tile: Tile, at: int) -> Fault:
    giver = next((route.source_rank for route in tile.routes if route.writes(at)), None)
    offset = at * 8 // stream.element.bits
    return Fault("map.replicas_disagree", rank=giver, other=tile.target.rank, place="shard", offset=offset)
