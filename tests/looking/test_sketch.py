"""Sketches, by which nearly equal tensors are found, and how near they are over all numbers."""

import numpy as np
import pytest

from shardscope.engine.looking.nearness import Nearness
from shardscope.engine.looking.sketch import POINTS, WIDTH, Sketcher, likely, points

COUNT = 5 * POINTS + 123


def taken(value: np.ndarray, dtype: str, elements: int, step: int) -> Sketcher:
    found = Sketcher(dtype, elements)
    bits = len(value) * 8 // elements
    for low in range(0, elements, step):
        high = min(low + step, elements)
        found.add(low, value[low * bits // 8 : -(-high * bits // 8)], high - low)
    return found


@pytest.mark.parametrize(
    ("dtype", "bits"), [("F4", 4), ("F6_E2M3", 6), ("F8_E4M3", 8), ("BF16", 16), ("F32", 32)]
)
def test_what_is_taken_does_not_depend_on_tiles(dtype: str, bits: int) -> None:
    elements = COUNT // 64 * 64
    data = np.random.default_rng(1).integers(0, 120, elements * bits // 8).astype("u1")
    whole, tiles = taken(data, dtype, elements, elements), taken(data, dtype, elements, 64 * 100)

    assert whole.key() == tiles.key()
    other = data.copy()
    other[: len(other) // 2] ^= 1
    assert taken(other, dtype, elements, elements).key() != whole.key()


def test_places_rise_and_are_within() -> None:
    for numbers in (1, POINTS, POINTS + 1, COUNT):
        places = points(numbers)
        assert (np.diff(places) >= 0).all()
        assert 0 <= places[0] <= places[-1] < numbers
    assert len(points(COUNT)) == POINTS


def test_the_first_of_those_that_are_most_alike_is_taken() -> None:
    chance = np.random.default_rng(2)
    base = [chance.normal(size=COUNT) for _ in range(3)]
    values = [*base, base[1] + 0.03 * chance.normal(size=COUNT), base[1] * 2 + 5]
    sketches = []
    for value in values:
        sketch = taken(value.astype("<f4").view("u1"), "F32", COUNT, COUNT).sketch()
        assert sketch is not None
        sketches.append(sketch)

    assert list(likely(np.stack(sketches))) == [(3, 1), (4, 1)]


@pytest.mark.parametrize("value", [np.ones(COUNT), np.full(COUNT, np.nan), np.arange(3.0)])
def test_what_has_no_shape_has_no_sketch(value: np.ndarray) -> None:
    assert taken(value.astype("<f4").view("u1"), "F32", len(value), len(value)).sketch() is None


def nearness(one: np.ndarray, two: np.ndarray) -> Nearness:
    found = Nearness("F32")
    for low in range(0, len(one), 100_000):
        found.add(*(side[low : low + 100_000].view("u1") for side in (one, two)))
    return found


def test_figures_are_those_of_the_whole() -> None:
    chance = np.random.default_rng(3)
    one = chance.normal(size=COUNT).astype("f4")
    two = (one + 0.02 * chance.normal(size=COUNT)).astype("f4")
    a, b = one.astype("f8"), two.astype("f8")

    found = nearness(one, two).near()

    assert found is not None
    assert found.cosine == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), rel=1e-12)
    assert found.apart == pytest.approx(np.linalg.norm(a - b) / max(np.linalg.norm(a), np.linalg.norm(b)))
    assert found.largest == pytest.approx(np.abs(a - b).max() / max(np.abs(a).max(), np.abs(b).max()))


def test_ones_with_other_noise_are_not_near_though_their_cosine_is() -> None:
    chance = np.random.default_rng(4)
    one, two = ((1 + 0.02 * chance.normal(size=5000)).astype("f4") for _ in range(2))

    assert nearness(one, two).near() is None
    assert nearness(one, one).near() is not None
    assert nearness(np.full(9, np.nan, "f4"), np.full(9, np.nan, "f4")).near() is None


def test_what_is_likely_is_what_the_whole_table_of_correlations_says() -> None:
    numbers = np.random.default_rng(7).normal(size=(333, WIDTH)).astype("f4")
    for later, earlier in ((40, 3), (64, 63), (200, 41), (332, 31)):
        numbers[later] = numbers[earlier] + 1e-3 * numbers[later]
    sketches = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    table = np.tril(sketches @ sketches.T, -1)

    found = list(likely(sketches))

    assert found == [(row, int(np.argmax(table[row]))) for row in range(333) if table[row].max() >= 0.98]
    assert {row for row, _ in found} == {40, 64, 200, 332}
