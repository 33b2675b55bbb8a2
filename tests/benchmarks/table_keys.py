"""What a key press costs in the tensor table: a million tensors by a thousand.

Both tables stand in running apps of 120 x 40 whose drivers draw for real. A press is timed from the key event to the first
bytes of the frame that answers it; each measurement presses the same keys, which move within the screen, scroll by rows
and by pages and jump to the ends. The bars are 1.2x, and 33 ms at the 95th percentile on a quiet machine.
Searching and sorting the million are shown beside it: they run in a worker and bar nothing, so the longest time that the
event loop was not served beside them is shown, too.
"""

import asyncio
import statistics
import sys
import threading
import time
from collections.abc import Coroutine
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.pairs import measure
from tests.capture import CapturingDriver, captured
from tests.widgets.samples import tensors
from textual.app import App, ComposeResult
from textual.events import Key

from shardscope.widgets.tensor_query import matching_rows, sorted_rows
from shardscope.widgets.tensor_table import TensorPanel

BAR = 1.2
SMALL, LARGE = 1_000, 1_000_000
KEYS = (*["down"] * 50, *["pagedown"] * 6, *["up"] * 12, "pageup", "end", *["up"] * 4, "pageup", "home")


class Table(App[None]):
    """One table, and how long each press took."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.panel = TensorPanel(tensors(count, files=300))
        self.times: list[float] = []

    def compose(self) -> ComposeResult:
        yield self.panel

    def on_mount(self) -> None:
        self.panel.rows.focus()


class Waking(CapturingDriver):
    """A driver that says when it has drawn."""

    drawn: asyncio.Event

    def write(self, data: str) -> None:
        self.drawn.set()


async def press(app: Table) -> None:
    """Press all keys, each when the frame of the one before stands."""
    driver = app._driver
    assert isinstance(driver, Waking)
    for key in KEYS:
        await asyncio.sleep(0.004)  # what follows the frame, such as the scroll bar, is drawn by then
        driver.drawn.clear()
        begun = time.perf_counter()
        app.post_message(Key(key, None))
        await driver.drawn.wait()
        app.times.append(time.perf_counter() - begun)


async def stand(app: Table, ready: threading.Event, over: asyncio.Event) -> None:
    """Keep `app` running."""
    async with captured(app) as (pilot, driver):
        driver.__class__ = Waking
        assert isinstance(driver, Waking)
        driver.drawn = asyncio.Event()
        await pilot.pause()
        ready.set()
        await over.wait()


def stalls(work: Any, loop: asyncio.AbstractEventLoop) -> tuple[float, float]:
    """Run `work` in a thread of its own; return its time and the longest that the event loop had to wait."""

    async def watch() -> float:
        task = asyncio.get_running_loop().run_in_executor(None, work)
        longest, before = 0.0, time.perf_counter()
        while not task.done():
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest, before = max(longest, now - before), now
        return longest

    begun = time.perf_counter()
    longest = asyncio.run_coroutine_threadsafe(watch(), loop).result()
    return time.perf_counter() - begun, longest


def main() -> int:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, object]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result()

    small, large = Table(SMALL), Table(LARGE)
    over = asyncio.Event()
    standing = []
    for app in (small, large):
        ready = threading.Event()
        standing.append(asyncio.run_coroutine_threadsafe(stand(app, ready, over), loop))
        ready.wait(60)
    with redirect_stdout(sys.__stdout__):  # a running app keeps what is printed to itself
        ratio = measure(
            f"{len(KEYS)} key presses, {LARGE:,} tensors by {SMALL:,}",
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
        table = large.panel._table
        for name, work in (
            ("search q_proj", lambda: matching_rows(table, "q_proj")),
            ("search dtype:f32 >1KiB norm", lambda: matching_rows(table, "dtype:f32 >1KiB norm")),
            ("sort by name", lambda: sorted_rows(table, range(LARGE), "name")),
            ("sort by bytes", lambda: sorted_rows(table, range(LARGE), "bytes", descending=True)),
        ):
            took, longest = stalls(work, loop)
            print(
                f"{name} among {LARGE:,}: {took:.2f} s, the screen waited {longest * 1e3:.0f} ms at the longest"
            )
    loop.call_soon_threadsafe(over.set)
    for each in standing:
        each.result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    return int(ratio.median > BAR)


if __name__ == "__main__":
    sys.exit(main())
