"""A fix in the explorer, by the keys of a person: to outputs that are held against what they must be, and how it looks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.examination import State
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.dialogs import CopiedCommand
from shardscope.app.explorer.engine import ENGINE
from shardscope.app.explorer.fix.changes_step import WholeChange
from shardscope.app.explorer.fix.forms import FixForm
from shardscope.app.explorer.fix.screen import Fix
from shardscope.app.explorer.output.steps import Step
from shardscope.app.explorer.output.stop import Stop
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.text import UNSAFE
from shardscope.widgets.told import Told
from tests.app.conversions import over_explore, text, until
from tests.app.fixes import (
    FIXTURES,
    STEADY,
    ask,
    begin,
    half,
    is_typing,
    leave,
    press,
    to_changes,
    to_target,
    type_in,
    wild,
)
from tests.conftest import Snap, settle
from tests.mending.files import read

SMALL, USUAL = (80, 24), (120, 40)
DCP = FIXTURES / "dcp/fsdp2_odd_world2/checkpoint"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are typed and drawn: short ones are the same everywhere."""
    monkeypatch.chdir(tmp_path)


def held(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def names() -> set[str]:
    return {path.name for path in Path().iterdir()}


def chosen(screen: Fix) -> tuple[str, ...]:
    """Return the operations that were chosen."""
    return screen.draft.chosen


def page(screen: Fix) -> str:
    """Return what stands beside the choices."""
    return " ".join(" ".join(screen.query_one(Told).text_lines).split())


async def at(pilot: Pilot[Any], snap: Snap, name: str) -> None:
    await settle(pilot)
    snap(pilot.app, name)


# R110
async def test_what_is_half_is_salvaged_from_the_first_key_to_the_manifest(snap: Snap) -> None:
    half(Path("half"))
    before = held(Path("half"))
    app = Explorer("half", ENGINE, theme="shardscope-dark")
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, Explore) and app.screen.state is State.READY)
        await pilot.press("3")
        await settle(pilot)
        await until(pilot, lambda: "can be mended: F" in text(app))
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, Fix) and app.screen.step is Step.WHAT)
        await until(pilot, lambda: isinstance(app.screen, Fix) and app.screen.is_settled)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Explore))

        screen = await begin(pilot, "half")
        assert chosen(screen) == ()  # what loses something is never chosen for a person
        await at(pilot, snap, "damaged")
        await press(pilot, screen, "s")
        assert chosen(screen) == ("salvage",)
        assert "salvaged" in page(screen)
        changes = await to_changes(pilot, screen)
        await at(pilot, snap, "losses")
        app.theme = "ansi-dark"
        await at(pilot, snap, "losses in sixteen colours")
        app.theme = "shardscope-dark"
        assert "1 LOST" in text(app)
        gone = next(line for line in changes.rows.lines if line.kind == "lost")
        assert gone.says == "lost  model.layers.1.self_attn.q_proj.weight"
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, WholeChange))
        await until(pilot, lambda: "bytes are there" in text(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)

        await to_target(pilot, screen, "out")
        await ask(pilot)
        await until(pilot, lambda: "LOST: 1 part" in text(app))
        assert names() == {"half"}  # nothing was made before the word
        await at(pilot, snap, "admission")
        await pilot.press(*"fix", "enter")
        await until(pilot, lambda: screen.outcome)
        await at(pilot, snap, "done")
        assert "Fixed" in text(app)
        assert "LOST 1 part" in text(app)
        assert screen.outcome is not None
        assert screen.outcome.again == "shardscope fix half out --what salvage"
        assert screen.outcome.manifest.fix is not None
        assert len(screen.outcome.manifest.fix.lost) == 1
    assert held(Path("half")) == before
    assert names() == {"half", "out"}
    written, source = read(Path("out")), read(FIXTURES / "hf/llama_sharded/checkpoint")
    assert set(source) - set(written) == {"model.layers.1.self_attn.q_proj.weight"}
    assert all((written[name] == source[name]).all() for name in written)


async def test_options_show_at_once_what_they_come_to_and_a_command_says_the_same(snap: Snap) -> None:
    wild(Path("wild"))
    app = over_explore()
    async with app.run_test(size=USUAL) as pilot:
        screen = await begin(pilot, "wild")
        assert chosen(screen) == ("index",)
        await at(pilot, snap, "wild")
        await press(pilot, screen, "m")
        await until(pilot, lambda: "metadata: say what (z)" in text(app))
        await pilot.press(*["down"] * 3)
        await settle(pilot)
        await at(pilot, snap, "metadata")
        names = [setting.label.strip() for setting in screen.query_one(FixForm).choices.settings]
        note = names.index("note") - screen.query_one(FixForm).choices.cursor
        await press(pilot, screen, *["down"] * note, "space")
        assert screen.draft.unset == ("note",)
        await type_in(pilot, screen, "z", "run=19", lambda: screen.draft.set == (("run", "19"),))

        dropped = ("lm_head.*",)
        await type_in(pilot, screen, "t", *dropped, lambda: screen.draft.drop == dropped, enter=False)
        assert "drop" in chosen(screen)  # chosen with what it takes
        assert "1 tensor lm_head.*" in page(screen)
        await pilot.press("x")
        await until(pilot, lambda: screen.draft.drop == ("lm_head.*x",) and screen.is_settled)
        assert "fits nothing lm_head.*x" in page(screen)
        assert screen.refused is not None
        assert screen.refused.code == "fix.no_match"
        await pilot.press("backspace", "enter")
        await until(
            pilot, lambda: screen.draft.drop == dropped and not is_typing(screen) and screen.is_settled
        )
        await type_in(pilot, screen, "w", "model.", lambda: screen.draft.prefixes == ("model.",))
        assert "4 names would change" in page(screen)
        await at(pilot, snap, "renames")
        for strip in app.screen._compositor.render_strips():
            assert not UNSAFE.search(strip.text)

        await to_changes(pilot, screen)
        await at(pilot, snap, "changes")
        for strip in app.screen._compositor.render_strips():
            assert not UNSAFE.search(strip.text)
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, CopiedCommand))
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command == (
            "shardscope fix wild OUT --what index --what drop --tensor 'lm_head.*' "
            "--what rename --strip-prefix model. --what metadata --unset note --set run=19"
        )


