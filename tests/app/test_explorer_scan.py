"""The Scan screen: what it says and where findings are as plain functions, its states on the screen, held where a test needs it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from textual.pilot import Pilot

from shardscope.app.explorer.app import Explorer
from shardscope.app.explorer.checkpoint.examination import State
from shardscope.app.explorer.checkpoint.explore import Explore
from shardscope.app.explorer.dialogs import CopiedCommand
from shardscope.app.explorer.engine import ENGINE
from shardscope.app.explorer.help.reference import Reference
from shardscope.app.explorer.peek.screen import Peek
from shardscope.app.explorer.scan import words, workers
from shardscope.app.explorer.scan.calls import CALLS, Calls
from shardscope.app.explorer.scan.detail import FindingDetail
from shardscope.app.explorer.scan.frame import At
from shardscope.app.explorer.scan.messages import FindingsHeard, ScanEnded, Scanned
from shardscope.app.explorer.scan.screen import Scan
from shardscope.app.explorer.scan.spots import Names, spot_of
from shardscope.app.explorer.shardmap.screen import ShardMap
from shardscope.app.explorer.target import Target
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.sides import Side, side_of
from shardscope.engine.model.blocker import Blocker, Fault, Finding, blocker
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import Cancelled, Progress
from shardscope.engine.model.scan import ScanDocument
from shardscope.engine.peeking.scanning import Reading, to_read
from shardscope.widgets.scan_detail import Spot
from shardscope.widgets.tensor_table import TensorPanel
from tests.app.models import HOSTILE, broken_values
from tests.conftest import Snap, settle

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
SMALL, WIDE = (80, 24), (120, 40)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    broken_values(tmp_path / "broken.safetensors")
    return Path("broken.safetensors")


# Where findings are.


def found(code: str, **params: Any) -> Blocker:
    return blocker(Finding(code, params), params.get("tensor"))


def test_a_finding_is_where_its_element_or_its_byte_is(path: Path) -> None:
    side = side_of(path, limits=Limits())
    names = Names(side.catalogue.tensors)
    nan = found(
        "scan.not_finite", tensor="model.layers.0.broken.weight", nans=1, infinite=1, numbers=64, element=27
    )
    tensor = names.of(nan)
    assert tensor is not None
    spot = spot_of(nan, tensor, {"broken.safetensors": "tp 1"})
    assert (spot.index, spot.element, spot.rank) == ((3, 3), 27, "tp 1")
    assert spot.byte is not None
    assert np.isnan(np.frombuffer(path.read_bytes(), "<f4", 1, spot.byte)).all()

    run = found(
        "scan.zero_run", tensor="model.layers.0.half.weight", bytes=81_920, begin=81_920, size=163_840
    )
    spot = spot_of(run, names.of(run), {})
    assert (spot.element, spot.index) == (20 * 1_024, (20, 0))

    whole = found("scan.zeros", tensor="model.layers.0.zeros.weight", numbers=49)
    spot = spot_of(whole, names.of(whole), {})
    assert (spot.name, spot.element, spot.file) == ("model.layers.0.zeros.weight", None, "broken.safetensors")


def test_a_hostile_name_is_found_by_what_is_shown_of_it(path: Path) -> None:
    names = Names(side_of(path, limits=Limits()).catalogue.tensors)
    item = found("scan.zeros", tensor=HOSTILE, numbers=25)
    assert item.subject != HOSTILE
    tensor = names.of(item)
    assert tensor is not None
    assert tensor.name == HOSTILE


def test_a_finding_about_a_file_or_about_many_tensors_points_at_what_it_names(path: Path) -> None:
    names = Names(side_of(path, limits=Limits()).catalogue.tensors)
    holes = found(
        "scan.holes",
        file="a.bin",
        bytes=9,
        holes=1,
        count=1,
        tensor="model.layers.0.half.weight",
        begin=4_096,
    )
    spot = spot_of(holes, names.of(holes), {"a.bin": "dp 3"})
    assert (spot.file, spot.byte, spot.rank, spot.element) == ("a.bin", 4_096, "dp 3", None)
    several = found("scan.zeros", tensor="model.layers.{0-9}.zeros.weight", numbers=49)
    assert spot_of(several, names.of(several), {}) == Spot()


def test_an_element_of_a_sharded_tensor_is_in_the_file_of_its_rank() -> None:
    decoding = Decoding(Intent("verify", "command line"))
    side = side_of(FIXTURES / "dcp/fsdp2_flat_world2/checkpoint", limits=Limits(), decoding=decoding)
    tensor = next(each for each in side.catalogue.tensors if len({f.record.file for f in each.fragments}) > 1)
    last = 1
    for extent in tensor.shape:
        last *= extent
    ends = [
        spot_of(
            found("scan.not_finite", tensor=tensor.name, nans=1, infinite=0, numbers=9, element=element),
            tensor,
            {},
        )
        for element in (0, last - 1)
    ]
    assert len({spot.file for spot in ends}) == 2
    assert all(spot.byte is not None for spot in ends)


# What is said.


def plain(lines: words.Lines) -> str:
    return "\n".join("".join(part if isinstance(part, str) else part[0] for part in line) for line in lines)


def test_what_will_be_read_is_said_with_what_will_not_be(path: Path) -> None:
    tensors = side_of(path, limits=Limits()).catalogue.tensors
    error = found("scan.empty", count=1)
    said = plain(words.asking(Reading(tensors, 3 << 30, 2, 1, (error,) * 5), "all", key="k", decode="d"))
    assert f"This reads 3.0 GiB: every number of all components once, in {len(tensors) - 2} tensors." in said
    assert "2 tensors cannot be read" in said
    assert "1 file cannot be looked into. d asks" in said
    assert said.count(error.message) == words.SHOWN
    assert "and 3 more errors" in said
    assert said.endswith("k starts")
    nothing = plain(words.asking(Reading((), 0, 0, 0, (error,)), "model", key="k", decode=""))
    assert "This reads" not in nothing
    assert "starts" not in nothing


def test_what_was_not_read_is_never_said_to_be_sound() -> None:
    clean = ScanDocument("s", "f", "model", 3, 9, 0, 0, ())
    assert plain(words.done(clean, ())) == "Nothing stands out in what was read: 3 tensors, 9 B."
    less = ScanDocument("s", "f", "model", 3, 9, 1, 2, (), (), 4)
    said = plain(words.done(less, ()))
    assert (
        "Not looked at: 1 tensor could not be read; 2 files could not be looked into; holes of 4 files"
        in said
    )
    stopped = plain(words.partial(2, Progress("scan", 1 << 20, 1 << 30, "bytes"), None))
    assert stopped.startswith("Partial: stopped at 1.0 MiB of 1.0 GiB, 2 findings until then.")
    assert "was not found sound" in stopped
    broken = plain(words.partial(0, None, found("scan.empty", count=1)))
    assert "before anything was read" in broken
    assert "scan.empty" in broken


# What the worker posts.


def run(side: Side, scan: Callable[..., Any], cancel: threading.Event | None = None) -> list[Any]:
    posted: list[Any] = []
    calls = Calls(CALLS.side, CALLS.to_read, scan)
    workers.scan(
        calls, side, to_read(side, decoded=False), "model", cancel or threading.Event(), posted.append
    )
    return posted


def test_everything_that_was_heard_is_posted_before_the_end(path: Path) -> None:
    posted = run(side_of(path, limits=Limits()), CALLS.scan)
    heard = [item for message in posted if isinstance(message, FindingsHeard) for item in message.findings]
    assert isinstance(posted[-1], Scanned)
    assert {item.code for item in heard} >= {
        "scan.not_finite",
        "scan.zeros",
        "scan.zero_run",
        "scan.constant",
    }


def test_a_scan_that_ends_early_says_so_and_loses_nothing(path: Path) -> None:
    side = side_of(path, limits=Limits())
    item = found("scan.zeros", tensor="w", numbers=1)

    def ends_with(error: Exception) -> Callable[..., Any]:
        def scan(
            _s: object, _r: object, _c: object, _e: object, _p: object, hear: Callable[[Blocker], None]
        ) -> Any:
            for _ in range(3):
                hear(item)
            raise error

        return scan

    for error, code in ((Cancelled(), None), (Fault("scan.empty", count=1), "scan.empty")):
        posted = run(side, ends_with(error))
        assert sum(len(each.findings) for each in posted[:-1]) == 3
        assert isinstance(posted[-1], ScanEnded)
        assert (posted[-1].blocker and posted[-1].blocker.code) == code
    with pytest.raises(ZeroDivisionError):
        run(side, ends_with(ZeroDivisionError()))


# On the screen.


class Held:
    """A scan that tells what it was given and waits until it is cancelled."""

    progress = Progress("scan", 60 << 20, 200 << 20, "bytes", "model.layers.0.half.weight")

    def __init__(self, *said: Blocker) -> None:
        self._said = said
        self.cancelled = threading.Event()

    def scan(
        self,
        _side: Side,
        _reading: Reading,
        _component: str,
        cancel: threading.Event,
        progress: Callable[[Progress], None],
        hear: Callable[[Blocker], None],
    ) -> Any:
        for each in self._said:
            hear(each)
        while not cancel.wait(0.01):  # as a scan that goes on does
            progress(self.progress)
        self.cancelled.set()
        raise Cancelled


def explorer(path: str) -> Explorer:
    return Explorer(path, ENGINE, theme="shardscope-dark")


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait for something that is sure to come; pytest-timeout is the guard."""
    while not condition():
        await pilot.pause()
    await pilot.pause()


