"""A target layout after the inverse of a source layout: copies from shard to shard, without the full tensor.

Source pieces are read backwards (their shard side is where values come from), met with the target's pieces in the space of
the logical tensor, and merged for each pair of ranks. An element that several source ranks hold comes from the lowest of
them, or from the one that a selector names.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from shardscope.engine.geometry.pieces.blocks import Block, boxes, met, steps
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.cells import cells
from shardscope.engine.geometry.pieces.digits import DigitBox, address_of, chain_of
from shardscope.engine.geometry.pieces.explicit import INDEXED, packed, runs_of, settled, walked_each
from shardscope.engine.geometry.pieces.sweep import sharing
from shardscope.engine.geometry.transfer.replicas import Selector, choices
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import ONE, Lowered, Piece, RankShard, Side, row_major
from shardscope.engine.model.transfer import (
    IndexedSegment,
    PlanStatistics,
    Segment,
    Traffic,
    TransferPlan,
)


def compose(
    target: Lowered,
    source: Lowered,
    budget: Budget | None = None,
    choose: Selector | None = None,
    *,
    factors: bool = True,
) -> TransferPlan:
    """Return the copies that make the target's shards from the source's.

    Maps that `lower` did not make have to pass `check` first. Without `factors`, a piece with a factor other than 1 is
    refused; with them, target values are source values times target factor by source factor. Padding of the target has no
    source. Raises `Fault`: `map.shape_mismatch`, `map.uncovered` (the target needs what no source rank holds),
    `map.scaled`, `map.replica_choice`, `map.unproven`, `map.budget`.
    """
    if target.shape != source.shape:
        one, other = (" x ".join(map(str, lowered.shape)) or "one element" for lowered in (source, target))
        raise Fault("map.shape_mismatch", source=one, target=other)
    budget = budget or Budget()
    for side in (source, target):
        budget.bound("pieces", side.pieces)
    if not factors:
        _refuse_factors(source, target)
    makers = _Makers(source, budget)
    needs = _needs(target, budget)
    walk = _Walk(source.explicit, target.explicit)
    lowest = makers.chosen({})
    plan = _Plan(budget)
    for need, copies in zip(needs, _copies(needs, lowest, source, budget, walk), strict=True):
        if choose is None:
            plan.add(need.ranks, copies)
            continue
        for choice, ranks in choices({maker.holders for maker, _, _ in copies}, need.ranks, choose).items():
            if any(rank != holders[0] for holders, rank in choice):
                chosen = makers.chosen(dict(choice))
                plan.add(ranks, _copies([need], chosen, source, budget, walk)[0])
            else:
                plan.add(ranks, copies)
    return plan.finished(target, source)


def invert(
    source: Lowered,
    budget: Budget | None = None,
    choose: Callable[[tuple[int, ...]], int] | None = None,
    *,
    factors: bool = True,
) -> TransferPlan:
    """Return the copies that assemble the full tensor (target rank 0) from the shards; otherwise as `compose`."""
    selector = None if choose is None else lambda holders, _: choose(holders)
    return compose(whole(source.shape), source, budget, selector, factors=factors)


def whole(shape: tuple[int, ...]) -> Lowered:
    """Return the map of one rank, 0, that holds the full tensor."""
    every = Side(0, row_major(shape))
    pieces = (Piece(shape, every, every, (0,)),) if math.prod(shape) else ()
    return Lowered(shape, (RankShard(0, shape, pieces),))


class _Entry(Struct, frozen=True, gc=False):
    """A piece of one side, without its addresses."""

    owner: int
    """The source rank, or the position of the need."""
    holders: tuple[int, ...]
    scale: tuple[int, int]
    index: bool


class _Pieces(Struct, frozen=True):
    """Blocks from logical (a) to shard (b) addresses, whose tags are positions in `entries`."""

    blocks: list[Block]
    entries: list[_Entry]

    def add(self, entry: _Entry, blocks: Sequence[Block]) -> None:
        """Append a piece."""
        self.blocks.extend(Block(one.shape, one.a, one.b, len(self.entries)) for one in blocks)
        self.entries.append(entry)


class _Walk(Struct, frozen=True):
    """Which side may be walked element by element where steps form no chain."""

    source: bool
    target: bool


class _Need(Struct, frozen=True):
    """Target ranks with equal shards, sorted, and their pieces."""

    ranks: tuple[int, ...]
    pieces: list[tuple[_Entry, list[Block]]]


_Copy = tuple[_Entry, _Entry, Block]
"""Source, target, and a block from source shard (a) to target shard (b) addresses."""


def _pieces(shard: RankShard, owner: int, budget: Budget) -> list[tuple[_Entry, list[Block]]]:
    found = [
        (
            _Entry(owner, piece.holders, piece.scale, index=False),
            [Block(piece.shape, piece.source, piece.dest)],
        )
        for piece in shard.pieces
        if 0 not in piece.shape
    ]
    for index in shard.indexed:
        budget.walk(index.elements)
        found.append((_Entry(owner, index.holders, index.scale, index=True), runs_of(index, 0)))
    return found


def _needs(target: Lowered, budget: Budget) -> list[_Need]:
    alike: dict[object, list[RankShard]] = {}
    for shard in sorted(target.ranks, key=lambda shard: shard.rank):
        alike.setdefault((shard.pieces, shard.indexed), []).append(shard)
    return [
        _Need(tuple(shard.rank for shard in shards), _pieces(shards[0], number, budget))
        for number, shards in enumerate(alike.values())
    ]


class _Makers:
    """The source's pieces, by who holds them."""

    def __init__(self, source: Lowered, budget: Budget) -> None:
        self.by_holders: dict[tuple[int, ...], dict[int, list[tuple[_Entry, list[Block]]]]] = {}
        for shard in source.ranks:
            for entry, blocks in _pieces(shard, shard.rank, budget):
                ranks = self.by_holders.setdefault(entry.holders, {})
                ranks.setdefault(shard.rank, []).append((entry, blocks))

    def chosen(self, choice: Mapping[tuple[int, ...], int]) -> _Pieces:
        """Return the pieces of one rank for each set of holders: the chosen one, otherwise the lowest."""
        found = _Pieces([], [])
        for holders, ranks in sorted(self.by_holders.items(), key=lambda item: item[0]):
            for entry, blocks in ranks.get(choice.get(holders, holders[0]), ()):
                found.add(entry, blocks)
        return found


