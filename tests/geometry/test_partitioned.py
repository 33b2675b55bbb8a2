"""Shards cut again: the map of slices against what slicing arrays gives, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.constructors.cuts import even, fused, mesh
from shardscope.engine.geometry.constructors.experts import Placement, placed
from shardscope.engine.geometry.constructors.partitioned import Slice, partitioned
from shardscope.engine.geometry.execution.execute import assemble, slice_
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side
from shardscope.engine.model.shardmap import Contiguous, Node, Replicate, TensorMap, Trim

SHAPE = (12, 5)
NODES: dict[str, Node] = {
    "rows": Contiguous("tp", 0, (7, 5)),
    "columns": Contiguous("tp", 1, (2, 3)),
    "fused": fused("tp", 0, [(3, 3), (2, 4)]),
    "whole": Replicate(),
    "empty rank": Contiguous("tp", 0, (12, 0)),
}


def cut(lowered: Lowered, edges: dict[int, list[int]]) -> list[Slice]:
    """Return slices of each shard between these edges, labelled in turn."""
    slices: list[Slice] = []
    for shard in lowered.ranks:
        marks = sorted({0, shard.elements, *(edge for edge in edges[shard.rank] if edge < shard.elements)})
        for start, stop in zip(marks, [*marks[1:], marks[-1]], strict=True):
            if stop > start:
                slices.append(Slice(len(slices), shard.rank, start, stop))
    return slices


@pytest.mark.parametrize("name", sorted(NODES))
@given(edges=st.tuples(*[st.lists(st.integers(0, 60), max_size=5)] * 2))
def test_slices_of_shards_put_together_are_the_tensor(name: str, edges: tuple[list[int], list[int]]) -> None:
    lowered = lower(TensorMap(SHAPE, NODES[name]), mesh(tp=2))
    slices = cut(lowered, dict(enumerate(edges)))
    found = partitioned(lowered, slices)
    assert check(found).findings == ()
    full = np.arange(60, dtype=np.int32).reshape(SHAPE)
    shards = {rank: np.asarray(slice_(lowered, full, rank)).reshape(-1) for rank in (0, 1)}
    parts = {
        one.label: shards[one.shard][one.start : one.stop].reshape(shard.shape)
        for one, shard in zip(slices, found.ranks, strict=True)
    }
    assert (np.asarray(assemble(found, parts)) == full).all()


def test_slices_of_copies_name_every_rank_that_holds_them() -> None:
    lowered = lower(TensorMap((60,), Replicate()), mesh(tp=2))
    found = partitioned(lowered, [Slice(0, 0, 0, 60), Slice(1, 1, 0, 22), Slice(2, 1, 22, 60)])
    assert [piece.holders for piece in found.ranks[0].pieces] == [(0, 1), (0, 2)]


def test_a_whole_shard_keeps_its_shape_and_padding_is_counted() -> None:
    lowered = lower(TensorMap((11, 5), Contiguous("tp", 0, (6, 6), Trim(0, 11, 12))), mesh(tp=2))
    found = partitioned(lowered, [Slice(0, 0, 0, 30), Slice(1, 1, 0, 22), Slice(2, 1, 22, 30)])
    assert [(shard.shape, shard.padding) for shard in found.ranks] == [((6, 5), 0), ((22,), 0), ((8,), 5)]
    assert check(found).findings == ()


def test_experts_of_ranks_are_cut_like_any_shard() -> None:
    lowered = placed(Placement(4, ((3, 0), (1, 2))), (4, 3))
    slices = [Slice(0, 0, 0, 4), Slice(2, 0, 4, 6), Slice(1, 1, 0, 1), Slice(3, 1, 1, 6)]
    found = partitioned(lowered, slices)
    full = np.arange(12).reshape(4, 3)
    packed = [full[[3, 0]].reshape(-1), full[[1, 2]].reshape(-1)]
    parts = {one.label: packed[one.shard][one.start : one.stop] for one in slices}
    assert (np.asarray(assemble(found, parts)) == full).all()


def test_factors_stay_with_their_pieces() -> None:
    every = Side(0, (1,))
    shard = RankShard(0, (4,), (Piece((4,), every, every, (0,), (1, 2)),))
    found = partitioned(Lowered((4,), (shard,)), [Slice(0, 0, 0, 3), Slice(1, 0, 3, 4)])
    assert [shard.scales for shard in found.ranks] == [{(1, 2)}, {(1, 2)}]


@pytest.mark.parametrize(
    "slices",
    [
        [Slice(0, 0, 0, 30), Slice(0, 1, 0, 30)],
        [Slice(0, 2, 0, 30)],
        [Slice(0, 0, 0, 31)],
        [Slice(0, 0, 3, 2)],
        [Slice(0, 0, -1, 2)],
    ],
)
def test_slices_that_are_not_in_a_shard_are_refused(slices: list[Slice]) -> None:
    lowered = lower(TensorMap(SHAPE, Contiguous("tp", 0, even(12, 2))), mesh(tp=2))
    with pytest.raises(Fault, match=r"map\.invalid"):
        partitioned(lowered, slices)


def test_a_shard_of_several_factors_is_not_cut() -> None:
    pieces = (
        Piece((2,), Side(0, (1,)), Side(0, (1,)), (0,), (1, 2)),
        Piece((2,), Side(2, (1,)), Side(2, (1,)), (0,)),
    )
    with pytest.raises(Fault, match=r"map\.unproven"):
        partitioned(Lowered((4,), (RankShard(0, (4,), pieces),)), [Slice(0, 0, 0, 4)])
