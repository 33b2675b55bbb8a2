"""Which blocks have an address: boxes in digits, of which only those that reach into a window are looked at."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import le, lt

from shardscope.engine.geometry.pieces.blocks import Block
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.digits import DigitBox, address_of, digit_ranges
from shardscope.engine.geometry.pieces.explicit import boxed
from shardscope.engine.geometry.pieces.sweep import overlapping

DIRECT = 8_192
"""Boxes that are compared with points outright: less work than a sweep."""

Found = tuple[int, int]
"""The tag of a block, and the address on its other side."""


class Index:
    """The blocks of one address space."""

    def __init__(self, blocks: Sequence[Block], total: int, budget: Budget, *, side: str, walk: bool) -> None:
        """`total` elements are in the space; `walk` and `side` as in `boxed`. Raises `Fault`: `map.unproven`, `map.budget`."""
        self._total = max(total, 1)
        self._places, found = boxed(blocks, total, budget, side=side, walk=walk)
        self._ranges = digit_ranges(self._places, self._total)
        pairs = sorted(((self._lowest(box), box) for box in found), key=lambda pair: pair[0])
        self._boxes = [box for _, box in pairs]
        self._lows = [low for low, _ in pairs]
        self._highs = [self._highest(box) for box in self._boxes]
        self._reach = list(accumulate(self._highs, max))

    def _lowest(self, box: DigitBox) -> int:
        return address_of(box.low, self._places)

    def _highest(self, box: DigitBox) -> int:
        return address_of([high - 1 for high in box.high], self._places)

    def within(self, first: int, last: int) -> list[DigitBox]:
        """Return the boxes that may have addresses from `first` to `last`, inclusive."""
        begin, end = bisect_left(self._reach, first), bisect_right(self._lows, last)
        if end - begin <= 1:
            return self._boxes[begin:end]
        near = zip(self._boxes[begin:end], self._highs[begin:end], strict=True)
        return [box for box, high in near if high >= first]

    def met(self, addresses: Sequence[int], budget: Budget | None = None) -> list[list[Found]]:
        """Return for each address the blocks that have it. Raises `Fault` `map.budget`."""
        found: list[list[Found]] = [[] for _ in addresses]
        if not addresses:
            return found
        near = [(bisect_left(self._reach, each), bisect_right(self._lows, each)) for each in addresses]
        points = self._points(addresses)
        if sum(end - begin for begin, end in near) <= DIRECT:
            for point, (begin, end) in zip(points, near, strict=True):
                for box in self._boxes[begin:end]:
                    if all(map(le, box.low, point.low)) and all(map(lt, point.low, box.high)):
                        found[point.tag].append((box.tag, box.at(point.low)))
            return found
        boxes = self.within(min(addresses), max(addresses))
        for point, box in overlapping(points, boxes, budget or Budget()):
            found[point.tag].append((box.tag, box.at(point.low)))
        return found

    def _points(self, addresses: Sequence[int]) -> list[DigitBox]:
        still = (0,) * len(self._places)
        ranges = tuple(zip(self._places, self._ranges, strict=True))
        points = []
        for number, address in enumerate(addresses):
            digits = tuple([address // place % size for place, size in ranges])
            points.append(DigitBox(digits, tuple([digit + 1 for digit in digits]), 0, still, number))
        return points
