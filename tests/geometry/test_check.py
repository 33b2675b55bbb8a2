"""Checks against brute force on maps that are sound and maps that are not, and the adversarial list, each with its code."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.geometry.checking.check import check, check_shards
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.pieces.budget import Budget, Budgets
from shardscope.engine.geometry.pieces.explicit import packed
from shardscope.engine.model.blocker import Fault, Finding, blocker
from shardscope.engine.model.piece import IndexedPiece, Lowered, Piece, RankShard, Side
from shardscope.engine.model.shardmap import Contiguous, DeviceMesh, FlatRange, Replicate, TensorMap
from tests.geometry.trees import holders_of, maps, mesh_of, pairs, shown


@settings(max_examples=300, deadline=None)
@given(maps())
def test_a_lowered_map_is_sound_and_only_coverage_may_be_missing(
    drawn: tuple[TensorMap, DeviceMesh],
) -> None:
    tensor, mesh = drawn
    checked = check(lower(tensor, mesh))
    held = holders_of({rank: one.elements.reshape(-1) for rank, one in shown(tensor, mesh).items()})
    lowered = lower(tensor, mesh)
    missing = [n for n in range(lowered.elements) if n not in held]
    assert checked.uncovered == len(missing)
    if missing:
        (only,) = checked.findings
        assert (only.code, only.params["address"]) == ("map.uncovered", missing[0])
    else:
        assert checked.invertible
    assert checked.replicas is not None
    assert {one.holders: one.elements for one in checked.replicas} == Counter(held.values())
    assert {one.rank: one.elements for one in checked.padding} == {
        shard.rank: shard.padding for shard in lowered.ranks if shard.padding
    }


@dataclass
class Brute:
    """What walking every element finds: numbers by code and rank."""

    twice: dict[int, tuple[int, int]] = field(default_factory=dict)
    holes: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    uncovered: tuple[int, int] | None = None
    differ: tuple[int, int] | None = None
    wrong: tuple[int, int] | None = None


def brute(lowered: Lowered) -> Brute:
    found = Brute()
    stated: dict[int, set[tuple[int, ...]]] = {}
    actual: dict[int, set[int]] = {}
    for shard in lowered.ranks:
        written: Counter[int] = Counter()
        for dest, source, holders, _ in pairs(shard):
            written[dest] += 1
            stated.setdefault(source, set()).add(holders)
            actual.setdefault(source, set()).add(shard.rank)
        twice = sorted(address for address, times in written.items() if times > 1)
        if twice:
            found.twice[shard.rank] = (len(twice), twice[0])
        open_ = [address for address in range(shard.elements) if address not in written]
        if len(open_) != shard.padding:
            found.holes[shard.rank] = (len(open_), open_[0] if open_ else None)
    missing = [n for n in range(lowered.elements) if n not in stated]
    if missing:
        found.uncovered = (len(missing), missing[0])
    differ = sorted(n for n, sets in stated.items() if len(sets) > 1)
    if differ:
        found.differ = (len(differ), differ[0])
    wrong = sorted(n for n, sets in stated.items() if sets != {tuple(sorted(actual[n]))} and len(sets) == 1)
    if wrong:
        found.wrong = (len(wrong), wrong[0])
    return found


def said(findings: tuple[Finding, ...]) -> Brute:
    found = Brute()
    for one in findings:
        count, address, rank = one.params.get("found"), one.params.get("address"), one.params.get("rank")
        match one.code:
            case "map.destination_collision":
                found.twice[rank] = (count, address)  # type: ignore[index,assignment]
            case "map.shard_hole":
                found.holes[rank] = (count, address)  # type: ignore[index,assignment]
            case "map.uncovered":
                found.uncovered = (count, address)  # type: ignore[assignment]
            case "map.holders_differ":
                found.differ = (count, address)  # type: ignore[assignment]
            case "map.holders_wrong":
                found.wrong = (count, address)  # type: ignore[assignment]
            case other:
                raise AssertionError(other)
    return found


@st.composite
def loose_maps(draw: st.DrawFn) -> Lowered:
    """Maps whose pieces lie anywhere within bounds, with any steps, and say anything of their holders."""
    total, ranks = draw(st.integers(1, 40)), draw(st.sampled_from([(0,), (0, 1), (3, 900, 17)]))
    shards = []
    for rank in ranks:
        room = draw(st.integers(1, 40))
        pieces = []
        for _ in range(draw(st.integers(0, 4))):
            shape, source, dest = draw(_block(total, room))
            others = draw(st.lists(st.sampled_from(ranks), unique=True))
            holders = tuple(sorted({rank, *others}))
            pieces.append(Piece(shape, source, dest, holders))
        shards.append(RankShard(rank, (room,), tuple(pieces), draw(st.sampled_from([0, 0, 1, room]))))
    return Lowered((total,), tuple(shards))


@st.composite
def _block(draw: st.DrawFn, total: int, room: int) -> tuple[tuple[int, ...], Side, Side]:
    shape = draw(st.lists(st.integers(0, 4), max_size=3).map(tuple))
    sides = []
    for limit in (total, room):
        left = limit if 0 in shape else limit - 1
        strides = []
        for extent in shape:
            most = left // max(1, extent - 1)
            stride = draw(st.integers(1, most)) if most else 1
            if extent > 1 and 0 not in shape:
                if not most:
                    return (
                        (),
                        Side(draw(st.integers(0, total - 1)), ()),
                        Side(draw(st.integers(0, room - 1)), ()),
                    )
                left -= (extent - 1) * stride
            strides.append(stride)
        sides.append(Side(draw(st.integers(0, left)), tuple(strides)))
    return shape, sides[0], sides[1]


@settings(max_examples=600, deadline=None)
@given(loose_maps())
def test_what_is_wrong_is_found_with_its_numbers(lowered: Lowered) -> None:
    # R175 R180 R187: any steps, any overlap, by address and not by count
    assert said(check(lowered).findings) == brute(lowered)


def piece(shape: tuple[int, ...], source: int, dest: int, holders: tuple[int, ...] = (0,)) -> Piece:
    strides = (1,) * len(shape)
    return Piece(shape, Side(source, strides), Side(dest, strides), holders)


def one_rank(*pieces: Piece, shape: tuple[int, ...] = (4,), total: int = 4, padding: int = 0) -> Lowered:
    return Lowered((total,), (RankShard(0, shape, pieces, padding),))


def codes(lowered: Lowered) -> list[str]:
    found = check(lowered).findings
    for one in found:
        assert "{" not in blocker(one).message  # every finding has its sentence
    return [one.code for one in found]


def test_counts_that_add_up_prove_nothing() -> None:
    # R175: two pieces of two elements in a shard of four, both at addresses 0 and 1
    collision, hole = check(one_rank(piece((2,), 0, 0), piece((2,), 2, 0))).findings
    assert (collision.code, collision.params["found"], collision.params["address"]) == (
        "map.destination_collision",
        2,
        0,
    )
    assert (hole.code, hole.params["found"], hole.params["address"]) == ("map.shard_hole", 2, 2)


@pytest.mark.parametrize(
    ("lowered", "code"),
    [
        pytest.param(one_rank(piece((3,), 0, 0), padding=1), "map.uncovered", id="coverage"),
        pytest.param(one_rank(piece((4,), 0, 0), shape=(6,), padding=1), "map.shard_hole", id="hole"),
        pytest.param(
            one_rank(piece((4,), 0, 0), padding=1), "map.shard_hole", id="padding-that-is-not-there"
        ),
        pytest.param(one_rank(piece((5,), 0, 0), shape=(5,)), "map.out_of_bounds", id="beyond-the-tensor"),
        pytest.param(one_rank(piece((4,), 0, 1)), "map.out_of_bounds", id="beyond-the-shard"),
        pytest.param(one_rank(piece((4,), -1, 0)), "map.out_of_bounds", id="before-the-tensor"),
        pytest.param(one_rank(piece((0,), 5, 4), piece((4,), 0, 0)), "map.out_of_bounds", id="empty-too-far"),
        pytest.param(
            one_rank(Piece((4,), Side(0, (1,)), Side(0, (1,)), (0,), (0, 1))), "map.scale_zero", id="zero"
        ),
        pytest.param(
            one_rank(Piece((4,), Side(0, (1,)), Side(0, (1,)), (0,), (2, 4))), "map.malformed", id="factor"
        ),
        pytest.param(
            one_rank(Piece((4,), Side(3, (-1,)), Side(0, (1,)), (0,))),
            "map.unsupported_stride",
            id="backwards",
        ),
        pytest.param(
            one_rank(Piece((4,), Side(0, (0,)), Side(0, (1,)), (0,))),
            "map.unsupported_stride",
            id="broadcast",
        ),
        pytest.param(one_rank(Piece((4,), Side(0, ()), Side(0, (1,)), (0,))), "map.malformed", id="dims"),
        pytest.param(one_rank(piece((-4,), 0, 0)), "map.malformed", id="negative-extent"),
        pytest.param(one_rank(piece((1 << 70,), 0, 0)), "map.malformed", id="huge-extent"),
        pytest.param(one_rank(piece((1 << 62, 1 << 62), 0, 0)), "map.out_of_bounds", id="huge-product"),
        pytest.param(
            one_rank(Piece((True,), Side(0, (1,)), Side(0, (1,)), (0,))), "map.malformed", id="boolean"
        ),
        pytest.param(one_rank(piece((4,), 0, 0, (1, 0))), "map.malformed", id="unsorted-holders"),
        pytest.param(one_rank(piece((4,), 0, 0, ())), "map.malformed", id="no-holders"),
        pytest.param(one_rank(piece((4,), 0, 0, (1,))), "map.holders_self", id="not-its-own-holder"),
        pytest.param(one_rank(piece((4,), 0, 0, (0, 9))), "map.holders_unknown", id="holder-without-a-shard"),
        pytest.param(one_rank(piece((4,), 0, 0), total=1 << 64), "map.unsupported_size", id="tensor-size"),
        pytest.param(one_rank(piece((4,), 0, 0), shape=(-4,)), "map.invalid", id="shard-shape"),
        pytest.param(
            Lowered((4,), (RankShard(0, (4,), (piece((4,), 0, 0),)),) * 2), "map.rank_labels", id="rank-twice"
        ),
        pytest.param(
            Lowered((4,), (RankShard(1 << 64, (4,), (piece((4,), 0, 0),)),)),
            "map.rank_labels",
            id="rank-huge",
        ),
        pytest.param(
            Lowered((4,), (RankShard(True, (4,), (piece((4,), 0, 0),)),)),
            "map.rank_labels",
            id="rank-boolean",
        ),
        pytest.param(
            Lowered(
                (4,),
                (
                    RankShard(0, (4,), (piece((4,), 0, 0, (0, 1)),)),
                    RankShard(1, (2,), (piece((2,), 0, 0, (1,)),)),
                ),
            ),
            "map.holders_differ",
            id="two-owners",
        ),
        pytest.param(
            Lowered(
                (4,),
                (
                    RankShard(0, (4,), (piece((4,), 0, 0, (0, 1)),)),
                    RankShard(1, (2,), (piece((2,), 0, 0, (0, 1)),)),
                ),
            ),
            "map.holders_wrong",
            id="piece-spanning-a-replicated-region",
        ),
        pytest.param(
            Lowered(
                (4,),
                (
                    RankShard(
                        0, (4,), (), 0, (IndexedPiece(packed([(0, 4)]), packed([(3, 1), (0, 3)]), (0,)),)
                    ),
                ),
            ),
            "map.malformed",
            id="index-that-does-not-rise",
        ),
        pytest.param(
            Lowered(
                (4,),
                (RankShard(0, (4,), (), 0, (IndexedPiece(packed([(1, 4)]), packed([(0, 4)]), (0,)),)),),
            ),
            "map.out_of_bounds",
            id="index-beyond",
        ),
        pytest.param(
            Lowered((4,), (RankShard(0, (4,), (), 0, (IndexedPiece(b"123", b"12345678", (0,)),)),)),
            "map.malformed",
            id="index-lengths",
        ),
    ],
)
def test_each_contradiction_has_its_code(lowered: Lowered, code: str) -> None:
    # R166 R178 R188: a zero factor, a view that reads backwards, numbers that are none
    assert code in codes(lowered)


def test_an_empty_piece_covers_nothing_and_may_sit_one_past_the_end() -> None:
    # R180
    assert codes(one_rank(piece((4,), 0, 0), piece((0,), 4, 4))) == []
    assert "map.uncovered" in codes(one_rank(piece((0,), 0, 0), padding=4))


def test_a_piece_that_overlaps_itself_is_a_collision_and_not_a_riddle() -> None:
    # Two dimensions of equal step: addresses 0, 1, 1, 2
    twisted = Piece((2, 2), Side(0, (2, 1)), Side(0, (1, 1)), (0,))
    found = {one.code: one.params for one in check(one_rank(twisted, padding=1)).findings}
    assert found["map.destination_collision"]["found"] == 1
    assert found["map.destination_collision"]["address"] == 1


def test_steps_without_a_chain_are_proven_while_they_are_few_and_unsupported_beyond() -> None:
    # R188: unsupported is not invalid
    def thirds_and_halves(count: int) -> Lowered:
        total = 6 * count
        shards = (
            RankShard(0, (3 * count,), (Piece((3 * count,), Side(0, (2,)), Side(0, (1,)), (0,)),)),
            RankShard(1, (2 * count,), (Piece((2 * count,), Side(1, (3,)), Side(0, (1,)), (1,)),)),
        )
        return Lowered((total,), shards)

    assert codes(thirds_and_halves(100)) == ["map.uncovered", "map.holders_differ"]
    assert codes(thirds_and_halves(10**8)) == ["map.unproven"]


def test_an_exhausted_budget_refuses_the_whole() -> None:
    # R187
    with pytest.raises(Fault) as refused:
        check(one_rank(piece((2,), 0, 0), piece((2,), 2, 2)), Budget(Budgets(pieces=1)))
    assert refused.value.finding == Finding("map.budget", {"budget": "pieces", "limit": 1, "found": 2})


def test_shards_that_are_there_are_held_against_the_map() -> None:
    # R177: a longer shard would be read in part and look whole
    lowered = lower(TensorMap((8, 4), Contiguous("tp", 0, (4, 4))), mesh_of(tp=2))
    assert check_shards(lowered, {0: (4, 4), 1: (16,)}) == []
    found = check_shards(lowered, {0: (5, 4), 2: (4, 4)})
    assert [(one.code, one.params["rank"]) for one in found] == [
        ("map.shard_unknown", 1),
        ("map.shard_unknown", 2),
        ("map.shard_size", 0),
    ]
    assert all(blocker(one).message for one in found)


def test_a_thousand_flat_partitions_over_columns_stay_far_inside_the_budgets() -> None:
    ranks, rows = 1024, 8192
    each = rows * 512 // ranks
    starts = tuple(n * each for n in range(ranks))
    ends = tuple(start + each for start in starts)
    tree = FlatRange("dp", starts, ends, Contiguous("tp", 1, (512,) * 8))
    lowering, checking = Budget(), Budget()
    lowered = lower(TensorMap((rows, 4096), tree), mesh_of(dp=ranks, tp=8), lowering)
    checked = check(lowered, checking)
    assert checked.invertible
    assert checked.replicas is not None
    assert len(checked.replicas) == 8 * ranks
    for budget in (lowering, checking):
        assert budget.spent["pieces"] <= 3 * 8 * ranks
        assert budget.spent["pair_checks"] < 64 * 8 * ranks  # all pairs would be 8,192 times as many
        assert all(spent < getattr(Budgets(), what) for what, spent in budget.spent.items())


def test_replicas_are_named_once_for_all_their_ranks() -> None:
    # R154
    checked = check(lower(TensorMap((4, 4), Replicate()), mesh_of(ranks=(5, 2, 900), tp=3)))
    assert checked.replicas is not None
    assert [(one.holders, one.elements) for one in checked.replicas] == [((2, 5, 900), 16)]
