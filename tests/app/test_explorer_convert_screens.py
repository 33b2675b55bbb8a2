"""How the guided conversion looks: every step on a small terminal, and some on others, in other colours, with hostile names."""

import os
from typing import Any

import pytest
from textual.pilot import Pilot

from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.convert.plan_step import PlanStep
from shardscope.app.explorer.convert.screen import Convert
from shardscope.app.explorer.decode import Decode
from shardscope.app.explorer.offer import Offer
from shardscope.app.explorer.output.steps import Step
from shardscope.app.explorer.output.stop import Stop
from shardscope.engine.convert.admitting.space import Figure
from shardscope.engine.convert.admitting.target import TargetLook
from shardscope.engine.model.blocker import Fault, Finding, blocker
from shardscope.engine.model.text import UNSAFE
from tests.app.conversion_fakes import Fakes, a_plan
from tests.app.conversions import ask, at_plan, begin, confirm, is_typing, over_explore, step_to, text, until
from tests.app.fakes import GIB
from tests.conftest import Snap, settle
from tests.hostile import HOSTILE

SMALL, USUAL, LARGE = (80, 24), (120, 40), (200, 60)
SOURCE = "run42/global_step1200"
EXISTS = TargetLook(
    blocker(Finding("stage.target_exists", {"file": "out"})),
    "folder",
    Figure(412 * GIB, "statvfs"),
    beside_source=False,
    leftovers=1,
)
NAMES = (*(raw for raw, _ in HOSTILE.values() if "/" not in raw), "layers." * 40 + "weight")


async def run(pilot: Pilot[Any], screen: Convert) -> None:
    """Start, and wait until the run stands still."""
    await confirm(pilot)
    await until(pilot, lambda: screen.step is Step.RUNNING and screen.finished == 10 and screen.progress)
    await until(pilot, lambda: "10 of 30 files finished" in text(pilot.app))


async def back_to(pilot: Pilot[Any], screen: Convert) -> None:
    await pilot.press("escape")
    await until(pilot, lambda: pilot.app.screen is screen)


async def test_every_step_on_a_small_terminal(snap: Snap) -> None:
    fakes = Fakes()
    app = over_explore()
    async with app.run_test(size=SMALL) as pilot:
        screen = await begin(pilot, SOURCE, fakes.calls())
        snap(app, "what")
        await pilot.press("o")
        await until(pilot, lambda: screen.draft.kind == "reshard" and screen.is_settled)
        await pilot.press("t")
        await until(pilot, lambda: is_typing(screen))
        await settle(pilot)
        snap(app, "what reshard")
        await pilot.press("escape")
        await until(pilot, lambda: not is_typing(screen))
        await pilot.press("o")
        await until(pilot, lambda: screen.draft.kind == "convert" and screen.is_settled)

        await step_to(pilot, screen, "n", Step.WHERE)
        await until(pilot, lambda: is_typing(screen))
        await settle(pilot)
        snap(app, "where")
        fakes.look = EXISTS
        await pilot.press(*"out")
        await until(pilot, lambda: screen.draft.out == "out" and screen.is_settled and screen.look)
        await settle(pilot)
        snap(app, "where it exists")

        fakes.look = Fakes().look
        await pilot.press("enter")
        await until(pilot, lambda: not is_typing(screen))
        await step_to(pilot, screen, "3", Step.OPTIONS)
        await settle(pilot)
        snap(app, "options")

        await step_to(pilot, screen, "4", Step.PLAN)
        await settle(pilot)
        snap(app, "plan")
        await pilot.press("enter")
        await settle(pilot)
        snap(app, "plan tensors")
        await pilot.press("enter")
        await settle(pilot)
        snap(app, "plan tensor")
        await back_to(pilot, screen)
        await pilot.press("v")
        await settle(pilot)
        snap(app, "plan renames")
        await pilot.press("escape")

        await ask(pilot)
        await settle(pilot)
        snap(app, "admission")
        await pilot.press(*"convert", "enter")
        await until(pilot, lambda: screen.step is Step.RUNNING and screen.progress)
        await until(pilot, lambda: "10 of 30 files finished" in text(app))
        snap(app, "running")
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, Stop))
        await pilot.pause()
        snap(app, "stop")
        await pilot.press("k")
        await until(pilot, lambda: screen.failure)
        await settle(pilot)
        snap(app, "stopped and kept")


