"""Where the padding of a shard lies: behind its elements, or between them."""

from collections.abc import Sequence

from shardscope.engine.geometry.language.nodes import box
from shardscope.engine.geometry.pieces.blocks import Block, meet
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.model.piece import RankShard


def padded_inside(shard: RankShard, budget: Budget | None = None) -> bool:
    """Tell whether a shard has padding elsewhere than behind its elements in some dimension: these are then no box at its origin.

    The shard has passed `check`. Indexed pieces beside padding count as inside: nothing shows where it lies. Raises `Fault`:
    `map.unproven`, `map.budget`.
    """
    if not shard.padding or shard.padding == shard.elements:
        return False
    if shard.indexed:
        return True
    budget = budget or Budget()
    held = [Block(piece.shape, piece.source, piece.dest) for piece in shard.pieces]
    volume = 1
    for dim, extent in enumerate(shard.shape):
        volume *= _reached(held, shard, dim, extent, budget)
    return volume != shard.elements - shard.padding


def _reached(held: Sequence[Block], shard: RankShard, dim: int, extent: int, budget: Budget) -> int:
    """Return how many slices of a dimension there are up to the last that has an element."""
    low, high = 0, extent
    while low < high:
        middle = (low + high) // 2
        offsets = tuple(middle if k == dim else 0 for k in range(len(shard.shape)))
        sizes = tuple(size - offset for size, offset in zip(shard.shape, offsets, strict=True))
        behind = [block.swapped() for block in box(shard.shape, offsets, sizes).blocks]
        if meet(held, behind, shard.elements, budget):
            low = middle + 1
        else:
            high = middle
    return low
