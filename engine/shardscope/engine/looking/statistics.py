"""What numbers come to, in one pass over tiles.

Types of at most eight bits are counted code by code, and everything follows exactly from the counts. Of others, sums are taken in 64 bits
over blocks that stay in cache, and blocks are put together with compensation. Which exponents occur is known without looking at each number twice: only
those outside the range of which all are known already are looked at in full.
"""

from math import fsum, isfinite, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.diffing.numbers import SMALL, Values, codes, parts, table, values
from shardscope.engine.looking.exponents import Exponents
from shardscope.engine.model.peek import Number, Statistics
from shardscope.engine.model.tensors import DTYPES

BLOCK: Final = 64 << 10
"""Numbers that are worked on at one time."""

_SIGNLESS: Final = {2: 0x7FFF, 4: 0x7FFF_FFFF, 8: 0x7FFF_FFFF_FFFF_FFFF}
_ROW: Final = 4 << 10

Bytes = NDArray[np.uint8]
Ends = tuple[Number | None, Number | None]
NO_ENDS: Final[Ends] = (None, None)


def summing(dtype: str, *, histogram: bool = False, bits: int | None = None) -> "Counted | Packed | Summed":
    """Return what takes the tiles of a tensor of a type; with `bits`, of integers that such numbers are packed into."""
    if bits is not None:
        return Packed(dtype, bits, histogram=histogram)
    return (Counted if DTYPES[dtype].bits <= 8 else Summed)(dtype, histogram=histogram)


class Sum:
    """Numbers added up with compensation (Neumaier), so that rounding does not grow with their count."""

    __slots__ = ("_lost", "_total")

    def __init__(self) -> None:
        self._total = self._lost = 0.0

    def add(self, value: float) -> None:
        """Add a number."""
        total = self._total + value
        larger, smaller = (self._total, value) if abs(self._total) >= abs(value) else (value, self._total)
        self._lost += (larger - total) + smaller
        self._total = total

    @property
    def value(self) -> float:
        """The sum."""
        return self._total + self._lost if isfinite(self._total) else self._total


