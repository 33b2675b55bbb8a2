"""Whole conversions beside the usual tools, from the start of a process to its end: `python tests/benchmarks/convert_peers.py`.

Names: zero3, zero2 (by `zero_to_fp32 --safe_serialization`), dcp (by `cp`, by `dcp_to_torch_save`, and by `accelerate merge-weights`), hf (a
distributed save as safetensors, by `cp` and by torch's `consolidate_safetensors_files`). Both sides read the same files and write all
weights. A pair is ours, theirs, ours: the ratio of ours to itself is the noise of the moment. Memory is that of a process with all that it
started, sampled each hundredth of a second. No digest is made, as theirs make none; `--digest sha256` makes ours. Bars stand beside
what was promised; of the other tools the figures are told alone.

The tools live in `.venv-producers` (`make test-producers`); without it there is nothing to measure. The saves are made on the spot,
with the states of the optimizer that a real one has, below /dev/shm, and removed.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.pairs import measure
from tests.formats.deepspeed_runs import Group, write_three, write_zero

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
TOOLS = ROOT / ".venv-producers" / "bin" / "python"
RANKS = 4
HIDDEN, INNER, WORDS = 2048, 5632, 32000
LEAST_FASTER = 3.0
MOST_MEMORY = 1 / 8
DIGEST = "SHARDSCOPE_BENCHMARK_DIGEST"
MOST_BY_CP = 2.0
MOST_ANONYMOUS = 128


class Ran(NamedTuple):
    """One process and all that it started."""

    seconds: float
    resident: int
    """Bytes, at most at one time."""
    anonymous: int
    processor: float
    """Seconds of processor time, which say more than those of the clock where others work beside."""


def run(*command: object) -> Ran:
    """Run a command to its end and watch its memory."""
    environment = os.environ | {"OMP_NUM_THREADS": "2", "PYTHONWARNINGS": "ignore"}
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as told:
        child = subprocess.Popen([str(word) for word in command], stdout=told, stderr=told, env=environment)
        resident = anonymous = 0
        while child.poll() is None:
            sums = [memory(pid) for pid in family(child.pid)]
            resident = max(resident, sum(row[0] for row in sums), *(row[2] for row in sums), 0)
            anonymous = max(anonymous, sum(row[1] for row in sums))
            time.sleep(0.01)
        seconds = time.perf_counter() - start
        if child.returncode != 0:
            told.seek(0)
            sys.exit(
                f"{command[:6]} ended with {child.returncode}: {told.read()[-1500:].decode(errors='replace')}"
            )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(seconds, resident, anonymous, spent)


def family(pid: int) -> Iterator[int]:
    """Yield a process and those that it started."""
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return
    for child in children:
        yield from family(int(child))


def memory(pid: int) -> tuple[int, int, int]:
    """Return the bytes that are resident, those that are anonymous, and the most that ever were resident."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0, 0, 0
    rows = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    rss, anon, peak = (int(rows.get(key, "0").split()[0]) << 10 for key in ("VmRSS", "RssAnon", "VmHWM"))
    return rss, anon, peak


# --- saves


def shapes(mb: int, width: int) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of a decoder of about so many megabytes."""
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (WORDS, HIDDEN)}
    layer = 0
    while (
        width * sum(int(np.prod(shape)) for shape in found.values())
        < mb * MIB - 2 * width * WORDS * HIDDEN // 3
    ):
        prefix = f"model.layers.{layer}."
        found |= {f"{prefix}self_attn.{name}_proj.weight": (HIDDEN, HIDDEN) for name in "qkvo"}
        found |= {f"{prefix}mlp.{name}_proj.weight": (INNER, HIDDEN) for name in ("gate", "up")}
        found[f"{prefix}mlp.down_proj.weight"] = (HIDDEN, INNER)
        found |= {f"{prefix}{name}_layernorm.weight": (HIDDEN,) for name in ("input", "post_attention")}
        layer += 1
    return found | {"model.norm.weight": (HIDDEN,), "lm_head.weight": (WORDS // 2 + 7, HIDDEN)}


def weights(mb: int) -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {
        name: (random.standard_normal(shape, np.float32) * np.float32(0.02))
        for name, shape in shapes(mb, 4).items()
    }


def zero3(folder: Path, mb: int) -> None:
    write_three(folder, {0: [weights(mb)]}, dp=RANKS)


def zero2(folder: Path, mb: int) -> None:
    write_zero(folder, {(0, 0): [Group(weights(mb))]}, dp=RANKS, stage=2)


DISTRIBUTED = """
import os, sys, torch
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

