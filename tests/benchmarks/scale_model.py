"""What a checkpoint of 400 billion parameters would take on 1, 8 and 64 machines: a SIMULATION from figures measured on one.

`python tests/benchmarks/scale_model.py [--mb N] [--workers W] [--node GB/s] [--files GB/s] [--shard GB] [--cast]`

Measured here, in memory: the rate of one worker with one thread, digest included; seconds of the coordinator for each tensor and
each file; the resident memory of a worker. Given, not measured: what a machine's network and the shared file system deliver.
Nothing of that size was converted, and no file system of that size was there.
"""

import argparse
import heapq
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from shardscope.engine import materialize, prepare
from shardscope.engine.convert.jobs.tasks import versions_here
from shardscope.engine.converting.materializing import Converted
from shardscope.engine.model.plan import PlanOptions

GB = 1e9
LAYERS, HIDDEN, INNER, KEYS, VOCABULARY = 126, 16384, 53248, 1024, 128256
"""Of the largest Llama 3.1 (405.9 billion parameters in 1,137 tensors)."""
PIECE = 4 << 20


class Measured(NamedTuple):
    """Figures of one machine."""

    worker_rate: float
    """Bytes of output per second of one worker."""
    tensor_seconds: float
    """Of the coordinator, for each tensor: proving and verifying a sample."""
    file_seconds: float
    """Of the coordinator, for each file: adopting and promoting."""
    worker_bytes: int
    """Resident, at its peak."""


def tensors() -> Iterator[int]:
    """Yield the elements of each tensor, in the order of the layers."""
    yield VOCABULARY * HIDDEN
    for _ in range(LAYERS):
        yield from (HIDDEN * HIDDEN, KEYS * HIDDEN, KEYS * HIDDEN, HIDDEN * HIDDEN)
        yield from (INNER * HIDDEN, INNER * HIDDEN, INNER * HIDDEN, HIDDEN, HIDDEN)
    yield from (HIDDEN, VOCABULARY * HIDDEN)


def files(shard: float, width: int) -> list[int]:
    """Return the bytes of each file: whole tensors, in order, until the next one would be too much."""
    sizes = [0]
    for count in tensors():
        if sizes[-1] and sizes[-1] + count * width > shard:
            sizes.append(0)
        sizes[-1] += count * width
    return sizes


