"""What writing an output file costs beside `cp` of the same bytes: `python tests/benchmarks/convert.py [NAME...] [--mb N]`.

Names: reshard, reshard-digest, columns, cast, dcp, dcp-crc, flat; `memory` tells the peak of anonymous memory of each instead.
Everything lies in a folder of its own below /dev/shm and is removed. Each process of `memory` is a fresh one.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.pairs import measure
from tests.convert.material import Item, boxes, output, plain, single

from shardscope.engine.convert.copies.copying import copy_file
from shardscope.engine.convert.copies.work import Written, records
from shardscope.engine.convert.plans.header import build
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side
from shardscope.engine.source.source import Source

LAYER = {
    "q": ((4096, 4096), 0), "k": ((1024, 4096), 0), "v": ((1024, 4096), 0), "o": ((4096, 4096), 1),
    "gate": ((11008, 4096), 0), "up": ((11008, 4096), 0), "down": ((4096, 11008), 1), "norm": ((4096,), 0),
}  # fmt: skip
"""Shapes of a decoder of 7 billion parameters, and the dimension that each is cut along."""
EMBED = (16384, 4096)


class Case(NamedTuple):
    tensors: list[LogicalTensor]
    dtype: str | None
    digest: bool
    checks: bool
    bar: float | None
    """Time by `cp`."""


def grow(path: Path, size: int) -> None:
    """Append the bytes of weights to a file: what random bits are as numbers, no model has."""
    block = (np.random.default_rng(0).standard_normal(1 << 18) * 0.02).astype("<f4").view(np.uint8)
    with path.open("ab") as file:
        while size > 0:
            file.write(block[:size].data)
            size -= min(size, len(block))


def shapes(mb: int) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Yield names, shapes and cut dimensions of so many megabytes of bf16, whole layers."""
    left = (mb << 20) - 2 * EMBED[0] * EMBED[1]
    yield "embed", EMBED, 0
    layer = 0
    while left > 0:
        for name, (shape, dim) in LAYER.items():
            yield f"layers.{layer}.{name}", shape, dim
            left -= 2 * int(np.prod(shape))
        layer += 1


