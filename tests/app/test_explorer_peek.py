"""The screen that shows numbers: every key of it, its states, and how it is come to from other screens."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.compare.screen import Compare
from shardscope.app.explorer.decode import Decode
from shardscope.app.explorer.dialogs import CopiedCommand, NotDone
from shardscope.app.explorer.engine import ENGINE
from shardscope.app.explorer.peek.calls import CALLS, Calls
from shardscope.app.explorer.peek.frame import HEAT, STATISTICS, VALUES
from shardscope.app.explorer.peek.screen import Peek
from shardscope.app.explorer.peek.subject import Subject
from shardscope.app.explorer.shardmap.screen import ShardMap
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.gathered import Gathered
from shardscope.engine.model.progress import Cancelled, OnProgress, Progress
from shardscope.engine.peeking.gathering import OnGathered
from shardscope.widgets.tensor_table import TensorPanel
from shardscope.widgets.value_grid import ValueGrid
from tests.app.peeked import EXPERTS, HOSTILE, WEIGHT, weight, write
from tests.conftest import SIZES, Snap, settle
from tests.widgets.test_value_words import a_statistics

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
SMALL, WIDE = SIZES


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "model.safetensors")
    return tmp_path


def explorer(path: str = "model.safetensors") -> Explorer:
    return Explorer(path, ENGINE, theme="shardscope-dark")


def drawn(app: App[Any]) -> str:
    """Return what is drawn, line by line."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys, and wait for what they begin. Keys that wait for a worker before them are pressed alone."""
    await pilot.press(*keys)
    await settle(pilot)


async def until(pilot: Pilot[Any], holds: Callable[[], bool]) -> None:
    """Wait for something that a thread brings about."""
    while not holds():
        await pilot.pause()


async def opened(pilot: Pilot[Any], name: str) -> Peek:
    """Choose a tensor and look at its numbers."""
    await settle(pilot)
    await press(pilot, "6")
    assert pilot.app.screen.query_one(TensorPanel).find(name)
    await press(pilot, "p")
    screen = pilot.app.screen
    assert isinstance(screen, Peek)
    return screen


async def go(pilot: Pilot[Any], text: str) -> None:
    """Type where to go."""
    await press(pilot, "g")
    pilot.app.screen.query_one(Input).value = text
    await press(pilot, "enter")


def number(screen: Peek, row: int, column: int) -> str:
    """Return a number that was read, in decimal."""
    assert screen.sight is not None
    found = screen.sight.number(row, column)
    assert found is not None
    return found[0]


def shape(screen: Peek) -> tuple[int, ...]:
    assert screen.tensor is not None
    return screen.tensor.shape


def state(screen: Peek) -> str:
    return screen.reading.state


async def test_from_the_first_numbers_to_a_loud_channel(folder: Path, snap: Snap) -> None:
    app = explorer()
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot, WEIGHT)
        assert screen.sight is not None
        assert "rows 0 to 15 of 96, columns 0 to 5 of 320" in drawn(app)
        snap(app, "values")
        await press(pilot, "E")
        assert screen.sight.index == (3, 5)
        assert "[3, 5]  NaN  0x7fc0" in drawn(app)
        await press(pilot, "v", "v", "v")
        sheet = screen.query_one(ValueGrid).sheet
        assert sheet is not None
        shown = {part[0].strip() for row in sheet.cells for part in row if part is not None}
        assert {"7fc0 N", "8000 Z", "ff80 I"} <= shown
        snap(app, "bits")
        await press(pilot, "v", "e")
        assert screen.sight.index == (17, 77)
        assert f"{float(number(screen, 17, 77)):.6g}" == "-223"
        await press(pilot, "2")
        assert "at [17, 77]" in drawn(app)
        snap(app, "statistics")
        await press(pilot, "tab")
        snap(app, "histogram")
        await press(pilot, "tab")
        snap(app, "heat")
        app.theme = "ansi-dark"
        await settle(pilot)
        snap(app, "sixteen colours")
        app.theme = "shardscope-light"
        await settle(pilot)
        snap(app, "light")
        await press(pilot, "x", "x", "e")
        assert screen.heat is not None
        assert "dimension 1, index 77" in drawn(app)
        snap(app, "channels")
        await press(pilot, "enter")
        assert (screen.view, screen.sight.index) == (VALUES, (0, 77))
        await press(pilot, "y")
        assert isinstance(app.screen, CopiedCommand)
        command = f"shardscope peek model.safetensors {WEIGHT} --slice :16,72:78 --rows 16 --columns 6"
        assert app.screen.command == command
        await press(pilot, "escape", "escape")
        assert isinstance(app.screen, Explore)