def _copies(
    needs: Sequence[_Need], makers: _Pieces, source: Lowered, budget: Budget, walk: _Walk
) -> list[list[_Copy]]:
    """Return for each need where its elements come from. Raises `Fault` `map.uncovered` where one comes from nowhere."""
    wanted = _Pieces([], [])
    for position, need in enumerate(needs):
        for entry, blocks in need.pieces:
            wanted.add(_Entry(position, entry.holders, entry.scale, entry.index), blocks)
    places, left, right = _boxed(wanted.blocks, makers.blocks, source.elements, budget, walk)
    right = _once(right, budget)
    meetings = met(left, right, budget)
    moved = sum(math.prod(meeting.shape) for meeting in meetings)
    if moved != sum(box.volume for box in left):
        raise _missing(left, right, places, budget)
    found: list[list[_Copy]] = [[] for _ in needs]
    for meeting in meetings:
        to, taken = wanted.entries[meeting.first], makers.entries[meeting.second]
        found[to.owner].append((taken, to, Block(meeting.shape, meeting.b, meeting.a)))
    return found


def _boxed(
    target: list[Block], source: list[Block], total: int, budget: Budget, walk: _Walk
) -> tuple[tuple[int, ...], list[DigitBox], list[DigitBox]]:
    for attempt in range(2):
        places = chain_of((*steps(target, side="a"), *steps(source, side="a")), total)
        try:
            return (
                places,
                boxes(target, places, budget, side="a", tagged=True),
                boxes(source, places, budget, side="a", tagged=True),
            )
        except Fault as fault:
            if attempt or fault.finding.code != "map.unproven" or not (walk.source or walk.target):
                raise
        if walk.target:
            target = _walked(target, budget)
        if walk.source:
            source = _walked(source, budget)
    raise AssertionError("two attempts either return or raise")


def _walked(blocks: list[Block], budget: Budget) -> list[Block]:
    budget.walk(sum(block.elements for block in blocks))
    return walked_each(blocks)


