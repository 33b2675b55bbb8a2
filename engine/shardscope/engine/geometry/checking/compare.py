"""Whether two maps say the same, compared on cells: maximal merging is not unique, so pieces prove nothing either way."""

from collections.abc import Sequence

from msgspec import Struct

from shardscope.engine.geometry.pieces.blocks import Block, boxes, steps
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.cells import cells
from shardscope.engine.geometry.pieces.digits import DigitBox, address_of, chain_of
from shardscope.engine.geometry.pieces.explicit import runs_of, walked_each
from shardscope.engine.geometry.pieces.wellformed import named
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.mapcheck import Difference
from shardscope.engine.model.piece import Lowered, RankShard

Marks = tuple[tuple[int, ...], tuple[int, int]]
"""Holders and factor of a piece."""


def same(one: Lowered, other: Lowered, budget: Budget | None = None) -> bool:
    """Tell whether two maps put the same elements at the same addresses of the same ranks, with the same holders."""
    return first_difference(one, other, budget) is None


def first_difference(one: Lowered, other: Lowered, budget: Budget | None = None) -> Difference | None:
    """Return where two maps differ first: in shape, in ranks, or at the lowest address of the lowest rank's shard.

    Maps that `lower` did not make have to pass `check` first. Raises `Fault`: `map.unproven`, `map.budget`.
    """
    if one.shape != other.shape:
        return Difference("shape", _extents(one.shape), _extents(other.shape))
    mine, theirs = ({shard.rank: shard for shard in side.ranks} for side in (one, other))
    if mine.keys() != theirs.keys():
        rank = min(mine.keys() ^ theirs.keys())
        here, there = ("a shard", "no shard") if rank in mine else ("no shard", "a shard")
        return Difference("ranks", here, there, rank)
    budget = budget or Budget()
    walk = one.explicit or other.explicit
    equal: set[tuple[int, int]] = set()
    for rank in sorted(mine):
        left, right = mine[rank], theirs[rank]
        if left.shape != right.shape:
            return Difference("shard_shape", _extents(left.shape), _extents(right.shape), rank)
        pair = (id(left.pieces), id(right.pieces))
        if not left.indexed and not right.indexed and (pair in equal or left.pieces == right.pieces):
            equal.add(pair)
        elif (found := _between(left, right, budget, walk=walk)) is not None:
            return found
        else:
            equal.add(pair)
        if left.padding != right.padding:
            return Difference("padding", f"{left.padding:,}", f"{right.padding:,}", rank)
    return None


class _Claim(Struct, frozen=True):
    """What a box says of a cell: where its lowest element comes from, how that moves with each digit, and the marks."""

    base: int
    step: tuple[int, ...]
    marks: Marks

    def at(self, digit: int | None) -> tuple[int, Marks]:
        """Return the claim about the lowest element of the cell, or about the next one along a digit."""
        return self.base + (0 if digit is None else self.step[digit]), self.marks


def _between(left: RankShard, right: RankShard, budget: Budget, *, walk: bool) -> Difference | None:
    """Return the first difference between two shards of one shape, compared by address in the shard."""
    first, marks = _blocks(left, budget)
    second, their_marks = _blocks(right, budget)
    places, found, theirs = _boxed(first, second, left.elements, budget, walk=walk)
    every = [*found, *theirs]
    nearest: Difference | None = None
    for low, high, active in cells(every, budget):
        at = address_of(low, places)
        if nearest is not None and nearest.element is not None and at >= nearest.element:
            break  # cells come by rising address
        here = {_claim(every[n], low, high, marks) for n in active if n < len(found)}
        there = {_claim(every[n], low, high, their_marks) for n in active if n >= len(found)}
        if here == there:
            continue
        digit = next(
            digit
            for digit in (None, *range(len(low)))
            if {claim.at(digit) for claim in here} != {claim.at(digit) for claim in there}
        )
        element = at if digit is None else at + places[digit]
        if nearest is None or nearest.element is None or element < nearest.element:
            says = [sorted(claim.at(digit) for claim in claims) for claims in (here, there)]
            nearest = _said(left.rank, element, *says)
    return nearest


def _claim(box: DigitBox, low: Sequence[int], high: Sequence[int], marks: Sequence[Marks]) -> _Claim:
    step = tuple([by if y - x > 1 else 0 for by, x, y in zip(box.step, low, high, strict=True)])
    return _Claim(box.at(low), step, marks[box.tag])


def _said(
    rank: int, element: int, here: list[tuple[int, Marks]], there: list[tuple[int, Marks]]
) -> Difference:
    if not here or not there or [at for at, _ in here] != [at for at, _ in there]:
        what = "mapped" if not here or not there else "address"
        return Difference(what, _addresses(here), _addresses(there), rank, element)
    (_, (holders, scale)), (_, (others, factor)) = here[0], there[0]
    if scale != factor:
        one, other = (f"times {above}/{below}" for above, below in (scale, factor))
        return Difference("scale", one, other, rank, element)
    return Difference("holders", named(holders), named(others), rank, element)


def _addresses(claims: list[tuple[int, Marks]]) -> str:
    return " and ".join(f"element {at:,}" for at, _ in claims) or "nothing"


def _extents(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{extent:,}" for extent in shape) or "one element"


def _blocks(shard: RankShard, budget: Budget) -> tuple[list[Block], list[Marks]]:
    """Return the pieces of a shard from shard (a) to logical (b) addresses; the tag is the position of the marks."""
    blocks = [
        Block(piece.shape, piece.dest, piece.source, number) for number, piece in enumerate(shard.pieces)
    ]
    for number, index in enumerate(shard.indexed, len(shard.pieces)):
        budget.walk(index.elements)
        blocks += [run.swapped() for run in runs_of(index, number)]
    marks: list[Marks] = [(piece.holders, piece.scale) for piece in shard.pieces]
    return blocks, marks + [(index.holders, index.scale) for index in shard.indexed]


def _boxed(
    one: list[Block], other: list[Block], total: int, budget: Budget, *, walk: bool
) -> tuple[tuple[int, ...], list[DigitBox], list[DigitBox]]:
    try:
        return _placed(one, other, total, budget)
    except Fault as fault:
        if not walk or fault.finding.code != "map.unproven":
            raise
    budget.walk(sum(block.elements for block in (*one, *other)))
    return _placed(walked_each(one), walked_each(other), total, budget)


def _placed(
    one: list[Block], other: list[Block], total: int, budget: Budget
) -> tuple[tuple[int, ...], list[DigitBox], list[DigitBox]]:
    places = chain_of((*steps(one, side="a"), *steps(other, side="a")), total)
    return (
        places,
        boxes(one, places, budget, side="a", tagged=True),
        boxes(other, places, budget, side="a", tagged=True),
    )
