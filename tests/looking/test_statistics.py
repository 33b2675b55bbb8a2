"""Figures of numbers in every type, beside numpy's own over the same numbers at once."""

from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shardscope.engine.diffing.numbers import codes, parts, values
from shardscope.engine.looking.heat import Heating
from shardscope.engine.looking.statistics import BLOCK, Sum, summing
from shardscope.engine.model.peek import Statistics
from shardscope.engine.model.tensors import DTYPES

PIECE = 64 * 3


def taken(data: NDArray[np.uint8], dtype: str, count: int, step: int = PIECE) -> Statistics:
    """Take a tensor in, tile by tile."""
    sums, bits = summing(dtype, histogram=True), DTYPES[dtype].bits
    only = summing(dtype)
    for low in range(0, count, step):
        high = min(low + step, count)
        tile = data[low * bits // 8 : -(-high * bits // 8)]
        sums.add(tile, high - low)
        only.add(tile, high - low)
    found, quick = sums.statistics(), only.statistics()
    assert quick.histogram is None
    assert [getattr(found, name) for name in Statistics.__struct_fields__ if name != "histogram"] == [
        getattr(quick, name) for name in Statistics.__struct_fields__ if name != "histogram"
    ], "the quick way to exponents and the counted one agree"
    return found


def hold(found: Statistics, numbers: NDArray[np.float64]) -> None:
    """Hold figures against numbers, each of them an entry."""
    finite = numbers[np.isfinite(numbers)]
    assert found.numbers == len(numbers)
    assert found.zeros == np.count_nonzero(numbers == 0)
    assert found.nans == np.count_nonzero(np.isnan(numbers))
    assert found.positive_infinite == np.count_nonzero(numbers == np.inf)
    assert found.negative_infinite == np.count_nonzero(numbers == -np.inf)
    if not len(finite):
        assert (found.min, found.max, found.mean, found.std, found.l2) == (None,) * 5
        return
    assert found.min == finite.min()
    assert found.max == finite.max()
    scale = float(np.abs(finite).max())
    if scale > 1e150:  # squares are beyond the range, and say so
        assert found.l2 is None or np.isfinite(found.l2)
        return
    mean = fsum(finite) / len(finite)
    assert found.mean == pytest.approx(mean, rel=1e-12, abs=scale * 1e-15)
    assert found.std == pytest.approx(
        np.sqrt(fsum((finite - mean) ** 2) / len(finite)), rel=1e-9, abs=scale * 1e-12
    )
    if scale > 1e-140:
        assert found.l2 == pytest.approx(np.sqrt(fsum(finite * finite)), rel=1e-12)
    held = finite[finite != 0]
    pairs: dict[tuple[bool, int], int] = {}
    for value in held.tolist():
        key = (value < 0, int(np.frexp(value)[1]) - 1)
        pairs[key] = pairs.get(key, 0) + 1
    assert found.histogram is not None
    assert {(each.negative, each.exponent): each.count for each in found.histogram} == pairs
    assert found.sign_exponents == len(pairs)
    assert (found.exponent_min, found.exponent_max) == (
        (min(e for _, e in pairs), max(e for _, e in pairs)) if pairs else (None, None)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 700))
