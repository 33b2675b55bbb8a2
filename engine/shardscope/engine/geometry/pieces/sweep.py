"""Which boxes share addresses: found by dividing along digits, so that far fewer pairs are compared than there are."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.digits import DigitBox

FEW = 64
"""Pairs that are compared outright: less work than sorting them."""

COPIES = 3
"""How often a box may be repeated, on average, when boxes are dealt to the slabs that they reach into."""

Pair = tuple[DigitBox, DigitBox]

Slab = tuple[int, int]
"""A digit, and the lowest value of it in the slab: only pairs that begin their overlap there are reported there."""


def overlapping(left: Sequence[DigitBox], right: Sequence[DigitBox], budget: Budget) -> Iterator[Pair]:
    """Yield each pair of a box of `left` and one of `right` that share addresses, once, in no particular order.

    Raises `Fault` `map.budget` after too many `pair_checks`.
    """
    if left and right:
        yield from _among(left, right, tuple(range(len(left[0].low))), (), budget)


def sharing(boxes: Sequence[DigitBox], budget: Budget) -> Iterator[Pair]:
    """Yield each pair of boxes of one list that share addresses, once, in no particular order.

    Raises `Fault` `map.budget`.
    """
    if len(boxes) > 1:
        yield from _among(boxes, None, tuple(range(len(boxes[0].low))), (), budget)


def _among(
    left: Sequence[DigitBox],
    right: Sequence[DigitBox] | None,
    digits: tuple[int, ...],
    slabs: tuple[Slab, ...],
    budget: Budget,
) -> Iterator[Pair]:
    """Yield the pairs between two lists, or within `left` where there is no other."""
    count = len(left) * (len(left) - 1) // 2 if right is None else len(left) * len(right)
    if count <= FEW or not digits:
        budget.spend("pair_checks", count)
        every: Iterable[Pair] = combinations(left, 2) if right is None else product(left, right)
        for one, other in every:
            if _share(one, other) and (not slabs or _begins(one, other, slabs)):
                yield one, other
        return
    lists = (left,) if right is None else (left, right)
    digit, starts = max(
        ((k, {box.low[k] for boxes in lists for box in boxes}) for k in digits),
        key=lambda item: (len(item[1]), item[0]),
    )
    rest = tuple(k for k in digits if k != digit)
    dealt = _dealt(lists, digit, sorted(starts)) if rest and len(starts) > 1 else None
    if dealt is None:
        yield from _swept(left, right, digit, slabs, budget)
        return
    for start, (some, *others) in dealt.items():
        if right is None or (some and others[0]):
            yield from _among(some, others[0] if others else None, rest, (*slabs, (digit, start)), budget)


def _dealt(
    lists: tuple[Sequence[DigitBox], ...], digit: int, starts: list[int]
) -> dict[int, tuple[list[DigitBox], ...]] | None:
    """Return the boxes that reach into the slab from each start to the next; null where too many reach into many.

    A slab ends where another box starts, so boxes that share digits have the start of one of them within both.
    """
    place = {start: number for number, start in enumerate(starts)}
    dealt: dict[int, tuple[list[DigitBox], ...]] = {start: tuple([] for _ in lists) for start in starts}
    room = COPIES * sum(map(len, lists))
    for side, boxes in enumerate(lists):
        for box in boxes:
            number = place[box.low[digit]]
            high = box.high[digit]
            while number < len(starts) and starts[number] < high:
                dealt[starts[number]][side].append(box)
                number += 1
                room -= 1
            if room < 0:
                return None
    return dealt


def _swept(
    left: Sequence[DigitBox],
    right: Sequence[DigitBox] | None,
    digit: int,
    slabs: tuple[Slab, ...],
    budget: Budget,
) -> Iterator[Pair]:
    """Sweep along one digit, comparing each box with those of the other list that are active where it starts."""
    lists = (left,) if right is None else (left, right)
    events = sorted(
        [(box.low[digit], which, n) for which, boxes in enumerate(lists) for n, box in enumerate(boxes)]
    )
    active: list[list[DigitBox]] = [[] for _ in lists]
    for low, which, number in events:
        box = lists[which][number]
        against = len(lists) - 1 - which
        others = [other for other in active[against] if other.high[digit] > low]
        active[against] = others
        budget.spend("pair_checks", len(others))
        for other in others:
            if _share(box, other) and (not slabs or _begins(box, other, slabs)):
                yield (box, other) if which == 0 else (other, box)
        active[which].append(box)


def _share(one: DigitBox, other: DigitBox) -> bool:
    for low, high, begin, end in zip(one.low, one.high, other.low, other.high, strict=True):
        if low >= end or begin >= high:
            return False
    return True


def _begins(one: DigitBox, other: DigitBox, slabs: Sequence[Slab]) -> bool:
    """Tell whether the overlap of two boxes begins in these slabs: it reaches into others where it is not reported."""
    return all(max(one.low[digit], other.low[digit]) == start for digit, start in slabs)
