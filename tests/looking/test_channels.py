"""Rows and columns that hold one number alone, wherever tiles are cut."""

import numpy as np
import pytest

from shardscope.engine.looking.channels import Channels, has_channels


def counted(value: np.ndarray, dtype: str, cuts: list[int]) -> tuple[int, int]:
    found = Channels(dtype, value.shape)
    flat, each = value.reshape(-1).view("u1"), value.itemsize
    for low, high in zip([0, *cuts], [*cuts, value.size], strict=True):
        found.add(low, flat[low * each : high * each], high - low)
    return found.rows, found.columns


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_the_whole_wherever_it_is_cut(seed: int) -> None:
    chance = np.random.default_rng(seed)
    value = chance.normal(size=(13, 11)).astype("f4")
    value[chance.choice(13, 3, replace=False)] = chance.choice([0.0, 2.5], 3)[:, None]
    value[:, chance.choice(11, 2, replace=False)] = value[:1, chance.choice(11, 2, replace=False)]
    value[value == 0] *= chance.choice([-1, 1], np.count_nonzero(value == 0))
    cuts = sorted({int(at) for at in chance.integers(1, value.size, 5)})

    rows = int((value == value[:, :1]).all(axis=1).sum())
    columns = int((value == value[:1]).all(axis=0).sum())

    assert counted(value, "F32", cuts) == (rows, columns)
    assert counted(value, "F32", list(range(1, value.size))) == (rows, columns)


def test_columns_of_zeros_of_either_sign_are_dead() -> None:
    value = np.random.default_rng(0).normal(size=(9, 4)).astype("f2")
    value[:, 2] = np.where(np.arange(9) % 2, 0.0, -0.0)

    assert counted(value, "F16", []) == (0, 1)
    assert counted(value, "BF16", [5, 18]) == (0, 1)


def test_vectors_and_integers_have_no_channels() -> None:
    assert has_channels("BF16", (4, 4))
    assert not has_channels("BF16", (16,))
    assert not has_channels("BF16", (1, 16))
    assert not has_channels("I32", (4, 4))
