"""Strided pieces as dense boxes: addresses written in a mixed radix whose place values are the pieces' own steps.

The steps of all pieces that meet in one address space, sorted, have to form a divisibility chain 1 | p1 | p2 | ... Every
address then has one digit for each place, and a strided block is a box: an interval of each digit. Boxes can be
intersected and counted; arbitrary progressions cannot (exact cover by them is intractable). A step that fits no chain is
written out, slice by slice, as far as a small budget goes; beyond it the layout is `map.unproven`, never a guess. A run that
carries from one digit into the next is cut into the boxes it consists of.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from msgspec import Struct

from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.model.blocker import Fault


class DigitBox(Struct, frozen=True, gc=False):
    """A dense box in digits, with an affine address on the other side.

    `low[k]` to `high[k]` (exclusive) is the interval of digit k, the lowest place first; the other side's address of the
    element at digit offsets i is `base + sum(i[k] * step[k])`.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    base: int
    step: tuple[int, ...]
    tag: int
    """Which piece it is cut from."""

    @property
    def volume(self) -> int:
        """How many addresses it has."""
        count = 1
        for low, high in zip(self.low, self.high, strict=True):
            count *= high - low
        return count

    def at(self, low: Sequence[int]) -> int:
        """Return the other side's address of the element at the digits `low`."""
        address = self.base
        for there, here, step in zip(low, self.low, self.step, strict=True):
            address += (there - here) * step
        return address


Dim = tuple[int, int, int]
"""Extent, stride here, stride on the other side."""


def chain_of(dims: Iterable[tuple[int, int]], total: int) -> tuple[int, ...]:
    """Return the place values for an address space of `total` elements: 1 and strides, in rising order.

    `dims` are (extent, stride) of the blocks in it. Where their strides form no divisibility chain, those that would cost
    most slices to write out stay, and the others are left out.

    Raises `Fault` `map.unproven` where a stride is not positive.
    """
    weights: dict[int, int] = {}
    for extent, stride in dims:
        if extent != 1:
            weights[stride] = weights.get(stride, 0) + extent
    places = [1]
    for stride in sorted(weights):
        if stride <= 0:
            raise Fault("map.unproven", reason="a stride is not positive")
        if stride % places[-1]:
            places = _heaviest(weights)
            break
        if stride != places[-1]:
            places.append(stride)
    return tuple([place for place in places if place == 1 or place < total])


def _heaviest(weights: dict[int, int]) -> list[int]:
    kept = [1]
    for stride in sorted(weights, key=lambda stride: (-weights[stride], stride)):
        if stride not in kept and all(stride % other == 0 or other % stride == 0 for other in kept):
            kept.append(stride)
    return sorted(kept)


def written_out(
    offset: int, dims: Sequence[Dim], base: int, places: Sequence[int], budget: Budget
) -> Iterator[tuple[int, tuple[Dim, ...], int]]:
    """Yield a block as blocks whose strides are all places: offset, dimensions, the other side's offset.

    Raises `Fault` `map.unproven` where that are more slices than the budget has.
    """
    fitting, odd, why = _odd(dims, places)
    if not odd:
        yield offset, fitting, base
        return
    try:
        budget.spend("slices", math.prod(extent for extent, _, _ in odd))
    except Fault as fault:
        raise Fault("map.unproven", reason=why) from fault
    for index in product(*[range(extent) for extent, _, _ in odd]):
        here, there = offset, base
        for n, (_, stride, other) in zip(index, odd, strict=True):
            here, there = here + n * stride, there + n * other
        yield here, fitting, there


def _odd(dims: Sequence[Dim], places: Sequence[int]) -> tuple[tuple[Dim, ...], list[Dim], str]:
    """Return the dimensions that fit, those that have to be written out, and why.

    Either no place has the step of a dimension, or two run into each other: then the shorter one goes.
    """
    odd = [dim for dim in dims if dim[0] != 1 and dim[1] not in places]
    why = ""
    if odd:
        step = odd[0][1]
        other = next((place for place in places if place % step and step % place), places[-1])
        why = f"the steps {min(step, other):,} and {max(step, other):,} do not divide each other"
    fitting = sorted((dim for dim in dims if dim[0] != 1 and dim[1] in places), key=lambda dim: dim[1])
    number = 0
    while number + 1 < len(fitting):
        (extent, stride, _), (longer, next_stride, _) = fitting[number], fitting[number + 1]
        if extent * stride <= next_stride:
            number += 1
            continue
        odd.append(fitting.pop(number if extent <= longer else number + 1))
        number = max(0, number - 1)
        why = why or "the dimensions of one piece run into each other"
    return tuple(fitting), odd, why


