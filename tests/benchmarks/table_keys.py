"""What a key press costs in the tensor table and in the module tree: a million tensors by a thousand. And what they take.

Both stand in running apps of 120 x 40 whose drivers draw for real. A press is timed from the key event to the first
bytes of the frame that answers it; each measurement presses the same keys, which move within the screen, scroll by rows
and by pages and jump to the ends. The bars are 1.2x, and 33 ms at the 95th percentile on a quiet machine. The trees have
their layers open, so that the large one has ten thousand branches and more in view.
Searching, sorting and grouping the million are shown beside it: they run in a worker and bar nothing, so the longest time
that the event loop was not served beside them is shown, too.
A fresh process shows what table, tree, a search of everything and a selection of everything take for each tensor beyond the
catalogue itself: at most 400 bytes.
"""

import asyncio
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.pairs import measure
from tests.capture import CapturingDriver, captured
from tests.widgets.samples import tensors
from textual.app import App, ComposeResult
from textual.events import Key

from shardscope.widgets.tensor_query import matching_rows, sorted_rows
from shardscope.widgets.tensor_rank import ranked_rows
from shardscope.widgets.tensor_table import TensorPanel
from shardscope.widgets.tensor_tree import ModuleTree

BAR = 1.2
BYTES_BAR = 400
"""Of a tensor, beyond the catalogue."""
SMALL, LARGE = 1_000, 1_000_000
KEYS = (*["down"] * 50, *["pagedown"] * 4, *["up"] * 12, "pageup", "end", *["up"] * 4, "pageup", "home")


class Table(App[None]):
    """One table or tree, and how long each press took."""

    def __init__(self, count: int, *, by_module: bool = False) -> None:
        super().__init__()
        self.by_module = by_module
        self.panel = TensorPanel(tensors(count, files=300))
        self.times: list[float] = []

    def compose(self) -> ComposeResult:
        yield self.panel

    def on_mount(self) -> None:
        self.panel.rows.focus()


async def open_layers(app: Table) -> None:
    """Show the tree and open every branch that a person comes to, down to the list of layers."""
    view = app.panel.tree_rows
    app.panel.action_view()
    while view.row_count() < len(app.panel._table) // 8:
        await asyncio.sleep(0.01)
        line = next((at for at in range(view.row_count()) if not view.is_open(view.source_row(at))), None)
        if line is not None:
            view.open_line(line)


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
        if app.by_module:
            await open_layers(app)
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

    over = asyncio.Event()
    standing = []

    def stood(app: Table) -> Table:
        ready = threading.Event()
        standing.append(asyncio.run_coroutine_threadsafe(stand(app, ready, over), loop))
        ready.wait(120)
        return app

    ratios = []
    for by_module, what in ((False, "table"), (True, "tree")):
        small, large = (stood(Table(count, by_module=by_module)) for count in (SMALL, LARGE))
        with redirect_stdout(sys.__stdout__):  # a running app keeps what is printed to itself
            ratio = measure(
                f"{len(KEYS)} key presses in the {what}, {LARGE:,} tensors by {SMALL:,}",
                partial(run_now, run, small),
                partial(run_now, run, large),
                9,
                BAR,
            )
            ratios.append(ratio.median)
            for app, name in ((small, f"{SMALL:,}"), (large, f"{LARGE:,}")):
                percentiles = statistics.quantiles(app.times, n=20)
                print(
                    f"a press among {name} tensors: median {statistics.median(app.times) * 1e3:.1f} ms, p95 {percentiles[-1] * 1e3:.1f} ms"
                )
    with redirect_stdout(sys.__stdout__):
        table = large.panel._table
        tree = ModuleTree(table)
        everything = range(LARGE)
        for name, work in (
            ("search q_proj", lambda: matching_rows(table, "q_proj")),
            ("rank q_proj", lambda: ranked_rows(table, everything, ["q_proj"])),
            ("search dtype:f32 >1KiB norm", lambda: matching_rows(table, "dtype:f32 >1KiB norm")),
            ("sort by name", lambda: sorted_rows(table, everything, "name")),
            ("sort by bytes", lambda: sorted_rows(table, everything, "bytes", descending=True)),
            ("group the top of the tree", lambda: tree.group(None)),
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
    taken = subprocess.run([sys.executable, __file__, "memory"], capture_output=True, text=True, check=True)
    print(taken.stdout, end="")
    return int(max(ratios) > BAR or float(taken.stdout.split()[0]) > BYTES_BAR)


def run_now(run: Callable[[Coroutine[Any, Any, object]], None], app: Table) -> None:
    """Press all keys in one app."""
    run(press(app))


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as figures:
        return int(figures.read().split()[1]) * 4096


async def memory() -> None:
    """Print what the widgets take for each of a million tensors beyond the catalogue."""
    async with Table(1_000).run_test(size=(120, 40)) as pilot:  # what is imported and drawn at any size
        await pilot.pause()
    table = tensors(LARGE, files=300)
    app = Table(0)
    app.panel = TensorPanel(table)
    before = resident()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        steps = {"table": resident()}
        await open_layers(app)
        steps["tree, all layers open"] = resident()
        app.panel.action_mark_listed()
        steps["all selected"] = resident()
        app.panel.search("q_proj")
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        steps["a search"] = resident()
    each = {name: (taken - before) / LARGE for name, taken in steps.items()}
    print(
        f"{max(each.values()):.0f} bytes a tensor beyond the catalogue: "
        + ", ".join(f"{name} {value:.0f}" for name, value in each.items())
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        asyncio.run(memory())
        sys.exit(0)
    sys.exit(main())
