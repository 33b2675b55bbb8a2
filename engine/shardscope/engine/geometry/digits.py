"""Strided pieces as dense boxes: addresses written in a mixed radix whose place values are the pieces' own steps.

The steps of all pieces that meet in one address space, sorted, have to form a divisibility chain 1 | p1 | p2 | ... Every
address then has one digit for each place, and a strided block is a box: an interval of each digit. Boxes can be
intersected and counted; arbitrary progressions cannot (exact cover by them is intractable), so a step that fits no chain is
`map.unproven`, never a guess. A run that carries from one digit into the next is cut into the boxes it consists of.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct

from shardscope.engine.model.blocker import Fault


class DigitBox(Struct, frozen=True):
    """A dense box in digits, with an affine address on the other side.

    `low[k]` and `size[k]` are the interval of digit k (the lowest place first); the other side's address of the element at
    digit offsets i is `base + sum(i[k] * step[k])`.
    """

    low: tuple[int, ...]
    size: tuple[int, ...]
    base: int
    step: tuple[int, ...]
    tag: int
    """Which piece it is cut from."""


def chain_of(strides: Iterable[int], total: int) -> tuple[int, ...]:
    """Return the place values for an address space of `total` elements: 1, the strides, in rising order.

    Raises `Fault` `map.unproven` where the strides form no divisibility chain.
    """
    places = [1]
    for stride in sorted(set(strides)):
        if stride <= 0:
            raise Fault("map.unproven", reason="a stride is not positive")
        if stride % places[-1]:
            reason = f"the steps {places[-1]:,} and {stride:,} do not divide each other"
            raise Fault("map.unproven", reason=reason)
        if stride != places[-1]:
            places.append(stride)
    return tuple(place for place in places if place == 1 or place < total)


def boxes_of(
    offset: int,
    dims: Sequence[tuple[int, int, int]],
    base: int,
    places: Sequence[int],
    tag: int,
) -> list[DigitBox]:
    """Return the boxes of one block. `dims` are (extent, stride here, stride on the other side), in any order.

    Raises `Fault` `map.unproven` where dimensions of the block run into each other.
    """
    ordered = sorted((dim for dim in dims if dim[0] != 1), key=lambda dim: dim[1])
    levels = [places.index(stride) for _, stride, _ in ordered]
    count = len(places)
    # A partial box: digits below the level reached, the address still to be written above it, the other side's base.
    partial: list[tuple[list[int], list[int], list[int], int, int]] = [([], [], [], offset, base)]
    for index, (extent, _, other) in enumerate(ordered):
        level = levels[index]
        upper = levels[index + 1] if index + 1 < len(ordered) else count
        if level == upper:
            raise Fault("map.unproven", reason="two dimensions of one piece have the same step")
        grown = []
        for low, size, step, rest, start in partial:
            _constant_digits(low, size, step, rest, places, level)
            room = places[upper] // places[level] if upper < count else None
            position = rest // places[level]
            for first, length, done in _runs(position, extent, room):
                for head, tail in _cut(first % room if room else first, length, level, upper, places):
                    part = (low + head.low, size + head.size, step + [other * f for f in head.factor])
                    begin = start + other * (done + tail)
                    above = (first // room) * places[upper] if room else 0
                    grown.append((*part, above, begin))
        partial = grown
    boxes = []
    for low, size, step, rest, start in partial:
        _constant_digits(low, size, step, rest, places, count)
        boxes.append(DigitBox(tuple(low), tuple(size), start, tuple(step), tag))
    return boxes


def _constant_digits(
    low: list[int], size: list[int], step: list[int], rest: int, places: Sequence[int], upto: int
) -> None:
    """Append the digits of `rest` from the level reached to `upto` as single values (in place)."""
    while len(low) < upto:
        level = len(low)
        digit = rest // places[level]
        if level + 1 < len(places):
            digit %= places[level + 1] // places[level]
        low.append(digit)
        size.append(1)
        step.append(0)


class _Cut(Struct):
    low: list[int]
    size: list[int]
    factor: list[int]


def _runs(position: int, extent: int, room: int | None) -> list[tuple[int, int, int]]:
    """Split a run of `extent` at the boundary of `room`: (first, length, how many came before).

    A run longer than the room would overlap the next dimension's iterations.
    """
    if room is None:
        return [(position, extent, 0)]
    if extent > room:
        raise Fault("map.unproven", reason="the dimensions of one piece overlap")
    left = room - position % room
    if extent <= left:
        return [(position, extent, 0)]
    return [(position, left, 0), (position + left, extent - left, left)]


def _cut(first: int, length: int, level: int, upper: int, places: Sequence[int]) -> list[tuple[_Cut, int]]:
    """Cut a run of `length` units of place `level`, which stays below place `upper`, into boxes of those digits.

    Returns each box with the number of units before it.
    """
    pieces: list[tuple[_Cut, int]] = []
    ratio = [places[k + 1] // places[k] for k in range(level, upper - 1)]
    done = 0
    while done < length:
        position, left = first + done, length - done
        # The largest aligned block: grow over whole digits while the run is at a digit's start and fills it.
        unit, k = 1, 0
        while k < len(ratio) and position % (unit * ratio[k]) == 0 and left >= unit * ratio[k]:
            unit *= ratio[k]
            k += 1
        digit = position // unit
        most = (ratio[k] - digit % ratio[k]) if k < len(ratio) else left // unit
        take = min(most, left // unit)
        low, size, factor = [], [], []
        scale = 1
        for j in range(upper - level):
            here = position // scale
            if j < len(ratio):
                here %= ratio[j]
            if j < k:
                low.append(0)
                size.append(ratio[j])
            elif j == k:
                low.append(here)
                size.append(take)
            else:
                low.append(here)
                size.append(1)
            factor.append(scale)
            if j < len(ratio):
                scale *= ratio[j]
        pieces.append((_Cut(low, size, factor), done))
        done += take * unit
    return pieces


def digit_ranges(places: Sequence[int], total: int) -> list[int]:
    """Return how many values each digit has in an address space of `total` elements (the highest rounded up)."""
    ends = [*places[1:], -(-total // places[-1]) * places[-1]]
    return [end // place for place, end in zip(places, ends, strict=True)]


def interval_at(breaks: Sequence[int], value: int) -> int:
    """Return which interval of sorted `breaks` holds `value`."""
    return bisect_right(breaks, value) - 1
