"""Index arrays: compressed where they have a shape, walked within their budget where they have none."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.pieces import explicit
from shardscope.engine.geometry.pieces.budget import Budget, Budgets
from shardscope.engine.geometry.transfer.compose import compose, invert
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import Contiguous, Explicit, Interleave, TensorMap
from tests.geometry.test_compose import executed, values
from tests.geometry.trees import elements_of, mesh_of, shown


def as_indices(tensor: TensorMap, ranks: int) -> Explicit:
    """Return a map written out element by element."""
    rows = shown(tensor, mesh_of(tp=ranks))
    return Explicit("tp", tuple(tuple(rows[r].elements.reshape(-1).tolist()) for r in range(ranks)))


@pytest.mark.parametrize(
    ("tensor", "pieces"),
    [
        pytest.param(TensorMap((64, 32), Contiguous("tp", 1, (8,) * 4)), 1, id="columns"),
        pytest.param(TensorMap((48, 16), Interleave("tp", 0, 4, 1, 3)), 1, id="interleaved-rows"),
        pytest.param(TensorMap((8, 48, 4), Interleave("tp", 1, 2, 2, 3)), 1, id="interleaved-middle"),
        pytest.param(TensorMap((64, 32), Contiguous("tp", 0, (16,) * 4)), 1, id="rows"),
    ],
)
def test_an_index_with_a_shape_is_compressed_in_every_dimension(tensor: TensorMap, pieces: int) -> None:
    # R157 R160: as few pieces as the node that it was written out from
    written = TensorMap(tensor.shape, as_indices(tensor, 4))
    made, plain = lower(written, mesh_of(tp=4)), lower(tensor, mesh_of(tp=4))
    assert [len(shard.pieces) for shard in made.ranks] == [len(shard.pieces) for shard in plain.ranks]
    assert max(len(shard.pieces) for shard in made.ranks) == pieces
    assert made.indexed_elements == 0


def test_a_transposition_is_one_piece() -> None:
    rows, columns = 40, 24
    order = tuple(row * columns + column for column in range(columns) for row in range(rows))
    (shard,) = lower(TensorMap((rows, columns), Explicit("tp", (order,))), mesh_of(tp=1)).ranks
    (piece,) = shard.pieces
    assert sorted(zip(piece.shape, piece.source.strides, piece.dest.strides, strict=True)) == [
        (24, 1, 40),
        (40, 24, 1),
    ]


def scattered(elements: int, ranks: int) -> TensorMap:
    """Return a permutation without any order, dealt to ranks."""
    order = list(range(elements))
    random.Random(5).shuffle(order)
    share = elements // ranks
    return TensorMap(
        (elements,), Explicit("tp", tuple(tuple(order[r * share : (r + 1) * share]) for r in range(ranks)))
    )


def test_an_index_without_a_shape_stays_an_index_with_its_cost() -> None:
    # R157 R160 R161
    tensor = scattered(4000, 4)
    lowered = lower(tensor, mesh_of(tp=4))
    assert lowered.indexed_elements == 4000
    assert [(len(shard.pieces), len(shard.indexed)) for shard in lowered.ranks] == [(0, 1)] * 4
    assert elements_of(lowered) == {
        rank: one.elements.tolist() for rank, one in shown(tensor, mesh_of(tp=4)).items()
    }
    checked = check(lowered)
    assert checked.invertible
    assert checked.indexed_elements == 4000


@pytest.mark.parametrize("shapes", [((2,),), ((2,), (2,), (2,))], ids=["too-few", "too-many"])
def test_a_shape_is_wanted_for_every_rank_and_no_other(shapes: tuple[tuple[int, ...], ...]) -> None:
    """Fuzzing found an IndexError where there were too few."""
    with pytest.raises(Fault) as refused:
        lower(TensorMap((4,), Explicit("tp", ((0, 1), (2, 3)), shapes)), mesh_of(tp=2))
    assert refused.value.finding.code == "map.invalid"


def test_an_index_is_planned_against_anything() -> None:
    source = (scattered(4096, 2), mesh_of(tp=2))
    target = (TensorMap((4096,), Interleave("tp", 0, 4, 1, 4)), mesh_of(tp=4))
    made = lower(*target)
    plan = compose(made, lower(*source))
    assert executed(plan, made, values(source)) == values(target)
    assert plan.statistics.indexed_elements == 4096
    assert plan.segments == ()
    assert [(one.source_rank, one.target_rank) for one in plan.indexed] == [
        (a, b) for a in range(2) for b in range(4)
    ]
    full = lower(TensorMap((4096,), Contiguous("tp", 0, (4096,))), mesh_of(tp=1))
    assert executed(invert(lower(*source)), full, values(source)) == {0: list(range(1, 4097))}


def test_steps_that_fit_no_chain_are_walked_where_an_index_brought_them() -> None:
    # Every third element on one rank, the rest on another: compressed each, without a chain between the two layouts.
    count = 30_000
    thirds = tuple(range(0, 3 * count, 3))
    others = tuple(n for n in range(3 * count) if n % 3)
    source = lower(TensorMap((3 * count,), Explicit("tp", (thirds, others))), mesh_of(tp=2))
    target = lower(TensorMap((3 * count,), Interleave("tp", 0, count // 2, 1, 2)), mesh_of(tp=1))
    assert source.indexed_elements == 0
    assert target.explicit is False
    plan = compose(target, source)
    assert plan.elements == 3 * count


def test_the_budget_of_an_index_is_its_own() -> None:
    # R161: neither pieces nor pair checks bound it, and its own bytes do
    tensor = scattered(20_000, 2)
    few = Budgets(pieces=8, pair_checks=8, segments=8, cells=8)
    lowered = lower(tensor, mesh_of(tp=2), Budget(few))
    assert check(lowered, Budget(few)).invertible
    with pytest.raises(Fault) as refused:
        lower(tensor, mesh_of(tp=2), Budget(Budgets(explicit_bytes=8 * 20_000 - 1)))
    assert refused.value.finding.params["budget"] == "explicit_bytes"
    with pytest.raises(Fault, match=r"map\.budget"):
        check(lowered, Budget(Budgets(explicit_bytes=8 * 20_000 - 1)))


def test_replicas_of_an_index_are_found_element_by_element() -> None:
    order = list(range(600))
    random.Random(1).shuffle(order)
    tree = Explicit("tp", (tuple(order[:400]), tuple(order[200:])))
    lowered = lower(TensorMap((600,), tree), mesh_of(ranks=(4, 2), tp=2))
    replicas = check(lowered).replicas
    assert replicas is not None
    assert {one.holders: one.elements for one in replicas} == {(4,): 200, (2, 4): 200, (2,): 200}
    held = {one.holders for shard in lowered.ranks for one in shard.indexed}
    assert held == {(4,), (2, 4), (2,)}


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=60))
def test_compression_says_what_the_index_says(indices: list[int]) -> None:
    """Any list, repeated and falling indices too."""
    for blocks in (explicit.compressed(indices), explicit.runs(range(len(indices)), indices)):
        if blocks is None:
            continue
        said: dict[int, int] = {}
        for run in explicit.walked(blocks):
            for n in range(run.shape[0]):
                assert run.a.offset + n not in said
                said[run.a.offset + n] = run.b.offset + n
        assert said == dict(enumerate(indices))


def test_the_rule_of_escalation_is_a_number_of_indices_for_each_piece() -> None:
    # R160
    assert explicit.allowed(8 * explicit.FEW_PIECES * 10) == explicit.FEW_PIECES * 10
    order = list(range(3000))
    random.Random(2).shuffle(order)
    assert explicit.compressed(order[: explicit.FEW_PIECES]) is not None  # few always pass
    assert explicit.compressed(order) is None
    with_a_few_jumps = [*range(1000), *order[:40], *range(1000, 2000)]
    found = explicit.compressed(with_a_few_jumps)
    assert found is not None
    assert explicit.FEW_PIECES < len(found) <= explicit.allowed(len(with_a_few_jumps))


def test_addresses_are_packed_as_64_bit_little_endian() -> None:
    assert explicit.packed([(5, 1), (256, 2)]) == bytes([5, *[0] * 7, 0, 1, *[0] * 6, 1, 1, *[0] * 6])
    assert explicit.unpacked(explicit.packed([(3, 3)])).tolist() == [3, 4, 5]


def test_an_index_twice_in_one_rank_is_read_at_its_lower_address() -> None:
    lowered: Lowered = lower(TensorMap((2,), Explicit("tp", ((1, 0, 1),))), mesh_of(tp=1))
    assert check(lowered).invertible
    plan = invert(lowered)
    assert plan.elements == 2
    assert {(one.source.offset, one.target.offset) for one in plan.segments} == {(0, 1), (1, 0)}
