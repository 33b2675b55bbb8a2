"""The elementary cells of overlapping boxes: the coarsest division in which every cell lies in each box wholly or not at all.

A sweep digit by digit, the highest place first: between two edges of boxes the set of boxes does not change, and only the
few boxes that are active there are looked at in the next digit. 1,024 flat partitions over the columns of a tensor cost a
few thousand visits this way, where a full grid of all edges would have tens of millions of cells.
"""

from collections.abc import Iterator, Sequence

from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.digits import DigitBox

Cell = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Lowest digits, highest digits (exclusive), and the positions of the boxes that cover it, sorted."""


def cells(boxes: Sequence[DigitBox], budget: Budget) -> Iterator[Cell]:
    """Yield the cells that at least one box covers, by rising lowest address.

    Raises `Fault` `map.budget`.
    """
    if boxes:
        yield from _below(boxes, tuple(range(len(boxes))), len(boxes[0].low) - 1, (), (), budget)


def _below(
    boxes: Sequence[DigitBox],
    active: tuple[int, ...],
    digit: int,
    low: tuple[int, ...],
    high: tuple[int, ...],
    budget: Budget,
) -> Iterator[Cell]:
    if digit < 0:
        yield low, high, active
        return
    if len(active) == 1:
        box = boxes[active[0]]
        yield box.low[: digit + 1] + low, box.high[: digit + 1] + high, active
        return
    for start, end, here in _intervals(boxes, active, digit, budget):
        if here:
            yield from _below(boxes, here, digit - 1, (start, *low), (end, *high), budget)


def _intervals(
    boxes: Sequence[DigitBox], active: Sequence[int], digit: int, budget: Budget
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield the intervals of a digit between two edges of boxes, with the boxes that lie on them, rising."""
    opening: dict[int, list[int]] = {}
    closing: dict[int, list[int]] = {}
    for number in active:
        box = boxes[number]
        opening.setdefault(box.low[digit], []).append(number)
        closing.setdefault(box.high[digit], []).append(number)
    edges = sorted(opening.keys() | closing.keys())
    budget.spend("cells", len(active) + len(edges))
    current: set[int] = set()
    for position, start in enumerate(edges):
        current.difference_update(closing.get(start, ()))
        current.update(opening.get(start, ()))
        if position + 1 < len(edges):
            budget.spend("cells", len(current))
            yield start, edges[position + 1], tuple(sorted(current))


def first_gap(boxes: Sequence[DigitBox], ranges: Sequence[int], budget: Budget) -> tuple[int, ...] | None:
    """Return the lowest digits that no box covers, of those with so many values each; null where all are covered.

    Raises `Fault` `map.budget`.
    """
    return _gap(boxes, tuple(range(len(boxes))), len(ranges) - 1, ranges, budget)


def _gap(
    boxes: Sequence[DigitBox],
    active: tuple[int, ...],
    digit: int,
    ranges: Sequence[int],
    budget: Budget,
) -> tuple[int, ...] | None:
    if digit < 0:
        return None if active else ()
    reached = 0
    for start, end, here in _intervals(boxes, active, digit, budget):
        if start > reached:
            break
        below = _gap(boxes, here, digit - 1, ranges, budget)
        if below is not None:
            return (*below, start)
        reached = end
    return (*((0,) * digit), reached) if reached < ranges[digit] else None