class Counted:
    """Counts of the codes of a type of at most eight bits."""

    def __init__(self, dtype: str, *, histogram: bool) -> None:
        self._dtype = dtype
        self._histogram = histogram
        self._counts = np.zeros(256, np.int64)
        self._strange = ~np.isfinite(known_values(dtype))

    def add(self, data: Bytes, count: int) -> None:
        """Take in `count` elements; those behind them fill a byte."""
        bits = DTYPES[self._dtype].bits
        for low in range(0, count, BLOCK):
            high = min(low + BLOCK, count)
            some = data[low * bits // 8 : -(-high * bits // 8)]
            if bits < 8 and len(some) * 8 % bits:  # six bits: the last ones are no whole number of bytes
                some = np.pad(some, (0, 3 - len(some) % 3))
            self._counts += np.bincount(codes(some, self._dtype)[: high - low], minlength=256)

    @property
    def not_finite(self) -> int:
        """How many NaN and infinite numbers there are so far."""
        return int(self._counts[: len(self._strange)][self._strange].sum())

    @property
    def ends(self) -> Ends:
        """The least and the largest finite number so far."""
        known = known_values(self._dtype)[(self._counts[: len(self._strange)] > 0) & ~self._strange]
        return (float(known.min()), float(known.max())) if len(known) else NO_ENDS

    def statistics(self) -> Statistics:
        """Return what it came to."""
        known = known_values(self._dtype)
        counts = self._counts[: len(known)]
        finite = np.isfinite(known) & (counts > 0)
        held, times = known[finite].astype("f8"), counts[finite]
        total = int(times.sum())
        mean = fsum(held * times) / total if total else None
        exponents = Exponents(histogram=True)
        exponents.add_counts(held, times)
        whole = DTYPES[self._dtype].kind in ("int", "uint", "bool")
        return Statistics(
            numbers=int(counts.sum()),
            zeros=int(counts[known == 0].sum()),
            nans=int(counts[np.isnan(known)].sum()),
            positive_infinite=int(counts[known == np.inf].sum()),
            negative_infinite=int(counts[known == -np.inf].sum()),
            min=_as(held.min(), whole) if total else None,
            max=_as(held.max(), whole) if total else None,
            mean=mean,
            std=None if mean is None else sqrt(fsum((held - mean) ** 2 * times) / total),
            l2=sqrt(fsum(held * held * times)) if total else None,
            sign_exponents=exponents.pairs,
            exponent_min=exponents.lowest,
            exponent_max=exponents.highest,
            distinct=int(np.count_nonzero(counts)),
            histogram=exponents.bins() if self._histogram else None,
        )


def known_values(dtype: str) -> NDArray[Any]:
    """Return the number that each code of a type of at most eight bits stands for."""
    if dtype in SMALL or DTYPES[dtype].kind == "scale":
        return table(dtype)
    return values(np.arange(1 << DTYPES[dtype].bits, dtype=np.uint8), dtype)


class Packed:
    """Counts of unsigned numbers of 1, 2 or 4 bits that integers hold, from the lowest bit on."""

    def __init__(self, dtype: str, bits: int, *, histogram: bool) -> None:
        self._each = DTYPES[dtype].bits // 8
        self._bits = bits
        self._counted = Counted("U8", histogram=histogram)

    def add(self, data: Bytes, count: int) -> None:
        """Take in `count` elements."""
        for low in range(0, count * self._each, BLOCK):
            found = apart(data[low : min(low + BLOCK, count * self._each)], self._bits)
            self._counted.add(found, len(found))

    @property
    def not_finite(self) -> int:
        """How many NaN and infinite numbers there are: integers have none."""
        return 0

    @property
    def ends(self) -> Ends:
        """The least and the largest number so far."""
        return self._counted.ends

    def statistics(self) -> Statistics:
        """Return what it came to."""
        return self._counted.statistics()


class Summed:
    """Sums over the numbers of a wider type."""

    def __init__(self, dtype: str, *, histogram: bool) -> None:
        self._dtype = dtype
        self._whole = DTYPES[dtype].kind in ("int", "uint")
        self._exponents = Exponents(histogram=histogram)
        self._histogram = histogram
        self._numbers = self._finite = self._zeros = self._nans = self._above = self._below = 0
        self._min: Number | None = None
        self._max: Number | None = None
        self._sum, self._squares, self._apart = Sum(), Sum(), Sum()
        self._wide = np.empty(BLOCK, "f8")

    def add(self, data: Bytes, count: int) -> None:
        """Take in `count` elements."""
        each = DTYPES[self._dtype].bits // 8 // parts(self._dtype)
        count *= parts(self._dtype)
        with np.errstate(all="ignore"):
            for low in range(0, count, BLOCK):
                self._add(data[low * each : min(low + BLOCK, count) * each])

    def _add(self, data: Bytes) -> None:
        numbers = narrow(data, self._dtype)
        halves = self._dtype == "BF16"
        self._numbers += len(numbers)
        low, high = numbers.min(), numbers.max()
        if not self._whole and not (np.isfinite(low) and np.isfinite(high)):
            self._nans += int(np.count_nonzero(np.isnan(numbers)))
            self._above += int(np.count_nonzero(numbers == np.inf))
            self._below += int(np.count_nonzero(numbers == -np.inf))
            numbers, halves = numbers[np.isfinite(numbers)], False
            if not len(numbers):
                return
            low, high = numbers.min(), numbers.max()
        least, most = (int(low), int(high)) if self._whole else (float(low), float(high))
        self._min = least if self._min is None else min(self._min, least)
        self._max = most if self._max is None else max(self._max, most)
        wide = self._wide[: len(numbers)]
        np.copyto(wide, numbers, casting="unsafe")
        self._add_sums(wide)
        if halves:
            bits = unsigned(data.view("<u2"))
        else:
            bits = unsigned(numbers if numbers.dtype == np.float32 else wide)
        self._zeros += self._exponents.add(bits, wide, float(least), float(most))

    def _add_sums(self, wide: Values) -> None:
        """Add up a block; the deviation is taken from its own mean where that is large beside it."""
        count, before = len(wide), self._finite
        total, squares = float(wide.sum()), squared(wide)
        mean = total / count
        apart = squares - total * mean
        if apart < squares / 2:
            moved = wide - mean
            apart = squared(moved)
        if before:
            between = mean - self._sum.value / before
            self._apart.add(between * between * before * (count / (before + count)))
        self._apart.add(apart)
        self._sum.add(total)
        self._squares.add(squares)
        self._finite += count

    @property
    def not_finite(self) -> int:
        """How many NaN and infinite numbers there are so far."""
        return self._nans + self._above + self._below

    @property
    def ends(self) -> Ends:
        """The least and the largest finite number so far."""
        return self._min, self._max

    def statistics(self) -> Statistics:
        """Return what it came to."""
        count, apart, squares = self._finite, self._apart.value, self._squares.value
        return Statistics(
            numbers=self._numbers,
            zeros=self._zeros,
            nans=self._nans,
            positive_infinite=self._above,
            negative_infinite=self._below,
            min=self._min,
            max=self._max,
            mean=_known(self._sum.value / count) if count else None,
            std=sqrt(max(0.0, apart) / count) if count and isfinite(apart) else None,
            l2=sqrt(squares) if count and isfinite(squares) else None,
            sign_exponents=self._exponents.pairs,
            exponent_min=self._exponents.lowest,
            exponent_max=self._exponents.highest,
            distinct=None,
            histogram=self._exponents.bins() if self._histogram else None,
        )


def first_not_finite(data: Bytes, dtype: str, count: int) -> int | None:
    """Return the first of `count` elements that is NaN or infinite; of a complex one either part is enough."""
    bits = DTYPES[dtype].bits
    for low in range(0, count, BLOCK):
        high = min(low + BLOCK, count)
        some = data[low * bits // 8 : -(-high * bits // 8)]
        if bits <= 8:
            if bits < 8 and len(some) * 8 % bits:
                some = np.pad(some, (0, 3 - len(some) % 3))
            numbers = known_values(dtype)[codes(some, dtype)[: high - low]]
        else:
            numbers = narrow(some, dtype)
        strange = np.flatnonzero(~np.isfinite(numbers))
        if len(strange):
            return low + int(strange[0]) // (1 if bits <= 8 else parts(dtype))
    return None


def unsigned(numbers: NDArray[Any]) -> NDArray[np.unsignedinteger[Any]]:
    """Return the bits of floats without their signs."""
    bits = numbers.view(f"<u{numbers.itemsize}")
    found: NDArray[np.unsignedinteger[Any]] = np.bitwise_and(
        bits, bits.dtype.type(_SIGNLESS[numbers.itemsize])
    )
    return found


def squared(numbers: Values) -> float:
    """Return the sum of squares, row by row: of longer rows BLAS starts threads, which wait where others use the processors."""
    whole = len(numbers) // _ROW * _ROW
    rows, rest = numbers[:whole].reshape(-1, _ROW), numbers[whole:]
    return float(np.vecdot(rows, rows).sum()) + float(np.square(rest).sum())


def apart(data: Bytes, bits: int) -> Bytes:
    """Return the numbers of `bits` bits, at most 4, that bytes hold, from the lowest bit on."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((data[:, None] >> shifts) & np.uint8((1 << bits) - 1)).reshape(-1)


def narrow(data: Bytes, dtype: str) -> NDArray[Any]:
    """Return numbers in a type that has each exactly: floats of 32 bits and less in 32, integers as they are."""
    if DTYPES[dtype].kind in ("int", "uint"):
        return data.view(f"<{DTYPES[dtype].kind[0]}{DTYPES[dtype].bits // 8}")
    if dtype in ("F32", "C64"):
        return data.view("<f4")
    if dtype == "BF16":
        halves = data.view("<u2").astype("<u4")
        halves <<= 16
        return halves.view("<f4")
    return values(data, dtype)


def _as(value: np.floating[Any], whole: bool) -> Number:
    return int(value) if whole else float(value)


def _known(value: float) -> float | None:
    return value if isfinite(value) else None
