"""Plans from shard to shard, executed element by element and held against both layouts."""

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.pieces.budget import Budget, Budgets
from shardscope.engine.geometry.transfer.compose import compose, invert, whole
from shardscope.engine.geometry.transfer.replicas import near
from shardscope.engine.model.blocker import Fault, blocker
from shardscope.engine.model.piece import Lowered, RankShard, Side
from shardscope.engine.model.shardmap import (
    Contiguous,
    DeviceMesh,
    Interleave,
    Part,
    Replicate,
    Scale,
    SubParamConcat,
    TensorMap,
    Trim,
)
from shardscope.engine.model.transfer import Segment, TransferPlan
from tests.geometry.trees import PADDING, holders_of, mesh_of, pairs_of_maps, shown

Layout = tuple[TensorMap, DeviceMesh]
Values = dict[int, list[Fraction | None]]


def values(layout: Layout) -> Values:
    """Return shards of the tensor whose element n is n + 1, factors applied; padding is poisoned."""
    return {
        rank: [
            None if element == PADDING else (int(element) + 1) * one.scale
            for element in one.elements.reshape(-1)
        ]
        for rank, one in shown(*layout).items()
    }


def executed(plan: TransferPlan, target: Lowered, source: Values) -> Values:
    """Return the target's shards as a plan makes them. An element that is written twice or read from padding fails."""
    made: Values = {shard.rank: [None] * shard.elements for shard in target.ranks}
    moves: list[tuple[int, int, int, int, tuple[int, int]]] = []
    for one in plan.segments:
        for index in np.ndindex(*one.shape):
            read = one.source.offset + sum(n * s for n, s in zip(index, one.source.strides, strict=True))
            written = one.target.offset + sum(n * s for n, s in zip(index, one.target.strides, strict=True))
            moves.append((one.source_rank, int(read), one.target_rank, int(written), one.scale))
    for single in plan.indexed:
        reads, writes = (np.frombuffer(side, dtype="<i8").tolist() for side in (single.source, single.target))
        moves += [
            (single.source_rank, read, single.target_rank, written, single.scale)
            for read, written in zip(reads, writes, strict=True)
        ]
    for source_rank, read, target_rank, written, scale in moves:
        value = source[source_rank][read]
        assert value is not None
        assert made[target_rank][written] is None
        made[target_rank][written] = value * Fraction(*scale)
    assert Counter((move[0], move[2]) for move in moves) == {
        (pair.source_rank, pair.target_rank): pair.elements for pair in plan.traffic
    }
    return made


def planned(target: Layout, source: Layout, **options: object) -> tuple[TransferPlan, Lowered]:
    made = lower(*target)
    return compose(made, lower(*source), **options), made  # type: ignore[arg-type]


@settings(max_examples=400, deadline=None)
@given(pairs_of_maps())
def test_a_plan_makes_the_targets_shards_from_the_sources(drawn: tuple[Layout, Layout]) -> None:
    # R150 R172 R192: random trees on both sides, replicas, padding that must not be read
    source, target = drawn
    held, wanted = ({rank: one.elements.reshape(-1) for rank, one in shown(*side).items()} for side in drawn)
    missing = sorted(holders_of(wanted).keys() - holders_of(held).keys())
    if missing:
        with pytest.raises(Fault) as refused:
            planned(target, source)
        found = refused.value.finding
        assert (found.code, found.params) == (
            "map.uncovered",
            {"found": len(missing), "total": len(holders_of(wanted)), "address": missing[0]},
        )
        return
    plan, made = planned(target, source)
    assert executed(plan, made, values(source)) == values(target)
    lowest = {element: ranks[0] for element, ranks in holders_of(held).items()}
    assert {pair.source_rank for pair in plan.traffic} == {
        lowest[int(n)] for row in wanted.values() for n in row if n != PADDING
    }


