"""Slices as numpy reads them, and the maps that they come to."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.looking.slices import LONGEST, edges, selection
from shardscope.engine.model.blocker import Fault

ENDS = st.none() | st.integers(-12, 12)
PARTS = st.integers(-3, 2).map(str) | st.builds(
    lambda start, stop, step, second: (
        f"{'' if start is None else start}:{'' if stop is None else stop}"
        f"{'' if step is None and not second else f':{step or str()}'}"
    ),
    ENDS,
    ENDS,
    st.none() | st.integers(1, 4),
    st.booleans(),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(PARTS, min_size=1, max_size=3), st.none() | st.integers(0, 3), st.booleans())
def test_a_slice_selects_what_numpy_selects(parts: list[str], dots: int | None, spaced: bool) -> None:
    if dots is not None:
        parts = [*parts[:dots], "...", *parts[dots:]]
    text = (" , " if spaced else ",").join(parts)
    whole = np.arange(5 * 3 * 7).reshape(5, 3, 7)
    expected = eval(f"whole[{text}]", {"whole": whole})

    found = selection(text, whole.shape, "t")

    grid = whole[np.ix_(*(list(each) for each in found.indices))]
    assert np.array_equal(grid.reshape(found.shape), expected)
    assert found.elements == expected.size


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("", 0),
        ("1,", 2),
        ("1,,2", 2),
        ("a", 0),
        ("0,1:2:3:4", 2),
        ("::0", 0),
        ("::-1", 0),
        ("1 2", 0),
        ("...,...", 4),
        ("1:2 3", 0),
        ("١", 0),
        ("9" * 19, 0),
        ("__import__('os')", 0),
        ("0," * LONGEST, LONGEST),
    ],
)
def test_what_is_no_slice_says_where(text: str, at: int) -> None:
    with pytest.raises(Fault) as caught:
        selection(text, (4, 4, 4), "t")

    assert caught.value.finding.code == "peek.slice"
    assert caught.value.finding.params["at"] == at


@pytest.mark.parametrize(
    ("text", "code"), [("4", "peek.index"), ("-5", "peek.index"), ("0,0,0", "peek.dimensions")]
)
def test_what_is_not_there_is_refused(text: str, code: str) -> None:
    with pytest.raises(Fault) as caught:
        selection(text, (4, 4), "t")

    assert caught.value.finding.code == code


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("...", 105),
        ("1", 21),
        ("1:3", 42),
        (":,1", 7),
        (":,1:", 14),
        (":,:,:2", 2),
        (":,:,0", 1),
        (":,:,::2", 1),
        ("::2", 21),
        ("3,2,1", 1),
    ],
)
def test_runs_are_what_one_read_gets(text: str, run: int) -> None:
    assert selection(text, (5, 3, 7), "t").run == run


def test_edges_are_the_first_and_the_last() -> None:
    assert edges(range(10), 10) == (range(10),)
    assert edges(range(0, 20, 2), 5) == (range(0, 6, 2), range(16, 20, 2))
    assert edges(range(10), 1) == (range(1),)


@settings(max_examples=200, deadline=None)
@given(st.lists(PARTS, max_size=3), st.data())
def test_a_selection_says_itself_and_knows_its_places(parts: list[str], data: st.DataObject) -> None:
    text = ",".join([*parts, "..."])
    whole = np.arange(5 * 3 * 7).reshape(5, 3, 7)
    found = selection(text, whole.shape, "t")

    again = selection(found.words, whole.shape, "t")
    assert (again.shape, [list(each) for each in again.indices]) == (
        found.shape,
        [list(each) for each in found.indices],
    )
    if not found.elements:
        return
    element = data.draw(st.integers(0, found.elements - 1))
    index = found.index(element)
    chosen = whole[np.ix_(*(list(each) for each in found.indices))].reshape(found.shape)
    assert whole[index] == chosen.reshape(-1)[element]
    place = found.place(index)
    assert place is not None
    assert chosen[place] == whole[index]

    places = [data.draw(st.integers(0, extent - 1)) for extent in found.shape[:-2]]
    lines = [data.draw(st.integers(0, extent - 1)) for extent in found.shape[-2:]]
    inner = found.within([*places, *(range(at, at + 2) for at in lines)])
    expected = chosen[tuple(places)][tuple(slice(at, at + 2) for at in lines)]
    assert inner.shape == expected.shape
    assert np.array_equal(
        whole[np.ix_(*(list(each) for each in inner.indices))].reshape(-1), expected.reshape(-1)
    )


def test_a_place_that_is_not_selected_is_none() -> None:
    found = selection("1:4,::2", (5, 7), "t")

    assert found.place((1, 2)) == (0, 1)
    assert found.place((1, 3)) is None
    assert found.place((4, 2)) is None