async def press(pilot: Pilot[Any], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


async def opened(pilot: Pilot[Any], calls: Calls | None = None) -> Scan:
    await until(
        pilot, lambda: isinstance(pilot.app.screen, Explore) and pilot.app.screen.state is State.READY
    )
    await press(pilot, "V")
    screen = pilot.app.screen
    assert isinstance(screen, Scan)
    if calls is not None:
        screen._calls = calls
    return screen


def at(screen: Scan) -> At:
    return screen.at


def said(screen: Scan) -> str:
    return "\n".join(strip.text for strip in screen._compositor.render_strips())


async def test_from_the_question_through_the_findings_to_the_tensor(path: Path, snap: Snap) -> None:
    app = explorer("broken.safetensors")
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot)
        assert at(screen) is At.ASKING
        assert screen.document is None
        snap(app, "asking")
        await press(pilot, "enter")
        assert at(screen) is At.DONE
        table = screen.table
        ranks = [table.rows.findings[row].severity.rank for row in table.order]
        assert ranks == sorted(ranks, reverse=True)
        assert table.item is not None
        assert table.item.code == "scan.not_finite"
        snap(app, "found")

        await press(pilot, "x")
        assert isinstance(app.screen, Reference)
        await press(pilot, "escape", "enter")
        assert isinstance(app.screen, FindingDetail)
        await press(pilot, "escape", "m")
        assert isinstance(app.screen, ShardMap)
        await press(pilot, "escape", "p")
        assert isinstance(app.screen, Peek)
        assert (app.screen.subject.name, app.screen.subject.at) == ("model.layers.0.broken.weight", (3, 3))
        await press(pilot, "escape", "y")
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command == "shardscope scan broken.safetensors"
        await press(pilot, "escape", "t")
        assert isinstance(app.screen, Explore)
        tensor = app.screen.query_one(TensorPanel).tensor
        assert tensor is not None
        assert tensor.name == "model.layers.0.broken.weight"
        await press(pilot, "V")
        assert app.screen is screen
        assert at(screen) is At.DONE
        assert table.item.code == "scan.not_finite"


