"""Factors: exact where they can be, rounded once where they cannot, refused where they make no sense."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.geometry.execution.execute import assemble, slice_
from shardscope.engine.geometry.execution.scale import element_of, named, scaled
from shardscope.engine.geometry.pieces.factors import power_of_two, rounding
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import IndexedPiece, Lowered, RankShard
from shardscope.engine.model.shardmap import Contiguous, Replicate, Scale
from tests.geometry.layouts import Array, lowered, same

HALVES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


def times(values: Array, name: str, scale: tuple[int, int]) -> Array:
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return scaled(flat, named(name), scale).view(values.dtype)


def value(bits: int) -> Fraction:
    """A finite bfloat16 as a number."""
    return Fraction(float(np.array([bits << 16], "<u4").view("<f4")[0]))


BFLOATS = np.arange(1 << 16, dtype="<u2")
FINITE = BFLOATS[(BFLOATS & 0x7F80) != 0x7F80]


# R178
@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("scale", [(1, 8), (-4, 1), (1, 2)])
def test_powers_of_two_are_exact_and_undone_bit_for_bit(name: str, scale: tuple[int, int]) -> None:
    # No number below 2^-8: an eighth of it is still a normal number of sixteen bits.
    values = np.random.default_rng(0).uniform(2**-8, 2, 5000).astype(HALVES[name])

    there = times(values, name, scale)

    assert np.array_equal(there.astype("f8"), values.astype("f8") * scale[0] / scale[1])
    back = times(there, name, (scale[1], scale[0]) if scale[0] > 0 else (-scale[1], -scale[0]))
    assert same(back, values)


def test_every_bfloat16_is_scaled_as_arithmetic_says() -> None:
    for scale in ((1, 8), (-1, 2), (3, 1), (1, 3), (1, 1 << 130)):
        factor = Fraction(*scale)
        small = FINITE[np.abs((FINITE.astype("<u4") << 16).view("<f4")) < 2**100]
        got = times(small, "BF16", scale)
        for bits, result in list(zip(small.tolist(), got.tolist(), strict=True))[::37]:
            exact = value(bits) * factor
            error = abs(value(result) - exact)
            magnitude = result & 0x7FFF
            for near in (magnitude - 1, magnitude + 1):
                if 0 <= near < 0x7F80:
                    other = value(near) if exact >= 0 else -value(near)
                    distance = abs(other - exact)
                    assert error < distance or (error == distance and magnitude % 2 == 0), (bits, scale)


def test_what_is_no_finite_number_keeps_its_bits() -> None:
    special = {
        "BF16": np.array([0x7F80, 0xFF80, 0x7F81, 0xFFC5, 0x8000, 0], "<u2"),
        "F16": np.array([0x7C00, 0xFC00, 0x7C01, 0xFE05, 0x8000, 0], "<u2"),
        "F32": np.array([0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00005, 0x80000000, 0], "<u4"),
        "F64": np.array([0x7FF << 52, 0xFFF << 52, (0x7FF << 52) + 1, 1 << 63, 0], "<u8"),
    }
    for name, bits in special.items():
        for scale in ((1, 4), (3, 1)):
            assert same(times(bits, name, scale), bits)


def test_complex_numbers_and_foreign_byte_orders_are_scaled_too() -> None:
    layout = lowered((6,), Scale(1, 4, of=Contiguous("tp", 0, (3, 3))), tp=2)
    for dtype in ("c8", "c16", ">f4", ">f2", "<f8"):
        full = np.random.default_rng(0).standard_normal(6).astype(dtype)
        shards = {rank: slice_(layout, full, rank) for rank in (0, 1)}
        assert shards[1].dtype == full.dtype
        assert np.array_equal(shards[1], full[3:] / 4)
        assert same(assemble(layout, shards), full)
    packed = np.random.default_rng(0).standard_normal(12).astype("<f4")
    assert same(times(packed, "C64", (1, 2)), packed / np.float32(2))


def test_bfloat16_is_known_by_the_name_that_a_library_gives_it() -> None:
    layout = lowered((4,), Scale(1, 2, of=Replicate()), tp=1)
    full = np.array([0x3F80, 0x4000, 0xC000, 0x0000], "<u2")  # 1, 2, -2, 0

    shard = slice_(layout, full.tobytes(), 0, dtype="BF16")

    assert shard.tolist() == [0x3F00, 0x3F80, 0xBF80, 0]
    assert same(assemble(layout, {0: shard}, dtype="BF16"), full)


# R178
@pytest.mark.parametrize("dtype", ["<i4", "u1", "?", "V2", "<f2"])
def test_only_floating_point_numbers_have_factors(dtype: str) -> None:
    layout = lowered((4,), Scale(1, 2, of=Replicate()), tp=1)
    full = np.zeros(4, dtype)

    if dtype == "<f2":
        assert same(slice_(layout, full, 0), full)
        return
    with pytest.raises(Fault) as caught:
        slice_(layout, full, 0)
    assert caught.value.finding.code == "map.scale_dtype"


@pytest.mark.parametrize("name", ["F8_E4M3", "F8_E8M0", "I64", "BOOL"])
def test_opaque_numbers_have_none_either(name: str) -> None:
    with pytest.raises(Fault) as caught:
        scaled(np.zeros(8, np.uint8), named(name), (1, 2))
    assert caught.value.finding.code == "map.scale_dtype"


def test_a_value_that_leaves_its_range_is_refused() -> None:
    big = {"F16": np.array([60000], "<f2"), "F32": np.array([3e38], "<f4"), "F64": np.array([1e308])}
    for name, values in big.items():
        with pytest.raises(Fault) as caught:
            times(values, name, (8, 1))
        assert caught.value.finding.code == "map.scale_overflow"
    with pytest.raises(Fault):
        times(np.array([0x7F7F], "<u2"), "BF16", (2, 1))
    with pytest.raises(Fault):
        times(np.array([1.0]), "F64", (3**700, 1))


def test_factors_beyond_every_float_do_no_harm() -> None:
    assert times(np.array([1.0]), "F64", (1, 1 << 5000)).tolist() == [0.0]
    with pytest.raises(Fault):
        times(np.array([1.0]), "F64", (1 << 5000, 1))


# R193
def test_a_factor_that_rounds_carries_a_note() -> None:
    exact = lowered((4,), Scale(-1, 8, of=Replicate()), tp=2)
    rounded = lowered((4,), Scale(1, 12, of=Replicate()), tp=2)

    assert rounding(exact) == ()
    (note,) = rounding(rounded)
    assert note.code == "map.scale_rounds"
    assert note.params == {"factor": "1/12"}
    values = np.random.default_rng(0).standard_normal(4).astype("<f4")
    back = assemble(rounded, {rank: slice_(rounded, values, rank) for rank in (0, 1)})
    assert np.allclose(back, values, rtol=2**-22)


@given(st.integers(-64, 64).filter(bool), st.integers(1, 64))
def test_powers_of_two_are_told_from_the_rest(above: int, below: int) -> None:
    scale = Fraction(above, below)
    powers = {sign * Fraction(2) ** k for k in range(-6, 7) for sign in (1, -1)}

    assert power_of_two((scale.numerator, scale.denominator)) == (scale in powers)


def test_an_index_is_scaled_as_pieces_are() -> None:
    order = np.random.default_rng(0).permutation(200_000)
    dense = np.arange(len(order), dtype="<i8").tobytes()
    held = IndexedPiece(order.astype("<i8").tobytes(), dense, (0,), (1, 4))
    layout = Lowered((len(order),), (RankShard(0, (len(order),), (), 0, (held,)),))
    full = np.random.default_rng(1).standard_normal(len(order)).astype("<f4")

    shard = slice_(layout, full, 0, checked=True)

    assert same(shard, full[order] / np.float32(4))
    assert same(assemble(layout, {0: shard}, checked=True), full)


def test_the_elements_of_numpy_dtypes() -> None:
    assert element_of(np.dtype("<f4")).floats == "<f4"
    assert element_of(np.dtype("g")).floats is None
    assert element_of(np.dtype("G")).floats is None
    assert (element_of(np.dtype("V6")).bits, element_of(np.dtype("V6")).floats) == (48, None)
