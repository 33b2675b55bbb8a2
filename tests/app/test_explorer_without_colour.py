"""What is told without colours: every state by a word or a sign, and the cursor and the keys by more than their ground."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.segment import Segment
from textual.app import App
from textual.pilot import Pilot

from shardscope.app.explorer.output.steps import Step
from shardscope.engine.inspecting.inspection import Inspection
from tests.app.conversion_fakes import Fakes
from tests.app.conversions import ask, at_plan, begin, over_explore, step_to
from tests.app.decodings import decoded, opaque
from tests.app.explorers import FakeEngine, explorer, llama
from tests.app.shardmaps import a_map, gap, padded, qkv
from tests.app.test_explorer_screens import JSON, ambiguous, broken, empty, sharded_ranks
from tests.conftest import SIZES, settle

pytestmark = pytest.mark.timeout(90)
SMALL, USUAL = SIZES
STATES = {"color(1)": "stop", "color(2)": "ok", "color(3)": "caution"}
"""What the colours of the terminal stand for in the theme that is drawn with them."""

Told = dict[str, set[str]]
"""The states that each text was drawn in."""


def segments(app: App[Any]) -> list[list[Segment]]:
    """Return what is drawn, line by line."""
    return [list(strip) for strip in app.screen._compositor.render_strips()]


def seen(app: App[Any]) -> list[list[tuple[str, bool, bool]]]:
    """Return what is left where there is no colour: each character, and whether it is reversed and underlined."""
    return [
        [
            (character, bool(part.style and part.style.reverse), bool(part.style and part.style.underline))
            for part in line
            for character in part.text
        ]
        for line in segments(app)
    ]


def listen(app: App[Any], told: Told) -> None:
    """Take down in which states texts are drawn."""
    for line in segments(app):
        for part in line:
            colour = part.style.color if part.style else None
            if colour is not None and colour.name in STATES and part.text.strip():
                told[part.text.strip()].add(STATES[colour.name])


WALKS: dict[str, tuple[Callable[[], Inspection], tuple[str, ...]]] = {
    "whole": (llama, ("5",)),
    "broken": (broken, ("3", "f")),
    "without a rank": (sharded_ranks, ("4", "5")),
    "ambiguous": (ambiguous, ("2",)),
    "empty": (empty, ()),
    "opaque": (opaque, ("d", "D", "9", "v")),
}


async def test_no_text_is_drawn_in_the_colours_of_two_states() -> None:
    """Where one word stands for two states, the colour alone would say which."""
    told: Told = defaultdict(set)
    for found, keys in WALKS.values():
        app = explorer(FakeEngine(found(), decoded=decoded()))
        app.theme = "ansi-dark"
        async with app.run_test(size=SMALL) as pilot:
            await settle(pilot)
            listen(app, told)
            for key in keys:
                await pilot.press(key)
                await settle(pilot)
                listen(app, told)

    app = over_explore()
    app.theme = "ansi-dark"
    async with app.run_test(size=SMALL) as pilot:
        for tensor in (gap(), padded()):
            await app.push_screen(a_map(tensor))
            await settle(pilot)
            listen(app, told)
            app.pop_screen()
        for denied in (False, True):
            screen = await begin(pilot, "run42", Fakes(denied=denied).calls())
            await at_plan(pilot, screen, "out")
            await ask(pilot)
            await settle(pilot)
            listen(app, told)
            app.pop_screen()
            app.pop_screen()

    assert {text for text, states in told.items() if states == {"ok"}} >= {"✓ ok", "p"}
    assert {text for text, states in told.items() if states == {"stop"}} >= {"✗ denied", "M", "✗ error"}
    assert {text for text, states in told.items() if states == {"caution"}} >= {"▲ warning", "▲1"}
    assert {text: states for text, states in told.items() if len(states) > 1} == {}


async def move(pilot: Pilot[Any], *keys: str) -> None:
    """Press each key, and wait each time until something is to be seen of it: for ever, if that is a colour."""
    for key in keys:
        before = seen(pilot.app)
        await pilot.press(key)
        while seen(pilot.app) == before:
            await pilot.pause()
        await settle(pilot)


@pytest.fixture
def no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who asks for no colour."""
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.usefixtures("no_colour")
async def test_the_cursor_and_the_keys_are_seen_in_every_panel() -> None:
    app = explorer(FakeEngine(broken(), shown=JSON))
    app.theme = "ansi-dark"
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        assert all(part.style is None or part.style.color is None or part.style.color.is_default
                   for line in segments(app) for part in line)  # fmt: skip
        for keys in (
            ("f", "down", "up", "f"),  # to the tree and back
            ("2", "3", "down", "e", "w", "a"),
            ("6", "down", "f", "f", "s", "space", "t", "down"),
            ("question_mark", "down", "escape"),
            ("f", "down", "enter", "down", "7", "down"),
        ):
            await move(pilot, *keys)


@pytest.mark.usefixtures("no_colour")
async def test_the_cursor_and_the_keys_are_seen_where_ranks_and_pickles_are() -> None:
    app = explorer(FakeEngine(sharded_ranks()))
    app.theme = "ansi-dark"
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await move(pilot, "4", "right", "up", "left")
    app = explorer(FakeEngine(opaque(), decoded=decoded()))
    app.theme = "ansi-dark"
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await move(
            pilot,
            "d",
            "tab",
            "o",
            "c",
            "D",
            "9",
            "down",
            "v",
            "down",
            "v",
            "down",
            "6",
            "down",
            "enter",
            "down",
        )


@pytest.mark.usefixtures("no_colour")
async def test_the_cursor_and_the_keys_are_seen_on_every_other_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("run-1", "run-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(bytes(3000))
    monkeypatch.chdir(tmp_path)
    app = explorer(FakeEngine(llama()), path=None)
    app.theme = "ansi-dark"
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await move(pilot, "down", "up", "slash")
        await app.push_screen(a_map(qkv()))
        await settle(pilot)
        await move(pilot, "down", "right", "n", "v", "n")
        app.pop_screen()
        screen = await begin(pilot, "run42", Fakes().calls())
        await settle(pilot)
        await move(pilot, "down")
        await step_to(pilot, screen, "3", Step.OPTIONS)
        await settle(pilot)
        await move(pilot, "down", "d", "tab")
        await step_to(pilot, screen, "4", Step.PLAN)
        await settle(pilot)
        await move(pilot, "down", "enter", "down", "v")
