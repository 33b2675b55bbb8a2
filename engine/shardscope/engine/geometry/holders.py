"""Who holds what: pieces split so that all elements of a piece have the same holders, then merged again.

A piece that spans the edge of a replicated region round-trips on one topology and misleads a planner on another, so the
normal form never has one.
"""

from collections.abc import Sequence
from typing import Protocol

from shardscope.engine.geometry.blocks import Block, boxes, overlapping, steps
from shardscope.engine.geometry.budget import Budget
from shardscope.engine.geometry.cells import cells
from shardscope.engine.geometry.digits import DigitBox, chain_of
from shardscope.engine.geometry.fold import folded
from shardscope.engine.model.piece import Piece, RankShard, Side


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


def with_holders(
    shape: tuple[int, ...], groups: Sequence[tuple[tuple[int, ...], Shard]], budget: Budget
) -> list[RankShard]:
    """Return the shard of every rank, its pieces merged and with their holders.

    `groups` are ranks that hold the same shard, with it. Raises `Fault` `map.unproven` or `map.budget`.
    """
    total = 1
    for extent in shape:
        total *= extent
    blocks = [
        Block(block.shape, block.b, block.a, number)
        for number, (_, shard) in enumerate(groups)
        for block in shard.blocks
    ]
    pieces = _split(blocks, groups, total, budget) if len(groups) > 1 else None
    shards = []
    for number, (ranks, shard) in enumerate(groups):
        if pieces is None:
            found = [
                Piece(block.shape, block.b, block.a, tuple(sorted(ranks)), shard.scale)
                for block in shard.blocks
            ]
        else:
            found = pieces[number]
        found.sort(key=lambda piece: (piece.dest.offset, piece.source.offset, piece.shape))
        shards += [RankShard(rank, shard.shape, tuple(found), shard.padding) for rank in ranks]
    return shards


def _split(
    blocks: Sequence[Block],
    groups: Sequence[tuple[tuple[int, ...], Shard]],
    total: int,
    budget: Budget,
) -> list[list[Piece]]:
    places = chain_of(steps(blocks, side="a"), total)
    found = boxes(blocks, places, side="a")
    shared: set[int] = set()
    for one, other in overlapping(found, found, budget):
        if blocks[one.tag].tag != blocks[other.tag].tag:
            shared.update((one.tag, other.tag))
    pieces: list[list[Piece]] = [[] for _ in groups]
    for position, block in enumerate(blocks):
        if position not in shared:
            ranks, shard = groups[block.tag]
            pieces[block.tag].append(Piece(block.shape, block.a, block.b, tuple(sorted(ranks)), shard.scale))
    if shared:
        _add_shared([box for box in found if box.tag in shared], blocks, groups, places, pieces, budget)
    return pieces


def _add_shared(
    found: Sequence[DigitBox],
    blocks: Sequence[Block],
    groups: Sequence[tuple[tuple[int, ...], Shard]],
    places: Sequence[int],
    pieces: list[list[Piece]],
    budget: Budget,
) -> None:
    """Cut the boxes that several groups hold at the edges where the holders change (adds to `pieces`)."""
    parts: dict[tuple[int, tuple[int, ...]], list[Block]] = {}
    for low, size, active in cells(found, budget):
        holders = tuple(sorted({rank for n in active for rank in groups[blocks[found[n].tag].tag][0]}))
        kept = [k for k in range(len(size) - 1, -1, -1) if size[k] > 1]
        source = Side(
            sum(digit * place for digit, place in zip(low, places, strict=True)),
            tuple(places[k] for k in kept),
        )
        for number in active:
            box = found[number]
            at = box.base + sum((x - y) * s for x, y, s in zip(low, box.low, box.step, strict=True))
            dest = Side(at, tuple(box.step[k] for k in kept))
            group = blocks[box.tag].tag
            part = Block(tuple(size[k] for k in kept), source, dest)
            parts.setdefault((group, holders), []).append(part)
    for (group, holders), held in sorted(parts.items(), key=lambda item: item[0]):
        scale = groups[group][1].scale
        pieces[group] += [Piece(block.shape, block.a, block.b, holders, scale) for block in folded(held)]
