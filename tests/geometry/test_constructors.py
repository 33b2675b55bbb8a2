"""Fused projections and padded vocabularies, against the producers' own rules of cutting, told once more in numpy."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.constructors.attention import (
    HeadFacts,
    codegen,
    from_heads,
    grouped_query,
    head_interleaved,
    multi_query,
    shared_query_key,
)
from shardscope.engine.geometry.constructors.cuts import (
    chunks,
    even,
    fused,
    gated,
    grains,
    mesh,
    padded_cut,
    padded_vocabulary,
)
from shardscope.engine.geometry.execution.execute import assemble, slice_
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.transfer.compose import compose
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import Contiguous, TensorMap
from tests.geometry.trees import PADDING, Array, elements_of


def marked(*shape: int) -> Array:
    """Each element is its own address."""
    return np.arange(math.prod(shape), dtype=np.int64).reshape(shape)


def agrees(lowered: Lowered, shards: Sequence[Array]) -> None:
    """The map is sound, says what these marked shards say, and carries independent random data there and back."""
    assert check(lowered).findings == ()
    assert elements_of(lowered) == {rank: shard.reshape(-1).tolist() for rank, shard in enumerate(shards)}
    assert [shard.shape for shard in lowered.ranks] == [shard.shape for shard in shards]
    full = np.random.default_rng(7).standard_normal(lowered.shape).astype(np.float32)
    cut = {shard.rank: slice_(lowered, full, shard.rank) for shard in lowered.ranks}
    for rank, shard in enumerate(shards):
        held = shard.reshape(-1)
        own = np.where(held == PADDING, np.float32(0), full.reshape(-1)[np.maximum(held, 0)])
        assert cut[rank].tobytes() == own.tobytes()
    assert assemble(lowered, cut).tobytes() == full.tobytes()


def on(tensor: TensorMap, ranks: int) -> Lowered:
    return lower(tensor, mesh(tp=ranks))


def pieces(lowered: Lowered) -> list[int]:
    return [len(shard.pieces) for shard in lowered.ranks]


def refused(code: str) -> "pytest.RaisesExc[Fault]":
    return pytest.raises(Fault, match=code.replace(".", r"\."))


# R169
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("scale", [1, 32])
def test_codegen_is_cut_as_deepspeed_reshapes_it(ranks: int, scale: int) -> None:
    rows = 3 * 16 * scale * ranks
    full = marked(rows, 8)
    # Four groups; each third split among the ranks; the parts of one rank's turn side by side.
    grouped = full.reshape(4, rows // 4, 8)
    thirds = [part.reshape(4 * ranks, -1, 8) for part in np.split(grouped, 3, axis=1)]
    turned = np.concatenate(thirds, axis=1).reshape(rows, 8)
    lowered = on(codegen((rows, 8), ranks, 4 * ranks), ranks)

    agrees(lowered, np.split(turned, ranks))
    assert max(pieces(lowered)) < 11


# R182
def test_the_pieces_of_codegen_do_not_grow_with_the_rows() -> None:
    small, large = (on(codegen((24 * scale, 8), 2, 8), 2) for scale in (1, 32))

    assert pieces(small) == pieces(large)


@pytest.mark.parametrize(("ranks", "heads", "rows"), [(1, 16, 48), (2, 6, 48), (2, 0, 48), (4, 8, 48)])
def test_codegen_is_refused_where_deepspeed_does_not_cut_this_way(ranks: int, heads: int, rows: int) -> None:
    with refused("map.unproven"):
        codegen((rows, 8), ranks, heads)


@pytest.mark.parametrize("rows", [0, 25, 36])
def test_codegen_rows_have_to_be_equal_blocks(rows: int) -> None:
    with refused("map.invalid"):
        codegen((rows, 8), 2, 8)


# R169
@pytest.mark.parametrize(("heads", "ranks"), [(8, 1), (8, 2), (12, 3), (8, 8)])
def test_heads_keep_their_query_key_and_value_together(heads: int, ranks: int) -> None:
    full = marked(3 * heads * 5, 4)
    together = full.reshape(3, heads, 5, 4).swapaxes(0, 1).reshape(-1, 4)

    agrees(on(head_interleaved((3 * heads * 5, 4), ranks, heads), ranks), np.split(together, ranks))


def test_interleaved_heads_have_to_divide() -> None:
    for numbers in ((2, 7), (2, 0), (3, 4)):
        with refused("map.invalid"):
            head_interleaved((24, 4), *numbers)


# R169 R181
def test_gptbigcode_has_two_pieces_a_rank() -> None:
    full = marked(48, 8)
    query, shared = full[:32], full[32:]
    shards = [np.concatenate([part, shared]) for part in np.split(query, 4)]
    lowered = on(multi_query((48, 8), even(32, 4)), 4)

    agrees(lowered, shards)
    assert pieces(lowered) == [2, 2, 2, 2]
    assert [piece.holders for piece in lowered.ranks[1].pieces] == [(1,), (0, 1, 2, 3)]
    assert lowered.ranks[0].shape == (24, 8)


def test_shared_slices_have_to_be_there() -> None:
    with refused("map.invalid"):
        multi_query((48, 8), (32, 32))


# R169
@pytest.mark.parametrize(("heads", "ranks"), [(8, 2), (8, 4), (12, 3), (6, 1)])
@pytest.mark.parametrize("dim", [0, 1])
def test_yuan_takes_heads_in_two_runs(heads: int, ranks: int, dim: int) -> None:
    shape = (heads * 4, 8) if dim == 0 else (8, heads * 4)
    full = marked(*shape)
    each = heads // ranks
    shards = []
    for rank in range(ranks):
        first = [(rank * each + step) // 2 for step in range(0, each, 2)]
        chosen = [*first, *(head + heads // 2 for head in first)]
        rows = [head * 4 + row for head in chosen for row in range(4)]
        shards.append(np.take(full, rows, axis=dim))
    lowered = on(shared_query_key(shape, ranks, heads, dim=dim), ranks)

    agrees(lowered, shards)
    assert max(pieces(lowered)) <= 2


def test_yuan_columns_are_strided_on_both_sides() -> None:
    lowered = on(shared_query_key((8, 32), 2, 8, dim=1), 2)

    # Two runs of 8 columns, 16 apart, in rows of 32: every 16th column begins a run, so one piece says it all.
    assert pieces(lowered) == [1, 1]
    piece = lowered.ranks[1].pieces[0]
    assert (piece.shape, piece.source.offset, piece.source.strides) == ((16, 8), 8, (16, 1))
    assert (piece.dest.offset, piece.dest.strides) == (0, (8, 1))


def test_yuan_is_refused_where_two_ranks_would_share_a_head() -> None:
    with refused("map.unproven"):
        shared_query_key((48, 8), 4, 12)
    with refused("map.invalid"):
        shared_query_key((50, 8), 2, 12)


@st.composite
def grouped(draw: st.DrawFn) -> tuple[int, int, int, int, int]:
    ranks = draw(st.sampled_from([1, 2, 3, 4, 6]))
    groups = draw(st.sampled_from([1, 2, 3, 4, 6]))
    share = draw(st.integers(1, 4))
    size = draw(st.integers(1, 6)) * ranks  # so that rows divide
    return ranks, groups, share, size, draw(st.integers(1, 3))


# R153 R168
@given(grouped())
def test_grouped_query_attention_is_cut_group_by_group(numbers: tuple[int, int, int, int, int]) -> None:
    ranks, groups, share, size, below = numbers
    heads = groups * share
    full = marked((heads + 2 * groups) * size, below)
    q, k, v = np.split(full, [heads * size, (heads + groups) * size])
    parts = [part.reshape(groups, -1, below) for part in (q, k, v)]
    together = np.concatenate(parts, axis=1).reshape(-1, below)

    agrees(grouped_query((below,), range(ranks), heads, groups, size), np.split(together, ranks))


def test_grouped_query_attention_has_two_pieces_where_groups_divide() -> None:
    # Queries of all groups, and keys with values of all groups: they are as far apart on both sides.
    small, large = (grouped_query((8,), range(4), heads, 8, 128) for heads in (32, 64))

    assert pieces(small) == pieces(large) == [2, 2, 2, 2]
    assert grouped_query((), [7, 3], 2, 1, 4).ranks[0].rank == 3


@pytest.mark.parametrize(("heads", "groups", "size"), [(7, 2, 4), (4, 0, 4), (4, 2, 0), (3, 1, 1)])
def test_grouped_query_attention_has_to_divide(heads: int, groups: int, size: int) -> None:
    with refused("map.invalid"):
        grouped_query((8,), range(2), heads, groups, size)


def test_a_column_of_nothing_has_no_pieces() -> None:
    assert grouped_query((0,), range(2), 4, 2, 4).pieces == 0


def test_gate_and_up_are_interleaved_by_rank() -> None:
    full = marked(24, 5)
    gate, up = np.split(full, 2)
    shards = [np.concatenate(pair) for pair in zip(np.split(gate, 3), np.split(up, 3), strict=True)]

    agrees(on(gated((24, 5), 3), 3), shards)
    with refused("map.invalid"):
        gated((25, 5), 3)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_a_padded_vocabulary_is_padded_behind_its_last_row(ranks: int) -> None:
    full = marked(53, 3)
    height = -(-53 // (4 * ranks)) * 4 * ranks
    padded = np.pad(full, ((0, height - 53), (0, 0)), constant_values=PADDING)

    agrees(on(padded_vocabulary((53, 3), ranks, 4), ranks), np.split(padded, ranks))


# Known number: at most source + target pieces between any two paddings.
def test_vocabularies_move_between_paddings_in_few_segments() -> None:
    for source in (1, 2, 4, 8):
        for target in (1, 2, 4, 8):
            plan = compose(
                on(padded_vocabulary((50257, 8), target, 128), target),
                on(padded_vocabulary((50257, 8), source, 128), source),
            )
            assert len(plan.segments) <= source + target
            assert plan.elements == 50257 * 8


def test_rows_of_two_ranks_go_to_columns_of_four_in_eight_blocks() -> None:
    rows = on(TensorMap((8, 8), Contiguous("tp", 0, even(8, 2))), 2)
    columns = on(TensorMap((8, 8), Contiguous("tp", 1, even(8, 4))), 4)
    plan = compose(columns, rows)

    assert len(plan.segments) == 8
    assert plan.elements == 64
    for segment in plan.segments:
        a, b = segment.source_rank, segment.target_rank
        assert (segment.shape, segment.source.offset, segment.source.strides) == ((4, 2), 2 * b, (8, 1))
        assert (segment.target.offset, segment.target.strides) == (8 * a, (2, 1))


# R152 R194
def test_widths_follow_heads_and_not_division() -> None:
    assert grains(24, 4, 4) == (8, 8, 4, 4)
    assert even(24, 4) == (6, 6, 6, 6)
    uneven = on(TensorMap((24, 2), Contiguous("tp", 0, grains(24, 4, 4))), 4)
    agrees(uneven, np.split(marked(24, 2), [8, 16, 20]))
    for extent, ranks, grain in ((24, 4, 5), (24, 0, 4), (24, 4, 0)):
        with refused("map.invalid"):
            grains(extent, ranks, grain)


@given(st.integers(0, 40), st.integers(1, 12))
def test_chunks_are_short_or_empty_at_the_end(extent: int, ranks: int) -> None:
    widths = chunks(extent, ranks)

    assert sum(widths) == extent
    assert len(widths) == ranks
    assert list(widths) == sorted(widths, reverse=True)
    assert set(widths[: extent // max(1, widths[0])]) <= {-(-extent // ranks)}


def test_widths_that_make_no_sense_are_refused() -> None:
    for make in (
        lambda: even(5, 2),
        lambda: even(5, 0),
        lambda: chunks(5, 0),
        lambda: gated((4, 4), 2, dim=2),
    ):
        with refused("map.invalid"):
            make()
    with refused("map.invalid"):
        padded_vocabulary((5, 2), 0)
    with refused("map.invalid"):
        on(TensorMap((9, 2), padded_cut("tp", 0, 9, (4, 4))), 2)


def test_fused_parts_may_be_uneven() -> None:
    full = marked(14, 3)
    shards = [full[[0, 1, 2, 5, 6, 9, 10]], full[[3, 4, 7, 8, 11, 12, 13]]]

    agrees(on(TensorMap((14, 3), fused("tp", 0, [[3, 2], [2, 2], [2, 3]])), 2), shards)


@pytest.mark.parametrize(
    ("facts", "tensor", "ranks"),
    [
        (HeadFacts("codegen", heads=8), codegen((48, 3), 2, 8), 2),
        (HeadFacts("multi_query", shared=16), multi_query((48, 3), (16, 8, 8)), 3),
        (HeadFacts("shared_query_key", heads=8, dim=1), shared_query_key((3, 32), 2, 8, dim=1), 2),
    ],
)
def test_heads_and_shards_tell_the_full_shape(facts: HeadFacts, tensor: TensorMap, ranks: int) -> None:
    shards = [shard.shape for shard in on(tensor, ranks).ranks]

    assert from_heads(facts, shards) == tensor


@pytest.mark.parametrize(
    ("facts", "shards"),
    [
        (HeadFacts("codegen", heads=8), [(24, 3), (12, 3)]),
        (HeadFacts("codegen", heads=8), [(24, 3), (24, 4)]),
        (HeadFacts("codegen", heads=8), []),
        (HeadFacts("multi_query", shared=30), [(24, 3), (24, 3)]),
        (HeadFacts("codegen", heads=8, dim=2), [(24, 3), (24, 3)]),
    ],
)
def test_shards_that_no_heads_make_are_refused(facts: HeadFacts, shards: list[tuple[int, ...]]) -> None:
    with refused("map.invalid"):
        from_heads(facts, shards)
