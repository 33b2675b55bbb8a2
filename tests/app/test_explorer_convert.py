"""The whole guided conversion, by the keys of a person, to outputs that are compared with what they must hold."""

import errno
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from textual.pilot import Pilot

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.examination import State
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.convert.plan_step import PlanStep
from shardscope.app.explorer.convert.screen import Convert
from shardscope.app.explorer.decode import Decode
from shardscope.app.explorer.dialogs import CopiedCommand, NotDone, OwnError
from shardscope.app.explorer.engine import ENGINE
from shardscope.app.explorer.messages import Ended
from shardscope.app.explorer.offer import Offer
from shardscope.app.explorer.output.admission import Admission
from shardscope.app.explorer.output.steps import Step
from shardscope.app.explorer.output.stop import Stop
from shardscope.engine.convert.disk.names import is_staging_name
from shardscope.engine.converting.preparing import Prepared
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.manifest import RUN_NAME
from shardscope.engine.model.plan import Admission as Admitted
from shardscope.engine.model.plan import AdmissionCheck, Plan, PlanOptions, Verdict
from shardscope.engine.model.progress import Cancelled
from shardscope.widgets.told import Told
from tests.app.conversions import (
    STEADY,
    Steps,
    ask,
    at_plan,
    begin,
    confirm,
    fill_in,
    go_to_plan,
    is_typing,
    over_explore,
    small_files,
    step_to,
    text,
    the,
    until,
)
from tests.app.explorers import FakeEngine, llama
from tests.convert.test_every_fixture import written
from tests.formats.decoding import expected

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
DCP = FIXTURES / "dcp/fsdp2_odd_world2"
ZERO = FIXTURES / "deepspeed/zero2-w4-bf16"
LLAMA = FIXTURES / "hf/llama_sharded"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets are typed: a short path is typed sooner."""
    monkeypatch.chdir(tmp_path)


def at_step(screen: Convert, step: Step) -> bool:
    return screen.step is step


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def held(folder: Path) -> dict[str, bytes]:
    """Return every file of an output but the record of its run, which differs between two runs."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != RUN_NAME}


def staged(folder: Path) -> list[str]:
    return [name for name in names(folder) if is_staging_name(os.fsencode(name))]


def page(screen: Convert) -> str:
    """Return what stands beside the choices."""
    return " ".join(" ".join(screen.query_one(Told).text_lines).split())


async def ended(pilot: Pilot[Any], screen: Convert) -> None:
    await until(pilot, lambda: screen.step is Step.ENDED and (screen.outcome or screen.failure))


async def from_the_top(pilot: Pilot[Any], *, decodes: bool) -> Convert:
    """Open the conversion with its key, and decode where that is asked for."""
    app = pilot.app
    assert isinstance(app, Explorer)
    await until(pilot, lambda: isinstance(app.screen, Explore) and app.screen.state is State.READY)
    await pilot.press("C")
    if decodes:
        await until(pilot, lambda: isinstance(app.screen, Decode) and app.screen.is_contained)
        await pilot.press("D")
    await until(pilot, lambda: isinstance(app.screen, Convert) and app.screen.step is Step.WHAT)
    screen = the(app)
    await until(pilot, lambda: screen.is_settled)
    return screen


# R085 R105 R107 R110
@pytest.mark.parametrize("fixture", [DCP, ZERO], ids=["dcp", "zero"])
async def test_pickles_are_decoded_and_converted_from_the_first_key_to_the_manifest(
    fixture: Path, tmp_path: Path
) -> None:
    app = Explorer(str(fixture / "checkpoint"), ENGINE, theme="shardscope-dark")
    out = Path("out")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await from_the_top(pilot, decodes=True)
        assert screen.found is not None
        assert screen.decoded
        await go_to_plan(pilot, screen, out)
        assert not names(tmp_path)  # everything was planned, and nothing made
        await confirm(pilot)
        await ended(pilot, screen)

        said = text(app)
        assert "Converted" in said
        assert "values held" in said
        assert "shardscope verify" in said
        assert screen.outcome is not None
        assert screen.outcome.again == f"shardscope convert {fixture}/checkpoint {out} --decode"

        await pilot.press("o")  # the output is a checkpoint like any other
        await until(pilot, lambda: isinstance(app.screen, Explore) and app.screen.state is State.READY)
        assert "Hugging Face safetensors" in text(app)

    found, truth = written(out), expected(fixture)
    model = {name for name in truth if not name.startswith("optim")}
    assert found.keys() <= truth.keys()
    assert screen.plan is not None
    assert len(found) + len(screen.plan.aliases) == len(model)
    for name, (dtype, shape, data) in found.items():
        assert (shape, len(data)) == (truth[name][1], len(data))
        if dtype == truth[name][0]:
            assert data == truth[name][2], name
    assert not staged(tmp_path)


