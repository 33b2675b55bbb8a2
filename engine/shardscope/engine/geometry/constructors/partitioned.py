"""The shards of a map, each flattened and cut again: tensor parallelism or experts first, a data-parallel partition after it.

`FlatRange` says this of a tree. What a checkpoint records of its shards is often the normal form alone (an affine map, a
placement of experts), its shards have different sizes, and a cut of each need not be even: then the cuts are laid over the
pieces here. Several cuts may be of one shard (stages of a pipeline that hold the same parameter), and what they share gets all
their labels as holders.
"""

import math
from collections.abc import Sequence

from msgspec import Struct

from shardscope.engine.geometry.constructors.cuts import refuse, unproven
from shardscope.engine.geometry.language.holders import with_holders
from shardscope.engine.geometry.language.nodes import Local
from shardscope.engine.geometry.pieces.blocks import Block, meet
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.fold import folded
from shardscope.engine.model.piece import ONE, Lowered, RankShard, Side


class Slice(Struct, frozen=True, gc=False):
    """A stretch of a flattened shard that one rank keeps: elements `start` to `stop`."""

    label: int
    """Of the rank that keeps it."""
    shard: int
    """The shard's label in the map."""
    start: int
    stop: int


def partitioned(lowered: Lowered, slices: Sequence[Slice], budget: Budget | None = None) -> Lowered:
    """Return the map from the full tensor of `lowered` to slices of its shards, by the labels of the slices.

    A slice that is a whole shard keeps the shard's shape; any other has one dimension. Raises `Fault`: `map.invalid` where a
    label is there twice or a slice is not inside its shard, `map.unproven` (an index list, several factors in one shard),
    `map.budget`.
    """
    budget = budget or Budget()
    budget.bound("ranks", len(slices))
    shards = {shard.rank: shard for shard in lowered.ranks}
    by_shard: dict[int, list[Slice]] = {}
    for one in slices:
        by_shard.setdefault(one.shard, []).append(one)
    if len({one.label for one in slices}) != len(slices):
        refuse("a label is there twice")
    groups: list[tuple[tuple[int, ...], Local]] = []
    for label, cuts in sorted(by_shard.items()):
        if label not in shards:
            refuse(f"there is no shard {label:,} to cut")
        groups += _cut(shards[label], cuts, budget)
    found = with_holders(lowered.shape, groups, budget)
    return Lowered(lowered.shape, tuple(sorted(found, key=lambda shard: shard.rank)), lowered.explicit)


def _cut(shard: RankShard, cuts: Sequence[Slice], budget: Budget) -> list[tuple[tuple[int, ...], Local]]:
    if shard.indexed:
        unproven("a shard that only an index describes is cut again")
    scales = shard.scales or {ONE}
    if len(scales) > 1:
        unproven("a shard with several factors is cut again")
    total = shard.elements
    alike: dict[tuple[int, int], list[int]] = {}
    for cut in cuts:
        if not 0 <= cut.start <= cut.stop <= total:
            refuse(f"a slice from {cut.start:,} to {cut.stop:,} of a shard of {total:,} elements")
        alike.setdefault((cut.start, cut.stop), []).append(cut.label)
    ranges = [
        Block((stop - start,), Side(0, (1,)), Side(start, (1,)), number)
        for number, (start, stop) in enumerate(alike)
    ]
    pieces = [Block(one.shape, one.dest, one.source) for one in shard.pieces if 0 not in one.shape]
    held: list[list[Block]] = [[] for _ in ranges]
    for one in meet(ranges, pieces, total, budget) if total else ():
        held[one.first].append(Block(one.shape, one.a, one.b))
    budget.spend("pieces", sum(map(len, held)))
    (scale,) = scales
    found = []
    for ((start, stop), labels), blocks in zip(alike.items(), held, strict=True):
        size = stop - start
        shape = shard.shape if size == math.prod(shard.shape) else (size,)
        merged = tuple(folded(blocks))
        padding = size - sum(block.elements for block in merged)
        found.append((tuple(sorted(labels)), Local(shape, merged, padding, scale)))
    return found