def whole_tensors(folder: Path, mb: int, dtype: str, width: int) -> list[LogicalTensor]:
    """A sharded save: files of whole tensors, 500 MB each."""
    tensors, at, number = [], 128, 0
    for name, shape, _ in shapes(mb * 2 // width):
        size = width * int(np.prod(shape))
        if at > 500 << 20:
            number, at = number + 1, 128
        tensors.append(single(name, dtype, shape, plain(f"f{number}", at, size)))
        at += size
        grow(folder / f"f{number}", at - ((folder / f"f{number}").stat().st_size if at - size > 128 else 0))
    return tensors


def cut_tensors(folder: Path, mb: int, ranks: int, *, columns: bool, crc: bool) -> list[LogicalTensor]:
    """Ranks with one file each: a record for each part, cut along the dimensions of `LAYER`, or all by columns."""
    ends = dict.fromkeys(range(ranks), 0)
    files = {rank: (folder / f"r{rank}").open("wb") for rank in ranks_of(ranks)}
    block = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8)
    tensors = []
    for name, shape, cut in shapes(mb):
        dim = len(shape) - 1 if columns else cut
        parts = []
        for rank in ranks_of(ranks):
            sizes = tuple(n // ranks if k == dim else n for k, n in enumerate(shape))
            size = 2 * int(np.prod(sizes))
            found = 0
            for start in range(0, size, len(block)):
                found = zlib.crc32(block[: size - start].data, found) if crc else 0
                files[rank].write(block[: size - start].data)
            record = Record(f"r{rank}", ends[rank], size, size, crc=found if crc else None)
            parts.append(
                (tuple(sizes[k] * rank if k == dim else 0 for k in range(len(shape))), sizes, record, 0)
            )
            ends[rank] += size
        tensors.append(boxes(name, "BF16", shape, parts))
    for file in files.values():
        file.close()
    return tensors


def ranks_of(ranks: int) -> range:
    return range(ranks)


def flat_tensors(folder: Path, mb: int, ranks: int) -> list[LogicalTensor]:
    """ZeRO-3: each parameter is cut into equal stretches of the ranks' flat fp32 partitions."""
    tensors, at = [], 0
    for name, shape, _ in shapes(mb // 2):
        count = int(np.prod(shape))
        each = -(-count // ranks)
        shards, fragments = [], []
        for rank in range(ranks):
            held = max(0, min(each, count - each * rank))
            piece = Piece((held,), Side(each * rank, (1,)), Side(0, (1,)), (rank,))
            shards.append(RankShard(rank, (each,), (piece,) if held else (), each - held))
            fragments.append(Fragment(rank, (each,), plain(f"z{rank}", 0, 1 << 60), 4 * at))
        tensors.append(
            LogicalTensor(name, "F32", shape, Lowered(shape, tuple(shards)), None, tuple(fragments))
        )
        at += each
    for rank in range(ranks):
        grow(folder / f"z{rank}", 4 * at)
    return tensors


CASES: dict[str, Callable[[Path, int], Case]] = {
    "reshard": lambda folder, mb: Case(whole_tensors(folder, mb, "BF16", 2), None, False, False, 1 / 0.8),
    "reshard-digest": lambda folder, mb: Case(
        whole_tensors(folder, mb, "BF16", 2), None, True, False, 1 / 0.5
    ),
    "columns": lambda folder, mb: Case(
        cut_tensors(folder, mb, 8, columns=True, crc=False), None, False, False, 1 / 0.6
    ),
    "cast": lambda folder, mb: Case(whole_tensors(folder, mb, "F32", 4), "BF16", False, False, 1 / 0.6),
    "cast-f16": lambda folder, mb: Case(whole_tensors(folder, mb, "F32", 4), "F16", False, False, None),
    "dcp": lambda folder, mb: Case(
        cut_tensors(folder, mb, 4, columns=False, crc=False), None, False, False, 2.0
    ),
    "dcp-crc": lambda folder, mb: Case(
        cut_tensors(folder, mb, 4, columns=False, crc=True), None, False, True, 2.0
    ),
    "dcp-all": lambda folder, mb: Case(
        cut_tensors(folder, mb, 4, columns=False, crc=True), None, True, True, None
    ),
    "flat": lambda folder, mb: Case(flat_tensors(folder, mb, 4), None, False, False, None),
}


def work_of(case: Case, source: Path, target: Path, budget: int, workers: int) -> Callable[[], object]:
    """Return the writing of one file out of a source."""
    named = [(tensor, case.dtype or tensor.dtype) for tensor in case.tensors]
    header = build([Item(tensor, dtype, tensor.shape) for tensor, dtype in named])
    items = [Written(tensor, dtype, at) for (tensor, dtype), at in zip(named, header.offsets, strict=True)]

    def run() -> None:
        target.unlink(missing_ok=True)
        shutil.rmtree(target.with_name("copied"), ignore_errors=True)
        with Source(source) as opened:
            entries = {entry.text: entry for entry in opened.walk().entries}
            with output(target, header.size) as file:
                copy_file(
                    items, file, header.data,
                    opener=lambda name: opened.open(entries[name]),
                    budget_bytes=budget, workers=workers, digest=case.digest,
                    checks=records(items) if case.checks else (),
                )  # fmt: skip

    return run


@contextmanager
def room(base: str) -> Iterator[tuple[Path, Path]]:
    """A source folder and a target file, removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="shardscope-convert-", dir=base))
    try:
        (folder / "source").mkdir()
        yield folder / "source", folder / "target"
    finally:
        shutil.rmtree(folder)


class Anonymous(threading.Thread):
    """Samples the anonymous memory of this process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.005):
            status = Path("/proc/self/status").read_text(encoding="ascii")
            line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
            self.peak = max(self.peak, int(line.split()[1]) << 10)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "names", nargs="*", default=["reshard", "reshard-digest", "columns", "cast", "dcp-crc"]
    )
    parser.add_argument("--mb", type=int, default=1024)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--budget", type=int, default=256, help="MiB")
    parser.add_argument("--base", default="/dev/shm")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--once", action="store_true", help="run once without a reference, for profiles")
    asked = parser.parse_args()
    for name in asked.names:
        with room(asked.base) as (source, target):
            case = CASES[name](source, asked.mb)
            files = sorted(map(str, source.iterdir()))
            run = work_of(case, source, target, asked.budget << 20, asked.workers)
            if asked.once:
                run()
                continue
            if asked.memory:
                watch = Anonymous()
                watch.start()
                run()
                watch.over.set()
                watch.join()
                print(f"{name} of {asked.mb} MiB: {watch.peak / 2**20:.0f} MiB of anonymous memory")
                continue
            copied = target.with_name("copied")

            # There is room for one of the two results: each piece of work removes what the other one made.
            def cp(target: Path = target, copied: Path = copied, files: list[str] = files) -> None:
                target.unlink(missing_ok=True)
                shutil.rmtree(copied, ignore_errors=True)
                copied.mkdir()
                subprocess.run(["cp", "--reflink=never", *files, str(copied)], check=True)

            measure(f"{name} of {asked.mb} MiB", cp, run, asked.pairs, case.bar)


if __name__ == "__main__":
    main()
