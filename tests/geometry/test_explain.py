"""Words for pieces against brute force, and what an explanation says."""

import re

import pytest
from hypothesis import given, settings

from shardscope.engine.geometry.describing.explain import explain, line, tree
from shardscope.engine.geometry.describing.regions import described, region
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model import shardmap as nodes
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side
from shardscope.engine.model.shardmap import (
    Contiguous,
    DeviceMesh,
    FlatRange,
    Part,
    Replicate,
    SubParamConcat,
    TensorMap,
    Trim,
)
from tests.geometry.layouts import LAYOUTS, addresses
from tests.geometry.trees import maps


def positions(shape: tuple[int, ...], piece: Piece) -> list[tuple[int, ...]] | None:
    """What the words of a piece come to: indices of the tensor, in the order of the shard; null where it has no words."""
    found = region(shape, piece.source, piece.dest, piece.shape)
    if found is None:
        return None
    cells: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for extent in found:
        mine = [(0, extent.start)]
        for run in extent.runs:
            mine = [
                (order + n * run.order, at + n * run.step) for order, at in mine for n in range(run.count)
            ]
        cells = [(order + more, (*index, at)) for order, index in cells for more, at in mine]
    return [index for _, index in sorted(cells)]


@settings(max_examples=300, deadline=None)
@given(maps())
def test_words_mean_the_elements_of_the_piece_in_the_order_of_the_shard(
    drawn: tuple[TensorMap, DeviceMesh],
) -> None:
    tensor, mesh = drawn
    for shard in lower(tensor, mesh).ranks:
        for piece in shard.pieces:
            found = positions(tensor.shape, piece)
            if found is None:
                continue
            expected = [source for source, _ in sorted(addresses(piece), key=lambda pair: pair[1])]
            strides = [1] * len(tensor.shape)
            for k in range(len(strides) - 2, -1, -1):
                strides[k] = strides[k + 1] * tensor.shape[k + 1]
            assert [sum(n * s for n, s in zip(index, strides, strict=True)) for index in found] == expected


@pytest.mark.parametrize(
    ("shape", "source", "dest", "extents", "words"),
    [
        ((8, 4), (0, (1,)), (0, (1,)), (32,), "everything"),
        ((8, 4), (8, (1,)), (0, (1,)), (12,), "rows 2-4"),
        ((8, 4), (8, (1,)), (0, (1,)), (4,), "row 2"),
        ((8, 4), (2, (4, 1)), (0, (2, 1)), (8, 2), "columns 2-3"),
        ((8, 4), (6, (4, 1)), (0, (2, 1)), (3, 2), "rows 1-3, columns 2-3"),
        ((8, 4), (0, (8, 1)), (0, (4, 1)), (4, 4), "rows 0, 2, 4, 6"),
        ((24, 1), (0, (6, 1)), (0, (2, 1)), (4, 2), "rows 0-1, 6-7, 12-13, 18-19"),
        ((60, 1), (0, (6, 1)), (0, (2, 1)), (10, 2), "rows 0-1, 6-7, 12-13, 18-19, ... 54-55 (10 runs)"),
        ((12, 1), (0, (2, 1)), (0, (1, 6)), (6, 2), "rows 0, 2, 4, 6, ... 11 (12 in this order)"),
        ((2, 3, 4), (12, (1,)), (0, (1,)), (12,), "dim 0: 1"),
        ((2, 3, 4), (4, (12, 1)), (0, (4, 1)), (2, 4), "dim 1: 1"),
        ((7, 5), (3, (1,)), (0, (1,)), (9,), "elements 3-11"),
        ((100,), (7, (1,)), (0, (1,)), (1,), "element 7"),
        ((), (0, ()), (0, ()), (), "everything"),
    ],
)
def test_words_of_a_piece(
    shape: tuple[int, ...],
    source: tuple[int, tuple[int, ...]],
    dest: tuple[int, tuple[int, ...]],
    extents: tuple[int, ...],
    words: str,
) -> None:
    assert described(shape, Side(*source), Side(*dest), extents) == words


