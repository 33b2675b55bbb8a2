"""Who holds what: pieces split so that all elements of a piece have the same holders, then merged again.

A piece that spans the edge of a replicated region round-trips on one topology and misleads a planner on another, so the
normal form never has one.
"""

import math
from collections.abc import Sequence
from typing import Protocol

from shardscope.engine.geometry.pieces.blocks import Block, boxes, steps
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.cells import cells
from shardscope.engine.geometry.pieces.digits import DigitBox, address_of, chain_of
from shardscope.engine.geometry.pieces.explicit import INDEXED, indexed_piece, settled
from shardscope.engine.geometry.pieces.fold import fused
from shardscope.engine.geometry.pieces.sweep import sharing
from shardscope.engine.model.piece import IndexedPiece, Piece, RankShard, Side


class Shard(Protocol):
    """What ranks at one coordinate hold: blocks from shard (a) to logical (b) addresses."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the shard."""
        ...

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Of the shard."""
        ...

    @property
    def padding(self) -> int:
        """Elements that stand for nothing."""
        ...

    @property
    def scale(self) -> tuple[int, int]:
        """Of every element."""
        ...


Group = tuple[tuple[int, ...], Shard]
"""Ranks that hold the same shard, sorted, and the shard."""


def with_holders(shape: tuple[int, ...], groups: Sequence[Group], budget: Budget) -> list[RankShard]:
    """Return the shard of every rank, its pieces merged and with their holders.

    Raises `Fault` `map.unproven` or `map.budget`.
    """
    blocks = [
        fused(Block(block.shape, block.b, block.a, number))
        for number, (_, shard) in enumerate(groups)
        for block in shard.blocks
    ]
    index = frozenset(
        position
        for position, block in enumerate(block for _, shard in groups for block in shard.blocks)
        if block.tag == INDEXED
    )
    total = math.prod(shape)
    found = _split(blocks, index, groups, total, budget) if len(groups) > 1 else None
    shards = []
    for number, (ranks, shard) in enumerate(groups):
        if found is None:
            held = [(ranks, block, position in index) for position, block in enumerate(blocks)]
        else:
            held = found[number]
        pieces = [
            Piece(block.shape, block.a, block.b, holders, shard.scale)
            for holders, block, listed in held
            if not listed
        ]
        pieces.sort(key=lambda piece: (piece.dest.offset, piece.source.offset, piece.shape))
        rest = _indexed(held, shard.scale)
        whole = tuple(pieces)
        shards += [RankShard(rank, shard.shape, whole, shard.padding, rest) for rank in ranks]
    return shards


_Held = tuple[tuple[int, ...], Block, bool]
"""Holders, a block from logical (a) to shard (b) addresses, and whether it is part of an index."""


def _indexed(held: Sequence[_Held], scale: tuple[int, int]) -> tuple[IndexedPiece, ...]:
    by_holders: dict[tuple[int, ...], list[Block]] = {}
    for holders, block, listed in held:
        if listed:
            by_holders.setdefault(holders, []).append(block)
    return tuple(
        indexed_piece(blocks, holders, scale)
        for holders, blocks in sorted(by_holders.items(), key=lambda item: item[0])
    )


def _split(
    blocks: Sequence[Block],
    index: frozenset[int],
    groups: Sequence[Group],
    total: int,
    budget: Budget,
) -> list[list[_Held]]:
    places = chain_of(steps(blocks, side="a"), total)
    found = boxes(blocks, places, budget, side="a")
    shared: set[int] = set()
    for one, other in sharing(found, budget):
        if blocks[one.tag].tag != blocks[other.tag].tag:
            shared.update((one.tag, other.tag))
    held: list[list[_Held]] = [[] for _ in groups]
    for position, block in enumerate(blocks):
        if position not in shared:
            held[block.tag].append((groups[block.tag][0], block, position in index))
    if shared:
        mixed = [box for box in found if box.tag in shared]
        _add_shared(mixed, blocks, index, groups, places, held, budget)
    return held


def _add_shared(
    found: Sequence[DigitBox],
    blocks: Sequence[Block],
    index: frozenset[int],
    groups: Sequence[Group],
    places: Sequence[int],
    held: list[list[_Held]],
    budget: Budget,
) -> None:
    """Cut the boxes that several groups hold at the edges where the holders change (adds to `held`)."""
    parts: dict[tuple[int, tuple[int, ...]], list[Block]] = {}
    for low, high, active in cells(found, budget):
        owners = {blocks[found[n].tag].tag for n in active}
        holders = tuple(sorted({rank for owner in owners for rank in groups[owner][0]}))
        size = [y - x for x, y in zip(low, high, strict=True)]
        kept = [k for k in range(len(size) - 1, -1, -1) if size[k] > 1]
        shape = tuple([size[k] for k in kept])
        source = Side(address_of(low, places), tuple([places[k] for k in kept]))
        tag = INDEXED if any(found[n].tag in index for n in active) else 0
        for number in active:
            box = found[number]
            dest = Side(box.at(low), tuple([box.step[k] for k in kept]))
            parts.setdefault((blocks[box.tag].tag, holders), []).append(Block(shape, source, dest, tag))
    for (group, holders), cut in sorted(parts.items(), key=lambda item: item[0]):
        plain, listed = settled(cut)
        budget.spend("pieces", len(plain))
        held[group] += [(holders, block, False) for block in plain]
        held[group] += [(holders, block, True) for block in listed]
