"""Where a person is in the numbers of a tensor, without a screen: moves, windows, slices, heat maps, commands."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.app.explorer.peek.asking import Goal, read_goal
from shardscope.app.explorer.peek.commands import command_words
from shardscope.app.explorer.peek.frame import HEAT, HISTOGRAM, STATISTICS, VALUES
from shardscope.app.explorer.peek.heat_sight import HeatSight
from shardscope.app.explorer.peek.sight import Ask, Sight
from shardscope.engine.looking.heat import Heating
from shardscope.engine.looking.slices import Selection, selection
from shardscope.engine.model.gathered import Gathered
from shardscope.engine.model.window import Window


def sight(shape: tuple[int, ...], text: str | None = None, cells: int = 5, lines: int = 10) -> Sight:
    found = Sight(selection(text, shape, "t"))
    found.fit(cells, lines)
    return found


def filled(ask: Ask) -> Window:
    """Return the window of a tensor whose elements are their own addresses."""
    whole = np.arange(np.prod(ask.chosen.of, dtype=int)).reshape(ask.chosen.of)
    part = whole[np.ix_(*(list(each) for each in ask.part.indices))].reshape(ask.part.shape)
    rows = part.reshape(-1, part.shape[-1] if part.ndim else 1)
    words = tuple(tuple(map(str, row)) for row in rows.tolist())
    return Window(words, words)


MOVES = st.sampled_from(
    ["down", "up", "left", "right", "page", "back", "home", "end", "step", "before", "across", "fit", "point"]
)


@settings(max_examples=80, deadline=None)
@given(
    shape=st.lists(st.integers(1, 90), min_size=0, max_size=4).map(tuple),
    moves=st.lists(MOVES, max_size=30),
    step=st.integers(1, 3),
)
def test_wherever_one_goes_the_numbers_are_those_of_the_place(
    shape: tuple[int, ...], moves: list[str], step: int
) -> None:
    at = sight(shape, f"...,::{step}" if shape else None)
    whole = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    acts: dict[str, Callable[[int], object]] = {
        "down": lambda _: at.move(1, 0),
        "up": lambda _: at.move(-1, 0),
        "left": lambda _: at.move(0, -1),
        "right": lambda _: at.move(0, 1),
        "page": lambda _: at.page(1, 0),
        "back": lambda _: at.page(-1, 0),
        "home": lambda _: at.begin(),
        "end": lambda _: at.end(),
        "step": lambda _: at.step(1),
        "before": lambda _: at.step(-1),
        "across": lambda _: at.page(0, 1),
        "fit": lambda number: at.fit(3 + number % 7, 2 + number % 20),
        "point": lambda _: at.point(1, 1),
    }
    for number, move in enumerate(moves):
        acts[move](number)
        if (ask := at.next_ask()) is not None:
            assert at.read(ask, filled(ask))
        assert at.row in at.rows
        assert at.column in at.columns
        for row in at.rows:
            for column in at.columns:
                if column < at.width_of(row):
                    found = at.number(row, column)
                    assert found is not None, "what is in sight was read"
                    assert found[0] == str(whole[at.index_at(at.places(row, column))])
    before = at.index
    assert at.go_to(before)
    assert at.index == before


def test_half_of_what_is_around_is_enough_and_a_window_is_asked_for_once() -> None:
    at = sight((1000, 1000))
    ask = at.next_ask()
    assert ask is not None
    assert (ask.rows, ask.columns) == (range(20), range(10))
    assert at.next_ask() is None, "it is being read"
    at.read(ask, filled(ask))
    for _ in range(14):
        at.move(1, 0)
    assert at.next_ask() is None
    at.move(1, 0)
    ask = at.next_ask()
    assert ask is not None
    assert ask.rows == range(26)
    assert at.number(16, 0) == ("16000", "16000"), "the old window serves until the new one is there"


def test_a_window_of_another_matrix_is_not_taken() -> None:
    at = sight((4, 5, 5))
    ask = at.next_ask()
    assert ask is not None
    assert at.step(1)
    assert not at.read(ask, filled(ask))
    assert at.number(0, 0) is None


def test_matrices_are_stepped_through_over_the_ends_of_dimensions() -> None:
    at = sight((2, 3, 4, 4))
    seen = [at.lead]
    while at.step(1):
        seen.append(at.lead)
    assert seen == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    at.turn()
    assert at.step(-1)
    assert at.lead == (0, 2)
    assert not at.step(-1)


def test_lines_of_a_folded_dimension_keep_their_column() -> None:
    at = sight((23,), cells=6)
    assert (at.fold, at.extent) == (5, (5, 5))
    at.move(0, 4)
    at.move(1, 0)
    assert at.index == (9,)
    at.move(0, 1)
    assert at.index == (10,)
    at.end()
    at.end()
    assert at.index == (22,)
    at.move(1, 0)
    assert at.index == (22,)
    at.fit(12, 3)
    assert (at.fold, at.index) == (10, (22,))
    at.move(-9, 0)
    assert at.index == (2,)


@pytest.mark.parametrize(
    ("text", "chosen", "at"),
    [
        ("5, 17", ":,:", (5, 17)),
        ("[-1, 0]", ":,:", (95, 0)),
        ("5", "5,:", None),
        ("0:4, ::8", ":4,::8", None),
        ("", ":,:", None),
        (" ... , 3", ":,3", None),
    ],
)
def test_what_is_typed_leads_to_an_element_or_to_a_slice(
    text: str, chosen: str, at: tuple[int, ...] | None
) -> None:
    goal = read_goal(text, (96, 320), "t")

    assert isinstance(goal, Goal)
    assert (goal.chosen.words, goal.at) == (chosen, at)


@pytest.mark.parametrize("text", ["5,17,3", "96,0", "1:2:0", "x", "__import__('os')"])
def test_what_cannot_be_meant_is_said(text: str) -> None:
    assert isinstance(read_goal(text, (96, 320), "t"), str)


def test_the_command_shows_what_the_view_shows() -> None:
    at = sight((96, 320))
    at.move(20, 7)
    assert command_words(at, VALUES, None) == [
        *("--slice", "11:21,3:8"),
        *("--rows", "10", "--columns", "5"),
    ]
    assert command_words(at, STATISTICS, None) == ["--stats"]
    assert command_words(at, HEAT, 0) == ["--channels"]
    at = sight((4, 9, 9), "1:")
    at.step(1)
    assert command_words(at, VALUES, None)[:2] == ["--slice", "2,:,:5"]
    assert command_words(at, HISTOGRAM, None) == ["--slice", "1:,:,:", "--histogram"]
    assert command_words(sight(()), VALUES, None) == ["--rows", "1", "--columns", "1"]
    assert command_words(None, VALUES, None) == []


def heated(numbers: np.ndarray, chosen: Selection) -> HeatSight:
    """Return the heat map of numbers."""
    heating = Heating("F32", chosen.shape, 4, 8)
    flat = numbers.astype("<f4").reshape(-1)
    heating.add(0, flat.view("u1"), len(flat))
    found = HeatSight(chosen)
    found.take(Gathered(len(flat), len(flat), heat=heating.heat(), profiles=heating.profiles(chosen.kept)))
    found.fit(40, 5)
    return found


def test_a_heat_map_by_boxes_and_by_channels() -> None:
    numbers = np.ones((12, 64))
    numbers[:, 50] = 100
    numbers[7] = 0
    heat = heated(numbers, selection("1:13,::2", (20, 128), "t"))

    assert heat.sheet().labels == ("1", "4", "7", "10")
    assert heat.sheet().lines[0] == "......@."
    assert heat.words() == "rows 1 to 3, columns 0 to 14: rms 1"
    heat.move(1, 6)
    assert heat.at == (4, 96)
    heat.turn()
    assert (heat.sheet().labels, heat.sheet().lines) == (("1",), ("+++++++0++++",))
    heat.move(0, 7)
    assert heat.words() == "dimension 0, index 8: rms 0"
    heat.turn()
    assert heat.sheet().labels == ("0", "64")
    heat.loudest()
    assert (heat.line, heat.box, heat.at) == (1, 18, (1, 100))
    assert heat.words() == "dimension 1, index 100: rms 95.74, 100 times the median"
    assert "@ 95.7 at index 100" in heat.ends_words()
    heat.turn()
    assert heat.axis is None


def test_a_heat_map_of_one_dimension_and_of_none() -> None:
    heat = heated(np.arange(16), selection("3", (5, 16), "t"))
    assert heat.sheet().labels == ("",)
    assert heat.words() == "indices 0 to 1: rms 0.7071, 0.0941 times the median"
    assert heat.at == (3, 0)
    heat.turn()
    heat.ends(last=True)
    assert heat.at == (3, 15)
    alone = heated(np.array(3.0), selection(None, (), "t"))
    assert alone.words() == "the number: rms 3"
    alone.turn()
    assert alone.axis is None
