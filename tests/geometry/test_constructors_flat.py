"""Flat partitions of ZeRO and FSDP1, against buffers that are laid out one element at a time."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.constructors.cuts import even, mesh
from shardscope.engine.geometry.constructors.flat import (
    FlatBuffer,
    flat_parameter,
    zero3,
    zero3_range,
    zero3_starts,
    zero_group,
)
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.shardmap import Contiguous, TensorMap
from tests.geometry.trees import PADDING, Array, elements_of

shapes_ = st.lists(st.lists(st.integers(0, 5), max_size=3).map(tuple), min_size=1, max_size=6)


def marked(shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Each parameter, its elements numbered through all of them."""
    counts = [math.prod(shape) for shape in shapes]
    ends = np.cumsum(counts)
    return [np.arange(end - count, end, dtype=np.int64) for end, count in zip(ends, counts, strict=True)]


def padding(count: int) -> Array:
    return np.full(count, PADDING, dtype=np.int64)


def agrees(
    buffer: FlatBuffer, laid: Array, held: Sequence[Array], order: Sequence[int] | None = None
) -> None:
    """The buffer lies as `laid`, and every parameter is found in it where the map says."""
    parts = np.split(laid, buffer.ranks)
    whole = buffer.whole()
    order = order or range(len(held))
    numbers = np.concatenate([held[number] for number in order]) if held else padding(0)
    assert check(whole).findings == ()
    told = elements_of(whole)
    for rank, part in enumerate(parts):
        assert whole.ranks[rank].shape == part.shape
        assert [n if n == PADDING else int(numbers[n]) for n in told[rank]] == part.tolist()
    for number, parameter in enumerate(held):
        pieces = [buffer.stretch(number, rank) for rank in range(buffer.ranks)]
        taken = [parts[rank][one.at : one.at + one.count] for rank, one in enumerate(pieces)]
        assert np.array_equal(np.concatenate(taken), parameter)
        lowered = lower(buffer.parameter(number), mesh(dp=buffer.ranks))
        assert check(lowered).findings == ()
        first = int(parameter[0]) if parameter.size else 0
        for rank, elements in elements_of(lowered).items():
            assert [n + first for n in elements] == taken[rank].tolist()


# R170
@given(shapes_, st.integers(1, 5), st.booleans(), st.sampled_from([None, 2, 4]))
def test_a_group_of_zero_1_and_2(
    shapes: list[tuple[int, ...]], ranks: int, round_robin: bool, item_bytes: int | None
) -> None:
    held = marked(shapes)
    order = list(range(len(shapes)))
    if round_robin:
        order = [number for first in range(ranks) for number in order if number % ranks == first]
    laid = padding(0)
    for position, number in enumerate(order):
        laid = np.concatenate([laid, held[number]])
        if item_bytes is not None and position < len(order) - 1:
            laid = np.concatenate([laid, padding(-laid.size % (16 // item_bytes))])
    tail = -laid.size % (2 * ranks)
    laid = np.concatenate([laid, padding(tail)])
    buffer = zero_group(shapes, ranks, round_robin=round_robin, item_bytes=item_bytes)

    agrees(buffer, laid, held, order)
    assert buffer.order == tuple(order)


@given(shapes_, st.integers(1, 5), st.data())
def test_recorded_paddings_stand_behind_each_parameter(
    shapes: list[tuple[int, ...]], ranks: int, data: st.DataObject
) -> None:
    held = marked(shapes)
    recorded = [data.draw(st.integers(0, 7)) for _ in shapes]
    laid = np.concatenate(
        [part for one, gap in zip(held, recorded, strict=True) for part in (one, padding(gap))]
    )
    laid = np.concatenate([laid, padding(-laid.size % (2 * ranks))])

    agrees(zero_group(shapes, ranks, paddings=recorded), laid, held)


def test_the_trailing_padding_is_that_of_the_last_ranks() -> None:
    buffer = zero_group([(3,), (2,)], 4)

    assert buffer.partition == 2
    assert [buffer.tail(rank) for rank in range(4)] == [0, 0, 1, 2]


@given(shapes_, st.integers(1, 5), st.sampled_from([None, 1, 2, 4, 8]))
def test_a_flat_parameter_of_fsdp1(shapes: list[tuple[int, ...]], ranks: int, item_bytes: int | None) -> None:
    held = marked(shapes)
    laid = padding(0)
    for parameter in held:
        if item_bytes is not None:
            laid = np.concatenate([laid, padding(-laid.size % (16 // item_bytes))])
        laid = np.concatenate([laid, parameter])
    # With or without alignment: chunks of one size, the last ones padded.
    laid = np.concatenate([laid, padding(-laid.size % ranks)])

    agrees(flat_parameter(shapes, ranks, item_bytes=item_bytes), laid, held)


@given(st.lists(st.integers(0, 6), max_size=3).map(tuple), st.integers(1, 7))
def test_a_parameter_of_zero_3(shape: tuple[int, ...], ranks: int) -> None:
    total = math.prod(shape)
    each = math.ceil(total / ranks)
    laid = np.concatenate([np.arange(total, dtype=np.int64), padding(each * ranks - total)])
    lowered = lower(zero3(shape, ranks), mesh(dp=ranks))

    assert check(lowered).findings == ()
    assert elements_of(lowered) == {rank: part.tolist() for rank, part in enumerate(np.split(laid, ranks))}


def test_parameters_of_zero_3_lie_end_to_end_at_their_partitions_size() -> None:
    assert zero3_starts([(5, 3), (), (4,)], 4) == (0, 4, 5, 6)


# R170
def test_optimizer_states_derive_from_the_parameter_and_the_partition() -> None:
    tensor = TensorMap((6, 4), Contiguous("tp", 1, even(4, 2)))
    buffer = zero_group([(5,), (6, 2)], 2)
    lowered = lower(buffer.parameter(1, of=tensor), mesh(tp=2, dp=2))
    full = np.arange(24, dtype=np.int64).reshape(6, 4)

    assert check(lowered).findings == ()
    told = elements_of(lowered)
    for tp in range(2):
        flat = full[:, 2 * tp : 2 * tp + 2].reshape(-1)
        laid = np.concatenate([padding(5), flat, padding(3)])
        for dp, part in enumerate(np.split(laid, 2)):
            assert told[2 * tp + dp] == [n for n in part.tolist() if n != PADDING]
    three = lower(TensorMap((6, 4), zero3_range(12, 5, of=tensor.map)), mesh(tp=2, dp=5))
    assert check(three).findings == ()


# R182
def test_a_thousand_ranks_cost_a_piece_each() -> None:
    lowered = lower(zero3((10**9, 8), 1024), mesh(dp=1024))

    assert lowered.pieces == 1024
    assert check(lowered).ok


def test_numbers_that_make_no_buffer_are_refused() -> None:
    for make in (
        lambda: zero_group([(2,)], 0),
        lambda: zero_group([(2,)], 2, paddings=[]),
        lambda: zero_group([(2,)], 2, paddings=[-1]),
        lambda: zero_group([(-2,)], 2),
        lambda: zero_group([(2,)], 2, item_bytes=0),
        lambda: flat_parameter([(2,)], 0),
        lambda: zero3((2,), 0),
    ):
        with pytest.raises(Fault, match=r"map\.invalid"):
            make()
