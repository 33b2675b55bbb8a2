"""Figures of two tensors that pass by tile by tile: how many elements differ, by how much, and where the first one is.

NaN is the same as NaN, whatever its other bits, and 0.0 the same as -0.0; of tensors of one type the bits are counted apart.
"""

from math import isfinite, sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.diffing.numbers import Values, codes, in_words, parts, values
from shardscope.engine.model.difference import Figures, FirstDifference, Verdict
from shardscope.engine.model.tensors import DTYPES

BLOCK: Final = 32 << 10
"""Elements that are measured at one time, so that all that is worked out of them stays in cache."""
SCRATCH: Final = 16 * 16 * BLOCK
"""Bytes that measuring takes beside its tiles, at most."""
_WIDE: Final = frozenset({"I64", "U64"})

Bytes = NDArray[np.uint8]


class First(NamedTuple):
    """The first element that is not the same."""

    element: int
    a: str
    b: str


class Measure:
    """Sums over tiles. Tiles come in order."""

    def __init__(self, first: str, second: str) -> None:
        self._dtypes = first, second
        self._alike = first == second
        self._parts = parts(first)
        self._wide = not _WIDE.isdisjoint(self._dtypes)
        self.first: First | None = None
        self._elements = self._differing = self._bits_only = self._not_finite = 0
        self._max_abs, self._max_rel = -1.0, -1.0
        self._dot = self._one = self._other = 0.0

    def add(self, element: int, first: Bytes, second: Bytes) -> None:
        """Take the elements from `element` on in."""
        bits, other_bits = (DTYPES[dtype].bits for dtype in self._dtypes)
        count = len(first) * 8 // bits
        for low in range(0, count, BLOCK):
            high = min(low + BLOCK, count)
            left = first[low * bits // 8 : high * bits // 8]
            right = second[low * other_bits // 8 : high * other_bits // 8]
            self._elements += high - low
            if self._alike and np.array_equal(left, right):
                self._add_equal(left)
            else:
                self._add_block(element + low, left, right)

    def _add_equal(self, data: Bytes) -> None:
        numbers = values(data, self._dtypes[0], wide=self._wide)
        finite = np.isfinite(numbers)
        if not finite.all():
            numbers = numbers[finite]
        with np.errstate(all="ignore"):
            total = float(np.einsum("i,i->", numbers, numbers))
        self._dot += total
        self._one += total
        self._other += total
        if len(numbers):
            self._max_abs, self._max_rel = max(self._max_abs, 0.0), max(self._max_rel, 0.0)

    def _add_block(self, element: int, left: Bytes, right: Bytes) -> None:
        one, other = (
            values(data, dtype, wide=self._wide)
            for data, dtype in zip((left, right), self._dtypes, strict=True)
        )
        if len(one) != len(other):  # a complex number beside a real one
            raise ValueError(f"{self._dtypes[0]} beside {self._dtypes[1]}")
        with np.errstate(all="ignore"):
            equal = (one == other) | (np.isnan(one) & np.isnan(other))
            finite = np.isfinite(one) & np.isfinite(other)
            self._count(element, left, right, equal, finite)
            if not finite.all():
                one, other = one[finite], other[finite]
            if len(one):
                self._errors(one, other)

    def _count(
        self, element: int, left: Bytes, right: Bytes, equal: NDArray[np.bool_], finite: NDArray[np.bool_]
    ) -> None:
        same = equal.reshape(-1, self._parts).all(axis=1)
        off = ~same
        self._differing += int(np.count_nonzero(off))
        self._not_finite += int(np.count_nonzero(off & ~finite.reshape(-1, self._parts).all(axis=1)))
        if self._alike:
            unequal = codes(left, self._dtypes[0]) != codes(right, self._dtypes[0])
            bits = unequal.reshape(-1, self._parts).any(axis=1)
            self._bits_only += int(np.count_nonzero(bits & same))
            off = bits
        if self.first is None and off.any():
            at = int(np.argmax(off))
            words = [
                in_words(_element(data, at, dtype), dtype)
                for data, dtype in zip((left, right), self._dtypes, strict=True)
            ]
            self.first = First(element + at, *words)

    def _errors(self, one: Values, other: Values) -> None:
        apart = np.abs(one - other)
        size = np.maximum(np.abs(one), np.abs(other))
        self._max_abs = max(self._max_abs, float(apart.max()))
        relative = np.divide(apart, size, out=np.zeros_like(apart), where=size > 0)
        self._max_rel = max(self._max_rel, float(relative.max()))
        self._dot += float(np.einsum("i,i->", one, other))
        self._one += float(np.einsum("i,i->", one, one))
        self._other += float(np.einsum("i,i->", other, other))

    def figures(self, first: FirstDifference | None) -> Figures:
        """Return what it came to; `first` is the place of the first difference."""
        verdict: Verdict = "numbers" if self._bits_only or not self._alike else "bits"
        return Figures(
            verdict="differs" if self._differing else verdict,
            elements=self._elements,
            differing=self._differing,
            bits_only=self._bits_only,
            not_finite=self._not_finite,
            max_abs=_known(self._max_abs),
            max_rel=_known(self._max_rel),
            cosine=self._cosine(),
            first=first,
        )

    def _cosine(self) -> float | None:
        size = sqrt(self._one) * sqrt(self._other)
        if not size or not isfinite(size) or not isfinite(self._dot):
            return None
        return max(-1.0, min(1.0, self._dot / size))


def _known(value: float) -> float | None:
    return value if value >= 0 and isfinite(value) else None


def _element(data: Bytes, at: int, dtype: str) -> Bytes:
    """Return one element, by itself where it has less than a byte."""
    bits = DTYPES[dtype].bits
    if bits % 8 == 0:
        return data[at * bits // 8 : (at + 1) * bits // 8]
    return codes(data, dtype)[at : at + 1].astype(np.uint8)