async def test_findings_are_listed_by_kind_severity_words_and_order(path: Path, snap: Snap) -> None:
    app = explorer("broken.safetensors")
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        await press(pilot, "enter")
        table = screen.table
        everything = table.row_count()
        await press(pilot, "e")
        assert table.row_count() == 1
        await press(pilot, "a", "f", "f")
        assert {table.rows.findings[row].code for row in table.order} == {table.filter.kind}
        assert table.filter.kind == table.kinds[1][0]
        await press(pilot, "F", "F", "slash", *"zeros", "enter")
        assert 0 < table.row_count() < everything
        assert table.has_focus
        snap(app, "searched")
        await press(pilot, "escape")
        assert table.row_count() == everything
        assert app.screen is screen
        await press(pilot, "s", "s", "S")
        kinds = [table.rows.findings[row].code for row in table.order]
        assert kinds == sorted(kinds, reverse=True)
        hostile = next(
            row for row, item in enumerate(table.rows.findings) if item.params.get("numbers") == 25
        )
        table.move_to_row(hostile)
        await press(pilot, "enter")
        snap(app, "hostile")
        await press(pilot, "escape", "escape")
        assert isinstance(app.screen, Explore)


async def test_a_scan_goes_on_behind_other_screens_and_what_it_found_stays_when_it_is_stopped(
    path: Path, snap: Snap
) -> None:
    zeros = found("scan.zeros", tensor="model.layers.0.zeros.weight", numbers=49)
    nan = found(
        "scan.not_finite", tensor="model.layers.0.broken.weight", nans=1, infinite=0, numbers=64, element=27
    )
    new = blocker(Finding("scan.half_written", {
        "file": "broken.safetensors", "count": 2, "tensor": "model.layers.0.half.weight", "begin": 4_096,
        "bytes": 99, "unstored": 7,
    }), "broken.safetensors")  # fmt: skip
    held = Held(zeros, nan, new)
    app = explorer("broken.safetensors")
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot, Calls(CALLS.side, CALLS.to_read, held.scan))
        await pilot.press("enter")
        await until(pilot, lambda: screen.progress is not None and screen.table.row_count() == 3)
        assert [screen.table.rows.findings[row] for row in screen.table.order] == [nan, zeros, new]
        assert screen.table.item is nan  # the worst came later, to the top
        assert at(screen) is At.READING
        assert "3 findings so far" in said(screen)
        assert "60.0 MiB of 200.0 MiB" in said(screen)
        await pilot.press("down", "down", "t")
        await until(pilot, lambda: isinstance(app.screen, Explore))
        assert not held.cancelled.is_set()
        await pilot.press("V")
        await until(pilot, lambda: app.screen is screen)
        assert screen.table.item is new
        await press(pilot, "escape")
        assert held.cancelled.is_set()
        assert at(screen) is At.PARTIAL
        snap(app, "partial")
        await press(pilot, "ctrl+r")
        assert at(screen) is At.ASKING
        assert not screen.table.display


