"""Lowering against brute force, on random trees of every node."""

import math
from fractions import Fraction

from hypothesis import given, settings

from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.piece import Lowered, Piece
from shardscope.engine.model.shardmap import DeviceMesh, TensorMap
from tests.geometry.trees import PADDING, elements_of, holders_of, maps, pairs, shown


@settings(max_examples=400, deadline=None)
@given(maps())
def test_every_shard_holds_what_the_language_says(drawn: tuple[TensorMap, DeviceMesh]) -> None:
    # R146 R151 R153 R156 R157 R158 R192: every node, nested, uneven, with padding
    tensor, mesh = drawn
    lowered = lower(tensor, mesh)
    expected = shown(tensor, mesh)
    assert [shard.rank for shard in lowered.ranks] == sorted(expected)
    for shard in lowered.ranks:
        one = expected[shard.rank]
        assert shard.shape == one.elements.shape
        assert shard.padding == int((one.elements == PADDING).sum())
        assert elements_of(Lowered(lowered.shape, (shard,)))[shard.rank] == one.elements.reshape(-1).tolist()
        addresses = [dest for dest, *_ in pairs(shard)]
        assert len(addresses) == len(set(addresses))
        assert {scale for *_, scale in pairs(shard)} <= {one.scale}


@settings(max_examples=300, deadline=None)
@given(maps())
def test_every_piece_has_one_set_of_holders_and_it_is_the_right_one(
    drawn: tuple[TensorMap, DeviceMesh],
) -> None:
    # R154 R181 R189: labels with gaps; no piece spans a change of holders
    tensor, mesh = drawn
    held = holders_of({rank: one.elements.reshape(-1) for rank, one in shown(tensor, mesh).items()})
    for shard in lower(tensor, mesh).ranks:
        for _, source, holders, _ in pairs(shard):
            assert holders == held[source]


@settings(max_examples=150, deadline=None)
@given(maps())
def test_pieces_are_in_normal_form(drawn: tuple[TensorMap, DeviceMesh]) -> None:
    tensor, mesh = drawn
    for shard in lower(tensor, mesh).ranks:
        starts = [(piece.dest.offset, piece.source.offset) for piece in shard.pieces]
        assert starts == sorted(starts)
        for piece in shard.pieces:
            assert all(extent > 1 for extent in piece.shape)
            assert math.gcd(*piece.scale) == 1
            assert Fraction(*piece.scale) != 0
            assert piece.scale[1] > 0
            assert not _fusable(piece)


def _fusable(piece: Piece) -> bool:
    """Tell whether two dimensions of a piece are one: nothing is left unmerged within a piece."""
    dims = list(zip(piece.shape, piece.source.strides, piece.dest.strides, strict=True))
    return any(
        a == other_a * extent and b == other_b * extent
        for _, a, b in dims
        for extent, other_a, other_b in dims
    )


@settings(max_examples=150, deadline=None)
@given(maps())
def test_renaming_ranks_changes_nothing_but_their_names(drawn: tuple[TensorMap, DeviceMesh]) -> None:
    # R189: labels are labels
    tensor, mesh = drawn
    plain = DeviceMesh(mesh.axes)
    labels = mesh.ranks or tuple(1000 - 7 * n for n in range(math.prod(axis.size for axis in mesh.axes)))
    renamed = {shard.rank: shard for shard in lower(tensor, DeviceMesh(mesh.axes, labels)).ranks}
    for shard in lower(tensor, plain).ranks:
        other = renamed[labels[shard.rank]]
        assert (other.shape, other.padding) == (shard.shape, shard.padding)
        theirs = [
            (dest, source, tuple(sorted(labels[rank] for rank in holders)), scale)
            for dest, source, holders, scale in pairs(shard)
        ]
        assert sorted(pairs(other)) == sorted(theirs)
