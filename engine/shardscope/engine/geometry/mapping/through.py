"""Maps of tensors that are made of others: through the other tensor to its fragments, without ever building it."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from shardscope.engine.geometry.language.holders import with_holders
from shardscope.engine.geometry.language.nodes import Local
from shardscope.engine.geometry.mapping.sections import Taken
from shardscope.engine.geometry.pieces.blocks import Block, meet
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.fold import folded
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import ONE, Lowered, Piece, RankShard


class _Held(Struct, frozen=True):
    """A shard, and how far its pieces reach in the tensor."""

    shard: RankShard
    begin: int
    end: int


class Source:
    """A tensor whose parts become tensors of their own."""

    def __init__(self, lowered: Lowered) -> None:
        """Raises `Fault` `map.unproven` for a map with indices or factors."""
        self.lowered = lowered
        self._held = [_held(shard) for shard in lowered.ranks if shard.pieces or shard.indexed]

    def map_of(self, part: Taken, budget: Budget | None = None) -> Lowered:
        """Return the map of a part, over the shards of the whole tensor that have anything of it.

        A shard keeps its shape: what is of other parts is padding of this one. Raises `Fault`: `map.unproven`, `map.budget`.
        """
        budget = budget or Budget()
        begin, end = _reach((block.a.offset, block.shape, block.a.strides) for block in part.blocks)
        shards = []
        for held in self._held:
            if held.end <= begin or held.begin >= end:
                continue
            pieces = [Block(piece.shape, piece.dest, piece.source) for piece in held.shard.pieces]
            met = meet(pieces, part.blocks, self.lowered.elements, budget)
            blocks = folded([Block(one.shape, one.a, one.b) for one in met])
            if blocks:
                padding = held.shard.elements - sum(block.elements for block in blocks)
                shards.append(((held.shard.rank,), Local(held.shard.shape, tuple(blocks), padding)))
        found = with_holders(part.shape, shards, budget)
        return Lowered(part.shape, tuple(sorted(found, key=lambda shard: shard.rank)))


def _held(shard: RankShard) -> _Held:
    if shard.indexed or shard.scales - {ONE}:
        raise Fault("map.unproven", reason="a tensor with indices or factors that another is made of")
    return _Held(shard, *_reach(map(_address, shard.pieces)))


def _address(piece: Piece) -> tuple[int, Sequence[int], Sequence[int]]:
    return piece.source.offset, piece.shape, piece.source.strides


def _reach(blocks: Iterable[tuple[int, Sequence[int], Sequence[int]]]) -> tuple[int, int]:
    """Return the first address of some blocks, and the one behind their last."""
    low, high = None, 0
    for offset, shape, strides in blocks:
        if 0 in shape:
            continue
        low = offset if low is None else min(low, offset)
        last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        high = max(high, offset + last + 1)
    return low or 0, high
