"""Which boxes share addresses: found by dividing along digits, so that far fewer pairs are compared than there are."""

from collections.abc import Iterator, Sequence

from shardscope.engine.geometry.budget import Budget
from shardscope.engine.geometry.digits import DigitBox

FEW = 48
"""Pairs that are compared outright: less work than sorting them."""

COPIES = 3
"""How often a box may be repeated, on average, when boxes are dealt to the slabs that they reach into."""


def overlapping(
    left: Sequence[DigitBox], right: Sequence[DigitBox], budget: Budget
) -> Iterator[tuple[DigitBox, DigitBox]]:
    """Yield each pair of a box of `left` and one of `right` that share addresses, once, in no particular order.

    Raises `Fault` `map.budget` after too many `pair_checks`.
    """
    if left and right:
        yield from _among(left, right, tuple(range(len(left[0].low))), (), budget)


Slab = tuple[int, int]
"""A digit, and the lowest value of it in the slab: only pairs that begin their overlap there are reported there."""


def _among(
    left: Sequence[DigitBox],
    right: Sequence[DigitBox],
    digits: tuple[int, ...],
    slabs: tuple[Slab, ...],
    budget: Budget,
) -> Iterator[tuple[DigitBox, DigitBox]]:
    if len(left) * len(right) <= FEW or not digits:
        budget.spend("pair_checks", len(left) * len(right))
        for one in left:
            for other in right:
                if _share(one, other) and _begins(one, other, slabs):
                    yield one, other
        return
    digit, starts = max(
        ((k, {box.low[k] for boxes in (left, right) for box in boxes}) for k in digits),
        key=lambda item: (len(item[1]), item[0]),
    )
    rest = tuple(k for k in digits if k != digit)
    dealt = _dealt(left, right, digit, sorted(starts)) if rest else None
    if dealt is None:
        yield from _swept(left, right, digit, slabs, budget)
        return
    for start, (some, others) in dealt.items():
        if some and others:
            yield from _among(some, others, rest, (*slabs, (digit, start)), budget)


def _dealt(
    left: Sequence[DigitBox], right: Sequence[DigitBox], digit: int, starts: list[int]
) -> dict[int, tuple[list[DigitBox], list[DigitBox]]] | None:
    """Return the boxes that reach into the slab from each start to the next; null where too many reach into many.

    A slab ends where another box starts, so boxes that share digits have the start of one of them within both.
    """
    if len(starts) < 2:
        return None
    place = {start: number for number, start in enumerate(starts)}
    dealt: dict[int, tuple[list[DigitBox], list[DigitBox]]] = {start: ([], []) for start in starts}
    room = COPIES * (len(left) + len(right))
    for side, boxes in enumerate((left, right)):
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
    right: Sequence[DigitBox],
    digit: int,
    slabs: tuple[Slab, ...],
    budget: Budget,
) -> Iterator[tuple[DigitBox, DigitBox]]:
    """Sweep along one digit, comparing each box with those of the other side that are active where it starts."""
    events = sorted(
        [(box.low[digit], 0, n) for n, box in enumerate(left)]
        + [(box.low[digit], 1, n) for n, box in enumerate(right)]
    )
    active: list[list[DigitBox]] = [[], []]
    for low, which, number in events:
        box = (left, right)[which][number]
        others = [other for other in active[1 - which] if other.high[digit] > low]
        active[1 - which] = others
        active[which].append(box)
        budget.spend("pair_checks", len(others))
        for other in others:
            if _share(box, other) and _begins(box, other, slabs):
                yield (box, other) if which == 0 else (other, box)


def _share(one: DigitBox, other: DigitBox) -> bool:
    for low, high, begin, end in zip(one.low, one.high, other.low, other.high, strict=True):
        if low >= end or begin >= high:
            return False
    return True


def _begins(one: DigitBox, other: DigitBox, slabs: Sequence[Slab]) -> bool:
    """Tell whether the overlap of two boxes begins in these slabs: it reaches into others where they report it not."""
    return all(max(one.low[digit], other.low[digit]) == start for digit, start in slabs)


def sharing(boxes: Sequence[DigitBox], budget: Budget) -> Iterator[tuple[DigitBox, DigitBox]]:
    """Yield each pair of different boxes of one list that share addresses, once or twice, in no particular order.

    Raises `Fault` `map.budget`.
    """
    for one, other in overlapping(boxes, boxes, budget):
        if one is not other:
            yield one, other
