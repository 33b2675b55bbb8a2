"""Guided conversions for tests, on the engine of this installation, held where a test wants."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.convert.calls import CONVERSIONS, Conversions
from shardscope.app.explorer.convert.plan_step import PlanStep
from shardscope.app.explorer.convert.screen import Convert
from shardscope.app.explorer.offer import Offer
from shardscope.app.explorer.output.admission import Admission
from shardscope.app.explorer.output.forms import Form, TypedInput
from shardscope.app.explorer.output.steps import Step
from shardscope.app.explorer.target import Target
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.converting import materializing
from tests.app.explorers import FakeEngine, explorer, llama
from tests.checkpoints import LLAMA, write_sharded

MIB = 1 << 20
PATIENCE = 0.01
"""Seconds between two looks at a condition: workers are not to wait for those who wait for them."""
STEADY = replace(CONVERSIONS, memory=lambda: 131 * MIB)
"""The engine of this installation, with a memory that is the same on every machine."""


def text(app: App[Any]) -> str:
    """Return what is drawn, line by line, and what wraps as one: spaces and line ends are a space each."""
    lines = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
    return " ".join(lines.split())


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait for something that is sure to come; pytest-timeout is the guard."""
    while not condition():
        await pilot.pause(PATIENCE)
    await pilot.pause()


def the(app: Explorer) -> Convert:
    """Return the conversion, whatever is in front of it."""
    return next(screen for screen in app.screen_stack if isinstance(screen, Convert))


def over_explore() -> Explorer:
    """Return the explorer on a checkpoint that costs nothing to look at."""
    return explorer(FakeEngine(llama()))


async def begin(
    pilot: Pilot[Any],
    source: Path | str,
    calls: Conversions = STEADY,
    *,
    offer: Offer | None = None,
    engine: FakeEngine | None = None,
) -> Convert:
    """Open a conversion of `source` in front of whatever is shown, and wait for its first plan."""
    app = pilot.app
    assert isinstance(app, Explorer)
    await until(pilot, lambda: app.screen.is_mounted)
    screen = Convert(Target(str(source)), offer, (engine or FakeEngine(llama())).engine(), calls)
    await app.push_screen(screen)
    if offer is None:
        await until(pilot, lambda: screen.step is Step.WHAT and screen.is_settled)
    return screen


def is_typing(screen: Convert) -> bool:
    """Tell whether what is pressed now goes into the line of a choice."""
    return any(form.is_typing and form.query_one(TypedInput).has_focus for form in screen.query(Form))


async def fill_in(pilot: Pilot[Any], screen: Convert, text: str, *, erased: int = 0) -> None:
    """Type into the line of a choice once it has the keys, and take that."""
    await until(pilot, lambda: is_typing(screen))
    await pilot.press(*["backspace"] * erased, *text, "enter")
    await until(pilot, lambda: not any(form.is_typing for form in screen.query(Form)))


async def step_to(pilot: Pilot[Any], screen: Convert, key: str, step: Step) -> None:
    """Press a key that leads to a step, and wait until that stands and is filled."""
    await pilot.press(key)
    await until(pilot, lambda: screen.step is step and screen.is_settled)
    if step is Step.PLAN:
        await until(pilot, lambda: screen.query(PlanStep) and screen.query_one(PlanStep).table.has_focus)
    else:
        await until(pilot, lambda: screen.query(Form) and screen.query_one(Form).has_focus_within)


async def go_to_plan(pilot: Pilot[Any], screen: Convert, out: Path | str) -> None:
    """Go from the first step to the plan, by the keys of a person; `out` is typed."""
    await step_to(pilot, screen, "n", Step.WHERE)
    await fill_in(pilot, screen, str(out))
    await until(pilot, lambda: screen.draft.out == str(out) and screen.is_settled and screen.look is not None)
    await step_to(pilot, screen, "n", Step.OPTIONS)
    await step_to(pilot, screen, "n", Step.PLAN)


async def at_plan(pilot: Pilot[Any], screen: Convert, out: Path | str) -> None:
    """Go to the plan at once, with a target."""
    screen.take(structs.replace(screen.draft, out=str(out)))
    await step_to(pilot, screen, "4", Step.PLAN)
    await until(pilot, lambda: screen.look is not None)


async def ask(pilot: Pilot[Any]) -> Admission:
    """Ask for the admission of the plan, and wait until it can be answered."""
    await pilot.press("n")
    await until(pilot, lambda: isinstance(pilot.app.screen, Admission))
    dialog = pilot.app.screen
    assert isinstance(dialog, Admission)
    if dialog.is_admitted:
        await until(pilot, lambda: dialog.query_one(Input).has_focus)
    return dialog


async def confirm(pilot: Pilot[Any], word: str = "convert") -> None:
    """Ask for admission and give the word, at once as a paste does."""
    (await ask(pilot)).query_one(Input).value = word
    await pilot.press("enter")


def small_files(folder: Path) -> Path:
    """Write a checkpoint of two files, whose conversion makes several small ones."""
    return write_sharded(folder, LLAMA)


class Steps:
    """Watches the steps of staging, and does something before the `turn`-th of a name."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, name: str, does: Callable[[], object], turn: int = 1
    ) -> None:
        self._name, self._does, self._turn = name, does, turn
        self._lock = threading.Lock()

        def staging(*given: Any, **named: Any) -> Staging:
            return Staging(*given, **named, at=self._at)

        monkeypatch.setattr(materializing, "Staging", staging)

    def _at(self, step: str) -> None:
        if step != self._name:
            return
        with self._lock:
            self._turn -= 1
            now = self._turn == 0
        if now:
            self._does()