async def test_a_sharded_save_is_cast_and_cut_into_files_as_the_command_does(tmp_path: Path) -> None:
    app = Explorer(str(LLAMA / "checkpoint"), ENGINE, theme="shardscope-dark")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await from_the_top(pilot, decodes=False)
        await step_to(pilot, screen, "n", Step.WHERE)
        await fill_in(pilot, screen, "out")
        await step_to(pilot, screen, "n", Step.OPTIONS)
        await pilot.press("d")
        await until(pilot, lambda: screen.draft.options.dtype == "BF16" and screen.is_settled)
        assert "cast to BF16, round to nearest even [d]" in text(app)

        await pilot.press("s")
        await fill_in(pilot, screen, "20KB", erased=3)
        await until(pilot, lambda: screen.draft.options.max_shard_bytes == 20_000 and screen.is_settled)
        assert screen.plan is not None
        assert len(screen.plan.files) > 1
        assert screen.command.endswith("--dtype bf16 --max-shard-size 20KB")

        await step_to(pilot, screen, "n", Step.PLAN)
        await confirm(pilot)
        await ended(pilot, screen)
        again = screen.command.split()[1:]

    from shardscope.app.cli.run import run

    there = again.index("out")
    code = run([*again[:there], "told", *again[there + 1 :], "--yes", "--quiet"])
    assert code == ExitCode.OK
    assert held(tmp_path / "out") == held(tmp_path / "told")


async def test_another_topology_is_chosen_by_numbers(tmp_path: Path) -> None:
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await begin(pilot, LLAMA / "checkpoint")
        await pilot.press("o")
        await until(pilot, lambda: screen.draft.kind == "reshard" and screen.is_settled)
        await pilot.press("t")
        await fill_in(pilot, screen, "2", erased=1)
        await until(pilot, lambda: screen.draft.numbers.tp == 2 and screen.is_settled)
        assert screen.plan is not None
        assert {file.rank for file in screen.plan.files} == {0, 1}
        assert "2 ranks" in text(app)

        await go_to_plan(pilot, screen, "out")
        await confirm(pilot, "reshard")
        await ended(pilot, screen)
        assert "Resharded" in text(app)
        assert "reshard" in screen.command
        assert screen.command.endswith("--tp 2")
    assert (tmp_path / "out").is_dir()


# What stands in the way


# R108 R109
async def test_a_plan_that_is_not_admitted_cannot_be_started(tmp_path: Path) -> None:
    verdict: Verdict = "denied"

    def admit(prepared: Prepared, draft: Any) -> tuple[Plan, None]:
        check = AdmissionCheck("disk", 3 << 30, 1 << 30 if verdict == "denied" else None, verdict, "statvfs")
        return structs.replace(prepared.plan, admission=Admitted(verdict, (check,))), None

    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await begin(pilot, small_files(tmp_path / "source"), replace(STEADY, admit=admit))
        await at_plan(pilot, screen, "out")
        for verdict in ("denied", "unknown"):
            await ask(pilot)
            said = text(app)
            assert f"Admission is {verdict}: nothing starts." in said
            assert ("3.0 GiB needed, 1.0 GiB there" in said) == (verdict == "denied")
            assert "To change it: make room there" in said
            assert "Type convert" not in said

            await pilot.press(*"convert", "enter")
            await pilot.pause()
            assert isinstance(app.screen, Admission)
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is screen)
            assert screen.step is Step.PLAN
    assert names(tmp_path) == {"source"}


