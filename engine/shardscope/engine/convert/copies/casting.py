"""Floating-point numbers from one type to another, rounded to nearest, ties to even; and bytes of the other order turned round.

Every conversion is exact, or the one rounding that IEEE 754 asks for. NaNs stay NaNs, with their sign; infinities stay. Of
finite numbers that become infinite there is a count. The rounding is done in integers, block by block, so that what it needs
beside its input stays in cache.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.geometry.execution.move import Bytes
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.tensors import DTYPES

BLOCK: Final = 64 << 10
"""Elements that are converted at one time."""

NUMPY: Final = np.__version__
"""Of the library that converts: two machines with the same one make the same bytes."""

SCRATCH: Final = 32 * BLOCK
"""Bytes that a conversion takes beside its input and output, at most."""

Words: TypeAlias = NDArray[np.uint32]
Floats: TypeAlias = NDArray[Any]

_ABOVE_BF16: Final = np.float32(2.0**127 * (2 - 2.0**-8))
"""Finite numbers from here on round to infinity as bfloat16: midway between its largest and the next power of two."""
_ABOVE_F16: Final = np.float32(65520)
_NORMAL_F16: Final = np.uint32(0x38800000)
"""The bits of 2**-14: below it halves are subnormal."""
_REBASED: Final = np.uint32(0xC8000FFF)
"""What takes 112 from an exponent of single precision, and almost half a step of half precision to its fraction."""
_HALF: Final = np.float32(0.5)
_QUIET: Final = np.uint16(0x40)
"""The bit of a bfloat16 NaN that keeps it one whatever its other bits are."""

CASTS: Final = frozenset({"F16", "BF16", "F32", "F64"})
"""Types between which numbers are converted."""


def castable(stored: str, wanted: str) -> bool:
    """Tell whether numbers of one type can be written as another: floating-point numbers of at least 16 bits, and none of 64
    bits that were not stored as such.
    """
    return stored == wanted or ({stored, wanted} <= CASTS and wanted != "F64")


def swapped(data: Bytes, dtype: str) -> Bytes:
    """Return elements with their bytes in the other order: each half of a complex number by itself."""
    row = DTYPES[dtype]
    width = row.bits // (16 if row.kind == "complex" else 8)
    if width < 2:
        return data
    return data.view(f"u{width}").byteswap().view(np.uint8)


class Caster:
    """Converts dense little-endian elements of one type into those of another. For one thread: it keeps its scratch."""

    def __init__(self, stored: str, wanted: str) -> None:
        """Raises `Fault` `convert.cast` where there is no such conversion."""
        if stored == wanted or not castable(stored, wanted):
            raise Fault("convert.cast", stored=stored, wanted=wanted)
        self.stored_bytes = DTYPES[stored].bits // 8
        self.wanted_bytes = DTYPES[wanted].bits // 8
        readers = {"F16": _from_f16, "BF16": self._from_bf16, "F32": _from_f32, "F64": _from_f64}
        writers = {"F16": self._to_f16, "BF16": self._to_bf16, "F32": _to_f32}
        self._read: Callable[[Bytes], Floats] = readers[stored]
        self._write: Callable[[Floats, Bytes], int] = writers[wanted]
        self._words = np.empty(BLOCK, "u4")
        self._wide = np.empty(BLOCK, "u4")
        self._sizes = np.empty(BLOCK, "u4")

    def cast(self, data: Bytes, out: Bytes) -> int:
        """Convert all of `data` into `out` and return how many finite numbers became infinite."""
        count = len(data) // self.stored_bytes
        overflowed = 0
        for start in range(0, count, BLOCK):
            end = min(start + BLOCK, count)
            numbers = self._read(data[start * self.stored_bytes : end * self.stored_bytes])
            overflowed += self._write(numbers, out[start * self.wanted_bytes : end * self.wanted_bytes])
        return overflowed

    def _from_bf16(self, data: Bytes) -> Floats:
        halves = data.view("<u2")
        words = self._wide[: len(halves)]
        np.copyto(words, halves)
        np.left_shift(words, 16, out=words)
        return words.view("f4")

    def _to_bf16(self, numbers: Floats, out: Bytes) -> int:
        if numbers.dtype.itemsize == 8:
            return self._rounded_twice(numbers, out)
        bits = numbers.view(f"{numbers.dtype.byteorder}u4")
        words = self._words[: len(bits)]
        np.right_shift(bits, 16, out=words)
        np.bitwise_and(words, 1, out=words)
        np.add(words, 0x7FFF, out=words)
        np.add(words, bits, out=words)
        np.right_shift(words, 16, out=words)
        halves = out.view("<u2")
        np.copyto(halves, words, casting="unsafe")
        with np.errstate(all="ignore"):
            if max(numbers.max(), -numbers.min()) < _ABOVE_BF16:  # false for a NaN
                return 0
        nans = np.isnan(numbers)
        if nans.any():  # adding carries some of them over into infinity, or to zero
            halves[nans] = (bits[nans] >> 16).astype("u2") | _QUIET
        return int(np.count_nonzero(np.isfinite(numbers) & (np.abs(numbers) >= _ABOVE_BF16)))

    def _to_f16(self, numbers: Floats, out: Bytes) -> int:
        if numbers.dtype.itemsize == 8:
            return _narrowed(numbers, out.view("<f2"))
        bits = numbers.view(f"{numbers.dtype.byteorder}u4")
        words, size = self._words[: len(bits)], self._sizes[: len(bits)]
        np.bitwise_and(bits, 0x7FFFFFFF, out=size)
        np.right_shift(size, 13, out=words)
        np.bitwise_and(words, 1, out=words)
        np.add(words, _REBASED, out=words)
        np.add(words, size, out=words)
        np.right_shift(words, 13, out=words)
        np.minimum(words, 0x7C00, out=words)
        # Beside 0.5 a single-precision number has the steps of the smallest halves: adding rounds as it should.
        small = size < _NORMAL_F16
        with np.errstate(all="ignore"):
            np.add(size.view("f4"), _HALF, out=size.view("f4"))
        np.subtract(size, _HALF.view("u4"), out=size)
        np.copyto(words, size, where=small)
        np.right_shift(bits, 16, out=size)
        np.bitwise_and(size, 0x8000, out=size)
        np.bitwise_or(words, size, out=words)
        halves = out.view("<u2")
        np.copyto(halves, words, casting="unsafe")
        with np.errstate(all="ignore"):
            if max(numbers.max(), -numbers.min()) < _ABOVE_F16:  # false for a NaN
                return 0
        nans = np.isnan(numbers)
        if nans.any():
            kept = bits[nans]
            halves[nans] = ((kept >> 16) & 0x8000 | 0x7E00 | (kept >> 13) & 0x1FF).astype("u2")
        return int(np.count_nonzero(np.isfinite(numbers) & (np.abs(numbers) >= _ABOVE_F16)))

    def _rounded_twice(self, numbers: Floats, out: Bytes) -> int:
        """Round 64 bits to odd in 32 first, so that the second rounding is the only one that counts."""
        with np.errstate(all="ignore"):
            single: NDArray[np.float32] = numbers.astype("f4")
            back = single.astype("f8")
            bits = single.view("u4")
            inexact = (back != numbers) & ~np.isnan(numbers)
            bits -= (inexact & (np.abs(back) > np.abs(numbers))).astype("u4")
            bits |= inexact.astype("u4")
        return self._to_bf16(single, out)


def _from_f16(data: Bytes) -> Floats:
    return data.view("<f2").astype("f4")


def _from_f32(data: Bytes) -> Floats:
    return data.view("<f4")


def _from_f64(data: Bytes) -> Floats:
    return data.view("<f8")


def _to_f32(numbers: Floats, out: Bytes) -> int:
    if numbers.dtype.itemsize == 8:
        return _narrowed(numbers, out.view("<f4"))
    np.copyto(out.view("<f4"), numbers)
    return 0


def _narrowed(numbers: Floats, out: Floats) -> int:
    """Round doubles the way numpy does: once and correctly, at a tenth of the speed."""
    with np.errstate(all="ignore"):
        np.copyto(out, numbers, casting="unsafe")
    return int(np.count_nonzero(np.isfinite(numbers) & np.isinf(out)))