def _once(found: list[DigitBox], budget: Budget) -> list[DigitBox]:
    """Return boxes that say where each element comes from once: what a rank holds twice is read at its lower address."""
    shared = {id(box) for pair in sharing(found, budget) for box in pair}
    if not shared:
        return found
    kept = [box for box in found if id(box) not in shared]
    together = [box for box in found if id(box) in shared]
    for low, high, active in cells(together, budget):
        at, number = min((together[n].at(low), n) for n in active)
        box = together[number]
        kept.append(DigitBox(low, high, at, box.step, box.tag))
    return kept


def _missing(left: list[DigitBox], right: list[DigitBox], places: tuple[int, ...], budget: Budget) -> Fault:
    """Return the fault that says how many elements of those that the target has the source has not."""
    found, first, total = 0, 0, 0
    for low, high, active in cells([*left, *right], budget):
        size = math.prod(y - x for x, y in zip(low, high, strict=True))
        if active[0] < len(left):  # a box of the target
            total += size
        if active[-1] < len(left):  # and none of the source
            first = first if found else address_of(low, places)
            found += size
    return Fault("map.uncovered", found=found, total=total, address=first)


def _refuse_factors(source: Lowered, target: Lowered) -> None:
    for side in (source, target):
        for shard in side.ranks:
            for above, below in sorted(shard.scales - {ONE}):
                raise Fault("map.scaled", rank=shard.rank, factor=f"{above}/{below}")


class _Plan:
    """Segments, while they are collected."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.before = 0
        self.segments: list[Segment] = []
        self.indexed: list[IndexedSegment] = []
        self.traffic: dict[tuple[int, int], int] = {}

    def add(self, ranks: tuple[int, ...], copies: Sequence[_Copy]) -> None:
        """Add what target ranks with equal shards need: merged for each source rank and factor, then for each of them."""
        alike: dict[tuple[int, tuple[int, int]], list[Block]] = {}
        for source, target, block in copies:
            scale = _factor(target.scale, source.scale)
            tag = INDEXED if source.index or target.index else 0
            alike.setdefault((source.owner, scale), []).append(Block(block.shape, block.a, block.b, tag))
        self.before += len(copies) * len(ranks)
        for (source_rank, scale), blocks in alike.items():
            plain, index = settled(blocks)
            self.budget.spend("segments", len(plain) * len(ranks))
            moved = sum(block.elements for block in blocks)
            ordered = sorted((run.b.offset, run.a.offset, run.shape[0]) for run in index)
            read = packed((at, n) for _, at, n in ordered)
            written = packed((at, n) for at, _, n in ordered)
            for rank in ranks:
                pair = (source_rank, rank)
                self.traffic[pair] = self.traffic.get(pair, 0) + moved
                self.segments += [Segment(source_rank, rank, one.shape, one.a, one.b, scale) for one in plain]
                if index:
                    self.indexed.append(IndexedSegment(source_rank, rank, read, written, scale))

    def finished(self, target: Lowered, source: Lowered) -> TransferPlan:
        """Return the plan, in order."""
        self.segments.sort(key=_order)
        self.indexed.sort(key=lambda one: (one.source_rank, one.target_rank, one.scale))
        size = len(msgspec.json.encode(self.segments))
        self.budget.spend("plan_bytes", size)
        return TransferPlan(
            shape=target.shape,
            segments=tuple(self.segments),
            indexed=tuple(self.indexed),
            traffic=tuple(Traffic(*pair, self.traffic[pair]) for pair in sorted(self.traffic)),
            statistics=PlanStatistics(
                source_pieces=source.pieces,
                target_pieces=target.pieces,
                pair_checks=self.budget.spent.get("pair_checks", 0),
                segments_before_merge=self.before,
                segments=len(self.segments) + len(self.indexed),
                indexed_elements=sum(one.elements for one in self.indexed),
                plan_bytes=size,
            ),
        )


def _factor(target: tuple[int, int], source: tuple[int, int]) -> tuple[int, int]:
    if target == source:
        return ONE
    above, below = target[0] * source[1], target[1] * source[0]
    divisor = math.gcd(above, below) * (-1 if below < 0 else 1)
    return above // divisor, below // divisor


def _order(one: Segment) -> tuple[int, int, int, int, tuple[int, ...], tuple[int, ...]]:
    return (
        one.source_rank,
        one.target_rank,
        one.source.offset,
        one.target.offset,
        one.shape,
        one.source.strides,
    )