rank, ranks, folder = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), sys.argv[1]
torch.distributed.init_process_group("gloo")
mesh = init_device_mesh("cpu", (ranks,))
generator = torch.Generator().manual_seed(rank)
state = {}
for line in sys.stdin if len(sys.argv) < 3 else open(sys.argv[2]):
    name, *shape = line.split()
    shape = [int(extent) for extent in shape]
    dim = 1 if name.endswith(("o_proj.weight", "down_proj.weight")) else 0
    local = [len(range(shape[k])[rank * (-(-shape[k] // ranks)):][: -(-shape[k] // ranks)]) if k == dim else shape[k] for k in range(len(shape))]
    part = torch.empty(local, dtype=torch.bfloat16).normal_(generator=generator)
    stride = torch.empty(shape, device="meta").stride()
    state[name] = DTensor.from_local(part, mesh, [Shard(dim)], run_check=False, shape=torch.Size(shape), stride=stride)
if len(sys.argv) > 3:
    from torch.distributed.checkpoint import HuggingFaceStorageWriter
    writer = HuggingFaceStorageWriter(path=folder, save_distributed=True, fqn_to_index_mapping=dict.fromkeys(state, 1))
    dcp.save(state, storage_writer=writer)
else:
    dcp.save({"model": state}, checkpoint_id=folder)
torch.distributed.destroy_process_group()
"""
CONSOLIDATE = """
import json, sys
from pathlib import Path
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files
names = set()
for file in Path(sys.argv[1]).glob("*.safetensors"):
    with open(file, "rb") as opened:
        names |= set(json.loads(opened.read(int.from_bytes(opened.read(8), "little"))))
consolidate_safetensors_files(sys.argv[1], sys.argv[2], dict.fromkeys(names - {"__metadata__"}, 1))
"""


def hf(folder: Path, mb: int) -> None:
    """Write a save of four ranks as safetensors by torch itself, cut by rows and by columns."""
    dcp(folder, mb, "safetensors")


def dcp(folder: Path, mb: int, *options: str) -> None:
    """Write a save of four ranks by torch itself, cut by rows and by columns."""
    listed = folder.with_name("shapes.txt")
    listed.write_text(
        "".join(f"{name} {' '.join(map(str, shape))}\n" for name, shape in shapes(mb, 2).items())
    )
    script = folder.with_name("save.py")
    script.write_text(DISTRIBUTED)
    address = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29417",
        "WORLD_SIZE": str(RANKS),
        "OMP_NUM_THREADS": "1",
    }
    started = [
        subprocess.Popen(
            [TOOLS, script, folder, listed, *options],
            env=os.environ | address | {"RANK": str(rank)},
            stderr=subprocess.DEVNULL,
        )
        for rank in range(RANKS)
    ]
    if any(child.wait() for child in started):
        sys.exit("the save could not be written")


# --- measurements


def ours(source: Path, out: Path) -> tuple[object, ...]:
    asked = ("--decode", "--yes", "--quiet", "--digest", os.environ.get(DIGEST, "none"))
    return (sys.executable, "-m", "shardscope", "convert", source, out, *asked)


def zero_to_fp32(source: Path, out: Path) -> tuple[object, ...]:
    return (TOOLS, "-m", "deepspeed.utils.zero_to_fp32", source, out, "--safe_serialization")


def dcp_to_torch(source: Path, out: Path) -> tuple[object, ...]:
    return (TOOLS, "-m", "torch.distributed.checkpoint.format_utils", "dcp_to_torch", source, out)


def merge_weights(source: Path, out: Path) -> tuple[object, ...]:
    return (TOOLS, "-m", "accelerate.commands.accelerate_cli", "merge-weights", source, out)


def consolidate(source: Path, out: Path) -> tuple[object, ...]:
    out.mkdir(parents=True, exist_ok=True)
    return (TOOLS, "-c", CONSOLIDATE, source, out)


class Kept:
    """Runs one command again and again into a fresh place, and keeps what it took."""

    def __init__(self, command: Callable[[Path, Path], tuple[object, ...]], source: Path, out: Path) -> None:
        self.command, self.source, self.out = command, source, out
        self.runs: list[Ran] = []
        self.stages: list[dict[str, float]] = []
        self.bytes = 0

    def __call__(self) -> None:
        for place in (self.out, self.out.with_name(self.out.name + ".part")):
            shutil.rmtree(place, ignore_errors=True)
            if place.is_file():
                place.unlink()
        self.runs.append(run(*self.command(self.source, self.out)))
        took = self.runs[-1]
        figures = f"{took.seconds:.1f} s ({took.processor:.1f} of processor), {took.resident / MIB:.0f} MiB resident, {took.anonymous / MIB:.0f} anonymous"
        print(f"  {self.out.name}: {figures}", file=sys.stderr, flush=True)
        record = self.out / "shardscope-run.json"
        if record.is_file():
            self.stages.append(json.loads(record.read_text())["seconds_by_stage"])
        files = [self.out] if self.out.is_file() else self.out.iterdir()
        self.bytes = sum(file.stat().st_size for file in files)

    @property
    def resident(self) -> float:
        return statistics.median(item.resident for item in self.runs) / MIB

    @property
    def anonymous(self) -> float:
        return statistics.median(item.anonymous for item in self.runs) / MIB

    @property
    def processor(self) -> float:
        return statistics.median(item.processor for item in self.runs)

    @property
    def staged(self) -> dict[str, float]:
        return {key: round(statistics.median(row[key] for row in self.stages), 2) for key in self.stages[0]}


def verdict(holds: bool) -> str:
    return "met" if holds else "MISSED"


def beside_tool(
    name: str,
    tool: Callable[[Path, Path], tuple[object, ...]],
    where: Path,
    pairs: int,
    *,
    promised: bool = False,
) -> bool:
    """Measure a conversion beside a tool, and tell whether time and memory are within the bars, where there are any."""
    we, they = Kept(ours, where / "source", where / "ours"), Kept(tool, where / "source", where / "theirs")
    ratio = measure(f"{name}: theirs by ours", we, they, pairs)
    share = we.resident / they.resident
    print(
        f"  {they.bytes / MIB:.0f} MiB out; ours {we.resident:.0f} MiB resident ({we.anonymous:.0f} anonymous), "
        f"theirs {they.resident:.0f} ({they.anonymous:.0f}): ours is 1/{1 / share:.1f} of theirs; our stages {we.staged}"
    )
    print(
        f"  processor time {they.processor:.1f} s by {we.processor:.1f} s: {they.processor / we.processor:.1f} times"
    )
    faster, smaller = ratio.median >= LEAST_FASTER, share <= MOST_MEMORY
    if promised:
        print(
            f"  bars: {LEAST_FASTER:.0f} times as fast {verdict(faster)}, 1/8 of the memory {verdict(smaller)}",
            flush=True,
        )
    shutil.rmtree(where / "theirs", ignore_errors=True)
    return not promised or (faster and smaller)


def beside_cp(name: str, where: Path, pairs: int) -> bool:
    """Measure a conversion of a distributed save beside `cp`: the whole process, and what it says of its stages."""
    copied = where / "copied"

    def copy() -> None:
        shutil.rmtree(copied, ignore_errors=True)
        subprocess.run(["cp", "-r", "--reflink=never", where / "source", copied], check=True)

    we = Kept(ours, where / "source", where / "ours")
    ratio = measure(f"{name}: ours by cp, whole process", copy, we, pairs)
    shutil.rmtree(copied)
    copying = we.staged["copy"] / ratio.reference_seconds
    print(f"  copy alone {copying:.2f}x of cp; {we.anonymous:.0f} MiB anonymous; our stages {we.staged}")
    fast, small = copying <= MOST_BY_CP, we.anonymous <= MOST_ANONYMOUS
    print(f"  bars: twice the time of cp {verdict(fast)}, {MOST_ANONYMOUS} MiB {verdict(small)}", flush=True)
    return fast and small


MAKERS: dict[str, Callable[[Path, int], None]] = {"zero3": zero3, "zero2": zero2, "dcp": dcp, "hf": hf}


PEERS: dict[str, dict[str, Callable[[Path, Path], tuple[object, ...]]]] = {
    "dcp": {"dcp_to_torch_save": dcp_to_torch, "accelerate merge-weights": merge_weights},
    "hf": {"consolidate_safetensors_files": consolidate},
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(MAKERS))
    parser.add_argument("--mb", type=int, default=1024, help="MiB of weights as written")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--base", default="/dev/shm")
    parser.add_argument(
        "--digest", choices=["none", "sha256"], default="none", help="ours; theirs makes none"
    )
    asked = parser.parse_args()
    if not TOOLS.is_file():
        print("nothing to measure: make .venv-producers with `make test-producers`")
        return 0
    os.environ[DIGEST] = asked.digest
    held = True
    for name in asked.names:
        with tempfile.TemporaryDirectory(prefix="shardscope-peers-", dir=asked.base) as folder:
            where = Path(folder)
            # in a process of its own, which gives its memory back
            subprocess.run(
                [sys.executable, __file__, "--mb", str(asked.mb), "--make", name, folder], check=True
            )
            if name in ("dcp", "hf"):
                held &= beside_cp(name, where, asked.pairs)
                for peer, tool in PEERS[name].items():
                    held &= beside_tool(f"{name} by {peer}", tool, where, asked.pairs)
            else:
                held &= beside_tool(
                    f"{name} by zero_to_fp32", zero_to_fp32, where, asked.pairs, promised=True
                )
    return int(not held)


if __name__ == "__main__":
    if "--make" in sys.argv:
        size, name, folder = sys.argv[2], *sys.argv[4:6]
        MAKERS[name](Path(folder) / "source", int(size))
    else:
        sys.exit(main())
