"""Rounding to 16 bit against rounding by hand: to the nearest of the two neighbours, of two as near the even one."""

import math
import struct
from fractions import Fraction

import numpy as np
import pytest

from shardscope.engine.geometry.execution.rounding import differing
from shardscope.engine.model.blocker import Fault

WIDTH = {"BF16": "<H", "F16": "<H", "F32": "<I"}


def number(bits: int, dtype: str) -> float:
    """Return the number that so many bits are."""
    if dtype == "BF16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    return float(struct.unpack("<e", struct.pack("<H", bits))[0])


def nearest(exact: float, dtype: str) -> int:
    """Return the bits of the nearest number, worked out in fractions: of equally near ones the even."""
    sign = 0x8000 if math.copysign(1, exact) < 0 else 0
    largest = 0x7F7F if dtype == "BF16" else 0x7BFF
    low, high = 0, largest + 1
    size = abs(exact)
    if math.isinf(size):
        return sign | (largest + 1)
    while high - low > 1:  # the bits of numbers above zero are in the order of the numbers
        middle = (low + high) // 2
        low, high = (middle, high) if number(middle, dtype) <= size else (low, middle)
    below = Fraction(number(low, dtype))
    above = below + (below - Fraction(number(low - 1, dtype)) if low == largest else Fraction(0))
    if low < largest:
        above = Fraction(number(low + 1, dtype))
    gap = (Fraction(size) - below, above - Fraction(size))
    up = gap[1] < gap[0] or (gap[0] == gap[1] and low % 2 == 1)
    return sign | (low + up)


def samples() -> list[float]:
    """Return numbers at and around what is hard: ties, the smallest and the largest, and any."""
    random = np.random.default_rng(0)
    bits = list(random.integers(0, 1 << 32, 3000, dtype=np.uint64))
    bits += [
        (base << 16) | low
        for base in (0, 1, 0x3F80, 0x3F81, 0x7F7F, 0x0080)
        for low in (0x7FFF, 0x8000, 0x8001)
    ]
    bits += [0x477FEFFF, 0x477FF000, 0x33000000, 0x33000001, 0x387FC000, 0x387FE000, 0x80000000, 0x7F800000]
    values = [struct.unpack("<f", struct.pack("<I", int(one)))[0] for one in bits]
    values += [float(one) for one in random.standard_normal(500).astype(np.float32)]
    return [one for one in values if one == one]


@pytest.mark.parametrize("dtype", ["BF16", "F16"])
def test_rounded_numbers_agree_and_their_neighbours_do_not(dtype: str) -> None:
    exact = samples()
    data = struct.pack(f"<{len(exact)}f", *exact)
    made = [nearest(one, dtype) for one in exact]
    strides = ((1,), (1,))
    rounded = struct.pack(f"<{len(made)}H", *made)
    assert differing(data, rounded, dtype, (len(exact),), strides) == 0
    neighbours = struct.pack(f"<{len(made)}H", *(one ^ 1 for one in made))
    assert differing(data, neighbours, dtype, (len(exact),), strides) == len(exact)


@pytest.mark.parametrize(("dtype", "nan"), [("BF16", 0x7FC1), ("F16", 0x7E01), ("F32", 0x7FC00001)])
def test_what_is_no_number_on_both_sides_agrees_and_on_one_does_not(dtype: str, nan: int) -> None:
    strides: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    none, one = struct.pack("<f", math.nan), struct.pack("<f", 1.0)
    there = struct.pack(WIDTH[dtype], nan)
    assert differing(none, there, dtype, (), strides) == 0
    assert differing(one, there, dtype, (), strides) == 1
    infinity = {"BF16": 0x7F80, "F16": 0x7C00, "F32": 0x7F800000}[dtype]
    assert differing(none, struct.pack(WIDTH[dtype], infinity), dtype, (), strides) == 1


def test_both_sides_are_read_by_their_own_strides() -> None:
    exact = np.arange(12, dtype="<f4").reshape(3, 4)
    rounded = np.ascontiguousarray(exact.T.astype("<f2"))
    assert differing(exact.tobytes(), rounded.tobytes(), "F16", (3, 4), ((4, 1), (1, 3))) == 0
    assert differing(exact.tobytes(), rounded.tobytes(), "F16", (3, 4), ((4, 1), (4, 1))) > 0


def test_what_is_too_short_or_of_another_type_is_refused() -> None:
    with pytest.raises(Fault, match=r"map\.array"):
        differing(bytes(8), bytes(2), "F16", (2,), ((1,), (1,)))
    with pytest.raises(Fault, match=r"map\.dtype"):
        differing(bytes(8), bytes(8), "I32", (2,), ((1,), (1,)))