def box_of(offset: int, dims: Sequence[Dim], base: int, places: Sequence[int], tag: int) -> DigitBox | None:
    """Return a block as one box, where it is one as it stands: nearly always. Null where it has to be cut."""
    low = [0] * len(places)
    high = [0] * len(places)
    step = [0] * len(places)
    for extent, stride, other in dims:
        if extent != 1:
            if stride not in places:
                return None
            level = places.index(stride)
            if high[level]:
                return None
            high[level], step[level] = extent, other
    rest = offset
    for level in range(len(places) - 1, -1, -1):
        digit, rest = divmod(rest, places[level])
        end = digit + (high[level] or 1)
        low[level], high[level] = digit, end
        if end > digit + 1 and level + 1 < len(places) and end * places[level] > places[level + 1]:
            return None
    return DigitBox(tuple(low), tuple(high), base, tuple(step), tag)


def boxes_of(
    offset: int,
    dims: Sequence[Dim],
    base: int,
    places: Sequence[int],
    tag: int,
) -> list[DigitBox]:
    """Return the boxes of one block whose strides are all places; its dimensions, in any order, do not overlap."""
    count = len(places)
    ordered = sorted((stride, extent, other) for extent, stride, other in dims if extent != 1)
    # A partial box: its digits below the level reached, what is left of the address, the other side's base.
    partial: list[_Partial] = [((), (), (), offset, base)]
    for index, (stride, extent, other) in enumerate(ordered):
        level = places.index(stride)
        upper = places.index(ordered[index + 1][0]) if index + 1 < len(ordered) else count
        room = places[upper] // stride if upper < count else 0
        grown: list[_Partial] = []
        for part in partial:
            low, high, step, rest, start = _constant(part, places, level)
            first = rest // stride
            above = 0
            if room:
                above, first = first // room * places[upper], first % room
            done = 0
            while done < extent:  # a second turn where the run carries into the next dimension's place
                length = min(extent - done, room - first) if room else extent
                for lows, highs, factors, before in _cut(first, length, level, upper, places):
                    steps = tuple([other * factor for factor in factors])
                    begin = start + other * (done + before)
                    grown.append((low + lows, high + highs, step + steps, above, begin))
                done += length
                first, above = 0, above + (places[upper] if room else 0)
        partial = grown
    boxes = []
    for part in partial:
        low, high, step, _, start = _constant(part, places, count)
        boxes.append(DigitBox(low, high, start, step, tag))
    return boxes


_Digits = tuple[int, ...]
_Partial = tuple[_Digits, _Digits, _Digits, int, int]


def _constant(part: _Partial, places: Sequence[int], upto: int) -> _Partial:
    """Return a partial box grown by the digits of its address below the level `upto`, each a single value."""
    low, high, step, rest, start = part
    level = len(low)
    if level == upto:
        return part
    digits = []
    for place in range(level, upto):
        digit = rest // places[place]
        if place + 1 < len(places):
            digit %= places[place + 1] // places[place]
        digits.append(digit)
    above = rest if upto < len(places) else 0
    return (
        (*low, *digits),
        (*high, *[digit + 1 for digit in digits]),
        step + (0,) * len(digits),
        above,
        start,
    )


def _cut(
    first: int, length: int, level: int, upper: int, places: Sequence[int]
) -> list[tuple[_Digits, _Digits, _Digits, int]]:
    """Cut a run of `length` units of place `level`, which stays below place `upper`, into boxes of those digits.

    Returns for each box the lowest and the (exclusive) highest digits, the units in a step of each digit, and how many
    units of the run come before it.
    """
    if upper == level + 1:
        return [((first,), (first + length,), (1,), 0)]
    ratio = [places[k + 1] // places[k] for k in range(level, upper - 1)]
    factors = tuple([places[k] // places[level] for k in range(level, upper)])
    found = []
    done = 0
    while done < length:
        position, left = first + done, length - done
        # The largest aligned block: grow over whole digits while the run is at a digit's start and fills it.
        k = 0
        while k < len(ratio) and position % factors[k + 1] == 0 and left >= factors[k + 1]:
            k += 1
        take = left // factors[k]
        if k < len(ratio):
            take = min(take, ratio[k] - position // factors[k] % ratio[k])
        low, high = [], []
        for j, factor in enumerate(factors):
            digit = position // factor
            if j < len(ratio):
                digit %= ratio[j]
            low.append(digit)
            high.append(ratio[j] if j < k else digit + (take if j == k else 1))
        found.append((tuple(low), tuple(high), factors, done))
        done += take * factors[k]
    return found


def address_of(low: Sequence[int], places: Sequence[int]) -> int:
    """Return the address that digits write."""
    address = 0
    for digit, place in zip(low, places, strict=True):
        address += digit * place
    return address


def digit_ranges(places: Sequence[int], total: int) -> list[int]:
    """Return how many values each digit has in an address space of `total` elements (the highest rounded up)."""
    ends = [*places[1:], -(-total // places[-1]) * places[-1]]
    return [end // place for place, end in zip(places, ends, strict=True)]
