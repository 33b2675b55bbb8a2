"""Shards that are boxes of their tensor, found again in a normal form."""

from typing import Final

from msgspec.structs import replace

from shardscope.engine.geometry.checking.compare import first_difference
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.piece import Lowered, RankShard, row_major
from shardscope.engine.model.shardmap import Block, Box, DeviceMesh, MeshAxis, TensorMap

_AXIS: Final = "rank"


def box_of(shape: tuple[int, ...], shard: RankShard) -> Box | None:
    """Return the box of a tensor of `shape` that a shard without padding is, row-major; null where it is none."""
    if len(shard.shape) != len(shape) or shard.indexed or shard.padding:
        return None
    if not shard.elements:
        return Box((0,) * len(shape), shard.shape)
    if not shard.pieces:
        return None
    rest = min(piece.source.offset for piece in shard.pieces)
    offsets = []
    for stride in row_major(shape):
        offsets.append(rest // stride)
        rest %= stride
    if any(at + size > extent for at, size, extent in zip(offsets, shard.shape, shape, strict=True)):
        return None
    box = Box(tuple(offsets), shard.shape)
    made = lower(TensorMap(shape, Block((_AXIS,), (box,))), DeviceMesh((MeshAxis(_AXIS, 1),)))
    pieces = tuple(replace(piece, holders=(0,)) for piece in shard.pieces)
    alone = Lowered(shape, (RankShard(0, shard.shape, pieces),))
    return box if first_difference(made, alone) is None else None
