"""Two maps are the same when they put the same elements at the same addresses, however they are cut into pieces."""

import random
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shardscope.engine.geometry.checking.compare import first_difference, same
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.pieces.explicit import packed
from shardscope.engine.model.mapcheck import Difference
from shardscope.engine.model.piece import IndexedPiece, Lowered, Piece, RankShard, Side
from shardscope.engine.model.shardmap import Contiguous, DeviceMesh, Replicate, Scale, TensorMap
from tests.geometry.trees import maps, mesh_of, pairs, pairs_of_maps


def scattered(lowered: Lowered, random_: random.Random) -> Lowered:
    """Return the same map with pieces cut along random dimensions, and some as single indices."""
    ranks = []
    for shard in lowered.ranks:
        pieces: list[Piece] = []
        indexed = list(shard.indexed)
        for piece in shard.pieces:
            for part in _cut(piece, random_):
                if part.elements < 5 and random_.random() < 0.3:
                    one = RankShard(0, (), (part,))
                    rows = sorted((dest, source) for dest, source, _, _ in pairs(one))
                    source, dest = (packed((row[side], 1) for row in rows) for side in (1, 0))
                    indexed.append(IndexedPiece(source, dest, part.holders, part.scale))
                else:
                    pieces.append(part)
        random_.shuffle(pieces)
        ranks.append(RankShard(shard.rank, shard.shape, tuple(pieces), shard.padding, tuple(indexed)))
    return Lowered(lowered.shape, tuple(ranks), explicit=True)


def _cut(piece: Piece, random_: random.Random) -> list[Piece]:
    if not piece.shape or random_.random() < 0.3:
        return [piece]
    dim = random_.randrange(len(piece.shape))
    at = random_.randrange(piece.shape[dim] + 1)
    found = []
    for start, extent in ((0, at), (at, piece.shape[dim] - at)):
        sides = [side.moved(start * side.strides[dim]) for side in (piece.source, piece.dest)]
        shape = (*piece.shape[:dim], extent, *piece.shape[dim + 1 :])
        found.append(Piece(shape, sides[0], sides[1], piece.holders, piece.scale))
    return [part for half in found for part in (_cut(half, random_) if half.elements else [half])]


@settings(max_examples=300, deadline=None)
@given(maps(), st.randoms(use_true_random=False))
def test_how_a_map_is_cut_makes_no_difference(
    drawn: tuple[TensorMap, DeviceMesh], random_: random.Random
) -> None:
    lowered = lower(*drawn)
    other = scattered(lowered, random_)
    assert first_difference(lowered, other) is None
    assert same(other, lowered)


@settings(max_examples=300, deadline=None)
@given(pairs_of_maps(), st.randoms(use_true_random=False))
def test_the_first_difference_is_the_lowest_address(
    drawn: tuple[tuple[TensorMap, DeviceMesh], tuple[TensorMap, DeviceMesh]], random_: random.Random
) -> None:
    (one, mesh), (other, _) = drawn
    try:
        left, right = lower(one, mesh), lower(other, mesh)
    except Exception:
        assume(False)  # the second tree is made for another mesh
        raise
    found = first_difference(left, scattered(right, random_))
    claims = [
        {shard.rank: {row[0]: row[1:] for row in pairs(shard)} for shard in side.ranks}
        for side in (left, right)
    ]
    for mine, theirs in zip(left.ranks, right.ranks, strict=True):
        if mine.shape != theirs.shape:
            assert found is not None
            assert (found.what, found.rank) == ("shard_shape", mine.rank)
            return
        here, there = (claim[mine.rank] for claim in claims)
        lowest = next((n for n in range(mine.elements) if here.get(n) != there.get(n)), None)
        if lowest is not None:
            assert found is not None
            assert (found.rank, found.element) == (mine.rank, lowest)
            assert found.what == _what(here.get(lowest), there.get(lowest))
            return
    assert found is None


Claim = tuple[int, tuple[int, ...], Fraction] | None


def _what(here: Claim, there: Claim) -> str:
    if here is None or there is None:
        return "mapped"
    return "address" if here[0] != there[0] else "scale" if here[2] != there[2] else "holders"


def split(dim: int, *widths: int) -> Lowered:
    return lower(TensorMap((8, 6), Contiguous("tp", dim, widths)), mesh_of(tp=len(widths)))


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        (
            split(0, 8),
            lower(TensorMap((6, 8), Replicate()), mesh_of(tp=1)),
            Difference("shape", "8 x 6", "6 x 8"),
        ),
        (split(0, 4, 4), split(0, 8), Difference("ranks", "a shard", "no shard", 1)),
        (split(0, 4, 4), split(0, 5, 3), Difference("shard_shape", "4 x 6", "5 x 6", 0)),
        (
            lower(TensorMap((8, 6), Scale(2)), mesh_of(tp=1)),
            split(0, 8),
            Difference("scale", "times 2/1", "times 1/1", 0, 0),
        ),
        (
            Lowered((4,), (RankShard(0, (4,), (Piece((4,), Side(0, (1,)), Side(0, (1,)), (0,)),)),)),
            Lowered((4,), (RankShard(0, (4,), (Piece((2,), Side(0, (2,)), Side(0, (1,)), (0,)),), 2),)),
            Difference("address", "element 1", "element 2", 0, 1),
        ),
        (
            Lowered((4,), (RankShard(0, (4,), (Piece((4,), Side(0, (1,)), Side(0, (1,)), (0,)),)),)),
            Lowered((4,), (RankShard(0, (4,), (Piece((3,), Side(0, (1,)), Side(0, (1,)), (0,)),), 1),)),
            Difference("mapped", "element 3", "nothing", 0, 3),
        ),
        (
            Lowered((4,), (RankShard(0, (4,), (), 4),)),
            Lowered((4,), (RankShard(0, (4,), (), 3),)),
            Difference("padding", "4", "3", 0),
        ),
    ],
)
def test_a_difference_says_what_each_side_has(one: Lowered, other: Lowered, difference: Difference) -> None:
    assert first_difference(one, other) == difference
    assert not same(one, other)


def test_uneven_widths_are_not_even_ones() -> None:
    # R194: 6 heads of 4 rows on 4 ranks; both cover the tensor
    real = lower(TensorMap((24, 2), Contiguous("tp", 0, (8, 8, 4, 4))), mesh_of(tp=4))
    even = lower(TensorMap((24, 2), Contiguous("tp", 0, (6, 6, 6, 6))), mesh_of(tp=4))
    assert first_difference(real, even) == Difference("shard_shape", "8 x 2", "6 x 2", 0)