async def test_what_is_looked_at_anew_ends_the_scan_of_what_was(path: Path) -> None:
    held = Held()
    app = explorer("broken.safetensors")
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot, Calls(CALLS.side, CALLS.to_read, held.scan))
        await pilot.press("enter")
        await until(pilot, lambda: at(screen) is At.READING)
        screen.dismiss(None)
        await until(pilot, lambda: isinstance(app.screen, Explore))
        await press(pilot, "ctrl+r")
        await until(pilot, held.cancelled.is_set)
        await press(pilot, "V")
        assert isinstance(app.screen, Scan)
        assert app.screen is not screen


async def test_a_reason_not_to_read_is_said(monkeypatch: pytest.MonkeyPatch, snap: Snap) -> None:
    monkeypatch.chdir(FIXTURES)
    app = explorer("deepspeed/zero3-w3-fp32/checkpoint")
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot)
        assert at(screen) is At.REFUSED
        snap(app)
        await press(pilot, "enter")
        assert at(screen) is At.REFUSED


async def test_a_component_without_tensors_is_not_a_clean_one(path: Path) -> None:
    app = explorer("broken.safetensors")
    async with app.run_test(size=SMALL) as pilot:
        screen = await opened(pilot)
        await press(pilot, "c")
        assert (at(screen), screen.component) == (At.REFUSED, "optimizer")
        assert "scan.empty" in said(screen)
        await press(pilot, "c", "c")
        assert (at(screen), screen.component) == (At.ASKING, "all")
        await press(pilot, "y")
        assert isinstance(app.screen, CopiedCommand)
        assert app.screen.command == "shardscope scan broken.safetensors --component all"
        assert Target("broken.safetensors") == screen.target
