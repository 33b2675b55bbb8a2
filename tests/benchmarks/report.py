"""A report about a checkpoint of 1,000 files, against inspecting it.

`python tests/benchmarks/report.py`: 1,000 safetensors files with an index, 40 tensors each. Both are whole commands in processes
of their own: `inspect --json` and `report -o`. The bar is 1.3x, with digests and without.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.pairs import measure
from tests.checkpoints import write_sharded

FILES, TENSORS = 1_000, 40
BAR = 1.3


def run(*arguments: str) -> None:
    """Run `shardscope` to its end, its output into nothing."""
    subprocess.run([sys.executable, "-m", "shardscope", *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Measure both ways of hashing."""
    with tempfile.TemporaryDirectory() as folder:
        tensors = {
            f"model.layers.{number // 9}.part{number % 9}.weight": ("F32", (8, 8))
            for number in range(FILES * TENSORS)
        }
        checkpoint = write_sharded(Path(folder) / "checkpoint", tensors, shards=FILES)
        target = Path(folder) / "report.zip"

        def report(mode: str) -> None:
            target.unlink(missing_ok=True)
            run("report", str(checkpoint), "-o", str(target), "--digest", mode)

        for mode in ("auto", "none"):
            measure(
                f"report of {FILES:,} files, --digest {mode}, by inspect --json",
                lambda mode=mode: run("inspect", str(checkpoint), "--json", "--digest", mode),  # type: ignore[misc]
                lambda mode=mode: report(mode),  # type: ignore[misc]
                bar=BAR,
            )
        print(f"the bundle: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
