"""Where extremes and numbers that are not finite stand, and root mean squares by index, beside numpy's own."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.diffing.numbers import parts, values
from shardscope.engine.looking.heat import Heating
from shardscope.engine.looking.places import Places
from shardscope.engine.looking.statistics import BLOCK, apart, summing
from shardscope.engine.model.tensors import DTYPES

PIECE = 64 * 3


def placed(data: np.ndarray, dtype: str, count: int, step: int = PIECE, bits: int | None = None) -> Places:
    """Take a tensor in, tile by tile."""
    sums, found = summing(dtype, bits=bits), Places(dtype, bits)
    width = DTYPES[dtype].bits
    for low in range(0, count, step):
        high = min(low + step, count)
        tile = data[low * width // 8 : -(-high * width // 8)]
        sums.add(tile, high - low)
        found.add(low, tile, high - low, sums)
    return found


def where(holds: np.ndarray, per_element: int) -> int | None:
    found = np.flatnonzero(holds)
    return int(found[0]) // per_element if len(found) else None


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 700))
def test_the_first_of_each_kind_is_where_numpy_finds_it(dtype: str, seed: int, count: int) -> None:
    bits = DTYPES[dtype].bits
    size = -(-count * bits // 8)
    data = np.random.default_rng(seed).integers(0, 256, size + -size % 3, "u1")
    if dtype == "BOOL":
        data &= 1
    numbers = values(data[: size if bits != 6 else len(data)], dtype, wide=True)[: count * parts(dtype)]

    found = placed(data[:size], dtype, count)

    finite = np.where(np.isfinite(numbers), numbers, np.nan)
    each = parts(dtype)
    some = bool(np.isfinite(numbers).any())
    assert found.min == (where(finite == np.nanmin(finite), each) if some else None)
    assert found.max == (where(finite == np.nanmax(finite), each) if some else None)
    assert found.nan == where(np.isnan(numbers), each)
    assert found.positive_infinite == where(np.isposinf(numbers), each)
    assert found.negative_infinite == where(np.isneginf(numbers), each)


def test_places_far_in_a_tile_and_of_packed_numbers() -> None:
    numbers = np.zeros(BLOCK * 2 + 9, "<f4")
    numbers[BLOCK + 5] = np.inf
    numbers[BLOCK * 2 + 3] = -7
    numbers[BLOCK * 2 + 8] = np.nan
    found = placed(numbers.view("u1"), "F32", len(numbers), len(numbers))
    assert (found.min, found.max, found.nan, found.positive_infinite) == (
        BLOCK * 2 + 3,
        0,
        BLOCK * 2 + 8,
        BLOCK + 5,
    )

    packed = np.random.default_rng(3).integers(0, 256, 4_000, "u1")
    found = placed(packed, "I32", 1_000, bits=4)
    each = apart(packed, 4)
    assert found.min == where(each == each.min(), 8)
    assert found.max == where(each == each.max(), 8)


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 7), max_size=4).map(tuple),
    seed=st.integers(0, 2**32 - 1),
    step=st.integers(1, 60),
)
def test_root_mean_squares_by_index_are_those_of_numpy(shape: tuple[int, ...], seed: int, step: int) -> None:
    numbers = np.random.default_rng(seed).normal(size=shape).astype("<f4")
    flat = numbers.reshape(-1)
    flat[:: max(1, len(flat) // 3)] = np.nan
    heating = Heating("F32", shape, 4, 4)
    for low in range(0, prod(shape), step):
        tile = flat[low : low + step]
        heating.add(low, tile.view("u1"), len(tile))

    found = heating.profiles(range(3, 3 + len(shape)))

    assert [each.dimension for each in found] == list(range(3, 3 + len(shape)))
    wide = numbers.astype("f8")
    for dim, profile in enumerate(found):
        assert profile.edges == tuple(range(shape[dim] + 1))
        lines = np.moveaxis(wide, dim, 0).reshape(shape[dim], -1)
        for line, rms in zip(lines, profile.rms, strict=True):
            finite = line[np.isfinite(line)]
            if len(finite):
                assert rms == pytest.approx(np.sqrt((finite**2).mean()), rel=1e-12)
            else:
                assert rms is None


def test_very_many_channels_share_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardscope.engine.looking.heat.MOST", 5)
    numbers = np.arange(36, dtype="<f4").reshape(12, 3)
    heating = Heating("F32", (12, 3), 2, 2)
    heating.add(0, numbers.reshape(-1).view("u1"), 36)

    rows, columns = heating.profiles((0, 1))

    assert rows.edges == (0, 2, 4, 7, 9, 12)
    for low, high, rms in zip(rows.edges, rows.edges[1:], rows.rms, strict=False):
        assert rms == pytest.approx(np.sqrt((numbers[low:high].astype("f8") ** 2).mean()))
    assert columns.edges == (0, 1, 2, 3)
