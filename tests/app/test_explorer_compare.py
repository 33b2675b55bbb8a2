"""The Compare screen: every key of it, on checkpoints made on the spot, at 80 columns and wider."""

from collections.abc import Callable, Collection
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.examination import State
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.compare.calls import CALLS, Calls
from shardscope.app.explorer.compare.decode import DecodeSides
from shardscope.app.explorer.compare.detail import TensorDetail
from shardscope.app.explorer.compare.frame import At
from shardscope.app.explorer.compare.screen import Compare
from shardscope.app.explorer.dialogs import CopiedCommand, NotDone
from shardscope.app.explorer.engine import ENGINE
from shardscope.app.explorer.shardmap.screen import ShardMap
from shardscope.app.explorer.target import Target, diff_command
from shardscope.engine.comparing.compared import Compared
from shardscope.engine.comparing.valuing import OnDifference
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.progress import Cancelled, OnProgress, Progress
from shardscope.widgets.progress_line import ProgressLine
from tests.checkpoints import LLAMA, write_safetensors
from tests.comparing.test_differences import changed
from tests.conftest import Snap, settle

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
WIDE = (120, 40)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Checkpoints in the current folder: a step, the next one, the same once more, and one with hostile names."""
    monkeypatch.chdir(tmp_path)
    layers = {
        name.replace("layers.0", f"layers.{n}"): kind for n in range(12) for name, kind in LLAMA.items()
    }
    kinds = {**layers, "lm_head.weight": ("F32", (16, 4))}
    write_safetensors(tmp_path / "step-100.safetensors", kinds)
    write_safetensors(tmp_path / "again.safetensors", kinds)
    later = {name: kind for name, kind in kinds.items() if "layers.11." not in name}
    later |= {
        "model.layers.0.mlp.up_proj.weight": ("BF16", (8, 4)),
        "model.layers.1.mlp.up_proj.weight": ("BF16", (8, 4)),
        "model.rotary.inv_freq": ("F32", (2,)),
        "head.weight": later.pop("lm_head.weight"),
    }
    write_safetensors(tmp_path / "step-200.safetensors", later)
    changed(tmp_path / "step-200.safetensors", "model.norm.weight", 2)
    hostile = {"\x1b[31mred": ("F32", (2,)), "[bold]x[/]": ("F32", (2,)), "\u202ertl\nx": ("F32", (2,))}
    hostile["n" * 400] = ("F32", (2,))
    write_safetensors(tmp_path / "hostile.safetensors", hostile)
    return tmp_path


def explorer(path: str) -> Explorer:
    return Explorer(path, ENGINE, theme="shardscope-dark")


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys one after the other, each once the one before has done all it does."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)
        await until(pilot, lambda: not is_busy(pilot.app))


def is_busy(app: App[Any]) -> bool:
    """Tell whether a screen waits for what a worker is about to say."""
    return any(
        isinstance(screen, Compare) and screen.at in (At.LOOKING, At.READING) for screen in app.screen_stack
    )


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait for something that is sure to come; pytest-timeout is the guard."""
    while not condition():
        await pilot.pause()
    await pilot.pause()


async def opened(pilot: Pilot[Any], other: str = "", calls: Calls | None = None) -> Compare:
    """Open the screen on what is in hand, and compare it with `other`."""
    await until(
        pilot, lambda: isinstance(pilot.app.screen, Explore) and pilot.app.screen.state is State.READY
    )
    await press(pilot, "equals_sign")
    screen = pilot.app.screen
    assert isinstance(screen, Compare)
    if calls is not None:
        screen._calls = calls
    if other:
        screen.query_one("#other", Input).value = other
        await press(pilot, "enter")
    return screen


