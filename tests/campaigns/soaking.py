"""The same work again and again in one process, and what is kept of it: `python -m tests.campaigns.soaking WHAT ROUNDS SOURCE FOLDER`.

Prints one JSON document: what was open, alive and in memory once the work was warm, and what after all rounds. FOLDER is the working
folder, the home and the place of temporary files, so that whatever is left lies in it.
"""

import asyncio
import gc
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

WARM = 8
"""Rounds before the first look: modules, tables and caches are made in them."""
Turn = Callable[[], None]


class Kept(NamedTuple):
    """What a process holds at a moment."""

    descriptors: int
    threads: int
    """But those of the pool of asyncio, which makes its few when it happens to need them and keeps them."""
    children: int
    files: int
    """In the working folder."""
    objects: int
    """That the collector of Python follows: all of them, or those of our own classes."""
    resident: int
    """Bytes of memory."""


def kept(folder: Path, *, ours: bool = False) -> Kept:
    """Look at this process; `ours` counts objects of our own classes alone, widgets and screens among them."""
    for _ in range(3):
        gc.collect()
    with open("/proc/self/status", encoding="ascii") as status:
        lines = dict(line.rstrip("\n").split(":", 1) for line in status)
    children = sum(len((task / "children").read_text().split()) for task in Path("/proc/self/task").iterdir())
    return Kept(
        descriptors=len(os.listdir("/proc/self/fd")) - 1,  # that of the listing itself
        threads=sum(not each.name.startswith("asyncio_") for each in threading.enumerate()),
        children=children,
        files=sum(1 for _ in folder.rglob("*")),
        objects=sum(
            1 for each in gc.get_objects() if not ours or type(each).__module__.startswith("shardscope.")
        ),
        resident=int(lines["VmRSS"].split()[0]) << 10,
    )


def _empty_caches() -> None:
    """Empty what Textual keeps of up to 1,024 widgets that are gone: it grows until it is full, and is no leak."""
    if "textual._styles_cache" in sys.modules:
        from textual._styles_cache import StylesCache

        StylesCache.get_inner_outer.cache_clear()


def inspections(source: Path, folder: Path) -> tuple[Turn, int]:
    """Inspect the checkpoints below `source`, one a round: all of them as they are, then all of them with pickles decoded, and again."""
    from itertools import cycle

    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import inspect
    from shardscope.engine.model.escalation import Intent

    found = sorted(path for path in source.rglob("checkpoint") if path.is_dir())
    rounds = cycle([(path, decoded) for decoded in (False, True) for path in found])

    def turn() -> None:
        path, decoded = next(rounds)
        wish = Decoding(Intent("inspect", "command line")) if decoded else None
        inspect(path, digest="all", decoding=wish)

    return turn, 2 * len(found)


def conversions(source: Path, folder: Path) -> tuple[Turn, int]:
    """Convert `source` and remove what was made."""
    from shardscope.app.main import main

    def turn() -> None:
        code = main(
            ["convert", str(source), str(folder / "out"), "--yes", "--quiet", "--max-shard-size", "60KB"]
        )
        if code:
            raise AssertionError(f"exit {code}")
        shutil.rmtree(folder / "out")

    return turn, 3 * WARM


KEYS = (
    *(
        "2",
        "3",
        "4",
        "5",
        "6",
        "j",
        "j",
        "s",
        "slash",
        "w",
        "escape",
        "escape",
        "7",
        "f",
        "down",
        "enter",
        "escape",
        "escape",
    ),
    *(
        "question_mark",
        "escape",
        "f3",
        "escape",
        "r",
        "space",
        "space",
        "p",
        "n",
        "c",
        "enter",
        "escape",
        "escape",
        "escape",
    ),
    *("y", "escape", "1", "ctrl+r"),
)
"""A way through the screens of the explorer and back to where it began."""


def explored(source: Path, folder: Path, rounds: int) -> tuple[Kept, Kept]:
    """Go through the screens of one explorer again and again."""
    from shardscope.app.explorer.app import Explorer
    from shardscope.app.explorer.checkpoint.explore import Explore
    from shardscope.app.explorer.engine import ENGINE

    async def use() -> tuple[Kept, Kept]:
        app = Explorer(str(source), ENGINE)
        async with app.run_test(size=(100, 30)) as pilot:

            async def settled() -> None:
                for _ in range(2):
                    await pilot._wait_for_screen()
                    await app.workers.wait_for_complete()

            async def turn() -> None:
                for key in KEYS:
                    app.simulate_key(key)  # unlike `pilot.press` it does not wait for an idle processor
                    await settled()
                _empty_caches()
                if not isinstance(app.screen, Explore) or app.broken:
                    raise AssertionError(f"ended on {app.screen}")

            await settled()
            for _ in range(min(WARM, rounds)):
                await turn()
            before = kept(folder, ours=True)
            for _ in range(rounds):
                await turn()
            return before, kept(folder, ours=True)

    return asyncio.run(use())


def repeated(turn: Turn, warm: int, folder: Path, rounds: int) -> tuple[Kept, Kept]:
    """Do the same so many times after it is warm."""
    for _ in range(warm):
        turn()
    before = kept(folder)
    for _ in range(rounds):
        turn()
    return before, kept(folder)


def main(what: str, rounds: int, source: Path, folder: Path) -> None:
    """Do the work and print what is kept."""
    os.chdir(folder)
    answer = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what commands print
    if what == "explorer":
        before, after = explored(source, folder, rounds)
    else:
        make = {"inspections": inspections, "conversions": conversions}[what]
        before, after = repeated(*make(source, folder), folder, rounds)
    os.write(answer, json.dumps({"before": before._asdict(), "after": after._asdict()}).encode())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