# R112
async def test_what_stands_at_the_target_is_not_touched_unless_that_was_chosen(tmp_path: Path) -> None:
    source, out = small_files(tmp_path / "source"), Path("out")
    out.mkdir()
    (out / "old").write_text("old")
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await begin(pilot, source)
        await step_to(pilot, screen, "n", Step.WHERE)
        await fill_in(pilot, screen, "out")
        await until(pilot, lambda: screen.look is not None and screen.draft.out == "out")
        assert "stage.target_exists" in text(app)
        assert "r has it exchanged instead" in text(app)
        await pilot.press("n")
        await pilot.pause()
        assert screen.step is Step.WHERE
        assert "cannot appear there" in text(app)

        await pilot.press("r")
        await until(pilot, lambda: screen.look is not None and screen.look.refused is None)
        assert "An output can appear there." in text(app)
        assert names(out) == {"old"}
        await step_to(pilot, screen, "n", Step.OPTIONS)
        await step_to(pilot, screen, "n", Step.PLAN)
        await confirm(pilot)
        await ended(pilot, screen)
        assert screen.outcome is not None
        assert screen.outcome.previous is not None
        assert screen.outcome.previous in text(app)
        assert "--replace" in screen.outcome.again
    assert "old" not in names(out)
    assert Path(screen.outcome.previous, "old").read_text() == "old"


async def test_a_target_that_appears_while_the_word_is_typed_ends_it(tmp_path: Path) -> None:
    source, out = small_files(tmp_path / "source"), Path("out")
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await begin(pilot, source)
        await at_plan(pilot, screen, out)
        await ask(pilot)
        out.mkdir()
        await pilot.press(*"convert", "enter")
        await ended(pilot, screen)
        said = text(app)
        assert "Not converted" in said
        assert "stage.target_exists" in said
    assert not names(out)


async def test_what_cannot_be_written_is_told_with_its_stage_and_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    Steps(monkeypatch, "file.reserve", full, turn=2)
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await begin(pilot, small_files(tmp_path / "source"))
        screen.take(
            structs.replace(
                screen.draft, options=structs.replace(screen.draft.options, max_shard_bytes=300, workers=1)
            )
        )
        await until(pilot, lambda: screen.is_settled)
        await at_plan(pilot, screen, "out")
        await confirm(pilot)
        await ended(pilot, screen)
        said = text(app)
        assert "stage.no_space" in said
        assert "It failed while copying." in said
        assert "1 of 2 files finished beside the target" in said
        assert "nothing: no output appeared" in said
        assert "nothing: what was staged was removed" in said
    assert names(tmp_path) == {"source"}


async def test_a_checkpoint_that_cannot_be_read_is_a_page_and_esc_leaves_it(tmp_path: Path) -> None:
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, Explore))
        screen = Convert(
            structs.replace(app.screen.target, path=str(tmp_path / "none")),  # type: ignore[attr-defined]
            None,
            FakeEngine(llama()).engine(),
        )
        await app.push_screen(screen)
        await until(pilot, lambda: "source.missing" in text(app))
        await pilot.press("n", "y")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Explore))


async def test_a_plan_that_cannot_be_made_says_why_and_is_never_started(tmp_path: Path) -> None:
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await begin(pilot, small_files(tmp_path / "source"))
        await step_to(pilot, screen, "3", Step.OPTIONS)
        await pilot.press("m")
        await fill_in(pilot, screen, "nonsense")
        await until(pilot, lambda: screen.is_settled and screen.refused)
        assert "convert.mapping_unknown" in text(app)
        await pilot.press("w")
        await until(pilot, lambda: is_typing(screen))
        await pilot.press("backspace", *"99")
        await until(pilot, lambda: "wanted: a number from 1 to 64" in text(app))
        assert screen.draft.options.workers == 9  # as far as it could be taken
        await pilot.press("escape")
        await until(pilot, lambda: screen.draft.options.workers == 2 and screen.is_settled)
        await step_to(pilot, screen, "4", Step.PLAN)
        await pilot.press("n")
        await pilot.pause()
        assert app.screen is screen
        assert screen.step is Step.PLAN


# Leaving


async def test_esc_goes_back_step_by_step_and_nothing_is_ever_written(tmp_path: Path) -> None:
    source = small_files(tmp_path / "source")
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await begin(pilot, source)
        await go_to_plan(pilot, screen, "out")
        await ask(pilot)
        await pilot.press(*"conver", "enter")
        await pilot.pause()
        assert isinstance(app.screen, Admission)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)

        await pilot.press("enter")  # the tensors of the first file, and back
        await until(pilot, lambda: "tensors of model.safetensors" in text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "tensors of model.safetensors" not in text(app))
        for step in (Step.PLAN, Step.OPTIONS, Step.WHERE, Step.WHAT):
            await until(pilot, partial(at_step, screen, step))
            assert names(tmp_path) == {"source"}
            await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Explore))
    assert names(tmp_path) == {"source"}


