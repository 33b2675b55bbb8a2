"""DTensor placements and chunk lists, against `torch.chunk` told in numpy and against a real checkpoint's own numbers."""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.constructors.cuts import mesh
from shardscope.engine.geometry.constructors.dcp import chunk_list
from shardscope.engine.geometry.constructors.dtensor import Partial, Placement, Shard, Whole, dtensor
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import DeviceMesh
from tests.geometry.trees import Array, elements_of


def chunked(array: Array, parts: int, dim: int) -> list[Array]:
    """`torch.chunk`, with empty chunks where torch returns none."""
    width = -(-array.shape[dim] // parts)
    return np.split(array, [min(array.shape[dim], k * width) for k in range(1, parts)], axis=dim)


def local(full: Array, placements: Sequence[Placement], sizes: Sequence[int], at: Sequence[int]) -> Array:
    """Left to right, as torch's placements split a tensor; a strided one takes a chunk of each chunk."""
    held = full
    for placement, size, position in zip(placements, sizes, at, strict=True):
        if isinstance(placement, Shard):
            earlier = chunked(held, placement.split_factor, placement.dim)
            held = np.concatenate(
                [chunked(part, size, placement.dim)[position] for part in earlier], axis=placement.dim
            )
    return held


def agrees(lowered: Lowered, full: Array, placements: Sequence[Placement], sizes: Sequence[int]) -> None:
    assert check(lowered).findings == ()
    told = elements_of(lowered)
    for rank, at in enumerate(product(*[range(size) for size in sizes])):
        held = local(full, placements, sizes, at)
        assert told[rank] == held.reshape(-1).tolist()
        assert lowered.ranks[rank].shape == held.shape


def on(shape: tuple[int, ...], placements: Sequence[Placement], **axes: int) -> Lowered:
    grid = mesh(**axes)
    return lower(dtensor(shape, grid, placements), grid)


@st.composite
def plain(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Placement], list[int]]:
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=3)))
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    choice = st.one_of(st.builds(Whole), st.builds(Shard, st.integers(0, len(shape) - 1)))
    return shape, [draw(choice) for _ in sizes], sizes


# R150 R151
@given(plain())
def test_shards_and_replicas_on_any_mesh(case: tuple[tuple[int, ...], list[Placement], list[int]]) -> None:
    shape, placements, sizes = case
    full = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    axes = {f"axis{k}": size for k, size in enumerate(sizes)}

    agrees(on(shape, placements, **axes), full, placements, sizes)


@given(st.integers(0, 40), st.integers(1, 5), st.integers(1, 5), st.integers(1, 3))
def test_fsdp_over_tensor_parallelism_cuts_by_the_later_axis_first(
    rows: int, dp: int, tp: int, columns: int
) -> None:
    full = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    lowered = on((rows, columns), [Shard(0, tp), Shard(0)], dp=dp, tp=tp)
    told = elements_of(lowered)

    assert check(lowered).findings == ()
    for rank, (d, t) in enumerate(product(range(dp), range(tp))):
        assert told[rank] == chunked(chunked(full, tp, 0)[t], dp, 0)[d].reshape(-1).tolist()


def test_two_strided_axes_cut_from_the_last_to_the_first() -> None:
    full = np.arange(24, dtype=np.int64)
    placements = [Shard(0, 6), Shard(0, 3), Shard(0)]
    lowered = on((24,), placements, a=2, b=2, c=3)

    told = elements_of(lowered)
    for rank, (a, b, c) in enumerate(product(range(2), range(2), range(3))):
        assert told[rank] == chunked(chunked(chunked(full, 3, 0)[c], 2, 0)[b], 2, 0)[a].tolist()


@given(st.integers(0, 30), st.integers(2, 4), st.integers(1, 5))
def test_a_strided_shard_alone_takes_a_chunk_of_each_chunk(rows: int, factor: int, ranks: int) -> None:
    full = np.arange(rows * 2, dtype=np.int64).reshape(rows, 2)
    placements = [Shard(0, factor), Shard(1)]

    agrees(on((rows, 2), placements, dp=ranks, tp=2), full, placements, [ranks, 2])


def test_the_example_of_torch() -> None:
    # Nine elements, split factor 2, four ranks: [0, 1, 5], [2, 3, 6], [4, 7], [8].
    assert elements_of(on((9,), [Shard(0, 2)], dp=4)) == {0: [0, 1, 5], 1: [2, 3, 6], 2: [4, 7], 3: [8]}


def test_a_strided_shard_beside_cuts_that_it_does_not_name_is_not_guessed() -> None:
    with pytest.raises(Fault, match=r"map\.unproven"):
        on((12, 2), [Shard(0, 2), Shard(0)], dp=2, tp=3)
    with pytest.raises(Fault, match=r"map\.unproven"):
        on((12, 2), [Shard(0), Shard(0, 2)], dp=2, tp=2)


def test_a_sum_over_an_axis_has_no_map() -> None:
    with pytest.raises(Fault, match=r"map\.unproven"):
        on((12, 2), [Whole(), Partial()], dp=2, tp=3)


@pytest.mark.parametrize(
    "placements", [[Shard(0)], [Shard(2), Whole()], [Shard(-1), Whole()], [Shard(0, 0), Whole()]]
)
def test_placements_have_to_fit_mesh_and_tensor(placements: list[Placement]) -> None:
    with pytest.raises(Fault, match=r"map\.invalid"):
        on((12, 2), placements, dp=2, tp=3)