def source(folder: Path, mb: int) -> Path:
    """Write a save of fp32 tensors of 4 MiB, eight in a file."""
    folder.mkdir()
    block = (np.random.default_rng(0).standard_normal(PIECE // 4) * 0.02).astype("<f4")
    count = max(1, (mb << 20) // PIECE // 8)
    for number in range(count):
        entries: dict[str, Any] = {
            f"layers.{8 * number + n}": {"dtype": "F32", "shape": [1024, 1024], "data_offsets": [n * PIECE, (n + 1) * PIECE]}
            for n in range(8)
        }  # fmt: skip
        text = json.dumps(entries).encode()
        text += b" " * (-len(text) % 8)
        with (folder / f"model-{number + 1:05d}-of-{count:05d}.safetensors").open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for _ in range(8):
                file.write(block.data)
    return folder


def measure(mb: int, runs: int, *, cast: bool) -> Measured:
    """Convert a small checkpoint in one worker process, several times, and take the best of each: what others do here is no cost."""
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None
    room = Path(tempfile.mkdtemp(prefix="shardscope-scale-", dir=base))
    try:
        path = source(room / "source", mb)
        options = PlanOptions(max_shard_bytes=1 << 30, workers=1, dtype="BF16" if cast else "keep")
        found = [converted(path, room / "out", options) for _ in range(runs)]
    finally:
        shutil.rmtree(room)
    rates, per_tensor, per_file, peaks = [], [], [], []
    for done in found:
        seconds = done.run.seconds_by_stage
        names = sum(len(file.tensors) for file in done.plan.files)
        rates.append(done.run.staged_bytes / seconds["copy"])
        per_tensor.append((seconds["prove"] + seconds["verify"]) / names)
        per_file.append(seconds["target"] / len(done.plan.files))
        peaks.append(done.run.workers_peak_rss_bytes or 0)
    return Measured(max(rates), min(per_tensor), min(per_file), max(peaks))


def converted(path: Path, out: Path, options: PlanOptions) -> Converted:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as worker:
        worker.submit(versions_here).result()  # it has imported what it needs
        done = materialize(path, out, prepare(path, options), confirm=lambda _: True, executor=worker)
    shutil.rmtree(out)
    return done


class Running(NamedTuple):
    """A file that a worker makes."""

    left: float
    node: int


def simulate(
    sizes: Sequence[int],
    read_per_byte: float,
    nodes: int,
    workers: int,
    node: float,
    shared: float,
    worker: float,
) -> float:
    """Return the seconds until all files are made, in order, each by the first worker that is free.

    A worker moves output at its own rate, at its share of its machine's network, or at its share of the file system: the least.
    Each byte of output is one written and `read_per_byte` read.
    """
    cost = 1 + read_per_byte
    free = [
        (number // nodes, number % nodes) for number in range(nodes * workers)
    ]  # spread over machines first
    heapq.heapify(free)
    waiting = list(reversed(sizes))
    running: list[Running] = []
    ranks: dict[int, int] = {}
    now = 0.0
    while waiting or running:
        while waiting and free:
            _, at = heapq.heappop(free)
            running.append(Running(waiting.pop(), at))
        ranks = {}
        for item in running:
            ranks[item.node] = ranks.get(item.node, 0) + 1
        rates = [
            min(worker, node / cost / ranks[item.node], shared / cost / len(running)) for item in running
        ]
        step = min(item.left / rate for item, rate in zip(running, rates, strict=True))
        now += step
        kept = []
        for item, rate in zip(running, rates, strict=True):
            left = item.left - rate * step
            if left > 1:
                kept.append(Running(left, item.node))
            else:
                heapq.heappush(free, (ranks[item.node], item.node))
        running = kept
    return now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=512, help="of the checkpoint that is measured")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=8, help="on each machine, one thread each")
    parser.add_argument(
        "--node",
        type=float,
        default=2.5,
        help="GB/s between a machine and the file system, both ways together",
    )
    parser.add_argument(
        "--files", type=float, default=40.0, help="GB/s of the shared file system, both ways together"
    )
    parser.add_argument("--shard", type=float, nargs="*", default=[5.0, 2.0], help="--max-shard-size in GB")
    parser.add_argument("--cast", action="store_true", help="the source is fp32, the output bf16")
    asked = parser.parse_args()
    found = measure(asked.mb, asked.runs, cast=asked.cast)
    read = 2.0 if asked.cast else 1.0
    names, elements = sum(1 for _ in tensors()), sum(tensors())
    print(
        f"measured: a worker makes {found.worker_rate / GB:.2f} GB/s of output, {found.worker_bytes >> 20} MiB resident;"
    )
    print(
        f"  the coordinator takes {found.tensor_seconds * 1e3:.1f} ms for each tensor and {found.file_seconds * 1e3:.1f} ms for each file"
    )
    print(
        f"given: {asked.workers} workers on each machine, {asked.node} GB/s for each machine, {asked.files} GB/s in all"
    )
    print(
        f"SIMULATED, {elements / 1e9:.1f} billion parameters in {names:,} tensors, {'fp32 to bf16' if asked.cast else 'bf16 as it is'}:"
    )
    print(
        "| file size | files | machines | moved | moved by each machine | copying | coordinator | together |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for shard in asked.shard:
        sizes = files(shard * GB, 2)
        aside = names * found.tensor_seconds + len(sizes) * found.file_seconds
        for nodes in (1, 8, 64):
            seconds = simulate(
                sizes, read, nodes, asked.workers, asked.node * GB, asked.files * GB, found.worker_rate
            )
            moved = sum(sizes) * (1 + read)
            print(
                f"| {shard:g} GB | {len(sizes)} | {nodes} | {moved / GB:,.0f} GB | {moved / min(nodes, len(sizes)) / GB:,.0f} GB "
                f"| {seconds:,.0f} s | {aside:,.0f} s | {(seconds + aside) / 60:,.1f} min |"
            )


if __name__ == "__main__":
    main()