# R067
async def test_without_the_word_to_decode_nothing_is_read(tmp_path: Path) -> None:
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        await begin(pilot, DCP / "checkpoint", offer=Offer("DCP", (("a.distcp", 3),)))
        await until(pilot, lambda: isinstance(app.screen, Decode) and app.screen.is_contained)
        assert "for this conversion" in text(app)
        assert "OUT --decode" in text(app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Explore))


async def test_y_copies_the_same_command_at_every_step(tmp_path: Path) -> None:
    source = small_files(tmp_path / "source")
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await begin(pilot, source)
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, CopiedCommand))
        assert app.clipboard == f"shardscope convert {source} OUT"
        await pilot.press("escape")
        await at_plan(pilot, screen, "out")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, CopiedCommand))
        assert app.clipboard == f"shardscope convert {source} out"
        await pilot.press("escape")
        await confirm(pilot)
        await ended(pilot, screen)
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, CopiedCommand))
        assert app.clipboard == f"shardscope verify out --against {source}"


# While it runs


class Held:
    """A conversion of two files that is held before the second of them."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = tmp_path
        self.source = small_files(tmp_path / "source")
        self.out = Path("out")
        self.screen: Convert | None = None
        self.options = PlanOptions(max_shard_bytes=300, workers=1)
        self._held = monkeypatch

    def wait(self) -> None:
        assert self.screen is not None
        self.screen._cancel.wait()
        raise Cancelled  # as copying does within 100 ms: the second file is never finished

    async def start(self, pilot: Pilot[Any]) -> Convert:
        """Run up to the second file."""
        Steps(self._held, "file.create", self.wait, turn=2)
        self.screen = screen = await begin(pilot, self.source)
        screen.take(structs.replace(screen.draft, options=self.options))
        await at_plan(pilot, screen, self.out)
        await confirm(pilot)
        await until(pilot, lambda: screen.finished == 1)
        return screen


@pytest.fixture
def run_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(tmp_path, monkeypatch)


# R113
async def test_c_asks_once_and_says_what_was_and_was_not_written(run_held: Held) -> None:
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await run_held.start(pilot)
        await until(pilot, lambda: "1 of 2 files finished" in text(app))
        assert "131.0 MiB measured" in text(app)
        assert "done model-00001-of-00002.safetensors" in text(app)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, Stop))
        assert "1 of 2 files finished beside the target" in text(app)
        await pilot.press("escape")  # it went on meanwhile
        await until(pilot, lambda: app.screen is screen)
        assert screen.step is Step.RUNNING
        await pilot.press("escape")  # and esc asks, too
        await until(pilot, lambda: isinstance(app.screen, Stop))
        await pilot.press("c")
        await ended(pilot, screen)
        said = text(app)
        assert "Stopped by a key while copying." in said
        assert "1 of 2 files finished beside the target" in said
        assert "nothing: no output appeared" in said
        assert "nothing: what was staged was removed" in said
    assert names(run_held.folder) == {"source"}


# R113
async def test_what_was_kept_is_offered_and_gone_on_with_to_the_same_bytes(
    run_held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await run_held.start(pilot)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, Stop))
        await pilot.press("k")
        await ended(pilot, screen)
        assert "To go on" in text(app)
        assert screen.failure is not None
        assert screen.failure.go_on is not None
        assert screen.failure.go_on.endswith("--resume")
        assert len(staged(run_held.folder)) == 1
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Explore))

        Steps(monkeypatch, "never", lambda: None)
        screen = await begin(pilot, run_held.source)
        screen.take(structs.replace(screen.draft, options=run_held.options))
        await until(pilot, lambda: screen.is_settled)
        await step_to(pilot, screen, "n", Step.WHERE)
        await fill_in(pilot, screen, "out")
        await until(pilot, lambda: screen.is_settled and screen.earlier)
        await until(pilot, lambda: "An earlier run of this plan left 1 file" in page(screen))
        await pilot.press("u")
        await until(pilot, lambda: screen.draft.resume and screen.is_settled)
        await step_to(pilot, screen, "4", Step.PLAN)
        assert screen.command.endswith("--resume")
        await ask(pilot)
        assert "It is gone on with." in text(app)
        await pilot.press(*"convert", "enter")
        await ended(pilot, screen)
        assert "of an earlier run were verified and taken" in text(app)
    assert not staged(run_held.folder)

    from shardscope.app.cli.run import run

    words = ("--max-shard-size", "300", "--workers", "1", "--yes", "--quiet")
    assert run(["convert", str(run_held.source), "told", *words]) == ExitCode.OK
    assert held(run_held.out) == held(Path("told"))


async def test_what_was_kept_can_be_gone_on_with_at_once(
    run_held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = over_explore()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await run_held.start(pilot)
        await pilot.resize_terminal(60, 16)  # which changes nothing of the run
        await until(pilot, lambda: app.size.width == 60)
        assert screen.step is Step.RUNNING
        screen.stop(keep=True)
        await ended(pilot, screen)
        Steps(monkeypatch, "never", lambda: None)
        await pilot.press("r")
        await until(pilot, lambda: screen.step is Step.PLAN and screen.is_settled and screen.earlier)
        await until(pilot, lambda: screen.query_one(PlanStep).table.has_focus)
        assert screen.draft.resume
        await confirm(pilot)
        await ended(pilot, screen)
        assert screen.outcome is not None
        assert screen.outcome.run.resumed_bytes > 0
    assert not staged(run_held.folder)


async def test_leaving_asks_while_it_runs_and_a_second_ctrl_c_stops(run_held: Held) -> None:
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await run_held.start(pilot)
        for key in ("q", "ctrl+c"):
            await pilot.press(key)
            await until(pilot, lambda: isinstance(app.screen, Stop))
            await pilot.press("q")  # not answered by a key that leaves
            await pilot.pause()
            assert isinstance(app.screen, Stop)
            assert screen.step is Step.RUNNING
            if key == "q":
                await pilot.press("escape")
                await until(pilot, lambda: app.screen is screen)
        await pilot.press("ctrl+c")
        await ended(pilot, screen)
        assert app.is_running
        await pilot.press("q")
    assert names(run_held.folder) == {"source"}


@pytest.mark.parametrize("hung_up", [True, False], ids=["SIGHUP", "SIGTERM"])
async def test_the_end_of_the_session_keeps_what_is_promised(*, hung_up: bool, run_held: Held) -> None:
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await run_held.start(pilot)
        app.post_message(Ended(hung_up=hung_up))
        await until(pilot, lambda: screen.is_stopping)
        await until(pilot, lambda: screen.course.notes)
    assert app.return_code == int(ExitCode.CANCELLED)
    assert bool(staged(run_held.folder)) is hung_up
    assert not run_held.out.exists()


async def test_an_error_of_our_own_ends_the_run_and_is_told(tmp_path: Path) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("of our own")

    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await begin(pilot, small_files(tmp_path / "source"), replace(STEADY, convert=broken))
        await at_plan(pilot, screen, "out")
        await confirm(pilot)
        await until(pilot, lambda: isinstance(app.screen, OwnError))
        await pilot.press("escape")
        await ended(pilot, screen)
        assert "internal.error" in text(app)


async def test_a_source_that_changed_since_the_plan_ends_it(tmp_path: Path) -> None:
    source = small_files(tmp_path / "source")
    app = over_explore()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await begin(pilot, source)
        await at_plan(pilot, screen, "out")
        (source / "model-00001-of-00002.safetensors").write_bytes(b"changed")
        await confirm(pilot)
        await ended(pilot, screen)
        assert "source.changed" in text(app)
        assert "nothing: no output appeared" in text(app)
    assert names(tmp_path) == {"source"}


async def test_rules_of_renaming_come_from_a_file(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text('{"schema": "shardscope.renames/1", "rules": [{"prefix": "model.", "to": "net."}]}')
    app = over_explore()
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await begin(pilot, small_files(tmp_path / "source"))
        await step_to(pilot, screen, "3", Step.OPTIONS)
        await pilot.press("r")
        await fill_in(pilot, screen, "rules.json")
        await until(pilot, lambda: screen.draft.options.renames and screen.is_settled)
        assert "model.norm.weight ▸ net.norm.weight" in text(app)
        assert screen.command.endswith("--rename rules.json")
        await pilot.press("r")
        await fill_in(pilot, screen, "none", erased=10)
        await until(pilot, lambda: isinstance(app.screen, NotDone))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("r")
        await fill_in(pilot, screen, "", erased=10)
        await until(pilot, lambda: not screen.draft.options.renames and screen.is_settled)