def test_a_tree_is_told_from_the_first_node_to_the_last() -> None:
    node = FlatRange(
        "dp", (0, 20), (20, 36), of=Contiguous("tp", 0, (6, 6), of=Trim(0, 10, 12, of=Replicate()))
    )
    parts = SubParamConcat(0, (Part(4, Contiguous("tp", 0, (2, 2)), "q"), Part(2, Replicate())))

    assert list(tree(node)) == [
        "trim: dimension 0 has 10 of 12, the rest is padding",
        "contiguous over tp: dimension 0 into 2 x 6",
        "flat range over dp: the flattened input into 0-19, 20-35",
    ]
    assert list(tree(parts)) == [
        "sub-parameters along dimension 0, each cut by itself and put together again:",
        "  q, 4: contiguous over tp: dimension 0 into 2 x 2",
        "  part 1, 2: replicate: every rank holds all of it",
    ]
    assert (
        line(nodes.Block(("dp",), (None, nodes.Box((0,), (1,))))) == "blocks over dp: 1 of 2 ranks has a box"
    )
    assert len(line(Contiguous("tp", 0, tuple(range(1000))))) < 200


def test_an_explanation_has_bytes_where_the_dtype_is_known() -> None:
    lowered = LAYOUTS["columns"]
    with_bytes = explain("w", lowered, dtype="BF16").shards[1]
    without = explain("w", lowered).shards[1]

    assert with_bytes.bytes == 7 * 3 * 2
    assert with_bytes.pieces[0].full_bytes == (3 * 2, (6 * 12 + 6) * 2)
    assert with_bytes.pieces[0].shard_bytes == (0, 42)
    assert (without.bytes, without.pieces[0].full_bytes) == (None, None)


def test_what_the_checks_proved_is_said() -> None:
    says = " ".join(explain("w", LAYOUTS["parts, one of them everywhere"]).says)

    assert "Every one of 72 elements is held by at least one of 4 ranks." in says
    assert "Elements held by one rank alone 48, by all 4 ranks 24." in says


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_explained_whole(name: str) -> None:
    lowered = LAYOUTS[name]
    found = explain("w", lowered, rank=lowered.ranks[0].rank)

    assert found.blockers == ()
    assert found.picture is not None
    assert found.shard_picture is not None
    assert sorted(rank for shard in found.shards for rank in shard.ranks) == [s.rank for s in lowered.ranks]
    words = [piece.full for shard in found.shards for piece in shard.pieces]
    assert all(
        re.match(r"everything|rows?|columns?|dim|elements?|[\d,]+ elements? by an index", text)
        for text in words
    )


def test_a_broken_map_is_told_and_not_drawn() -> None:
    piece = Piece((4,), Side(6, (1,)), Side(0, (1,)), (0,))
    found = explain("w", Lowered((8,), (RankShard(0, (4,), (piece,)),)))

    assert "map.out_of_bounds" in [blocker.code for blocker in found.blockers]
    assert found.picture is None


def test_a_map_with_a_hole_is_drawn_with_it() -> None:
    piece = Piece((4,), Side(0, (1,)), Side(0, (1,)), (0,))
    found = explain("w", Lowered((8,), (RankShard(0, (4,), (piece,)),)))

    assert [blocker.code for blocker in found.blockers] == ["map.uncovered"]
    assert found.picture is not None
    assert found.picture.lines[0].cells == "AAAA!!!!"


@pytest.mark.parametrize(
    "piece",
    [
        Piece((4,), Side(-1, (0,)), Side(0, (1,)), ()),
        Piece((4, 2), Side(0, (1,)), Side(0, (1, 1)), (0,)),
        Piece((-4,), Side(0, (1,)), Side(0, (1,)), (0,)),
        Piece((4,), Side(1 << 80, (1 << 80,)), Side(0, (1,)), (0,)),
    ],
)
def test_malformed_pieces_are_shown_as_numbers(piece: Piece) -> None:
    found = explain("w", Lowered((8,), (RankShard(0, (4,), (piece,)),)), dtype="F32")

    assert found.blockers
    assert found.shards[0].pieces[0].full
