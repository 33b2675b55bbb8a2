"""What every test shares: a calm environment for Textual and snapshots of its screens."""

import gc
import os

# Textual reads these two when it is first imported, so a fixture would come too late.
os.environ.pop("TEXTUAL_THEME", None)
os.environ["TEXTUAL_ANIMATIONS"] = "none"

import asyncio
import re
import signal
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation
from textual.css.stylesheet import Stylesheet

from shardscope.widgets.glyphs import choose_glyphs

if TYPE_CHECKING:
    from textual.app import App
    from textual.pilot import Pilot

# The same examples in every run, however slow the machine: `pytest --hypothesis-profile=default` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

# A shell that starts the tests in the background leaves them with SIGINT ignored, and every process that they start too.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Leave the thousands of collected tests out of every later look for garbage."""
    gc.collect()
    gc.freeze()


SCREENS = ("tests/app/test_explorer_", "tests/widgets/")
"""Tests of screens, most of them on an engine that is made up."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Where the engine alone is measured, leave out what would take twice the time and add nothing to the figure.

    These are the tests of screens, those that try a property on hundreds of examples, and those that say so (`untraced`). The
    marker `no_cover` leaves a test out only without xdist: its workers have two measurements, of which it ends one.
    """
    marks = {mark.name for mark in item.iter_markers()}
    left_out = item.nodeid.startswith(SCREENS) or not marks.isdisjoint({"hypothesis", "untraced"})
    if item.config.getoption("cov_source", None) != ["engine"] or not left_out:
        return (yield)
    traced, threads = sys.gettrace(), threading.gettrace()
    sys.settrace(None)
    threading.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(traced)
        threading.settrace(threads)


SNAPSHOTS = Path(__file__).resolve().parent.parent / "snapshots"
SIZES = ((80, 24), (120, 40))
"""The terminals that every screen is drawn on."""


@pytest.fixture(autouse=True)
def calm_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No colour switch of the person who runs the tests reaches a snapshot."""
    for name in ("NO_COLOR", "TEXTUAL_THEME", "TEXTUAL_COLOR_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    choose_glyphs("unicode")  # whatever locale the tests run in


@pytest.fixture(autouse=True, scope="session")
def sheets_are_parsed_once() -> Iterator[None]:
    """Give all apps one memory of parsed style sheets for each set of colours: parsing takes a tenth of an app's time.

    Rules are read and never changed once they are made; Textual shares them between all widgets of an app.
    """
    known: dict[tuple[tuple[str, str], ...], dict[Any, Any]] = {}
    begin, recolour = Stylesheet.__init__, Stylesheet.set_variables

    def share(sheet: Stylesheet, variables: Mapping[str, str]) -> None:
        vars(sheet)["_parse_cache"] = known.setdefault(tuple(sorted(variables.items())), {})

    def sharing(sheet: Stylesheet, *, variables: dict[str, str] | None = None) -> None:
        begin(sheet, variables=variables)
        share(sheet, variables or {})

    def recoloured(sheet: Stylesheet, variables: dict[str, str]) -> None:
        vars(sheet)["_parse_cache"] = {}  # Textual empties the one that it finds
        recolour(sheet, variables)
        share(sheet, variables)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "__init__", sharing)
        patch.setattr(Stylesheet, "set_variables", recoloured)
        yield


class SvgSnapshots(SingleFileSnapshotExtension):
    """One SVG a snapshot, in the top-level folder `snapshots/`, by test module."""

    file_extension = "svg"
    _write_mode = WriteMode.TEXT

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        return str(SNAPSHOTS / test_location.basename)


def drawn(app: "App[Any]") -> str:
    """Return the screen of a running app as SVG, without the random parts and the web font that Rich puts in."""
    svg = app.export_screenshot(title="shardscope", simplify=True)
    svg = re.sub(r"terminal-\d+-", "terminal-", svg)
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


class Snap:
    """Compares the screen of a running app with its snapshot: `snap(app)` or `await snap.run(app, size=...)`."""

    def __init__(self, snapshots: SnapshotAssertion) -> None:
        self._snapshots = snapshots.use_extension(SvgSnapshots)

    def __call__(self, app: "App[Any]", name: str | None = None) -> None:
        """Compare the screen as it stands; `name` tells several snapshots of one test apart."""
        snapshots = self._snapshots if name is None else self._snapshots(name=name)
        assert drawn(app) == snapshots

    async def both(self, pilot: "Pilot[Any]", name: str | None = None) -> None:
        """Compare the screen at every size of `SIZES`, changing the terminal under the app that runs."""
        for width, height in SIZES:
            if pilot.app.size != (width, height):
                await pilot.resize_terminal(width, height)
                await settle(pilot)
            size = f"{width}x{height}"
            self(pilot.app, size if name is None else f"{name}-{size}")

    async def run(
        self,
        app: "App[Any]",
        *keys: str,
        size: tuple[int, int] | None = SIZES[0],
        name: str | None = None,
    ) -> None:
        """Start `app` on a terminal of `size`, press `keys`, wait for its workers and compare the screen; at `SIZES` for None."""
        async with app.run_test(size=size or SIZES[0], notifications=True) as pilot:
            await settle(pilot)
            await pilot.press(*keys)
            await settle(pilot)
            if size is None:
                await self.both(pilot, name)
            else:
                self(app, name)


@pytest.fixture(autouse=True, scope="session")
def hangups_are_heard() -> Iterator[None]:
    """Let a hangup end what tests start, also where the tests themselves run under nohup, which children inherit."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


async def settle(pilot: "Pilot[Any]") -> None:
    """Wait until the app has nothing left to do: workers done, messages handled, screen drawn.

    A worker that was cancelled is over for Textual while its thread goes on until it hears of it and says so. And what
    a worker has said may begin another one.
    """
    from textual.worker import WorkerCancelled

    await pilot.pause()
    while True:
        with suppress(WorkerCancelled):
            await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        if all(worker.is_finished for worker in pilot.app.workers) and not _threads_at_work():
            break
    await pilot.pause()


def _threads_at_work() -> bool:
    """Tell whether a thread works for the present event loop."""
    pool = getattr(asyncio.get_running_loop(), "_default_executor", None)
    if pool is None:
        return False
    return not pool._work_queue.empty() or pool._idle_semaphore._value < len(pool._threads)


@pytest.fixture
def snap(snapshot: SnapshotAssertion) -> Snap:
    """Snapshots of screens, see `Snap`. Write them with `pytest --snapshot-update`."""
    return Snap(snapshot)