def test_random_bits_come_to_what_numpy_says(dtype: str, seed: int, count: int) -> None:
    bits = DTYPES[dtype].bits
    size = -(-count * bits // 8)
    data = np.random.default_rng(seed).integers(0, 256, size, "u1")
    if dtype == "BOOL":
        data &= 1
    whole = np.pad(data, (0, -len(data) % 3)) if bits < 8 else data

    found = taken(data, dtype, count)

    with np.errstate(all="ignore"):
        hold(found, values(whole, dtype)[: count * parts(dtype)].astype("f8"))
    if bits <= 8:
        assert found.distinct == len(np.unique(codes(whole, dtype)[:count]))


@pytest.mark.parametrize("dtype", ["F32", "BF16", "F64", "F16"])
def test_numbers_that_grow_and_change_their_sign_late_are_all_seen(dtype: str) -> None:
    steps = [np.full(PIECE, 2.0**k, "f4") for k in (0, 1, 2, 3, -1, 5, -9)]
    steps += [np.full(PIECE, -(2.0**k), "f4") for k in (1, 2, -3)]
    steps += [np.zeros(PIECE, "f4"), np.full(PIECE, -0.0, "f4"), np.full(PIECE, 2.0**-12, "f4")]
    numbers = np.concatenate(steps)
    kinds = {"F32": "f4", "F64": "f8", "F16": "f2"}
    data = (numbers.view("u4") >> 16).astype("u2") if dtype == "BF16" else numbers.astype(kinds[dtype])

    hold(taken(data.view("u1"), dtype, len(numbers)), numbers.astype("f8"))


def test_a_mean_that_is_large_beside_the_deviation_does_not_eat_it() -> None:
    numbers = 1e9 + np.random.default_rng(1).normal(size=3 * BLOCK + 17)

    found = taken(numbers.view("u1"), "F64", len(numbers), 2 * BLOCK)

    assert found.std == pytest.approx(numbers.std(), rel=1e-9)
    assert found.mean == pytest.approx(fsum(numbers) / len(numbers), rel=1e-15)


def test_integers_of_64_bits_keep_their_ends_exactly() -> None:
    numbers = np.array([-(2**63), 2**63 - 1, 2**53 + 1], "i8")

    found = summing("I64")
    found.add(numbers.view("u1"), 3)

    assert (found.statistics().min, found.statistics().max) == (-(2**63), 2**63 - 1)


def test_sums_keep_what_is_small_beside_what_is_large() -> None:
    total = Sum()
    for value in (1e16, 1.0, 1.0, -1e16):
        total.add(value)

    assert total.value == 2.0


def test_squares_beyond_the_range_are_unknown_and_not_infinite() -> None:
    found = summing("F64")
    found.add(np.array([1e200, -1e200]).view("u1"), 2)

    assert found.statistics().l2 is None
    assert found.statistics().std is None
    assert found.statistics().mean == 0


@pytest.mark.parametrize("dtype", ["F32", "F4", "C64", "BF16"])
@pytest.mark.parametrize("shape", [(7, 5, 9), (1, 200), (300, 3), (11,), ()])
def test_a_heat_map_has_the_root_mean_squares_of_boxes(dtype: str, shape: tuple[int, ...]) -> None:
    count, bits = int(np.prod(shape)), DTYPES[dtype].bits
    data = np.random.default_rng(3).integers(0, 256, -(-count * bits // 8), "u1")
    with np.errstate(all="ignore"):
        numbers = values(np.pad(data, (0, -len(data) % 3)) if bits < 8 else data, dtype)
        squares = np.square(numbers[: count * parts(dtype)].astype("f8"))
    squares = squares.reshape(count, parts(dtype)).sum(axis=1).reshape(-1, shape[-1] if shape else 1)
    heating = Heating(dtype, shape, 4, 3)

    for low in range(0, count, 16):
        high = min(low + 16, count)
        heating.add(low, data[low * bits // 8 : -(-high * bits // 8)], high - low)

    found = heating.heat()
    assert (found.row_edges[-1], found.column_edges[-1]) == squares.shape
    for row, (top, end) in enumerate(zip(found.row_edges, found.row_edges[1:], strict=False)):
        for column, (left, right) in enumerate(zip(found.column_edges, found.column_edges[1:], strict=False)):
            box = squares[top:end, left:right]
            held = box[np.isfinite(box)]
            value = found.rms[row][column]
            assert value == (pytest.approx(np.sqrt(held.mean()), rel=1e-9) if len(held) else None)


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["I32", "U8", "I64"])
def test_packed_integers_are_counted_number_by_number(dtype: str, bits: int) -> None:
    each = DTYPES[dtype].bits // 8
    data = np.random.default_rng(bits).integers(0, 200, 3 * 64 * each, "u1")
    whole = int.from_bytes(data.tobytes(), "little")
    numbers = [whole >> at & (1 << bits) - 1 for at in range(0, 8 * len(data), bits)]
    sums = summing(dtype, histogram=True, bits=bits)

    sums.add(data[: 64 * each], 64)
    sums.add(data[64 * each :], 128)

    found = sums.statistics()
    hold(found, np.array(numbers, "f8"))
    assert found.distinct == len(set(numbers))