async def test_moving_about_and_slices(folder: Path, snap: Snap) -> None:
    app = explorer()
    numbers = weight()
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot, WEIGHT)
        sight = screen.sight
        assert sight is not None
        snap(app, "wide")
        await press(pilot, "pagedown", "full_stop", "right", "j")
        rows, columns = sight.lines, sight.cells
        assert sight.index == (rows + 1, columns + 1)
        assert float(number(screen, *sight.index)) == pytest.approx(numbers[sight.index], rel=0.01)
        await press(pilot, "end", "end")
        assert sight.index == (95, 319)
        await press(pilot, "home", "home")
        assert sight.index == (0, 0)
        await press(pilot, "G", "up")
        assert sight.index == (94, 0)
        await go(pilot, "5, 17")
        assert sight.index == (5, 17)
        await go(pilot, "60:64, ::40")
        assert sight.chosen.shape == (4, 8)
        assert "[60:64, ::40]" in drawn(app)
        assert screen.reading.statistics is not None
        assert (screen.reading.statistics.numbers, screen.reading.statistics.zeros) == (32, 32)
        await go(pilot, "17, 77")
        assert (sight.chosen.shape, sight.index) == ((96, 320), (17, 77))
        await go(pilot, "17")
        assert sight.folded
        await press(pilot, "g")
        app.screen.query_one(Input).value = "1,2,3"
        await press(pilot, "enter")
        assert "has 3 dimensions" in drawn(app)
        await press(pilot, "escape")
        await pilot.click("ValueGrid", offset=(40, 3))
        await settle(pilot)
        assert (sight.row, sight.column) == (2, (40 - 4) // 12)
        await pilot.click("ViewLine", offset=(20, 0))
        await settle(pilot)
        assert screen.view == STATISTICS


async def test_every_shape_and_the_names_that_bite(folder: Path, snap: Snap) -> None:
    app = explorer()
    async with app.run_test(size=SMALL) as pilot:
        await opened(pilot, HOSTILE)
        assert not set("\x1b\u202e") & set(drawn(app))
        assert "[red]" in drawn(app)
        snap(app, "hostile")
        await press(pilot, "escape")
        screen = await opened(pilot, "scalar")
        assert "[]  3.1415926535897931  0x400921fb54442d18" in drawn(app)
        await press(pilot, "2", "3", "4", "x", "x", "escape")
        await opened(pilot, "empty")
        assert "No element is selected." in drawn(app)
        await press(pilot, "down", "end", "2", "4", "escape")
        screen = await opened(pilot, "norm")
        assert "elements 0 to 79 of 1,000" in drawn(app)
        await press(pilot, "pagedown", "right")
        assert screen.sight is not None
        assert screen.sight.index == (81,)
        await press(pilot, "escape")
        screen = await opened(pilot, "conv")
        assert screen.sight is not None
        await press(pilot, "n", "n", "n", "n", "i", "n")
        assert screen.sight.index == (2, 0, 0, 0)
        assert "[2/8, 0/4, :, :]" in drawn(app)
        assert "72" in drawn(app)
        snap(app, "matrices")
        await press(pilot, "escape")
        screen = await opened(pilot, "qweight")
        await press(pilot, "b")
        assert "numbers of 4 bits, lowest first" in drawn(app)
        assert screen.reading.statistics is not None
        assert (screen.reading.statistics.min, screen.reading.statistics.max) == (0, 15)
        await press(pilot, "4")
        assert "no heat map" in drawn(app)


async def test_packed_weights_as_the_numbers_that_they_stand_for(folder: Path, snap: Snap) -> None:
    app = explorer()
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot, f"{EXPERTS}_blocks")
        assert shape(screen) == (2, 4, 2, 16)
        await press(pilot, "u")
        assert shape(screen) == (2, 4, 64)
        assert screen.reading.statistics is not None
        assert float(number(screen, 0, 0)) in {half / 2 for half in range(-24, 25)}
        assert screen.reading.statistics.max == 12
        assert "MXFP4" in drawn(app)
        snap(app, "unpacked")
        await press(pilot, "y")
        assert isinstance(app.screen, CopiedCommand)
        assert "--logical" in app.screen.command
        await press(pilot, "escape", "u")
        assert shape(screen) == (2, 4, 2, 16)
        await press(pilot, "escape")
        screen = await opened(pilot, "qweight")
        await press(pilot, "u")
        assert isinstance(app.screen, NotDone)
        await press(pilot, "escape", "pagedown", "pagedown")
        assert screen.sight is not None
        assert screen.sight.number(screen.sight.row, 0) is not None, "what is stored is read on"


