"""The memory that converting one large tensor takes, for every family: `python tests/benchmarks/convert_memory.py [NAME...]`.

The whole command runs in a process of its own, and its VmHWM is read when it is over. The bar is the budget and 64 MiB. A tensor of
4 GiB goes under a budget of 256 MiB where it can lie in a file of holes, otherwise one of 512 MiB under 32 MiB: `--large` and
`--small` give other sizes, in MiB. `--base` is where source and output lie, one after the other.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.convert.large import FAMILIES, MIB, convert

HOLES = ("safetensors", "torch", "dcp")
BESIDE = 64 * MIB


def main() -> int:
    """Measure, print a table, and fail where a bar is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(FAMILIES))
    parser.add_argument("--large", type=int, default=4096)
    parser.add_argument("--small", type=int, default=512)
    parser.add_argument("--base", default=None)
    parser.add_argument("--dtype", default="keep")
    parser.add_argument("--digest", default="none")
    asked = parser.parse_args()
    print(f"{'family':<18}{'tensor':>9}{'budget':>9}{'peak':>8}{'bar':>8}{'recorded':>10}{'planned':>9}  MiB")
    missed = 0
    for name in asked.names:
        size, budget = (asked.large, 256) if name in HOLES else (asked.small, 32)
        with tempfile.TemporaryDirectory(prefix="shardscope-memory-", dir=asked.base) as where:
            source = FAMILIES[name](Path(where) / "source", size * MIB)
            options = ("--memory", f"{budget}MiB", "--digest", asked.digest, "--dtype", asked.dtype)
            found = convert(source, Path(where) / "out", *options)
            shutil.rmtree(source)
        bar = budget * MIB + BESIDE
        missed += found.peak > bar
        figures = [size, budget, *(n / MIB for n in (found.peak, bar, found.recorded, found.planned))]
        widths = (9, 9, 8, 8, 10, 9)
        print(
            f"{name:<18}" + "".join(f"{n:>{w},.0f}" for n, w in zip(figures, widths, strict=True)),
            found.seconds,
            flush=True,
        )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
