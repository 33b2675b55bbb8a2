"""Run by a test in an interpreter of its own: how much writing a tensor of 4 GiB adds to the memory of a process, in bytes.

`python copying_memory.py FOLDER kernel|columns|cast|deflate BUDGET_MIB WORKERS GIB`

The sources are holes, and what is written goes nowhere: the file system has no room for it.
"""

import sys
import zlib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from shardscope.engine.convert.copies.copying import copy_file
from shardscope.engine.convert.copies.work import Written, memory
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor, Record
from tests.convert.material import boxes, opened, plain, single
from tests.memory import peak_bytes

ROWS = 1 << 15


class Nowhere:
    """Counts what is written."""

    name = "nowhere"

    def __init__(self, size: int, descriptor: int) -> None:
        self.size = size
        self.written = 0
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def claim(self, offset: int, count: int) -> None:
        self.written += count

    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        self.written += len(data)

    def refusal(self, error: OSError, needed: int | None = None) -> Fault:
        raise error


def tensor_of(folder: Path, case: str, size: int) -> tuple[LogicalTensor, str]:
    width = size // ROWS
    if case == "deflate":
        made = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
        block = bytes(1 << 24)
        coded = b"".join(made.compress(block) for _ in range(size >> 24)) + made.flush()
        (folder / "a").write_bytes(coded)
        return single("w", "F32", (ROWS, width // 4), Record("a", 0, len(coded), size, "deflate")), "F32"
    ranks = 8 if case == "columns" else 1
    for rank in range(ranks):
        with (folder / f"r{rank}").open("wb") as file:
            file.truncate(size // ranks)
    each = width // 4 // ranks
    parts = [((0, each * r), (ROWS, each), plain(f"r{r}", 0, size // ranks), 0) for r in range(ranks)]
    return boxes("w", "F32", (ROWS, width // 4), parts), "BF16" if case == "cast" else "F32"


def main() -> None:
    folder, case = Path(sys.argv[1]), sys.argv[2]
    budget, workers, size = int(sys.argv[3]) << 20, int(sys.argv[4]), int(float(sys.argv[5]) * 2**30)
    tensor, dtype = tensor_of(folder, case, size)
    item = Written(tensor, dtype, 0)
    options: dict[str, Any] = {"budget_bytes": budget, "workers": workers, "digest": False}
    with opened(folder) as opener, open("/dev/null", "r+b", buffering=0) as nowhere:
        warm = Nowhere(0, nowhere.fileno())
        copy_file([], warm, b"", opener=opener, **options)
        before = peak_bytes()
        sink = Nowhere(item.size, nowhere.fileno())
        copy_file([item], sink, b"", opener=opener, **options)
    assert sink.written == item.size
    print(peak_bytes() - before, memory([item], budget, workers, digest=False, checks=False).bytes)


if __name__ == "__main__":
    main()
