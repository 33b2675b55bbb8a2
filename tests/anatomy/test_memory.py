"""Arithmetic on bytes: every case by the same function, every number in its formula."""

import re

import pytest

from shardscope.engine.anatomy.memory import WIDTHS, memory
from shardscope.engine.model.anatomy import Memory, Parameters, Sizes

SIZES = Sizes(layers=32, kv_heads=8, head=128, context=4096)
COUNTS = Parameters(
    total=8_000_000_000,
    unknown=0,
    embeddings=0,
    experts=0,
    active=None,
    frozen=None,
    tied=(),
    buffers=0,
    companions=0,
)


def figures(sizes: Sizes | None = SIZES, **case: object) -> Memory:
    return memory(16 << 30, COUNTS, sizes, **case)  # type: ignore[arg-type]


def numbers(formula: str) -> list[int]:
    return [int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*", formula)]


# R115
@pytest.mark.parametrize("batch", [1, 16])
@pytest.mark.parametrize("devices", [1, 4, 16])
def test_sequences_at_one_time_multiply_the_cache_alone(batch: int, devices: int) -> None:
    one, several = figures(devices=devices), figures(devices=devices, batch=batch)
    assert one.cache is not None
    assert several.cache is not None
    assert several.cache.bytes == batch * (one.cache.bytes or 0)
    assert several.weights == one.weights
    assert several.cache_per_token == one.cache_per_token
    assert (batch in numbers(several.cache.formula)) == (batch > 1)


def test_weights_and_cache_are_summed_for_each_type() -> None:
    found = figures(dtypes=tuple(WIDTHS), context=1000, batch=3)
    assert found.cache is not None
    assert [line.name for line in found.together] == [line.name for line in found.weights]
    for weights, both in zip(found.weights, found.together, strict=True):
        assert both.bytes == (weights.bytes or 0) + (found.cache.bytes or 0)
        assert numbers(both.formula) == [weights.bytes, found.cache.bytes]


@pytest.mark.parametrize("sizes", [None, Sizes(layers=32), Sizes(layers=32, kv_heads=8, head=128)])
def test_nothing_is_summed_with_a_cache_that_is_not_known(sizes: Sizes | None) -> None:
    assert figures(sizes).together == ()


def test_windows_are_kept_for_each_sequence() -> None:
    sizes = Sizes(layers=4, kv_heads=1, head=8, context=1000, window=100, windowed_layers=3)
    found = figures(sizes, batch=5)
    assert found.cache is not None
    assert found.cache.bytes == 5 * (2 * 8 * 2) * (1 * 1000 + 3 * 100)
    assert found.cache.formula.startswith("5 sequences x ")