class Held:
    """Calls that stop in the middle of reading everything, and go on when they are told to."""

    def __init__(self, end: Exception | None = None) -> None:
        self.end = end
        self.go_on = Event()

    def calls(self) -> Calls:
        return replace(CALLS, gather=self.gather)

    def gather(
        self,
        side: Any,
        tensor: Any,
        chosen: Any,
        wanted: Any,
        cancel: Event,
        progress: OnProgress,
        on_gathered: OnGathered,
    ) -> Gathered:
        progress(Progress("peek", 24_576, 61_440, "bytes", "weight"))
        on_gathered(Gathered(12_288, chosen.elements, a_statistics(numbers=12_288, nans=1)))
        while not self.go_on.wait(0.01):
            if cancel.is_set():
                raise Cancelled
        if self.end is not None:
            raise self.end
        return CALLS.gather(side, tensor, chosen, wanted, cancel, progress, on_gathered)


async def test_figures_arrive_are_stopped_and_fail(
    folder: Path, snap: Snap, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held()
    monkeypatch.setattr("shardscope.app.explorer.peek.opening.CALLS", held.calls())
    app = explorer()
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await press(pilot, "6")
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, Peek) and app.screen.reading.known is not None)
        screen = app.screen
        assert isinstance(screen, Peek)
        await pilot.press("2")
        await until(pilot, lambda: "12,288 of 30,720 elements, 40 %; c stops." in drawn(app))
        assert "PARTIAL" in drawn(app)
        await until(pilot, lambda: "40 %" in drawn(app).splitlines()[-2])  # the line of progress
        await pilot.press("1", "down")  # nothing waits for the figures
        await until(pilot, lambda: screen.sight is not None and screen.sight.row == 1)
        await pilot.press("2", "escape")
        await settle(pilot)
        assert isinstance(app.screen, Peek), "the first esc stops, and does not leave"
        assert state(screen) == "stopped"
        assert "stopped after 12,288 of 30,720" in drawn(app)
        snap(app, "stopped")

        held.end, held.go_on = Fault("source.changed", file="model.safetensors", change="its size"), Event()
        held.go_on.set()
        await press(pilot, "s")
        assert state(screen) == "failed"
        assert "source.changed" in drawn(app)
        held.end = None
        await press(pilot, "s")
        assert state(screen) == "done"
        assert screen.reading.statistics is not None
        assert screen.reading.statistics.numbers == 96 * 320


async def test_large_tensors_are_read_when_asked_and_files_may_change(
    folder: Path, snap: Snap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardscope.app.explorer.peek.readings.AT_ONCE", 1_000)
    app = explorer()
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot, WEIGHT)
        assert "statistics: s reads 60.0 KiB" in drawn(app)
        await press(pilot, "4")
        assert "Figures need every number: 60.0 KiB." in drawn(app)
        snap(app, "unread")
        await press(pilot, "s")
        assert state(screen) == "done"
        assert (screen.view, screen.heat is not None and screen.heat.there) == (HEAT, True)

        path = folder / "model.safetensors"
        path.write_bytes(path.read_bytes() + b"x")
        await press(pilot, "1", "pagedown", "pagedown", "pagedown")
        assert screen.blocker is not None
        assert screen.blocker.code == "source.changed"
        assert "source.changed" in drawn(app)
        assert screen.reading.statistics is not None, "what was known stays"
        await press(pilot, "2")
        assert "30,720" in drawn(app)


