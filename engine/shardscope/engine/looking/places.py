"""Where in a selection its extremes are, and the first numbers that are not finite.

They are looked for in the tile that has just been summed, and only where the sums have moved: in numbers without an order that is a
handful of tiles.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.diffing.numbers import codes, parts
from shardscope.engine.looking.statistics import (
    BLOCK,
    NO_ENDS,
    Bytes,
    Counted,
    Packed,
    Summed,
    apart,
    known_values,
    narrow,
)
from shardscope.engine.model.tensors import DTYPES


class Places:
    """The elements, counted row by row, at which something was met first. Null: it was not met."""

    def __init__(self, dtype: str, bits: int | None = None) -> None:
        self._dtype = dtype
        self._bits = bits
        self._per_element = parts(dtype) if bits is None else DTYPES[dtype].bits // bits
        """Numbers that an element is."""
        self._ends = NO_ENDS
        self._strange = 0
        self.min: int | None = None
        self.max: int | None = None
        self.nan: int | None = None
        self.positive_infinite: int | None = None
        self.negative_infinite: int | None = None

    def add(self, element: int, data: Bytes, count: int, sums: "Counted | Packed | Summed") -> None:
        """Take in `count` elements from `element` on, which `sums` has taken in before."""
        ends = sums.ends
        if ends[0] != self._ends[0]:
            self.min = self._first(element, data, count, lambda numbers: numbers == ends[0])
        if ends[1] != self._ends[1]:
            self.max = self._first(element, data, count, lambda numbers: numbers == ends[1])
        self._ends = ends
        if sums.not_finite > self._strange:
            if self.nan is None:
                self.nan = self._first(element, data, count, np.isnan)
            if self.positive_infinite is None:
                self.positive_infinite = self._first(element, data, count, np.isposinf)
            if self.negative_infinite is None:
                self.negative_infinite = self._first(element, data, count, np.isneginf)
        self._strange = sums.not_finite

    def _first(self, element: int, data: Bytes, count: int, holds: Any) -> int | None:
        """Return the first element of a tile of which a number holds; null where none does."""
        with np.errstate(invalid="ignore"):
            for begin, numbers in self._blocks(data, count):
                found = holds(numbers)
                if len(found) and found[at := int(np.argmax(found))]:
                    return element + (begin + at) // self._per_element
        return None

    def _blocks(self, data: Bytes, count: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the numbers of a tile block by block, each with how many come before it."""
        bits = DTYPES[self._dtype].bits
        for low in range(0, count, BLOCK):
            high = min(low + BLOCK, count)
            some = data[low * bits // 8 : -(-high * bits // 8)]
            if bits < 8 and len(some) * 8 % bits:  # six bits: the last ones are no whole number of bytes
                some = np.pad(some, (0, 3 - len(some) % 3))
            yield low * self._per_element, self._numbers(some)[: (high - low) * self._per_element]

    def _numbers(self, data: Bytes) -> NDArray[Any]:
        if self._bits is not None:
            return apart(data, self._bits)
        if DTYPES[self._dtype].bits <= 8:
            return known_values(self._dtype)[codes(data, self._dtype)]
        return narrow(data, self._dtype)
