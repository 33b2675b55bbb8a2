"""Searching in panels, files and previews, and the tensors' search as a filter of the command line."""

import re
from fnmatch import translate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Input

from shardscope.app.explorer.checkpoint.listing import as_glob, as_order
from shardscope.app.explorer.checkpoint.search import Places, SearchBar
from shardscope.engine.previewing import Preview
from shardscope.widgets.file_tree import FileTree
from shardscope.widgets.preview_panel import PreviewPanel
from shardscope.widgets.tensor_query import matching_rows
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.fakes import tensor_table
from tests.app.test_explorer_flow import text
from tests.conftest import settle

JSON = ("{", '  "a": {', *(f'    "key{number}": {number},' for number in range(40)), '    "z": 0', "  }", "}")


def test_places_go_around_in_both_ways() -> None:
    shown: list[int] = []
    places = Places(["One", "two", "ONE more"], shown.append)

    places.search("one")
    places.step(1)
    places.step(1)
    places.step(-1)
    assert shown == [0, 2, 0, 2]
    assert places.said == "2 of 2"

    places.search("three")
    places.step(1)
    assert shown == [0, 2, 0, 2]
    assert places.said == "no match"


async def test_a_search_in_a_panel_is_gone_through_and_left() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("2", "slash", *"safetensors")
        await settle(pilot)
        bar = app.screen.query_one(SearchBar)
        assert bar.is_open
        first = re.search(r"1 of (\d+)", text(app))
        assert first is not None
        assert int(first[1]) > 2

        await pilot.press("enter", "n", "n", "N")
        await settle(pilot)
        assert f"2 of {first[1]}" in text(app)
        assert not app.screen.query_one("#search-bar Input").has_focus

        await pilot.press("escape")
        await settle(pilot)
        assert not bar.is_open
        assert app.screen.query_one("EvidencePanel").has_focus


async def test_a_search_ends_where_another_panel_begins() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("slash", *"face", "enter", "3")
        await settle(pilot)
        assert not app.screen.query_one(SearchBar).is_open


async def test_a_search_in_the_files_goes_to_the_file() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("f", "slash", *"tokenizer.json", "enter")
        await settle(pilot)
        tree = app.screen.query_one(FileTree)
        assert tree.has_focus
        assert tree.entry is not None
        assert tree.entry.path == b"tokenizer/tokenizer.json"


async def test_a_search_in_a_preview_unfolds_what_it_finds() -> None:
    app = explorer(FakeEngine(llama(), shown=Preview("config.json", "json", JSON, "")))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("f", "down", "enter")
        await settle(pilot)
        panel = app.screen.query_one(PreviewPanel)
        assert panel.row_count() < len(JSON)

        await pilot.press("slash", *"key39")
        await settle(pilot)
        assert panel.row_count() == len(JSON)
        assert '"key39": 39,' in text(app)


async def test_a_search_in_the_tensors_is_a_filter_and_esc_clears_it() -> None:
    app = explorer(FakeEngine(llama()))
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("6", "slash", *"q_proj")
        await settle(pilot)
        assert "32 of 288" in text(app)

        await pilot.press("escape")
        await settle(pilot)
        assert app.screen.query_one("#tensor-query", Input).value == ""
        assert app.screen.query_one("VirtualTable").has_focus


@pytest.mark.parametrize(
    ("query", "glob"),
    [
        ("q_proj", "*q_proj*"),
        ("Q_proj", "*[qQ]_[pP][rR][oO][jJ]*"),
        ("*.weight", "*.weight"),
        ("a[0]", "*a[[]0]*"),
        ("dtype:bf16", None),
        ("!norm", None),
        ("~qproj", "*q*p*r*o*j*"),
        ("qProj", "*[qQ]*[pP]*[rR]*[oO]*[jJ]*"),
        ("'q_proj", "*q_proj*"),
        ("'Q_proj", "*[qQ]_[pP][rR][oO][jJ]*"),
        (">1GiB", None),
        ("two words", None),
    ],
)
def test_a_search_becomes_the_filter_that_lists_the_same(query: str, glob: str | None) -> None:
    assert as_glob(query, ["l.q_proj.weight"] if "proj" in query.lower() else ["x.a[0].weight"]) == glob


@given(st.text(st.sampled_from("aA[]b.0ß"), min_size=1, max_size=6), st.text("aAbB[]0.ß", max_size=12))
def test_a_filter_finds_what_the_search_found(word: str, name: str) -> None:
    table = tensor_table([(name, "F32", (), 4, "f")])
    found = [name] if matching_rows(table, word) else []
    glob = as_glob(word, found)

    if glob is not None and word.isascii():
        assert bool(re.match(translate(glob), name)) <= bool(found)
        assert not found or re.match(translate(glob), name)


def test_an_order_has_a_word_or_none() -> None:
    assert as_order(0, descending=False) == "name"
    assert as_order(3, descending=True) == "bytes"
    assert as_order(3, descending=False) is None
    assert as_order(None, descending=False) is None
