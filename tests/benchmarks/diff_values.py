"""`diff --values` beside `cmp` of as many bytes: `python tests/benchmarks/diff_values.py [--fraction N] [NAME...]`.

Names: alike (two files of one layout), command (the same in a process of its own), topologies (one file beside rank files of TP 8), ranks
(rank files of TP 8 beside those of TP 4), memory. 1 GB of bf16 on /dev/shm, in a folder of its own that is removed. The bars: 0.8x the
speed of `cmp` where layouts agree, 0.4x across topologies; the budget of 64 MiB and 64 MiB for the process in memory.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.pairs import measure
from tests.benchmarks.reshard import SMALL, llama, planned

from shardscope.engine import materialize
from shardscope.engine.comparing.diff import diff
from shardscope.engine.geometry.mapping.targets import Numbers

ALIKE_BAR: Final = 1 / 0.8
ACROSS_BAR: Final = 1 / 0.4
MEMORY_BAR: Final = 128 << 20
_PEAK: Final = """
import sys
from shardscope.engine.comparing.diff import diff
same = diff(sys.argv[1], sys.argv[2], values=True).document.same
status = open("/proc/self/status").read()
print(int(same), next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")))
"""


def cmp(one: Path, other: Path) -> Callable[[], object]:
    files = [str(path / "model.safetensors") for path in (one, other)]
    return lambda: subprocess.run(["cmp", *files], check=True)


def command(one: Path, other: Path) -> Callable[[], object]:
    words = [sys.executable, "-m", "shardscope", "diff", str(one), str(other), "--values", "--json"]
    return lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def held(one: Path, other: Path) -> Callable[[], object]:
    def work() -> None:
        found = diff(one, other, values=True).document
        assert found.same
        assert found.compared_bytes > 0

    return work


def memory(one: Path, other: Path) -> bool:
    said = subprocess.run(
        [sys.executable, "-c", _PEAK, str(one), str(other)], check=True, capture_output=True, text=True
    ).stdout.split()
    used = int(said[1]) << 10
    print(
        f"memory: {used >> 20} MiB anonymous, bar {MEMORY_BAR >> 20}: {'met' if used <= MEMORY_BAR else 'MISSED'}"
    )
    return said[0] == "1" and used <= MEMORY_BAR


def main() -> int:
    """Measure what was asked for and return 1 where a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["alike", "command", "topologies", "ranks", "memory"])
    parser.add_argument("--fraction", type=int, default=1, help="of the 1 GB")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--folder", default="/dev/shm")
    asked = parser.parse_args()
    size = {**SMALL, "hidden": SMALL["hidden"], "vocabulary": SMALL["vocabulary"] // asked.fraction}
    size["ffn"] = SMALL["ffn"] // asked.fraction // 64 * 64
    folder = Path(tempfile.mkdtemp(prefix="shardscope-diff-", dir=asked.folder))
    met = []
    try:
        one = llama(folder / "one", size, filled=True)
        shutil.copytree(one, other := folder / "other")
        ranks = {}
        for degree in (8, 4) if {"topologies", "ranks"} & set(asked.names) else ():
            ranks[degree] = folder / f"tp{degree}"
            materialize(one, ranks[degree], planned(one, Numbers(tp=degree)), confirm=lambda _: True)
        print(f"{os.path.getsize(one / 'model.safetensors') / 1e9:.2f} GB")
        reference = cmp(one, other)
        cases: dict[str, tuple[Callable[[], Callable[[], object]], float]] = {
            "alike": (lambda: held(one, other), ALIKE_BAR),
            "command": (lambda: command(one, other), ALIKE_BAR),
            "topologies": (lambda: held(one, ranks[8]), ACROSS_BAR),
            "ranks": (lambda: held(ranks[8], ranks[4]), ACROSS_BAR),
        }
        for name in asked.names:
            if name == "memory":
                met.append(memory(one, other))
                continue
            work, bar = cases[name]
            met.append(measure(name, reference, work(), asked.pairs, bar).median <= bar)
    finally:
        shutil.rmtree(folder)
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
