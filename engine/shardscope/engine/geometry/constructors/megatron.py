"""Sharded tensors of Megatron-LM's distributed checkpoints, by what each rank says of its own.

`megatron/core/dist_checkpointing/mapping.py`: a shard lies at `global_offset` in `global_shape`, `axis_fragmentations`
counts the shards along each axis, the first `prepended` axes (of layers, say) are not in its local shape, and exactly
one copy of each shard has a `replica_id` of zeros.
"""

import math
from collections.abc import Mapping
from typing import NoReturn

from msgspec import Struct

from shardscope.engine.geometry.constructors.cuts import refuse
from shardscope.engine.model.shardmap import Block, Box, DeviceMesh, FlatRange, MeshAxis, Node, TensorMap

RANK = "rank"


class ShardedTensor(Struct, frozen=True, forbid_unknown_fields=True):
    """What one rank says of its shard."""

    local_shape: tuple[int, ...]
    global_shape: tuple[int, ...]
    global_offset: tuple[int, ...]
    axis_fragmentations: tuple[int, ...] | None = None
    """Null where the shards form no regular grid."""
    replica_id: int | tuple[int, ...] = 0
    prepended: int = 0
    """Leading axes of the global shape that the local shape lacks."""
    flattened_range: tuple[int, int] | None = None
    """Where the rank holds only a stretch of its flattened shard, as optimizer states of older versions do."""

    @property
    def main(self) -> bool:
        """Whether this copy is the one that is written."""
        return not any((self.replica_id,) if isinstance(self.replica_id, int) else self.replica_id)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extents of the shard, the prepended axes included."""
        return (1,) * self.prepended + self.local_shape


def sharded_tensor(
    shards: Mapping[int, ShardedTensor], *, padded: bool = False
) -> tuple[TensorMap, DeviceMesh]:
    """Return the map of a tensor from the shards by rank, and the mesh of these ranks.

    `padded`: the global shape need not be a multiple of the grid. Raises `Fault` `map.invalid` where a rank contradicts
    itself or another: another global shape, a place off its grid, no or several main copies of one shard.
    """
    if not shards:
        refuse("no shards")
    ranks = tuple(sorted(shards))
    shape = shards[ranks[0]].global_shape
    boxes, mains = [], dict[tuple[object, ...], int]()
    for rank in ranks:
        shard = shards[rank]
        if shard.global_shape != shape:
            _wrong(rank, "its global shape is another than that of the first rank")
        _check(rank, shard, padded=padded)
        place = (shard.global_offset, shard.sizes, shard.flattened_range)
        mains[place] = mains.get(place, 0) + shard.main
        boxes.append(Box(shard.global_offset, shard.sizes))
    for (offset, *_), count in mains.items():
        if count != 1:
            refuse(f"{count} main copies of the shard at {offset}")
    node: Node = Block((RANK,), tuple(boxes))
    ranges = [_range(rank, shards[rank]) for rank in ranks]
    if any(shard.flattened_range is not None for shard in shards.values()):
        node = FlatRange(RANK, tuple(start for start, _ in ranges), tuple(stop for _, stop in ranges), node)
    return TensorMap(shape, node, mesh=RANK), DeviceMesh((MeshAxis(RANK, len(ranks)),), ranks)


def _check(rank: int, shard: ShardedTensor, *, padded: bool) -> None:
    axes = len(shard.global_shape)
    numbers = (*shard.global_offset, *shard.local_shape, *shard.global_shape, shard.prepended)
    if len(shard.global_offset) != axes or len(shard.sizes) != axes or min(numbers) < 0:
        _wrong(rank, "its offsets, sizes and global shape differ in number, or one is negative")
    if shard.axis_fragmentations is None:
        return
    if len(shard.axis_fragmentations) != axes or min(shard.axis_fragmentations, default=1) < 1:
        _wrong(rank, "its axis fragmentations are not one for each axis")
    grid = zip(shard.global_shape, shard.axis_fragmentations, shard.sizes, shard.global_offset, strict=True)
    for extent, fragments, size, offset in grid:
        whole = -(-extent // fragments) if padded else extent // fragments
        if not padded and extent % fragments:
            _wrong(rank, f"{extent:,} slices are not {fragments:,} equal fragments")
        if offset % max(1, whole) or size != max(0, min(whole, extent - offset)):
            _wrong(rank, f"{size:,} slices at {offset:,} are not on a grid of {fragments:,} fragments")


def _range(rank: int, shard: ShardedTensor) -> tuple[int, int]:
    total = math.prod(shard.sizes)
    start, stop = shard.flattened_range or (0, total)
    if not 0 <= start <= stop <= total:
        _wrong(rank, f"the stretch {start:,} to {stop:,} of {total:,} elements")
    return start, stop


def _wrong(rank: int, reason: str) -> NoReturn:
    refuse(reason, f"rank {rank}")


def replicas(shards: Mapping[int, ShardedTensor]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return the ranks that hold each shard, by its offset, the main copy first."""
    found: dict[tuple[int, ...], list[int]] = {}
    for rank in sorted(shards, key=lambda rank: (not shards[rank].main, rank)):
        found.setdefault(shards[rank].global_offset, []).append(rank)
    return {offset: tuple(ranks) for offset, ranks in found.items()}
