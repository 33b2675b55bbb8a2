"""Classification of 100,000 files against the walk that found them, for trees that ask much of it and trees that ask nothing.

The subject of the first line of a tree is classification alone, of the second the walk and the classification together. Files
are empty, so that what is measured is the work on names; each format opens what it must look into.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from shardscope.engine.formats.probe import Probe
from shardscope.engine.inspecting.classify import weigh
from shardscope.engine.model.limits import Limits
from shardscope.engine.source.source import Source

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.pairs import measure

BAR = 1.3
ENDINGS = ("bin", "safetensors", "pt", "json", "dat", "py", "txt", "pth")
TREES: dict[str, tuple[int, int, Callable[[int], str]]] = {
    "100 folders of one kind of weights": (100, 1_000, "weight_{:04}.bin".format),
    "100 folders of eight kinds of files": (100, 1_000, lambda n: f"file_{n:04}.{ENDINGS[n % 8]}"),
    "100 sharded saves": (100, 1_000, "model-{:05}-of-01000.safetensors".format),
    "one folder of rank files": (1, 100_000, "__{}_0.distcp".format),
    "20,000 folders that no format knows": (20_000, 5, "{}.0".format),
}


def build(root: Path, folders: int, files: int, name: Callable[[int], str]) -> None:
    """Make a tree."""
    for number in range(folders):
        folder = root / f"layer_{number:05}"
        folder.mkdir()
        for file in range(files):
            (folder / name(file)).touch()


def measured(title: str, root: str) -> None:
    """Measure one tree and print two lines."""

    def walk() -> None:
        with Source(root) as source:
            source.walk()

    def both() -> None:
        with Source(root) as source:
            weigh(Probe(source, source.walk(), Limits()))

    with Source(root) as source:
        inventory = source.walk()

        def classify() -> None:
            for kept in ("by_folder", "by_path", "files"):  # what an inventory works out once and then keeps
                vars(inventory).pop(kept, None)
            weigh(Probe(source, inventory, Limits()))

        measure(f"classify {title} by walk", walk, classify, bar=BAR)
    measure(f"walk and classify {title} by walk", walk, both)


def main() -> None:
    """Measure and print."""
    for title, (folders, files, name) in TREES.items():
        with tempfile.TemporaryDirectory() as root:
            build(Path(root), folders, files, name)
            measured(title, root)


if __name__ == "__main__":
    main()
