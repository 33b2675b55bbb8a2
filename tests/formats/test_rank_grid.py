"""Rectangles of ranks: what is seen, missing and double, at a cost that follows the files."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.formats.rank_grid import SHOWN, rank_grid

COORDINATES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30
)


@given(COORDINATES)
def test_seen_and_missing_together_are_the_rectangle(coordinates: list[tuple[int, ...]]) -> None:
    grid = rank_grid(coordinates)

    assert grid.extents == tuple(1 + max(along) for along in zip(*coordinates, strict=True))
    assert sorted((*grid.seen, *grid.missing)) == sorted(product(*map(range, grid.extents)))
    assert grid.missing_count == len(grid.missing)
    assert set(grid.duplicate) == {item for item in coordinates if coordinates.count(item) > 1}


@given(COORDINATES)
def test_the_order_of_the_files_changes_nothing(coordinates: list[tuple[int, ...]]) -> None:
    assert rank_grid(coordinates) == rank_grid(reversed(coordinates))


def test_a_declared_size_shows_that_the_last_rank_is_missing() -> None:
    assert rank_grid([(0,), (1,)]).missing == ()
    assert rank_grid([(0,), (1,)], (4,)).missing == ((2,), (3,))
    assert rank_grid([(0,), (5,)], (4,)).extents == (6,)
    assert rank_grid([], (2,)).missing == ((0,), (1,))
    assert rank_grid([(0, 1)], (None, 3)).missing == ((0, 0), (0, 2))


def test_a_huge_number_in_a_name_costs_no_loop_over_what_it_spans() -> None:
    grid = rank_grid([(0, 0), (999_999, 999_999)])

    assert grid.ranks == 10**12
    assert grid.missing_count == 10**12 - 2
    assert len(grid.missing) == SHOWN
    assert grid.missing[0] == (0, 1)
