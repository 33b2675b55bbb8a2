"""Every value of 16 bits, every tie between two of them, and what single precision has between and beyond."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.convert.copies.casting import BLOCK, Caster, castable
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.tensors import DTYPES
from tests.convert.material import Array, boxes, convert, put, single
from tests.convert.test_copying import read

PATTERNS = np.arange(1 << 16, dtype="<u2")


def cast(data: Array, stored: str, wanted: str) -> tuple[Array, int]:
    """Return the bits of the cast elements, and how many overflowed."""
    width = DTYPES[wanted].bits // 8
    out = np.empty(data.size * width, np.uint8)
    overflowed = Caster(stored, wanted).cast(np.ascontiguousarray(data).reshape(-1).view(np.uint8), out)
    return out.view(f"<u{width}"), overflowed


def of_bf16(bits: Array) -> Array:
    return (bits.astype("<u4") << 16).view("<f4")


def of_f16(bits: Array) -> Array:
    return bits.view("<f2").astype("<f4")


VALUES = {"BF16": of_bf16, "F16": of_f16}


@pytest.mark.parametrize("stored", ["BF16", "F16"])
def test_widening_is_exact(stored: str) -> None:
    bits, overflowed = cast(PATTERNS, stored, "F32")
    expected = VALUES[stored](PATTERNS)
    nan = np.isnan(expected)

    assert np.array_equal(bits[~nan], expected.view("<u4")[~nan])
    assert np.isnan(bits.view("<f4")[nan]).all()
    assert np.array_equal(bits >> 31, PATTERNS >> 15)
    assert overflowed == 0


@pytest.mark.parametrize("wanted", ["BF16", "F16"])
def test_what_a_narrow_type_has_comes_back(wanted: str) -> None:
    values = VALUES[wanted](PATTERNS)
    bits, overflowed = cast(values, "F32", wanted)
    nan = np.isnan(values)

    assert np.array_equal(bits[~nan], PATTERNS[~nan])
    assert np.isnan(VALUES[wanted](bits)[nan]).all()
    assert np.array_equal(bits >> 15, PATTERNS >> 15)
    assert overflowed == 0


def neighbours(wanted: str) -> tuple[Array, Array]:
    """Bits of each positive finite number and of the next, the largest and infinity last."""
    top = 0x7F80 if wanted == "BF16" else 0x7C00
    lower = np.arange(top, dtype="<u2")
    return lower, (lower + 1).astype("<u2")


def between(wanted: str) -> Array:
    """The number midway between each and the next, in double precision, where all of them are exact."""
    lower, upper = neighbours(wanted)
    low, high = (VALUES[wanted](bits).astype("f8") for bits in (lower, upper))
    high[-1] = 2.0**128 if wanted == "BF16" else 65536.0
    middle: Array = (low + high) / 2
    return middle


@pytest.mark.parametrize("stored", ["F32", "F64"])
@pytest.mark.parametrize("wanted", ["BF16", "F16"])
@pytest.mark.parametrize("sign", [1, -1])
def test_ties_go_to_the_even_one_and_what_is_nearer_wins(stored: str, wanted: str, sign: int) -> None:
    lower, upper = neighbours(wanted)
    kind = "<f4" if stored == "F32" else "<f8"
    middle = (sign * between(wanted)).astype(kind)
    assert np.array_equal(middle.astype("f8"), sign * between(wanted))
    even = np.where(lower % 2 == 0, lower, upper)
    flag = 0x8000 if sign < 0 else 0
    zero, infinite = np.zeros(1, kind), np.full(1, np.inf * sign, kind)

    for values, expected in (
        (middle, even),
        (np.nextafter(middle, zero), lower),
        (np.nextafter(middle, infinite), upper),
    ):
        bits, overflowed = cast(values, stored, wanted)
        assert np.array_equal(bits, expected | flag)
        assert overflowed == int((expected == upper[-1]).sum())


def test_doubles_are_rounded_once() -> None:
    """Just above a tie: rounded to single precision first, it would be a tie and go the wrong way."""
    values = np.array([1 + 2.0**-8 + 2.0**-40, -(1 + 2.0**-8 + 2.0**-40), 1 + 3 * 2.0**-8 - 2.0**-40])
    bits, _ = cast(values, "F64", "BF16")
    assert bits.tolist() == [0x3F81, 0xBF81, 0x3F81]
    halves, _ = cast(np.array([1 + 2.0**-11 + 2.0**-40]), "F64", "F16")
    assert halves.tolist() == [0x3C01]


def nearest(value: Fraction, wanted: str) -> int:
    """The bits of the nearest positive number, by exact arithmetic."""
    lower, _ = neighbours(wanted)
    table = VALUES[wanted](lower).astype("f8")
    at = int(np.searchsorted(table, float(value), "right")) - 1
    low = Fraction(float(table[at]))
    high = (
        Fraction(float(table[at + 1]))
        if at + 1 < len(table)
        else Fraction(2) ** (128 if wanted == "BF16" else 16)
    )
    if value - low != high - value:
        return at if value - low < high - value else at + 1
    return at if at % 2 == 0 else at + 1


@given(st.integers(0, 0x7F7FFFFF), st.sampled_from(["BF16", "F16"]))
def test_any_number_goes_to_the_nearest(pattern: int, wanted: str) -> None:
    values = np.array([pattern, pattern | 0x80000000], "<u4").view("<f4")
    bits, _ = cast(values, "F32", wanted)
    expected = nearest(min(Fraction(float(values[0])), Fraction(2) ** 128), wanted)
    top = 0x7F80 if wanted == "BF16" else 0x7C00
    assert bits.tolist() == [min(expected, top), min(expected, top) | 0x8000]


@pytest.mark.parametrize("wanted", ["BF16", "F16"])
def test_every_pattern_of_the_high_half_agrees_with_numpy_or_arithmetic(wanted: str) -> None:
    random = np.random.default_rng(0)
    for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, *random.integers(0, 1 << 16, 4)):
        words = (PATTERNS.astype("<u4") << 16) | np.uint32(low)
        values = words.view("<f4")
        bits, overflowed = cast(values, "F32", wanted)
        nan = np.isnan(values)
        assert np.isnan(VALUES[wanted](bits)[nan]).all()
        assert np.array_equal(bits[nan] >> 15, (words[nan] >> 31).astype("<u2"))
        made = VALUES[wanted](bits)
        if wanted == "F16":
            with np.errstate(all="ignore"):
                assert np.array_equal(bits[~nan], values.astype("<f2").view("<u2")[~nan])
        else:
            wide = words.astype("u8")
            expected = ((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16).astype("<u2")
            assert np.array_equal(bits[~nan], expected[~nan])
        assert overflowed == int((np.isfinite(values) & np.isinf(made)).sum())


@pytest.mark.parametrize(("stored", "wanted"), [("F16", "BF16"), ("BF16", "F16")])
def test_between_narrow_types(stored: str, wanted: str) -> None:
    values = VALUES[stored](PATTERNS)
    expected, overflowed = cast(values, "F32", wanted)
    bits, found = cast(PATTERNS, stored, wanted)
    assert np.array_equal(bits, expected)
    assert found == overflowed
    assert (found > 0) == (wanted == "F16")


def test_nothing_but_floating_point_numbers_is_cast() -> None:
    floats = {"F16", "BF16", "F32", "F64"}
    for stored in DTYPES:
        for wanted in DTYPES:
            assert castable(stored, wanted) == (
                stored == wanted or (stored in floats and wanted in floats - {"F64"})
            )
    with pytest.raises(Fault) as caught:
        Caster("I32", "F32")
    assert caught.value.finding.code == "convert.cast"


def test_blocks_meet_without_a_seam() -> None:
    values = np.random.default_rng(3).standard_normal(2 * BLOCK + 17).astype("<f4")
    bits, _ = cast(values, "F32", "F16")
    assert np.array_equal(bits, values.astype("<f2").view("<u2"))


def test_overflows_are_counted_by_tensor_across_tiles_and_threads(tmp_path: Path) -> None:
    """A person learns how many numbers became infinite, and infinities that were there do not count."""
    full = np.zeros((1000, 1000), "<f4")
    full[::100, 7] = 1e6
    full[5, 5] = -65520
    full[6, 6] = 65519
    full[7, 7:9] = np.inf, np.nan
    parts = [
        ((0, 500 * rank), (1000, 500), put(tmp_path, f"r{rank}", np.ascontiguousarray(full[:, 500 * rank : 500 * rank + 500])), 0)
        for rank in range(2)
    ]  # fmt: skip
    fine = single("fine", "F32", (3,), put(tmp_path, "fine", np.ones(3, "<f4")))

    made = convert(
        tmp_path,
        tmp_path / "out",
        [(boxes("w", "F32", full.shape, parts), "F16"), (fine, "F16")],
        budget_bytes=1,
    )

    assert [(one.tensor, one.count) for one in made.overflows] == [("w", 11)]
    with np.errstate(all="ignore"):
        assert read(tmp_path / "out")["w"] == full.astype("<f2").tobytes()