async def test_what_cannot_be_read_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def strange(subject: Subject, cancel: Event) -> Any:
        side, tensor = CALLS.open(subject, cancel)
        return side, structs.replace(tensor, dtype="complex128")

    monkeypatch.setattr("shardscope.app.explorer.peek.opening.CALLS", replace(CALLS, open=strange))
    app = explorer()
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot, "norm")
        assert screen.blocker is not None
        assert screen.blocker.code == "peek.unreadable"
        assert "complex128" in drawn(app)
        await press(pilot, "down", "2", "s", "v", "e", "y")
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command == "shardscope peek model.safetensors norm"
        await press(pilot, "escape", "escape")
        assert isinstance(app.screen, Explore)


async def test_what_is_opaque_offers_decoding(monkeypatch: pytest.MonkeyPatch, snap: Snap) -> None:
    monkeypatch.chdir(FIXTURES / "dcp/fsdp2_safetensors_distcp_world2")
    app = explorer("checkpoint")
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await press(pilot, "6", "p")
        screen = app.screen
        assert isinstance(screen, Peek)
        assert screen.blocker is not None
        assert screen.blocker.code == "peek.opaque"
        assert "press d to decode as data" in drawn(app)
        snap(app, "opaque")
        await press(pilot, "d")
        assert isinstance(app.screen, Decode)


async def test_the_tensor_of_a_rank_is_that_of_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES / "hf/vllm_sharded_state_tp2")
    app = explorer("checkpoint")
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await press(pilot, "6")
        panel = app.screen.query_one(TensorPanel)
        names = panel._table.names
        twice = [row for row, name in enumerate(names) if name == "lm_head.weight"]
        assert len(twice) == 2
        panel.go_to_row(twice[1])
        await press(pilot, "t")
        assert panel.is_tree
        await press(pilot, "p")
        assert "F32 [48, 32] · 6.0 KiB · rank 1" in drawn(app)
        assert panel._table[twice[1]].file in drawn(app)
        await press(pilot, "y")
        assert isinstance(app.screen, CopiedCommand)
        assert "--rank 1" in app.screen.command
        await press(pilot, "escape", "escape", "home", "p")
        assert isinstance(app.screen, Explore), "a module has no numbers of its own"


async def test_pieces_of_ranks_are_looked_at_once_decoded(
    monkeypatch: pytest.MonkeyPatch, snap: Snap
) -> None:
    monkeypatch.chdir(FIXTURES / "deepspeed/zero3-w3-fp32")
    app = explorer("checkpoint")
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await press(pilot, "6", "p")
        assert isinstance(app.screen, Decode), "no tensor is listed: the question comes first"
        await until(pilot, lambda: isinstance(app.screen, Decode) and app.screen.is_contained)
        await press(pilot, "D")
        await press(pilot, "m")
        assert isinstance(app.screen, ShardMap)
        await press(pilot, "down", "down")
        await press(pilot, "P")
        screen = app.screen
        assert isinstance(screen, Peek)
        assert screen.sight is not None
        assert any(screen.sight.index), "it begins where the cursor of the map was"
        assert "pieces in 3 files" in drawn(app)
        assert "dp " in drawn(app).splitlines()[-3]
        snap(app, "pieces")
        await press(pilot, "y")
        assert isinstance(app.screen, CopiedCommand)
        assert "--decode" in app.screen.command


async def test_numbers_of_both_sides_of_a_comparison(folder: Path) -> None:
    other = folder / "other.safetensors"
    write(other)
    data = bytearray(other.read_bytes())
    at = bytes(data).index(np.arange(1000, dtype="<f4").tobytes())
    data[at + 4 * 500 : at + 4 * 501] = np.float32(-8).tobytes()
    other.write_bytes(data)
    app = explorer()
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await press(pilot, "equals_sign")
        screen = app.screen
        assert isinstance(screen, Compare)
        screen.query_one("#other", Input).value = "other.safetensors"
        await press(pilot, "enter", "v", "P")
        peek = app.screen
        assert isinstance(peek, Peek)
        assert peek.sight is not None
        assert peek.sight.index == (500,), "at the first difference"
        assert "[500]  -8  " in drawn(app)
        await press(pilot, "escape", "p")
        assert "[500]  500  " in drawn(app)


async def test_without_colour(folder: Path, snap: Snap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = explorer()
    app.theme = "ansi-dark"
    async with app.run_test(size=SMALL) as pilot:
        await opened(pilot, WEIGHT)
        await press(pilot, "E")
        snap(app, "values")
        await press(pilot, "4")
        snap(app, "heat")
