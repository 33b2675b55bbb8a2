"""What the shard map costs: from a decoded checkpoint to a drawn map, and from a key to the frame that answers it.

A distributed checkpoint of 2,000 tensors on 64 ranks is decoded by the real engine. Then the screen of one tensor after another is
pushed in a running app of 120 x 40 whose driver draws for real, and timed until the bytes of a frame with its letters are written:
two frames, 66 ms, on a quiet machine. Keys (moves, pieces, views, zoom) are pressed on the same map in catalogues of a thousand
and of a million tensors: at most 1.2x.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Coroutine
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from msgspec.structs import replace
from tests.app.fakes import entry, inspection
from tests.app.shardmaps import MESH, qkv, tensor
from tests.benchmarks.dcp_catalogue import names
from tests.benchmarks.pairs import measure
from tests.benchmarks.table_keys import Waking
from tests.capture import captured
from tests.dcp_saves import write_save
from tests.formats.decoding import decode
from textual.app import App, ComposeResult
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Static

from shardscope.app.explorer.shardmap.screen import ShardMap
from shardscope.app.explorer.shardmap.subject import Subject
from shardscope.app.explorer.target import Asked, Target
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.catalogue import Catalogue, LogicalTensor
from shardscope.engine.model.shardmap import Contiguous
from shardscope.styles import SHEETS

BAR, DRAWN = 1.2, 0.066
SMALL, LARGE = 1_000, 1_000_000
RANKS, TENSORS = 64, 2_000
SHOWN = 40
"""Tensors that are opened one after the other."""
KEYS = (
    *["down"] * 20,
    *["right"] * 10,
    *["n"] * 6,
    "v",
    *["n"] * 4,
    "v",
    "v",
    "z",
    "z",
    *["down"] * 6,
    "Z",
    "Z",
    "end",
    "home",
)


class Looking(App[None]):
    """An app that shows one map after another."""

    CSS_PATH: ClassVar = list(SHEETS)

    def __init__(self, found: Inspection) -> None:
        super().__init__()
        self.found = found
        self.times: list[float] = []

    def map_of(self, one: LogicalTensor) -> ShardMap:
        """Return the screen of a tensor."""
        return ShardMap(Subject(Target("ckpt"), self.found, one, is_decoded=True, asked=Asked()))


class Lettering(Waking):
    """A driver that says when it has drawn a picture, too."""

    lettered: asyncio.Event

    def write(self, data: str) -> None:
        self.drawn.set()
        if "element " in data:
            self.lettered.set()


def catalogue(count: int) -> Inspection:
    """Return a checkpoint of very many tensors; the first is looked at."""
    other = tensor("other", (64, 32), Contiguous("tp", 0, (16,) * 4), MESH)
    parts = tuple(replace(each, record=replace(each.record, begin=1 << 30)) for each in other.fragments)
    other = replace(other, fragments=parts)
    found = inspection([entry("model.pt", 1)])
    found.catalogue = Catalogue((qkv(), *((other,) * (count - 1))))
    return found


async def press(app: Looking) -> None:
    """Press all keys, each when the frame of the one before stands."""
    driver = app._driver
    assert isinstance(driver, Lettering)
    for key in KEYS:
        await asyncio.sleep(0.004)
        driver.drawn.clear()
        begun = time.perf_counter()
        app.post_message(Key(key, None))
        await driver.drawn.wait()
        app.times.append(time.perf_counter() - begun)


class Bare(Screen[None]):
    """A screen of one line: what opening any screen costs here and now."""

    def compose(self) -> ComposeResult:
        yield Static("element of nothing")


async def open_maps(app: Looking) -> tuple[list[float], list[float]]:
    """Open the maps of some tensors; return how long each took until its words were written, and how long a bare screen took."""
    driver = app._driver
    assert isinstance(driver, Lettering)
    assert app.found.catalogue is not None
    tensors = app.found.catalogue.tensors
    times: tuple[list[float], list[float]] = ([], [])
    for one in tensors[:: len(tensors) // SHOWN]:
        for screen, found in zip((app.map_of(one), Bare()), times, strict=True):
            await asyncio.sleep(0.05)
            driver.lettered.clear()
            begun = time.perf_counter()
            app.call_later(app.push_screen, screen)
            await driver.lettered.wait()
            found.append(time.perf_counter() - begun)
            app.call_later(app.pop_screen)
    return times


async def stand(
    app: Looking, ready: threading.Event, over: asyncio.Event, first: LogicalTensor | None
) -> None:
    """Keep `app` running, on the map of a tensor."""
    async with captured(app) as (pilot, driver):
        driver.__class__ = Lettering
        assert isinstance(driver, Lettering)
        driver.drawn, driver.lettered = asyncio.Event(), asyncio.Event()
        if first is not None:
            app.push_screen(app.map_of(first))
        await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        ready.set()
        await over.wait()


def decoded() -> Inspection:
    """Return a checkpoint of many ranks, decoded."""
    with tempfile.TemporaryDirectory(prefix="dcp-") as where:
        folder = Path(where) / "save"
        write_save(folder, names(TENSORS), RANKS)
        tensors = decode(folder).tensors
    assert sum(len(one.fragments) for one in tensors) == RANKS * TENSORS
    found = inspection([entry("save", 1)])
    found.catalogue = Catalogue(tuple(tensors))
    return found


def main() -> int:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    over = asyncio.Event()
    small, large, many = (Looking(found) for found in (catalogue(SMALL), catalogue(LARGE), decoded()))
    standing = []
    for app, first in ((small, qkv()), (large, qkv()), (many, None)):
        ready = threading.Event()
        standing.append(asyncio.run_coroutine_threadsafe(stand(app, ready, over, first), loop))
        ready.wait(60)
    with redirect_stdout(sys.__stdout__):  # a running app keeps what is printed to itself
        run(open_maps(many))
        times, bare = run(open_maps(many))
        median, worst = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        print(
            f"from a decoded {TENSORS:,}-tensor, {RANKS}-rank save to a drawn map: median {median * 1e3:.1f} ms, "
            f"p95 {worst * 1e3:.1f} ms; a bare screen {statistics.median(bare) * 1e3:.1f} ms, load {os.getloadavg()[0]:.1f}  bar {DRAWN * 1e3:.0f}: {'met' if median <= DRAWN else 'MISSED'}"
        )
        ratio = measure(
            f"{len(KEYS)} key presses on a map among {LARGE:,} tensors by {SMALL:,}",
            lambda: run(press(small)),
            lambda: run(press(large)),
            9,
            BAR,
        )
        for app, name in ((small, f"{SMALL:,}"), (large, f"{LARGE:,}")):
            percentiles = statistics.quantiles(app.times, n=20)
            print(
                f"a press among {name} tensors: median {statistics.median(app.times) * 1e3:.1f} ms, p95 {percentiles[-1] * 1e3:.1f} ms"
            )
    loop.call_soon_threadsafe(over.set)
    for each in standing:
        each.result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    return int(ratio.median > BAR or median > DRAWN)


if __name__ == "__main__":
    sys.exit(main())