def text(app: Explorer) -> str:
    """Return what is drawn, line by line."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def test_two_steps_from_the_question_to_the_values(folder: Path, snap: Snap) -> None:
    app = explorer("step-100.safetensors")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        snap(app, "asking")
        await press(pilot, *"step-2", "tab")
        await until(pilot, lambda: screen.query_one("#other", Input).value == "step-200.safetensors")
        await press(pilot, "enter")
        assert screen.at is At.READY
        assert "Different: 2 changed, 2 missing, 1 extra, 1 renamed, as it seems" in text(app)
        snap(app, "structure")

        await press(pilot, "v")
        assert "3 changed" in text(app)
        assert "structure only" not in text(app)
        row = screen.table.rows.row_of(
            next(n for n, item in enumerate(screen.table.rows.tensors) if item.name == "model.norm.weight")
        )
        screen.table.move_to_row(row)
        await settle(pilot)
        assert "1 of 4 elements differs" in text(app)
        snap(app, "values")

        await press(pilot, "enter")
        assert isinstance(app.screen, TensorDetail)
        snap(app, "detail")
        await press(pilot, "escape", "y")
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command == "shardscope diff step-100.safetensors step-200.safetensors --values"
        assert [each.text for each in app.screen.copies[1:]] == ["model.norm.weight"]
        await press(pilot, "escape", "escape")
        assert isinstance(app.screen, Explore)


async def test_rows_open_sort_and_list_everything(folder: Path, snap: Snap) -> None:
    app = explorer("step-100.safetensors")
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot, "step-200.safetensors")
        table = screen.table
        assert [table.rows.fold(row).name for row in range(table.row_count())] == [
            "model.layers.{0-1}.mlp.up_proj.weight",
            "model.layers.11",
            "lm_head.weight",
            "model.rotary.inv_freq",
        ]
        await press(pilot, "g", "enter")
        assert table.row_count() == 6
        await press(pilot, "V")  # the values of this row alone
        compared = [item.name for item in table.rows.tensors if item.values is not None]
        assert compared == [f"model.layers.{n}.mlp.up_proj.weight" for n in range(2)]
        assert table.row_count() == 6  # what was open stays open
        await press(pilot, "down", "down", "enter")
        assert isinstance(app.screen, TensorDetail)
        await press(pilot, "v", "escape")
        assert table.rows.tensors[table.rows.members(table.row or 0)[0]].name == compared[1]
        await press(pilot, "a")
        assert "model.norm.weight" in text(app)
        snap(app, "everything")
        await press(pilot, "a", "s", "s")
        names = [table.rows.fold(row).name for row in range(table.row_count())]
        assert names == sorted(names)
        await press(pilot, "S")
        assert [table.rows.fold(row).name for row in range(table.row_count())] == names[::-1]


async def test_some_rows_are_listed_and_differences_are_jumped_to(folder: Path, snap: Snap) -> None:
    app = explorer("step-100.safetensors")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, "step-200.safetensors")
        table = screen.table

        def listed() -> list[str]:
            return [table.rows.fold(row).name for row in range(table.row_count())]

        await press(pilot, "f")
        assert listed() == ["model.layers.{0-1}.mlp.up_proj.weight"]
        assert "1 of 4 rows   ~ changed alone   esc: all" in text(app)
        await press(pilot, "F", "F")
        assert screen.filter.state == "renamed"
        assert listed() == ["lm_head.weight"]
        await press(pilot, "escape")
        assert len(listed()) == 4

        await press(pilot, "a", "slash", *"layers.1", "enter")
        assert screen.focused is table
        assert listed() == [
            "model.layers.{1,10}.self_attn.q_proj.weight",
            "model.layers.1.mlp.up_proj.weight",
            "model.layers.10.mlp.up_proj.weight",
            "model.layers.11",
        ]
        await press(pilot, "f", "f")
        snap(app, "searched")
        assert "1 of 8 rows   ~ changed alone   with layers.1   esc: all" in text(app)
        await press(pilot, "slash", *"x")
        assert "No name has this in it" in text(app)
        await press(pilot, "escape")
        assert not screen.filter.on
        assert isinstance(app.screen, Compare)

        await press(pilot, "g", "n")
        assert table.rows.fold(table.row or 0).name == "model.layers.{0-1}.mlp.up_proj.weight"
        await press(pilot, "n", "n", "n", "n")
        assert table.rows.fold(table.row or 0).name == "model.layers.{0-1}.mlp.up_proj.weight"
        await press(pilot, "N")
        assert table.rows.fold(table.row or 0).name == "model.rotary.inv_freq"
        await press(pilot, "M")
        assert isinstance(app.screen, ShardMap)
        assert "nv_freq" in text(app).splitlines()[0]
        await press(pilot, "escape", "N", "M")
        assert "▸ head.weight" in text(app)
        await press(pilot, "escape", "N", "M")
        assert isinstance(app.screen, Compare)  # B has none
        await press(pilot, "escape")
        assert isinstance(app.screen, Explore)


async def test_the_same_twice_and_another_path(folder: Path, snap: Snap) -> None:
    app = explorer("step-100.safetensors")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, "again.safetensors")
        assert "The same in structure; values were not compared: 27 the same" in text(app)
        await press(pilot, "v")
        assert "The same, every bit: 27 the same" in text(app)
        snap(app, "same")
        await press(pilot, "c")
        assert "diff.nothing" in text(app)
        await press(pilot, "c", "c", "c")
        assert "27 the same" in text(app)
        await press(pilot, "o")
        assert screen.focused is screen.query_one("#other")
        await press(pilot, "escape")
        assert screen.focused is screen.table
        await press(pilot, "o")
        screen.query_one("#other", Input).value = "nowhere"
        await press(pilot, "enter")
        assert screen.folded is None
        assert "source.missing" in text(app)
        snap(app, "refused")
        await press(pilot, "escape")
        assert isinstance(app.screen, Explore)


async def test_hostile_names_are_drawn_as_text(folder: Path, snap: Snap) -> None:
    app = explorer("hostile.safetensors")
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, "step-100.safetensors")
        drawn = text(app)
        assert not set("\x1b\u202e") & set(drawn)
        assert "[bold]x[/]" in drawn
        await press(pilot, "down", "down")
        snap(app, "hostile")


@pytest.mark.parametrize(
    ("size", "theme"),
    [(WIDE, "shardscope-light"), ((200, 60), "ansi-dark"), ((80, 24), "no colour")],
    ids=["120x40 light", "200x60 ansi", "no colour"],
)
async def test_in_other_sizes_and_colours(
    folder: Path, size: tuple[int, int], theme: str, snap: Snap, monkeypatch: pytest.MonkeyPatch
) -> None:
    if theme == "no colour":
        monkeypatch.setenv("NO_COLOR", "1")
        theme = "ansi-dark"
    app = explorer("step-100.safetensors")
    app.theme = theme
    async with app.run_test(size=size) as pilot:
        await opened(pilot, "step-200.safetensors")
        await press(pilot, "v", "a", "down")
        snap(app)


async def test_pickles_are_decoded_when_asked_and_only_then(
    monkeypatch: pytest.MonkeyPatch, snap: Snap
) -> None:
    monkeypatch.chdir(FIXTURES / "deepspeed")
    app = explorer("zero3-w2-bf16/checkpoint")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, "zero3-w3-fp32/checkpoint")
        assert "diff.opaque" in text(app)
        await press(pilot, "d")
        assert isinstance(app.screen, DecodeSides)
        assert "B: global_step3" in text(app) or "and 8 more" in text(app)
        await press(pilot, "escape")
        assert not screen.decoded
        await press(pilot, "d")
        await until(pilot, lambda: isinstance(app.screen, DecodeSides) and app.screen.is_contained)
        await press(pilot, "D")
        assert screen.decoded
        assert screen.folded is not None
        assert screen.folded.compared.document.counts.same == 32
        await press(pilot, "c")
        assert screen.component == "optimizer"
        assert screen.folded.compared.document.counts.same == 56
        await press(pilot, "v")
        drawn = text(app)
        assert "56 changed" in drawn
        assert "tp 0 pp 0 dp 0" in drawn
        snap(app, "decoded")
        await press(pilot, "y")
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command.endswith("--decode --component optimizer --values")


async def test_an_adapter_is_held_against_its_base(monkeypatch: pytest.MonkeyPatch, snap: Snap) -> None:
    monkeypatch.chdir(FIXTURES / "peft/lora_llama")
    app = explorer("checkpoint")
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, "base")
        assert "The adapter fits its base: 9 fit, 16 left alone" in text(app)
        await press(pilot, "a")
        snap(app, "adapter")


async def test_an_adapter_that_was_merged(monkeypatch: pytest.MonkeyPatch, snap: Snap) -> None:
    monkeypatch.chdir(FIXTURES / "peft/lora_llama")
    app = explorer("base")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, "merged.safetensors")
        await press(pilot, "A", *"check", "tab")
        await until(pilot, lambda: screen.query_one("#adapter", Input).value == "checkpoint/")
        await press(pilot, "enter", "v", "a", "f")
        assert "B is A with the adapter merged: 21 as they should be" in text(app)
        screen.table.move_to_row(screen.table.row_count() - 2)
        await settle(pilot)
        snap(app, "merged")
        await press(pilot, "enter", "down", "enter")
        assert isinstance(app.screen, TensorDetail)
        assert "update of rank 4, scale 2: as it should be" in text(app)
        assert "of what rounding may do" in " ".join(text(app).split())
        await press(pilot, "escape", "y")
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command == "shardscope diff base merged.safetensors --adapter checkpoint/ --values"

        await press(pilot, "escape", "o")
        screen.query_one("#other", Input).value = "base"
        await press(pilot, "enter", "a", "v")
        assert not screen.filter.on
        assert "B is not A with the adapter merged: 5 not as they should be" in " ".join(text(app).split())
        assert "unmerged" in text(app)
        await press(pilot, "A")
        screen.query_one("#adapter", Input).value = "base"
        await press(pilot, "enter")
        assert "diff.adapter_none" in text(app)
        await press(pilot, "A")
        screen.query_one("#adapter", Input).value = ""
        await press(pilot, "enter")
        assert not screen.query_one("#merged").display
        assert "The same in structure" in text(app)


class Held:
    """Values that go on until they are cancelled, or that fail."""

    def __init__(self, fault: Fault | None = None) -> None:
        self.fault = fault
        self.begun = Event()

    def calls(self) -> Calls:
        return Calls(CALLS.side, CALLS.structure, self._values)

    def _values(
        self,
        compared: Compared,
        only: Collection[int] | None,
        on_difference: OnDifference,
        cancel: Event,
        progress: OnProgress,
    ) -> Compared:
        progress(Progress("compare", 3 << 30, 10 << 30, "bytes", "model.norm.weight"))
        self.begun.set()
        if self.fault is None:
            cancel.wait()
        CALLS.values(compared, {0}, on_difference, Event(), lambda _: None)
        raise self.fault or Cancelled


async def test_it_stops_and_keeps_what_was_compared(folder: Path, snap: Snap) -> None:
    app = explorer("step-100.safetensors")
    held = Held()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, "again.safetensors", held.calls())
        await pilot.press("a", "v")
        await until(pilot, lambda: held.begun.is_set() and screen.query_one(ProgressLine).progress)
        assert is_busy(app)
        assert not screen.check_action("values", ())
        snap(app, "reading")
        await press(pilot, "escape")
        assert not is_busy(app)
        assert [item.values is not None for item in screen.table.rows.tensors[:2]] == [True, False]
        assert "but for the values of 26 tensors" in text(app)
        assert isinstance(app.screen, Compare)


async def test_a_fault_while_reading_keeps_what_was_compared_and_says_so(folder: Path) -> None:
    app = explorer("step-100.safetensors")
    held = Held(Fault("source.changed", file="again.safetensors", change="it grew"))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, "again.safetensors", held.calls())
        await press(pilot, "v")
        assert isinstance(app.screen, NotDone)
        assert "again.safetensors" in text(app)
        await press(pilot, "escape")
        assert screen.at is At.READY
        assert screen.table.rows.tensors[0].values is not None


def test_the_command_is_quoted() -> None:
    assert (
        diff_command(Target("a b"), "-x", values=False, decoded=False, component="model")
        == "shardscope diff 'a b' ./-x"
    )