async def test_every_end_on_a_small_terminal(snap: Snap) -> None:
    fakes = Fakes()
    app = over_explore()
    async with app.run_test(size=SMALL) as pilot:
        screen = await begin(pilot, SOURCE, fakes.calls())
        await at_plan(pilot, screen, "out")
        fakes.ends = Fault(
            "stage.no_space", file="model-00011-of-00030.safetensors", needed=3 * GIB, free=2 * GIB
        )
        await confirm(pilot)
        await until(pilot, lambda: screen.failure)
        await settle(pilot)
        snap(app, "failed")

        fakes.ends, fakes.succeeds = None, True
        await pilot.press("r")
        await until(pilot, lambda: screen.step is Step.PLAN and screen.is_settled and screen.query(PlanStep))
        await until(pilot, lambda: screen.query_one(PlanStep).table.has_focus)
        await confirm(pilot)
        await until(pilot, lambda: screen.outcome)
        await settle(pilot)
        snap(app, "done")


async def test_what_is_denied_and_what_is_asked_before_pickles_are_read(snap: Snap) -> None:
    app = over_explore()
    async with app.run_test(size=SMALL) as pilot:
        screen = await begin(pilot, SOURCE, Fakes(denied=True).calls())
        await at_plan(pilot, screen, "out")
        await ask(pilot)
        await settle(pilot)
        snap(app, "denied")
        await back_to(pilot, screen)
        for _ in range(4):
            await pilot.press("escape")
            await pilot.pause()
        await until(pilot, lambda: isinstance(app.screen, Explore))

        offer = Offer("DeepSpeed ZeRO", (("bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt", 2 * GIB),))
        await begin(pilot, SOURCE, Fakes().calls(), offer=offer)
        await until(pilot, lambda: isinstance(app.screen, Decode) and app.screen.is_contained)
        await settle(pilot)
        snap(app, "decode")


@pytest.mark.parametrize(
    ("size", "theme"),
    [(USUAL, "shardscope-light"), (LARGE, "ansi-dark")],
    ids=["120x40 light", "200x60 ansi"],
)
async def test_in_other_sizes_and_colours(size: tuple[int, int], theme: str, snap: Snap) -> None:
    app = over_explore()
    app.theme = theme
    async with app.run_test(size=size) as pilot:
        screen = await begin(pilot, SOURCE, Fakes().calls())
        screen.take(screen.draft)
        await step_to(pilot, screen, "3", Step.OPTIONS)
        await settle(pilot)
        snap(app, "options")
        await at_plan(pilot, screen, "out")
        await run(pilot, screen)
        snap(app, "running")
        screen.stop(keep=False)
        await until(pilot, lambda: screen.failure)


async def test_without_colour(snap: Snap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = over_explore()
    async with app.run_test(size=SMALL) as pilot:
        screen = await begin(pilot, SOURCE, Fakes(denied=True).calls())
        await at_plan(pilot, screen, "out")
        await ask(pilot)
        await settle(pilot)
        snap(app, "denied")


async def test_names_of_a_checkpoint_do_nothing(snap: Snap) -> None:
    app = over_explore()
    async with app.run_test(size=USUAL) as pilot:
        screen = await begin(pilot, "run42/\x1b[2Jstep", Fakes(a_plan(NAMES)).calls())
        await step_to(pilot, screen, "3", Step.OPTIONS)
        await settle(pilot)
        snap(app, "options")
        await at_plan(pilot, screen, "out\u202e[red]")
        await pilot.press("v")
        await settle(pilot)
        snap(app, "tensors")
        await run(pilot, screen)
        snap(app, "running")
        for strip in app.screen._compositor.render_strips():
            assert not UNSAFE.search(strip.text)
        screen.stop(keep=False)
        await until(pilot, lambda: screen.failure)
    assert os.environ["TEXTUAL_ANIMATIONS"] == "none"
