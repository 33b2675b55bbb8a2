"""`peek --stats` and `scan` beside numpy's own sum of the same bytes: `python tests/benchmarks/peek_statistics.py [--fraction N] [NAME...]`.

Names: F32, BF16 (the bar), F32-scan, BF16-scan (without one: 16 layers, looked at for everything that a scan finds), memory. 1 GB of normal numbers in one file on /dev/shm, in a folder of its own that is removed. The
reference maps the file and adds all of it up in one pass: `sum(dtype="f8")` of 32-bit numbers; of bf16, which numpy does not know, the same
of each MiB widened to 32 bits. `F32-narrow` is the reference in 32 bits, quicker and less exact, without a bar. The bars: half of the
reference's speed, and 256 MiB for the process.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from tests.benchmarks.pairs import measure

from shardscope.engine.peeking.peek import PeekOptions, peek
from shardscope.engine.peeking.scanning import scan

BAR: Final = 2.0
LAYERS: Final = 16
"""Tensors that are scanned."""
MEMORY_BAR: Final = 256 << 20
_WIDTHS: Final = {"F32": 4, "BF16": 2}
_PEAK: Final = """
import sys
from shardscope.engine.peeking.peek import PeekOptions, peek
peek(sys.argv[1], "weight", PeekOptions(statistics=True))
status = open("/proc/self/status").read()
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))
"""


def written(folder: Path, dtype: str, size: int, layers: int) -> tuple[Path, int]:
    """Write a file of so many tensors and return it with the place of its first byte."""
    each = size // layers // _WIDTHS[dtype] // 4096 * 4096 * _WIDTHS[dtype]
    count, path = layers * each // _WIDTHS[dtype], folder / f"{dtype}.safetensors"
    kinds = {
        "weight" if layers == 1 else f"layers.{number}.weight": {
            "dtype": dtype,
            "shape": [each // _WIDTHS[dtype] // 4096, 4096],
            "data_offsets": [number * each, (number + 1) * each],
        }
        for number in range(layers)
    }
    header = json.dumps(kinds).encode()
    header += b" " * (-len(header) % 8)
    chance = np.random.default_rng(10)
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for low in range(0, count, 1 << 20):
            some = chance.standard_normal(min(1 << 20, count - low), "f4") * np.float32(0.02)
            file.write(some.tobytes() if dtype == "F32" else (some.view("u4") >> 16).astype("u2").tobytes())
    return path, 8 + len(header)


def summed(path: Path, begin: int, dtype: str, *, narrow: bool = False) -> Callable[[], object]:
    def work() -> float:
        if dtype == "F32":
            numbers = np.memmap(path, "<f4", "r", begin)
            return float(numbers.sum() if narrow else numbers.sum(dtype="f8"))
        halves = np.memmap(path, "<u2", "r", begin)
        blocks = (halves[low : low + (1 << 18)].astype("<u4") << 16 for low in range(0, len(halves), 1 << 18))
        return sum(float(block.view("<f4").sum(dtype="f8")) for block in blocks)

    return work


def looked(path: Path) -> Callable[[], object]:
    def work() -> None:
        found = peek(path, "weight", PeekOptions(statistics=True)).statistics
        assert found is not None
        assert found.numbers

    return work


def scanned(path: Path) -> Callable[[], object]:
    def work() -> None:
        found = scan(path)
        assert not found.findings
        assert found.tensors == LAYERS

    return work


def memory(path: Path) -> bool:
    said = subprocess.run(
        [sys.executable, "-c", _PEAK, str(path)], check=True, capture_output=True, text=True
    )
    used = int(said.stdout) << 10
    met = used <= MEMORY_BAR
    print(f"memory: {used >> 20} MiB at the most, bar {MEMORY_BAR >> 20}: {'met' if met else 'MISSED'}")
    return met


def main() -> int:
    """Measure what was asked for and return 1 where a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", default=["F32", "BF16", "F32-narrow", "F32-scan", "BF16-scan", "memory"]
    )
    parser.add_argument("--fraction", type=int, default=1, help="of the 1 GB")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--folder", default="/dev/shm")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="shardscope-peek-", dir=asked.folder))
    met = []
    try:
        for name in asked.names:
            dtype, _, kind = name.partition("-")
            layers = LAYERS if kind == "scan" else 1
            kept = "F32" if dtype == "memory" else dtype
            path, begin = written(folder, kept, 10**9 // asked.fraction, layers)
            if dtype == "memory":
                met.append(memory(path))
                continue
            reference = summed(path, begin, dtype, narrow=kind == "narrow")
            work = scanned(path) if kind == "scan" else looked(path)
            found = measure(name, reference, work, asked.pairs, None if kind else BAR)
            met.append(bool(kind) or found.median <= BAR)
            path.unlink()
    finally:
        shutil.rmtree(folder)
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
