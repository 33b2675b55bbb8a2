"""Sharded tensors of Megatron-LM, from what each rank says of its own."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.constructors.megatron import ShardedTensor, replicas, sharded_tensor
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.blocker import Fault
from tests.geometry.trees import elements_of


def grid(rows: int, columns: int, size: tuple[int, int], copies: int = 1) -> dict[int, ShardedTensor]:
    """A grid of equal shards, each on so many ranks, all on labels with gaps."""
    places = product(range(copies), range(rows), range(columns))
    return {
        3 * number: ShardedTensor(
            size,
            (rows * size[0], columns * size[1]),
            (r * size[0], c * size[1]),
            (rows, columns),
            (0, copy),
        )
        for number, (copy, r, c) in enumerate(places)
    }


# R189
@given(
    st.integers(1, 3), st.integers(1, 3), st.tuples(st.integers(1, 4), st.integers(1, 4)), st.integers(1, 3)
)
def test_shards_lie_at_their_global_offsets(
    rows: int, columns: int, size: tuple[int, int], copies: int
) -> None:
    shards = grid(rows, columns, size, copies)
    tensor, mesh = sharded_tensor(shards)
    lowered = lower(tensor, mesh)
    full = np.arange(tensor.shape[0] * tensor.shape[1], dtype=np.int64).reshape(tensor.shape)

    assert check(lowered).findings == ()
    told = elements_of(lowered)
    for rank, shard in shards.items():
        r, c = shard.global_offset
        assert told[rank] == full[r : r + size[0], c : c + size[1]].reshape(-1).tolist()
    for offset, ranks in replicas(shards).items():
        assert len(ranks) == copies
        assert shards[ranks[0]].main
        assert {shards[rank].global_offset for rank in ranks} == {offset}


def test_leading_axes_of_layers_are_not_in_the_local_shape() -> None:
    shards = {
        rank: ShardedTensor((4,), (2, 8), (rank // 2, 4 * (rank % 2)), (2, 2), prepended=1)
        for rank in range(4)
    }
    tensor, mesh = sharded_tensor(shards)
    lowered = lower(tensor, mesh)

    assert check(lowered).findings == ()
    assert elements_of(lowered)[3] == [12, 13, 14, 15]


def test_a_padded_axis_ends_in_a_short_fragment() -> None:
    shards = {0: ShardedTensor((4,), (7,), (0,), (2,)), 1: ShardedTensor((3,), (7,), (4,), (2,))}
    tensor, mesh = sharded_tensor(shards, padded=True)

    assert check(lower(tensor, mesh)).ok
    with pytest.raises(Fault, match=r"map\.invalid"):
        sharded_tensor(shards)


def test_optimizer_states_may_be_stretches_of_a_flattened_shard() -> None:
    shards = {
        0: ShardedTensor((2, 3), (2, 6), (0, 0), (1, 2), flattened_range=(0, 4)),
        1: ShardedTensor((2, 3), (2, 6), (0, 0), (1, 2), flattened_range=(4, 6)),
        2: ShardedTensor((2, 3), (2, 6), (0, 3), (1, 2)),
    }
    tensor, mesh = sharded_tensor(shards)
    lowered = lower(tensor, mesh)

    assert check(lowered).findings == ()
    assert elements_of(lowered) == {0: [0, 1, 2, 6], 1: [7, 8], 2: [3, 4, 5, 9, 10, 11]}


GOOD = ShardedTensor((2, 3), (4, 3), (0, 0), (2, 1))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(GOOD, global_offset=(1, 0)),
        replace(GOOD, global_offset=(0,)),
        replace(GOOD, global_offset=(-2, 0)),
        replace(GOOD, local_shape=(1, 3)),
        replace(GOOD, local_shape=(2,)),
        replace(GOOD, axis_fragmentations=(3, 1)),
        replace(GOOD, axis_fragmentations=(2,)),
        replace(GOOD, axis_fragmentations=(0, 1)),
        replace(GOOD, flattened_range=(2, 7)),
        replace(GOOD, flattened_range=(3, 2)),
        replace(GOOD, replica_id=1),
        replace(GOOD, replica_id=(0, 1)),
        replace(GOOD, prepended=1),
    ],
)
def test_a_rank_that_contradicts_itself_is_refused(wrong: ShardedTensor) -> None:
    with pytest.raises(Fault, match=r"map\.invalid"):
        sharded_tensor({0: wrong})


def test_ranks_that_contradict_each_other_are_refused() -> None:
    for shards in (
        {},
        {0: GOOD, 1: GOOD},
        {0: GOOD, 1: replace(GOOD, global_offset=(2, 0), global_shape=(4, 4), axis_fragmentations=None)},
    ):
        with pytest.raises(Fault, match=r"map\.invalid"):
            sharded_tensor(shards)


def test_shards_off_any_grid_are_taken_as_they_are() -> None:
    shards = {
        0: ShardedTensor((3, 3), (4, 3), (0, 0)),
        1: ShardedTensor((1, 3), (4, 3), (3, 0)),
    }
    tensor, mesh = sharded_tensor(shards)

    assert check(lower(tensor, mesh)).ok
