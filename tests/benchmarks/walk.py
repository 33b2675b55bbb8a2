"""The stat-only walk of 100,000 files against `find` with the same facts, and the same with every file opened.

The tree has 100 folders of 1,000 empty files in a temporary folder, its statuses in the cache. `find` is a process of
its own that writes to the null device; the walk is a call in this one.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from shardscope.engine.source.source import Source

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.pairs import measure

FOLDERS, FILES = 100, 1_000
BAR = 2.5


def build(root: Path) -> None:
    """Make the tree."""
    for folder in range(FOLDERS):
        path = root / f"layer_{folder:03}"
        path.mkdir()
        for file in range(FILES):
            (path / f"weight_{file:04}.bin").touch()


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))

        def find() -> None:
            subprocess.run(
                ["find", folder, "-printf", r"%p %s %T@ %i\n"], stdout=subprocess.DEVNULL, check=True
            )

        def walk() -> None:
            with Source(folder) as source:
                if len(source.walk().files) != FOLDERS * FILES:
                    raise SystemExit("the walk did not see every file")

        def walk_and_open() -> None:
            with Source(folder) as source:
                for entry in source.walk().files:
                    with source.open(entry):
                        pass

        measure("walk of 100,000 files by find", find, walk, bar=BAR)
        measure("walk and open of 100,000 files by find", find, walk_and_open, pairs=7)


if __name__ == "__main__":
    main()
