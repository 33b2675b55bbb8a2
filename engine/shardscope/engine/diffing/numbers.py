"""The numbers of tensors in every type that safetensors has, and the words for one of them.

Types of eight bits and less are tables: what each code stands for follows from how many bits exponent and fraction have. Elements
of less than a byte are packed from the lowest bit on.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.model.tensors import DTYPES

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]
Values: TypeAlias = NDArray[np.floating[Any]]


class Small(NamedTuple):
    """A float of at most eight bits."""

    exponent: int
    """Bits."""
    fraction: int
    bias: int
    nans: tuple[int, ...] = ()
    """Codes, without the sign; of a type whose one NaN is the negative zero, that code."""
    infinite: int | None = None
    """The code of infinity, without the sign; codes above it are NaNs."""


SMALL: Final[dict[str, Small]] = {
    "F4": Small(2, 1, 1),
    "F6_E2M3": Small(2, 3, 1),
    "F6_E3M2": Small(3, 2, 3),
    "F8_E4M3": Small(4, 3, 7, nans=(0x7F,)),
    "F8_E5M2": Small(5, 2, 15, infinite=0x7C),
    "F8_E4M3FNUZ": Small(4, 3, 8, nans=(0x80,)),
    "F8_E5M2FNUZ": Small(5, 2, 16, nans=(0x80,)),
}
"""OCP 8-bit floating point 1.0 and microscaling formats 1.0; the FNUZ kinds are those of Graphcore and AMD."""
_SCALE: Final = "F8_E8M0"
_PLAIN: Final = {
    "BOOL": "u1",
    "U8": "u1",
    "I8": "i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "C64": "<f4",
}


@cache
def table(dtype: str) -> NDArray[np.float64]:
    """Return what each code of a type of eight bits and less stands for."""
    if dtype == _SCALE:
        found: NDArray[np.float64] = np.ldexp(np.ones(256), np.arange(256) - 127)
        found[255] = np.nan
        return found
    kind = SMALL[dtype]
    bits = kind.exponent + kind.fraction
    codes = np.arange(1 << (bits + 1))
    size, negative = codes & ((1 << bits) - 1), codes >> bits
    fraction, exponent = size & ((1 << kind.fraction) - 1), size >> kind.fraction
    whole = np.where(exponent > 0, fraction + (1 << kind.fraction), fraction)
    found = np.ldexp(whole.astype("f8"), np.maximum(exponent, 1) - kind.bias - kind.fraction)
    if kind.infinite is not None:
        found[size == kind.infinite] = np.inf
        found[size > kind.infinite] = np.nan
    found = np.where(negative == 1, -found, found)
    for nan in kind.nans:
        found[(codes if nan > size.max() else size) == nan] = np.nan
    return found


def parts(dtype: str) -> int:
    """Return how many numbers an element is: two of a complex one."""
    return 2 if DTYPES[dtype].kind == "complex" else 1


def codes(data: NDArray[np.uint8], dtype: str) -> Codes:
    """Return the bits of numbers, one an entry."""
    bits = DTYPES[dtype].bits // parts(dtype)
    if bits >= 8:
        return data.view(f"<u{bits // 8}")
    single = np.unpackbits(data, bitorder="little").reshape(-1, bits)
    return np.packbits(single, axis=1, bitorder="little").reshape(-1)


def values(data: NDArray[np.uint8], dtype: str, *, wide: bool = False) -> Values:
    """Return numbers in 64 bits. With `wide` in as many as integers of 64 bits need to be exact, where the machine has them."""
    if dtype == "BF16":
        halves = data.view("<u2").astype("<u4")
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            return (halves << 16).view("<f4").astype("f8")
    if dtype in _PLAIN:
        with np.errstate(invalid="ignore"):
            return data.view(_PLAIN[dtype]).astype(np.longdouble if wide else np.float64)
    return table(dtype)[codes(data, dtype)]


def singles(data: NDArray[np.uint8], dtype: str, count: int) -> Iterator[NDArray[np.uint8]]:
    """Yield the first `count` elements of `data` one by one, as `in_words` takes them."""
    bits = DTYPES[dtype].bits
    if bits >= 8:
        yield from data[: count * bits // 8].reshape(count, bits // 8)
        return
    whole = np.pad(data, (0, -len(data) % 3))  # elements of six bits end with every third byte
    yield from codes(whole, dtype).astype(np.uint8)[:count].reshape(count, 1)


def in_words(data: NDArray[np.uint8], dtype: str) -> str:
    """Return the one element that `data` holds, in decimal, with the digits that tell it from its neighbours.

    Of a type of less than a byte, `data` is its code.
    """
    if DTYPES[dtype].kind in ("int", "uint", "bool"):
        return str(data.view(_PLAIN[dtype])[0])
    small = DTYPES[dtype].bits < 8
    found = [float(value) for value in (table(dtype)[data] if small else values(data, dtype))]
    digits = 17 if dtype == "F64" else 9
    words = [f"{value:.{digits}g}" for value in found]
    return words[0] if len(words) == 1 else f"{words[0]}{'' if words[1][0] in '+-' else '+'}{words[1]}j"
