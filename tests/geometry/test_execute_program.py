"""Copies as numbers: what they cover, how they are cut, and in which order they run."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shardscope.engine.geometry.execution import cutting
from shardscope.engine.geometry.execution.cutting import blocked, gathered, reads, split, within
from shardscope.engine.geometry.execution.move import move
from shardscope.engine.geometry.execution.program import Copy, IndexedCopy, bounded, compiled, shard_program
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Piece, RankShard, Side, row_major
from tests.test_imports import ARRAYS, modules_after


@st.composite
def sides(draw: st.DrawFn, shape: tuple[int, ...], item: int = 1) -> Side:
    """A side on which the dimensions lie in any order, with gaps."""
    order = draw(st.permutations(range(len(shape))))
    strides, step = [0] * len(shape), item
    for dim in order:
        step *= draw(st.sampled_from([1, 1, 2, 3]))
        strides[dim] = step
        step *= shape[dim]
    return Side(draw(st.integers(0, 9)), tuple(strides))


@st.composite
def copies(draw: st.DrawFn) -> Copy:
    shape = tuple(draw(st.lists(st.integers(1, 5), max_size=4)))
    made = compiled(shape, draw(sides(shape)), draw(sides(shape)), draw(st.sampled_from([8, 16, 24])))
    assert made is not None
    return made


def pairs(copy: Copy) -> set[tuple[int, int]]:
    """Every byte that a copy moves: from where to where."""
    found = set()
    for index in np.ndindex(*copy.counts):
        source = copy.source.offset + sum(i * s for i, s in zip(index, copy.source.strides, strict=True))
        target = copy.target.offset + sum(i * s for i, s in zip(index, copy.target.strides, strict=True))
        found |= {(source + byte, target + byte) for byte in range(copy.run)}
    assert len(found) == copy.size
    return found


def apart(parts: list[Copy]) -> set[tuple[int, int]]:
    """What parts move together; they share nothing."""
    found = set().union(*(pairs(part) for part in parts))
    assert len(found) == sum(part.size for part in parts)
    return found


def test_planning_needs_no_arrays() -> None:
    held = modules_after(
        "from shardscope.engine.geometry.checking import check\n"
        "from shardscope.engine.geometry.constructors import states\n"
        "from shardscope.engine.geometry.execution import cutting, program, work\n"
        "from shardscope.engine.geometry.language import lower\n"
        "from shardscope.engine.geometry.pieces import factors\n"
        "from shardscope.engine.geometry.transfer import compose"
    )

    assert not held & ARRAYS


def test_dimensions_that_continue_each_other_are_one_run() -> None:
    shape = (4, 5, 6)
    whole = Side(7, row_major(shape))

    assert compiled(shape, whole, whole, 16) == Copy(240, (), Side(14, ()), Side(14, ()))
    columns = compiled((4, 5), Side(2, (30, 1)), Side(0, (5, 1)), 32)
    assert columns == Copy(20, (4,), Side(8, (120,)), Side(0, (20,)))
    assert compiled((3, 0), whole, whole, 8) is None
    assert compiled((), Side(3, ()), Side(4, ()), 64) == Copy(8, (), Side(24, ()), Side(32, ()))


@given(st.data())
def test_loops_move_what_the_elements_say(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), max_size=4)))
    source, target = data.draw(sides(shape)), data.draw(sides(shape))

    copy = compiled(shape, source, target, 16)

    assert copy is not None
    expected = set()
    for index in np.ndindex(*shape):
        one = source.offset + sum(i * s for i, s in zip(index, source.strides, strict=True))
        other = target.offset + sum(i * s for i, s in zip(index, target.strides, strict=True))
        expected |= {(2 * one, 2 * other), (2 * one + 1, 2 * other + 1)}
    assert pairs(copy) == expected
    assert all(count > 1 for count in copy.counts)
    assert list(copy.target.strides) == sorted(copy.target.strides, reverse=True)
    assert pairs(copy.turned()) == {(b, a) for a, b in expected}


@given(copies(), st.integers(0, 300), st.integers(0, 300))
def test_a_stretch_of_the_target_gets_exactly_its_bytes(copy: Copy, low: int, length: int) -> None:
    parts = list(within(copy, low, low + length))

    assert apart(parts) == {pair for pair in pairs(copy) if low <= pair[1] < low + length}
    assert len(parts) <= 2 * len(copy.counts) + 1


@given(copies(), st.integers(64, 200))
def test_parts_are_as_small_as_asked_and_nothing_is_lost(copy: Copy, most: int) -> None:
    parts = list(split(copy, most))

    assert apart(parts) == pairs(copy)
    assert all(part.size <= most for part in parts)


@given(copies(), st.integers(0, 40))
def test_reads_leave_wide_gaps_out(copy: Copy, gap: int) -> None:
    parts = list(gathered(copy, gap))

    assert apart(parts) == pairs(copy)
    assert len(parts) == reads(copy, gap)
    for part in parts:
        read = sorted({source for source, _ in pairs(part)})
        assert max(np.diff(read), default=1) <= gap + 1


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_order_that_caches_like_moves_the_same(data: st.DataObject) -> None:
    counts = tuple(data.draw(st.lists(st.sampled_from([2, 3, 17, 40]), min_size=2, max_size=3)))
    source, target = data.draw(sides(counts, 2)), data.draw(sides(counts, 2))
    copy = compiled(counts, source, target, 16)
    assert copy is not None
    given_: NDArray[np.uint8] = np.random.default_rng(0).integers(0, 256, 1 << 21, np.uint8)
    given_ = np.resize(given_, copy.source.offset + copy.source_span)
    made = np.zeros(copy.target.offset + copy.target_span, np.uint8)
    expected = made.copy()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("FEW", 4), ("BLOCK", 8), ("PEELED", 256)):
            patch.setattr(cutting, name, value)
        parts = list(blocked(copy))
        move(copy, given_, made)
    for offset in range(2):
        one, other = (
            np.ndarray(copy.counts, "u1", buffer, side.offset + offset, side.strides)
            for buffer, side in ((given_, copy.source), (expected, copy.target))
        )
        if copy.run == 2:
            other[...] = one
    if copy.run == 2:
        assert np.array_equal(made, expected)
    assert sum(part.size for part in parts) == copy.size


def test_a_transposition_goes_by_blocks_and_a_short_loop_goes_outside() -> None:
    square = compiled((600, 600), Side(0, (600, 1)), Side(0, (1, 600)), 16)
    assert square is not None
    assert max(part.source_span for part in blocked(square)) < 130 * 1200
    threes = compiled((2000, 3), Side(0, (1, 2000)), Side(0, (3, 1)), 16)
    assert threes is not None
    assert [part.counts for part in blocked(threes)] == [(2000,)] * 3
    rows = compiled((600, 600), Side(0, (1200, 1)), Side(0, (600, 1)), 16)
    assert rows is not None
    assert list(blocked(rows)) == [rows]


def test_elements_of_less_than_a_byte_move_as_whole_bytes_or_not_at_all() -> None:
    assert compiled((3, 4), Side(2, (8, 1)), Side(0, (4, 1)), 4) == Copy(
        2, (3,), Side(1, (4,)), Side(0, (2,))
    )
    for shape, source, target in (
        ((3, 3), Side(0, (8, 1)), Side(0, (3, 1))),
        ((3, 4), Side(1, (8, 1)), Side(0, (4, 1))),
        ((3, 4), Side(0, (8, 1)), Side(1, (4, 1))),
        ((3, 4), Side(0, (9, 1)), Side(0, (4, 1))),
        ((4,), Side(0, (2,)), Side(0, (1,))),
    ):
        with pytest.raises(Fault) as caught:
            compiled(shape, source, target, 4)
        assert caught.value.finding.code == "map.sub_byte"


def test_steps_that_no_shard_has_are_refused() -> None:
    plain = Side(0, (4, 1))
    for other in (Side(9, (-4, 1)), Side(0, (0, 1)), Side(0, (1, 1)), Side(0, (3, 1)), Side(0, (2, 2))):
        for sides_ in ((plain, other), (other, plain)):
            with pytest.raises(Fault) as caught:
                compiled((2, 4), *sides_, 8)
            assert caught.value.finding.code == "map.unproven"


def test_a_copy_is_held_against_both_buffers() -> None:
    copy = compiled((3, 2), Side(1, (4, 1)), Side(0, (2, 1)), 16)
    assert copy is not None

    assert bounded(copy, 22, 12) is copy
    for source, target in ((21, 12), (22, 11)):
        with pytest.raises(Fault) as caught:
            bounded(copy, source, target)
        assert caught.value.finding.code == "map.outside"
    with pytest.raises(Fault):
        bounded(copy.moved(3, 0), 100, 100)


def test_many_short_runs_become_one_copy_by_index() -> None:
    order = np.random.default_rng(1).permutation(100).tolist()
    pieces = tuple(Piece((8,), Side(8 * row, (1,)), Side(8 * n, (1,)), (0,)) for n, row in enumerate(order))
    shard = RankShard(0, (100, 8), pieces)

    outward = shard_program(shard, 800, 16, pieces, inward=False)
    inward = shard_program(shard, 800, 16, pieces, inward=True)

    assert (len(outward.copies), len(outward.indexed)) == (0, 1)
    assert outward.size == inward.size == 1600
    full = np.arange(800, dtype="<u2").view(np.uint8)
    made, back = np.zeros(1600, np.uint8), np.zeros(1600, np.uint8)
    move(outward.indexed[0], full, made)
    move(inward.indexed[0], made, back)
    assert np.array_equal(made.view("<u2").reshape(100, 8), full.view("<u2").reshape(100, 8)[order])
    assert np.array_equal(back, full)
    assert len(shard_program(shard, 800, 16, pieces[:10], inward=False).copies) == 10
    far = (*pieces, Piece((8,), Side(793, (1,)), Side(0, (1,)), (0,)))
    with pytest.raises(Fault) as caught:
        shard_program(shard, 800, 16, far, inward=False)
    assert caught.value.finding.code == "map.outside"


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=60, unique=True),
    st.integers(1, 5),
    st.sampled_from([1, 2, 3, 4, 8, 16]),
)
def test_runs_by_index_go_where_they_belong(places: list[int], length: int, item: int) -> None:
    run = length * item
    source = [place * length for place in places]
    target = [n * length for n in range(len(places))]
    given_ = np.random.default_rng(0).integers(0, 256, 31 * run, np.uint8)
    made, back = np.zeros(len(places) * run, np.uint8), np.zeros(31 * run, np.uint8)
    copy = IndexedCopy(run, item, np.array(source, "<i8").tobytes(), np.array(target, "<i8").tobytes())

    move(copy, given_, made)
    move(copy.turned(), made, back)

    lines = given_.reshape(31, run)
    assert np.array_equal(made.reshape(-1, run), lines[places])
    assert np.array_equal(back.reshape(31, run)[places], lines[places])
    assert not np.delete(back.reshape(31, run), places, axis=0).any()


def test_no_run_is_too_long_for_one_element() -> None:
    shape = (3, 1 << 20)
    copy = compiled(shape, Side(0, (1 << 21, 1)), Side(0, (1 << 20, 1)), 8)
    assert copy is not None
    given_ = np.random.default_rng(0).integers(0, 256, 3 << 21, np.uint8)
    made = np.zeros(3 << 20, np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shardscope.engine.geometry.execution.move.LONGEST", 1 << 19)
        move(copy, given_, made)

    assert np.array_equal(made.reshape(shape), given_.reshape(3, -1)[:, : 1 << 20])
    assert math.prod(shape) == copy.size
