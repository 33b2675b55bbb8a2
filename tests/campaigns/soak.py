"""Whether anything is kept of the same work done many times in one process (`soaking.py`): descriptors, threads, files, memory."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.app.terminal import environment
from tests.campaigns.bench import ROOT, Bench, expect
from tests.campaigns.common import Tried

RESIDENT = 8 << 20
"""Bytes that a process may grow by whatever it does: its allocator keeps pages, and libraries fill caches with an end."""
LONG = 50
"""Rounds from which on that can be told from an allocator that warms up."""
FIXTURES = ROOT / "tests" / "fixtures"


def soaked(what: str, rounds: int, source: Path, folder: Path) -> None:
    """Do it in a process of its own, and hold what is kept after all rounds against what was kept once it was warm."""
    ran = subprocess.run(
        [sys.executable, "-B", "-m", "tests.campaigns.soaking", what, str(rounds), str(source), str(folder)],
        cwd=ROOT,
        env=environment(HOME=str(folder), TMPDIR=str(folder), TEXTUAL_ANIMATIONS="none"),
        capture_output=True,
        text=True,
        check=False,
    )
    expect(ran.returncode == 0, ran.stderr[-2_000:])
    told = json.loads(ran.stdout)
    before, after = told["before"], told["after"]
    for name in ("descriptors", "threads", "children", "files"):
        expect(after[name] <= before[name], f"{name}: {before[name]}, after {rounds} rounds {after[name]}")
    grown = after["objects"] - before["objects"]
    expect(grown * 10 < rounds or grown < 10, f"{grown} objects more after {rounds} rounds")
    more = after["resident"] - before["resident"]
    if rounds >= LONG:
        expect(more < RESIDENT, f"{more:,} bytes more after {rounds} rounds")
    print(f"  {what}: {rounds} rounds, {grown} objects and {more:,} bytes more", flush=True)


def soak(what: str, source: Path) -> Callable[[Bench, int], Tried]:
    """Return a scenario that does it so many times."""

    def work(bench: Bench, times: int) -> Tried:
        folder = bench.folder / "soak"
        folder.mkdir(exist_ok=True)
        soaked(what, times, source, folder)
        return Tried(times, 0)

    return work


EXPLORED = FIXTURES / "hf" / "llama_sharded" / "checkpoint"
