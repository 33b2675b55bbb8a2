"""Whether numbers of low precision are the rounded values of others: to the nearest, of two as near the even one.

So trainers make the parameters of a module from the fp32 masters of an optimizer. NaNs of any bits count as equal.
"""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.model.blocker import Fault

Bits: TypeAlias = NDArray[Any]

_INFINITE: Final = {"BF16": 0x7F80, "F16": 0x7C00, "F32": 0x7F800000}
"""Bits of infinity: larger ones, without the sign, are NaNs."""
ROUNDED: Final = ("BF16", "F16", "F32")
"""Types that F32 is compared with; F32 itself has to be the same bits."""


def differing(
    exact: bytes,
    rounded: bytes,
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[tuple[int, ...], tuple[int, ...]],
) -> int:
    """Return how many elements of `rounded` are not the rounded elements of `exact` (F32); both little-endian.

    `strides` of both are in elements, from the first byte on. Raises `Fault` `map.dtype` for a type that is not one of `ROUNDED`,
    `map.array` where the bytes are too few.
    """
    if dtype not in ROUNDED:
        raise Fault("map.dtype", found=dtype)
    one = _view(exact, np.dtype("<u4"), shape, strides[0])
    other = _view(rounded, np.dtype("<u4" if dtype == "F32" else "<u2"), shape, strides[1])
    wrong = _rounded(one, dtype) != other
    if not wrong.any():
        return 0
    return int(np.count_nonzero(wrong & ~(_no_number(one, "F32") & _no_number(other, dtype))))


def _rounded(one: Bits, dtype: str) -> Bits:
    """Return the bits that F32 rounds to; of NaNs, any."""
    if dtype == "F32":
        return one
    if dtype == "BF16":
        made = one >> np.uint32(16)
        made &= np.uint32(1)
        made += np.uint32(0x7FFF)
        made += one
        made >>= np.uint32(16)
        return made.astype("<u2")
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(one).view("<f4").astype("<f2").view("<u2")


def _no_number(bits: Bits, dtype: str) -> Bits:
    size = bits.dtype.type(_INFINITE[dtype])
    found: Bits = (bits & bits.dtype.type(np.iinfo(bits.dtype).max >> 1)) > size
    return found


def _view(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> Bits:
    reach = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    if min((*strides, *shape), default=0) < 0 or (0 not in shape and len(data) < reach * dtype.itemsize):
        found, expected = f"{len(data):,} bytes", f"{reach * dtype.itemsize:,}"
        raise Fault("map.array", subject="view", found=found, expected=expected)
    flat: Bits = np.frombuffer(data, np.uint8, len(data) // dtype.itemsize * dtype.itemsize).view(dtype)
    return np.lib.stride_tricks.as_strided(
        flat, shape, tuple(stride * dtype.itemsize for stride in strides), writeable=False
    )
