"""The elementary cells of overlapping boxes: the coarsest division in which every cell lies in each box wholly or not at all.

A sweep digit by digit, the highest place first: between two edges of boxes the set of boxes does not change, and only the
few boxes that are active there are looked at in the next digit. 1,024 flat partitions over the columns of a tensor cost a
few thousand visits this way, where a full grid of all edges would have tens of millions of cells.
"""

from collections.abc import Iterator, Sequence

from shardscope.engine.geometry.budget import Budget
from shardscope.engine.geometry.digits import DigitBox

Cell = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Lowest digits, extents, and the positions of the boxes that cover it, sorted."""


def cells(boxes: Sequence[DigitBox], budget: Budget) -> Iterator[Cell]:
    """Yield the cells that at least one box covers, in order of their addresses.

    Raises `Fault` `map.budget`.
    """
    if not boxes:
        return
    yield from _below(boxes, tuple(range(len(boxes))), len(boxes[0].low) - 1, (), (), budget)


def _below(
    boxes: Sequence[DigitBox],
    active: tuple[int, ...],
    digit: int,
    low: tuple[int, ...],
    size: tuple[int, ...],
    budget: Budget,
) -> Iterator[Cell]:
    if digit < 0:
        yield low, size, active
        return
    budget.spend("cells", len(active))
    edges: dict[int, list[tuple[bool, int]]] = {}
    for number in active:
        box = boxes[number]
        edges.setdefault(box.low[digit], []).append((True, number))
        edges.setdefault(box.low[digit] + box.size[digit], []).append((False, number))
    current: set[int] = set()
    start = 0
    for edge in sorted(edges):
        if current:
            budget.spend("cells", len(current))
            here = tuple(sorted(current))
            yield from _below(boxes, here, digit - 1, (start, *low), (edge - start, *size), budget)
        for opens, number in edges[edge]:
            if opens:
                current.add(number)
            else:
                current.discard(number)
        start = edge
