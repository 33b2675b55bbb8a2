"""Factors on values: exact where the factor is a power of two and the result a normal number, one correct rounding elsewhere.

The only place in geometry where bits are read as numbers. Infinities and NaNs keep their bits.
"""

from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from shardscope.engine.geometry.execution.move import Bytes, address, dense, first_difference, move, parts
from shardscope.engine.geometry.execution.program import Copy, IndexedCopy, byte_count
from shardscope.engine.geometry.pieces.factors import factor, power_of_two
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import ONE
from shardscope.engine.model.tensors import DTYPES

Floats: TypeAlias = NDArray[Any]

_NATIVE = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<f4"}


class Element(Struct, frozen=True):
    """What is moved: an element's size and, only for scaling, how its bits are to be read."""

    bits: int
    name: str
    """Of the dtype, for messages."""
    floats: str | None = None
    """A numpy dtype of real numbers that the element consists of; `bf16` for bfloat16; null where there are none."""

    def bytes_of(self, elements: int) -> int:
        """Return the bytes of so many elements.

        Raises `Fault` `map.sub_byte`.
        """
        return byte_count(elements, self.bits)


def named(name: str) -> Element:
    """Return the element of a dtype of the safetensors format.

    Raises `Fault` `map.dtype` for a name that is not one of them.
    """
    row = DTYPES.get(name)
    if row is None:
        raise Fault("map.dtype", found=name)
    return Element(row.bits, name, "bf16" if name == "BF16" else _NATIVE.get(name))


def element_of(dtype: np.dtype[Any]) -> Element:
    """Return the element of a numpy dtype.

    Raises `Fault` `map.dtype` for Python objects.
    """
    if dtype.hasobject:
        raise Fault("map.dtype", found=str(dtype))
    floats: str | None = None
    if dtype.kind == "f":
        floats = dtype.str if dtype.itemsize <= 8 else None
    elif dtype.kind == "c":
        floats = f"{dtype.str[0]}f{dtype.itemsize // 2}" if dtype.itemsize <= 16 else None
    elif dtype.name == "bfloat16":
        floats = "bf16"
    return Element(dtype.itemsize * 8, str(dtype), floats)


def scaled(data: Bytes, element: Element, scale: tuple[int, int]) -> Bytes:
    """Return dense elements times a fraction.

    Raises `Fault`: `map.scale_dtype` where the elements are no floating-point numbers, `map.scale_overflow` where a finite
    number leaves the range of its dtype.
    """
    if element.floats is None:
        raise Fault("map.scale_dtype", found=element.name)
    before: Floats
    after: Floats
    with np.errstate(all="ignore"):
        if element.floats == "bf16":
            kept = data.view("<u2").copy()
            before = (kept.astype("u4") << 16).view("f4")
            bits = _odd(_times(before.astype("f8"), scale)).view("u4")
            bits += 0x7FFF + ((bits >> 16) & 1)
            bits &= 0xFFFF0000
            after, encoded = bits.view("f4"), (bits >> 16).astype("<u2")
        else:
            before = data.view(element.floats)
            kept = before.copy()
            after = encoded = _times(before.astype("f8"), scale).astype(element.floats)
    finite = np.isfinite(before)
    if not np.isfinite(after[finite]).all():
        raise Fault("map.scale_overflow", found=element.name, factor=factor(scale))
    kept[finite] = encoded[finite]
    return kept.view(np.uint8)


def _times(values: Floats, scale: tuple[int, int]) -> Floats:
    """Return double-precision values times a fraction: exact for a power of two within its range."""
    above, below = scale
    with np.errstate(all="ignore"):
        if power_of_two(scale):
            size = abs(above).bit_length() - below.bit_length()
            moved: Floats = np.ldexp(values, max(-4000, min(4000, size)))
            return -moved if above < 0 else moved
        if max(abs(above), below).bit_length() > 1000:
            raise Fault("map.scale_overflow", found=str(values.dtype), factor=factor(scale))
        result: Floats = values * float(above) / float(below)
        return result


def _odd(values: Floats) -> Floats:
    """Return doubles as single-precision numbers rounded to odd, so that rounding them once more rounds them correctly."""
    with np.errstate(all="ignore"):
        single: NDArray[np.float32] = values.astype("f4")
        bits = single.view("u4").copy()
        above = np.abs(single.astype("f8")) > np.abs(values)
        bits -= above.astype("u4")
        bits |= (single.astype("f8") != values).astype("u4")
    return bits.view("f4")


def carry(copy: Copy | IndexedCopy, source: Bytes, target: Bytes, element: Element) -> None:
    """Run one copy, with its scale. A `Copy` has been `bounded` by these buffers.

    Raises `Fault`: `map.scale_dtype`, `map.scale_overflow`; `map.outside` for an index that leads out of the buffers.
    """
    if copy.scale == ONE:
        move(copy, source, target)
        return
    for gather, scatter in parts(copy):
        move(scatter, scaled(dense(gather, source), element, copy.scale), target)


def differing(copy: Copy | IndexedCopy, source: Bytes, target: Bytes, element: Element) -> int | None:
    """Return the address of the first byte of the target that a copy would change; null where there is none.

    Raises as `carry` does.
    """
    for gather, scatter in parts(copy):
        here = dense(gather, source)
        if copy.scale != ONE:
            here = scaled(here, element, copy.scale)
        at = first_difference(here, dense(scatter.turned(), target))
        if at is not None:
            return address(scatter, at)
    return None