@settings(max_examples=150, deadline=None)
@given(pairs_of_maps(), st.randoms(use_true_random=False))
def test_any_holder_may_be_chosen(drawn: tuple[Layout, Layout], random_: random.Random) -> None:
    source, target = drawn
    told: dict[tuple[tuple[int, ...], int], int] = {}

    def choose(holders: tuple[int, ...], rank: int) -> int:
        assert (holders, rank) not in told  # asked once
        told[holders, rank] = random_.choice(holders)
        return told[holders, rank]

    try:
        plan, made = planned(target, source, choose=choose)
    except Fault as fault:
        assume(fault.finding.code != "map.uncovered")
        raise
    assert executed(plan, made, values(source)) == values(target)
    assert {(pair.source_rank, pair.target_rank) for pair in plan.traffic} == {
        (chosen, rank) for (_, rank), chosen in told.items()
    }


@settings(max_examples=150, deadline=None)
@given(pairs_of_maps(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_show(drawn: tuple[Layout, Layout], random_: random.Random) -> None:
    # R191
    source, target = (lower(*side) for side in drawn)

    def shuffled(lowered: Lowered) -> Lowered:
        ranks = [
            RankShard(
                shard.rank,
                shard.shape,
                tuple(random_.sample(shard.pieces, len(shard.pieces))),
                shard.padding,
                tuple(random_.sample(shard.indexed, len(shard.indexed))),
            )
            for shard in random_.sample(lowered.ranks, len(lowered.ranks))
        ]
        return Lowered(lowered.shape, tuple(ranks), lowered.explicit)

    try:
        plan = compose(target, source)
    except Fault as fault:
        assume(fault.finding.code != "map.uncovered")
        raise
    other = compose(shuffled(target), shuffled(source))
    assert (other.segments, other.indexed, other.traffic) == (plan.segments, plan.indexed, plan.traffic)


def split(dim: int, ranks: int, extent: int = 8) -> Contiguous:
    return Contiguous("tp", dim, (extent // ranks,) * ranks)


def test_rows_of_two_to_columns_of_four_is_eight_blocks() -> None:
    source = lower(TensorMap((8, 8), split(0, 2)), mesh_of(tp=2))
    plan = compose(lower(TensorMap((8, 8), split(1, 4)), mesh_of(tp=4)), source)
    assert plan.segments == tuple(
        Segment(a, b, (4, 2), Side(2 * b, (8, 1)), Side(8 * a, (2, 1))) for a in range(2) for b in range(4)
    )
    assert plan.elements == 64
    assert not plan.scaled


@pytest.mark.parametrize("source_ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("target_ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("rows", [50257, 32001])
def test_a_padded_vocabulary_needs_no_more_pieces_than_there_are_ranks(
    source_ranks: int, target_ranks: int, rows: int
) -> None:
    # R155 R192: only the vocabulary's own size is known to both sides
    def padded(ranks: int) -> Lowered:
        extent = -(-rows // (128 * ranks)) * 128 * ranks
        tree = Contiguous("tp", 0, (extent // ranks,) * ranks, Trim(0, rows, extent))
        return lower(TensorMap((rows, 16), tree), mesh_of(tp=ranks))

    plan = compose(padded(target_ranks), padded(source_ranks))
    assert len(plan.segments) <= source_ranks + target_ranks
    assert plan.elements == rows * 16


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("others", [1, 2, 3, 4, 8])
def test_fused_queries_keys_and_values_go_from_any_degree_to_any(ranks: int, others: int) -> None:
    # R150 R152 R153: widths by head, uneven, with ranks that hold no key at all
    def fused(count: int) -> Layout:
        heads = [6 // count + (n < 6 % count) for n in range(count)]
        keys = tuple(4 if n == 0 else 0 for n in range(count))
        parts = (
            Part(24, Contiguous("tp", 0, tuple(4 * n for n in heads))),
            Part(4, Contiguous("tp", 0, keys)),
            Part(4, Replicate()),
        )
        return TensorMap((32, 3), SubParamConcat(0, parts)), mesh_of(tp=count)

    plan, made = planned(fused(others), fused(ranks))
    assert executed(plan, made, values(fused(ranks))) == values(fused(others))


def test_inverting_assembles_the_full_tensor() -> None:
    # R148
    layout = (TensorMap((24, 8), Interleave("tp", 0, 4, 1, 3)), mesh_of(tp=2))
    plan = invert(lower(*layout))
    assert executed(plan, whole((24, 8)), values(layout)) == {0: list(range(1, 24 * 8 + 1))}
    assert invert(whole(())).elements == 1
    assert invert(whole((0, 5))).segments == ()


def test_factors_are_exact_or_refused() -> None:
    # R179: what a plan for an optimizer state has to ask for
    scaled = (TensorMap((6,), Scale(1, 3, split(0, 2, 6))), mesh_of(tp=2))
    plain = (TensorMap((6,), split(0, 3, 6)), mesh_of(tp=3))
    plan, made = planned(plain, scaled)
    assert {one.scale for one in plan.segments} == {(3, 1)}
    assert plan.scaled
    assert executed(plan, made, values(scaled)) == values(plain)
    assert not planned(scaled, scaled)[0].scaled
    with pytest.raises(Fault) as refused:
        planned(plain, scaled, factors=False)
    assert refused.value.finding.params == {"rank": 0, "factor": "1/3"}
    assert "1/3" in blocker(refused.value.finding).message


@pytest.mark.parametrize("answer", [7, -1, True, 1.0, None, "0"])
def test_a_selector_has_to_answer_with_a_holder(answer: object) -> None:
    layout = (TensorMap((4,), Replicate()), mesh_of(tp=2))
    with pytest.raises(Fault) as refused:
        planned(layout, layout, choose=lambda holders, rank: answer)
    assert refused.value.finding.code == "map.replica_choice"
    assert "ranks 0, 1" in blocker(refused.value.finding).message


def test_the_holder_on_the_same_host_is_preferred() -> None:
    layout = (TensorMap((4,), Replicate()), mesh_of(tp=4))
    hosts = {0: "a", 1: "a", 2: "b", 3: "b"}
    plan, _ = planned(layout, layout, choose=near(hosts, hosts | {3: "c"}))
    assert [(pair.source_rank, pair.target_rank) for pair in plan.traffic] == [(0, 0), (0, 1), (0, 3), (2, 2)]


def test_two_shapes_are_two_tensors() -> None:
    with pytest.raises(Fault) as refused:
        compose(whole((4, 2)), whole((2, 4)))
    assert (
        blocker(refused.value.finding).message == "The source is a tensor of 2 x 4, the target one of 4 x 2."
    )


def test_statistics_count_what_was_done() -> None:
    source = lower(TensorMap((8, 8), split(0, 2)), mesh_of(tp=2))
    plan = compose(lower(TensorMap((8, 8), split(1, 4)), mesh_of(tp=4)), source)
    counts = plan.statistics
    assert (counts.source_pieces, counts.target_pieces, counts.segments) == (2, 4, 8)
    assert counts.segments_before_merge == 8
    assert counts.indexed_elements == 0
    assert 0 < counts.pair_checks <= 64
    assert 100 < counts.plan_bytes < 4096


@pytest.mark.parametrize("budget", [Budgets(segments=7), Budgets(plan_bytes=100), Budgets(pieces=3)])
def test_a_plan_over_budget_is_refused_whole(budget: Budgets) -> None:
    # R187
    source = lower(TensorMap((8, 8), split(0, 2)), mesh_of(tp=2))
    with pytest.raises(Fault) as refused:
        compose(lower(TensorMap((8, 8), split(1, 4)), mesh_of(tp=4)), source, Budget(budget))
    assert refused.value.finding.code == "map.budget"


def test_a_thousand_ranks_to_a_thousand_others() -> None:
    def flat(ranks: int, axis: int) -> Lowered:
        tree = Contiguous("dp", axis, (4096 // ranks,) * ranks)
        return lower(TensorMap((4096, 4096), tree), mesh_of(dp=ranks))

    plan = compose(flat(1024, 0), flat(512, 0))
    assert len(plan.segments) == 1024
    assert plan.elements == 4096 * 4096
    assert plan.statistics.pair_checks < 64 * 1024
    assert math.prod(plan.segments[0].shape) == 4 * 4096