async def test_states_in_which_there_is_nothing_to_do_or_nothing_can_be_done(snap: Snap) -> None:
    asked: list[str] = []
    app = over_explore()
    async with app.run_test(size=SMALL) as pilot:
        screen = await begin(pilot, str(FIXTURES / "hf/llama_sharded/checkpoint"))
        assert "Nothing is wrong here" in page(screen)
        assert screen.hindrance == "choose one: space"
        await press(pilot, screen, "i")
        assert screen.fixed is not None
        assert screen.fixed[0].idle
        await to_changes(pilot, screen)
        assert screen.hindrance == "nothing would change: 1"
        await pilot.press("n")
        await pilot.pause()
        assert screen.step is Step.CHANGES
        await pilot.press("escape")
        await leave(pilot, screen)

        Path("two").mkdir()
        for name in ("a", "b"):
            (Path("two") / f"{name}.safetensors").write_bytes(
                (FIXTURES / "hf/llama_sharded/checkpoint/model-00001-of-00010.safetensors").read_bytes()
            )
        screen = await begin(pilot, "two")
        assert screen.refused is not None
        assert screen.refused.code == "fix.several_sets"
        await at(pilot, snap, "several")
        await pilot.press("u")
        await until(pilot, lambda: screen.query_one(FixForm).is_typing)
        await pilot.press(*"a.safetensors", "enter")
        await until(pilot, lambda: screen.seen is not None and screen.is_settled)
        assert "Nothing is wrong here" in page(screen)
        await leave(pilot, screen)

        screen = await begin(pilot, str(DCP), convert=lambda: asked.append("convert"))
        await until(pilot, lambda: "Here C converts it" in text(app))
        await pilot.press("C")
        await until(pilot, lambda: asked and isinstance(app.screen, Explore))


async def test_a_run_is_stopped_and_one_that_fails_says_why() -> None:
    half(Path("half"))
    ends: list[Any] = []

    def run(_: Any, __: Any, ___: Any, conduct: Any) -> Any:
        conduct.course.begin("target")
        if ends:
            raise ends[0]
        conduct.cancel.wait()
        raise Cancelled

    app = over_explore()
    async with app.run_test(size=SMALL) as pilot:
        screen = await begin(pilot, "half", replace(STEADY, fix=run))
        await press(pilot, screen, "s")
        await to_target(pilot, screen, "out")
        await ask(pilot)
        await pilot.press(*"fix", "enter")
        await until(pilot, lambda: screen.step is Step.RUNNING)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, Stop))
        await until(pilot, lambda: "Stop the fix?" in text(app))
        await pilot.press("c")
        await until(pilot, lambda: screen.failure)
        assert screen.failure is not None
        assert screen.failure.stopped
        ends.append(Fault("stage.target_exists", file="out"))
        await pilot.press("r")
        await until(pilot, lambda: screen.step is Step.WHERE and screen.is_settled and screen.look)
        await ask(pilot)
        await pilot.press(*"fix", "enter")
        await until(pilot, lambda: screen.step is Step.ENDED and screen.failure)
        await until(pilot, lambda: "Not fixed" in text(app))
    assert not Path("out").exists()


async def test_a_path_is_completed_in_the_line_of_the_target() -> None:
    half(Path("half"))
    app = over_explore()
    async with app.run_test(size=SMALL) as pilot:
        screen = await begin(pilot, "half")
        await press(pilot, screen, "s")
        await pilot.press("3")
        await until(pilot, lambda: screen.step is Step.WHERE and screen.query("TypedInput:focus"))
        await pilot.press(*"ha", "tab")
        await until(pilot, lambda: screen.draft.out == "half/")


async def test_without_colour_losses_are_told_by_words(snap: Snap, monkeypatch: pytest.MonkeyPatch) -> None:
    half(Path("half"))
    monkeypatch.setenv("NO_COLOR", "1")
    app = over_explore()
    async with app.run_test(size=USUAL) as pilot:
        screen = await begin(pilot, "half")
        await press(pilot, screen, "s")
        await to_changes(pilot, screen)
        await at(pilot, snap, "losses")
