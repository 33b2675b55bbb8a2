"""Boxes in a tensor: what they fill, what they leave open, what two of them hold, whatever their number of axes."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.formats.fragments import Fragment, Work, cover, ends_short, reach, settles
from shardscope.engine.model.blocker import Fault

Box = tuple[tuple[int, ...], tuple[int, ...]]


def fragments(*boxes: Box) -> list[Fragment]:
    """One fragment a box, each in a file of its own."""
    return [Fragment(offset, shape, number) for number, (offset, shape) in enumerate(boxes)]


def rows(*sizes: int) -> list[Fragment]:
    """A matrix with four columns, cut by rows."""
    starts = itertools.accumulate((0, *sizes[:-1]))
    return fragments(*(((start, 0), (size, 4)) for start, size in zip(starts, sizes, strict=True)))


@st.composite
def boxes(draw: st.DrawFn) -> tuple[list[Fragment], tuple[int, ...]]:
    """Some boxes within a small tensor, so that every element can be counted."""
    extent = tuple(draw(st.lists(st.integers(1, 5), min_size=0, max_size=3)))
    found = []
    for number in range(draw(st.integers(1, 6))):
        offset = tuple(draw(st.integers(0, size)) for size in extent)
        shape = tuple(draw(st.integers(0, size - begin)) for size, begin in zip(extent, offset, strict=True))
        found.append(Fragment(offset, shape, number))
    return found, extent


@given(boxes())
def test_coverage_is_what_counting_every_element_gives(case: tuple[list[Fragment], tuple[int, ...]]) -> None:
    found, extent = case
    counts = {
        place: sum(
            all(
                begin <= at < begin + size
                for at, begin, size in zip(place, item.offset, item.shape, strict=True)
            )
            for item in found
        )
        for place in itertools.product(*map(range, extent))
    }
    answer = cover(found, extent, Work(10_000))

    assert answer.missing == sum(count == 0 for count in counts.values())
    assert answer.repeated == sum(count > 1 for count in counts.values())
    assert (answer.hole is None) == (answer.missing == 0)
    if answer.hole is not None:
        assert all(counts[place] == 0 for place in itertools.product(*(range(*span) for span in answer.hole)))
    if answer.overlap is not None:
        first, second = (found[number] for number in answer.overlap)
        assert all(
            max(a, b) < min(a + m, b + n)
            for a, m, b, n in zip(first.offset, first.shape, second.offset, second.shape, strict=True)
        )


def test_a_grid_of_a_tensor_with_a_trillion_elements_is_covered_without_walking_it() -> None:  # R190
    side, step = 1 << 20, 1 << 14
    grid = [
        Fragment((row, column), (step, step), 0)
        for row in range(0, side, step)
        for column in range(0, side, step)
    ]
    random.Random(7).shuffle(grid)
    work = Work(100_000)

    assert cover(grid, (side, side), work).missing == 0
    assert work.steps < 5 * len(grid)
    lost = grid.pop()
    answer = cover(grid, (side, side), Work(100_000))
    assert answer.missing == lost.elements
    assert answer.hole == tuple(
        (begin, begin + size) for begin, size in zip(lost.offset, lost.shape, strict=True)
    )


def test_work_beyond_the_limit_stops() -> None:
    found = fragments(*(((number, number), (50, 50)) for number in range(40)))
    with pytest.raises(Fault) as caught:
        cover(found, (90, 90), Work(200))
    assert caught.value.finding.code == "limit.fragment_steps"


def test_an_empty_last_piece_says_how_far_the_tensor_reaches() -> None:
    found = fragments(((0,), (2,)), ((2,), (2,)), ((5,), (0,)))
    assert reach(found) == (5,)
    assert cover(found, (5,), Work(100)).hole == ((4, 5),)


def test_only_a_smaller_last_piece_speaks_for_the_end() -> None:
    assert ends_short(rows(6, 5))
    assert not ends_short(rows(6, 6))
    assert not ends_short(rows(6))
    grid = fragments(((0, 0), (3, 3)), ((0, 3), (3, 2)), ((3, 0), (3, 3)), ((3, 3), (3, 2)))
    assert not ends_short(grid)  # cut short along one axis, evenly along the other


@pytest.mark.parametrize(
    ("sizes", "shards", "expected"),
    [
        ((48, 48), 2, True),
        ((4, 4, 4), 3, True),
        ((2, 2, 1), 3, False),  # five rows among four ranks are cut the same way, the fourth is empty
        ((3, 2, 1), 3, False),  # no even cut
        ((48, 48), 3, False),  # a third shard holds nothing of it
        ((96,), 1, False),
    ],
)
def test_a_tensor_of_known_size_tells_whether_there_was_another_shard(
    sizes: tuple[int, ...], shards: int, expected: bool
) -> None:
    assert settles(rows(*sizes), (sum(sizes), 4), shards) is expected