# The chunks that torch.distributed.checkpoint recorded for these placements on a 2 x 2 mesh (dcp/dtensor_2d_dp2_tp2).
RECORDED: list[tuple[tuple[int, ...], list[Placement], list[tuple[tuple[int, ...], tuple[int, ...]]]]] = [
    ((6, 5), [Whole(), Whole()], [((0, 0), (6, 5))]),
    ((5, 9), [Whole(), Shard(1)], [((0, 0), (5, 5)), ((0, 5), (5, 4))]),
    ((7, 9), [Shard(0), Shard(1)], [((0, 0), (4, 5)), ((0, 5), (4, 4)), ((4, 0), (3, 5)), ((4, 5), (3, 4))]),
    ((7, 9), [Shard(1), Shard(0)], [((0, 0), (4, 5)), ((4, 0), (3, 5)), ((0, 5), (4, 4)), ((4, 5), (3, 4))]),
    ((10, 3), [Shard(0), Shard(0)], [((0, 0), (3, 3)), ((3, 0), (2, 3)), ((5, 0), (3, 3)), ((8, 0), (2, 3))]),
    ((3, 9), [Shard(1), Shard(1)], [((0, 0), (3, 3)), ((0, 3), (3, 2)), ((0, 5), (3, 2)), ((0, 7), (3, 2))]),
    (
        (3, 4, 5),
        [Shard(2), Shard(0)],
        [((0, 0, 0), (2, 4, 3)), ((2, 0, 0), (1, 4, 3)), ((0, 0, 3), (2, 4, 2)), ((2, 0, 3), (1, 4, 2))],
    ),
    ((3, 2), [Shard(0), Shard(0)], [((0, 0), (1, 2)), ((1, 0), (1, 2)), ((2, 0), (1, 2)), ((3, 0), (0, 2))]),
    ((8, 6), [Shard(0), Shard(1)], [((0, 0), (4, 3)), ((0, 3), (4, 3)), ((4, 0), (4, 3)), ((4, 3), (4, 3))]),
    (
        (16, 12),
        [Shard(0, 2), Shard(0)],
        [((0, 0), (4, 12)), ((8, 0), (4, 12)), ((4, 0), (4, 12)), ((12, 0), (4, 12))],
    ),
    ((16,), [Shard(0, 2), Shard(0)], [((0,), (4,)), ((8,), (4,)), ((4,), (4,)), ((12,), (4,))]),
    (
        (12, 16),
        [Shard(0), Shard(1)],
        [((0, 0), (6, 8)), ((0, 8), (6, 8)), ((6, 0), (6, 8)), ((6, 8), (6, 8))],
    ),
    ((5, 4), [Shard(0), Whole()], [((0, 0), (3, 4)), ((3, 0), (2, 4))]),
    ((12,), [Shard(0), Whole()], [((0,), (6,)), ((6,), (6,))]),
    ((7, 5), [Whole(), Shard(0)], [((0, 0), (4, 5)), ((4, 0), (3, 5))]),
    ((13,), [Whole(), Shard(0)], [((0,), (7,)), ((7,), (6,))]),
    ((4, 6), [Whole(), Shard(1)], [((0, 0), (4, 3)), ((0, 3), (4, 3))]),
]


@pytest.mark.parametrize(("shape", "placements", "chunks"), RECORDED)
def test_chunks_of_a_real_checkpoint_lie_where_placements_say(
    shape: tuple[int, ...],
    placements: list[Placement],
    chunks: list[tuple[tuple[int, ...], tuple[int, ...]]],
) -> None:
    lowered = on(shape, placements, dp=2, tp=2)
    tensor, grid = chunk_list(shape, chunks)
    recorded = lower(tensor, grid)

    # A chunk list has each shard once, and leaves out empty ones.
    held = sorted(
        {(s.shape, tuple(e)) for s, e in zip(lowered.ranks, elements_of(lowered).values(), strict=True) if e}
    )
    told = elements_of(recorded).values()
    assert sorted({(s.shape, tuple(e)) for s, e in zip(recorded.ranks, told, strict=True) if e}) == held
    assert check(recorded).findings == ()


def test_chunks_may_have_labels_and_overlap_as_equals() -> None:
    tensor, grid = chunk_list((4, 2), [((0, 0), (2, 2)), ((2, 0), (2, 2)), ((0, 0), (2, 2))], [9, 4, 2])
    lowered = lower(tensor, grid)

    assert [shard.rank for shard in lowered.ranks] == [2, 4, 9]
    assert lowered.ranks[0].pieces[0].holders == (2, 9)
    assert isinstance(grid, DeviceMesh)


@pytest.mark.parametrize(
    ("chunks", "labels"),
    [
        ([], None),
        ([((0,), (2, 2))], None),
        ([((0, 0), (2,))], None),
        ([((0, 0), (2, -2))], None),
        ([((0, 0), (2, 2))], [1, 2]),
    ],
)
def test_a_chunk_list_has_to_be_one(
    chunks: list[tuple[tuple[int, ...], tuple[int, ...]]], labels: list[int] | None
) -> None:
    with pytest.raises(Fault, match=r"map\.invalid"):
        chunk_list((4, 2), chunks, labels)


def test_a_missing_chunk_is_a_hole() -> None:
    tensor, grid = chunk_list((4, 2), [((0, 0), (2, 2))])

    assert [finding.code for finding in check(lower(tensor, grid)).findings] == ["map.uncovered"]
