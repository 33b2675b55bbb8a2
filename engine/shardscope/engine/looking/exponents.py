"""Which signs and binary exponents numbers have, and with a histogram how many have each.

An exponent is that of the number, not a field of its type: 2^exponent <= |number| < 2^(exponent + 1), subnormal numbers included.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.diffing.numbers import Values
from shardscope.engine.model.peek import Bin

_BIAS: Final = 1023
_FIELDS: Final = 2048
_FRACTION: Final = 52
_LOW: Final = 1074
"""The place of exponent 0: the smallest number of 64 bits is 2^-1074."""
_PLACES: Final = _LOW + 1024
_LAYOUTS: Final = {2: (127, 7, 254), 4: (127, 23, 254), 8: (_BIAS, _FRACTION, _FIELDS - 2)}
"""Bias, bits of the fraction and the largest field, by bytes: of bfloat16, and of 32 and 64 bits."""
_NONE: Final = (1, 0)
"""A run of nothing."""


class Exponents:
    """Counts by sign and exponent; without a histogram only whether there is one."""

    def __init__(self, *, histogram: bool) -> None:
        self._histogram = histogram
        self._signs: NDArray[np.bool_] = np.zeros(2, bool)
        self._counts = np.zeros((2, _PLACES), np.int64)
        self._run: tuple[int, int] | None = None
        """The first and the last exponent of the longest run of which all are there; null while it has to be looked for."""

    def add(self, bits: NDArray[np.unsignedinteger[Any]], wide: Values, least: float, most: float) -> int:
        """Take in finite numbers, given as bits without signs and in 64 bits, with their ends. Returns how many are zero.

        Of two bytes they are bfloat16.
        """
        if self._histogram:
            return self._add_all(wide)
        bias, fraction, last = _LAYOUTS[bits.itemsize]
        first, end = self._range(least, most)
        low, high = max(1, first + bias), min(last, end + bias)
        rest = wide
        if low <= high:
            above = max(-least, most) >= 2.0 ** (high - bias) * 2
            if not above and int(bits.min()) >= low << fraction:
                return 0
            outside = bits < (low << fraction)
            if above:
                outside |= bits >= ((high + 1) << fraction)
            rest = wide[outside]
        zeros = len(rest) - int(np.count_nonzero(rest))
        if zeros < len(rest):
            self._add_all(rest)
            self._run = None
        return zeros

    def add_counts(self, numbers: Values, times: NDArray[np.int64]) -> None:
        """Take in numbers, each as many times as it is there."""
        some = numbers != 0
        _, exponents = np.frexp(numbers[some])
        np.add.at(self._counts, (np.signbit(numbers[some]).astype(int), exponents - 1 + _LOW), times[some])

    def _add_all(self, wide: Values) -> int:
        fields = np.bincount((wide.view(np.uint64) >> _FRACTION).view(np.int64), minlength=2 * _FIELDS)
        counts = fields.reshape(2, _FIELDS)
        zeros = len(wide) - int(np.count_nonzero(wide))
        if int(counts[:, 0].sum()) > zeros:  # subnormal numbers
            low = wide[np.abs(wide) < np.finfo("f8").smallest_normal]
            self.add_counts(low, np.ones(len(low), np.int64))
        self._counts[:, _LOW - _BIAS + 1 :] += counts[:, 1:-1]
        return zeros

    def _range(self, least: float, most: float) -> tuple[int, int]:
        """Return the ends of a run of exponents that every sign has that numbers between `least` and `most` may have."""
        if self._run is None:
            self._run = self._longest()
        new = (least < 0 and not self._signs[1]) or (most > 0 and not self._signs[0])
        return _NONE if new else self._run

    def _longest(self) -> tuple[int, int]:
        seen = self._counts > 0
        self._signs = np.logical_or.reduce(seen, axis=1)
        if not self._signs.any():
            return _NONE
        ends = np.flatnonzero(np.diff(seen[self._signs].all(axis=0), prepend=False, append=False))
        if not len(ends):
            return _NONE
        best = int(np.argmax(ends[1::2] - ends[::2]))
        return int(ends[2 * best]) - _LOW, int(ends[2 * best + 1]) - 1 - _LOW

    @property
    def pairs(self) -> int:
        """How many pairs of sign and exponent there are."""
        return int(np.count_nonzero(self._counts))

    @property
    def lowest(self) -> int | None:
        """The lowest exponent."""
        found = np.flatnonzero(self._counts.any(axis=0))
        return int(found[0]) - _LOW if len(found) else None

    @property
    def highest(self) -> int | None:
        """The highest exponent."""
        found = np.flatnonzero(self._counts.any(axis=0))
        return int(found[-1]) - _LOW if len(found) else None

    def bins(self) -> tuple[Bin, ...]:
        """Return the counts by rising numbers."""
        below = [
            Bin(negative=True, exponent=int(at) - _LOW, count=int(self._counts[1, at]))
            for at in np.flatnonzero(self._counts[1])[::-1]
        ]
        above = [
            Bin(negative=False, exponent=int(at) - _LOW, count=int(self._counts[0, at]))
            for at in np.flatnonzero(self._counts[0])
        ]
        return (*below, *above)
