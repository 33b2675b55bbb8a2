"""Resharding beside `cp` of the same bytes, its memory, and planning for a large model: `python tests/benchmarks/reshard.py [NAME...]`.

Names: tp, fsdp (1 GB of bf16 on /dev/shm), memory, planning. The bars: 2x the time of `cp --reflink=never` without fsync for the copying
of a whole run, whose other stages are reported beside; 128 MiB of anonymous memory; 3 s for the plan of 70 billion parameters in 723
tensors from TP 8 to TP 4 x PP 2. Everything lies in a folder of its own and is removed.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.pairs import seconds

from shardscope.engine import materialize, prepare_reshard, transfers
from shardscope.engine.convert.plans.header import build
from shardscope.engine.convert.plans.ranks import Ranks, documents_beside, metadata
from shardscope.engine.converting.preparing import Prepared
from shardscope.engine.converting.resharding import Aim
from shardscope.engine.geometry.mapping.targets import Numbers
from shardscope.engine.model.course import Course
from shardscope.engine.model.plan import PlanOptions

SMALL: Final = {"layers": 2, "hidden": 4096, "heads": 32, "groups": 8, "ffn": 11008, "vocabulary": 16384}
LARGE: Final = {"layers": 80, "hidden": 8192, "heads": 64, "groups": 8, "ffn": 28672, "vocabulary": 128256}
CASES: Final = {
    "tp": (Numbers(tp=8), Numbers(tp=4)),
    "fsdp": (Numbers(dp=8, sharding="fsdp"), Numbers(dp=2, sharding="fsdp")),
}
BAR: Final = 2.0
MEMORY_BAR: Final = 128 << 20
PLANNING_BAR: Final = 3.0


class Named:
    """What a header needs to know."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name, self.dtype, self.shape = name, "BF16", shape


def llama(folder: Path, size: dict[str, int], *, filled: bool) -> Path:
    """Write a Llama of some size; a file of holes, or of the bytes of weights."""
    hidden, ffn, kv = size["hidden"], size["ffn"], size["hidden"] // size["heads"] * size["groups"]
    tensors = [Named("model.embed_tokens.weight", (size["vocabulary"], hidden))]
    for layer in range(size["layers"]):
        at = f"model.layers.{layer}."
        tensors += [
            Named(at + name + ".weight", shape)
            for name, shape in (
                ("self_attn.q_proj", (hidden, hidden)),
                ("self_attn.k_proj", (kv, hidden)),
                ("self_attn.v_proj", (kv, hidden)),
                ("self_attn.o_proj", (hidden, hidden)),
                ("mlp.gate_proj", (ffn, hidden)),
                ("mlp.up_proj", (ffn, hidden)),
                ("mlp.down_proj", (hidden, ffn)),
                ("input_layernorm", (hidden,)),
                ("post_attention_layernorm", (hidden,)),
            )
        ]
    tensors += [Named("model.norm.weight", (hidden,)), Named("lm_head.weight", (size["vocabulary"], hidden))]
    folder.mkdir()
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "num_attention_heads": size["heads"],
        "num_key_value_heads": size["groups"],
        "num_hidden_layers": size["layers"],
        "vocab_size": size["vocabulary"],
    }
    (folder / "config.json").write_text(json.dumps(config))
    header = build(tensors)
    block = (np.random.default_rng(0).standard_normal(1 << 20) * 0.02).astype("<f4").view(np.uint8)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(header.data)
        while filled and file.tell() < header.size:
            file.write(block[: header.size - file.tell()].data)
        file.truncate(header.size)
    return folder


def planned(source: Path, numbers: Numbers) -> Prepared:
    return prepare_reshard(source, PlanOptions(digest="none", verify="headers"), Aim("ranks", None, numbers))


def run(source: Path, target: Path, numbers: Numbers) -> Course:
    """Reshard; return how long each stage took."""
    course = Course()
    shutil.rmtree(target, ignore_errors=True)
    materialize(source, target, planned(source, numbers), confirm=lambda _: True, course=course)
    return course


@contextmanager
def made(base: str, numbers: Numbers) -> Iterator[tuple[Path, Path]]:
    """The files of a topology's ranks, and where another one's go."""
    folder = Path(tempfile.mkdtemp(prefix="shardscope-reshard-", dir=base))
    try:
        run(llama(folder / "hf", SMALL, filled=True), folder / "source", numbers)
        shutil.rmtree(folder / "hf")
        yield folder / "source", folder / "out"
    finally:
        shutil.rmtree(folder)


def against_cp(name: str, base: str, pairs: int) -> bool:
    one, two = CASES[name]
    with made(base, one) as (source, out):
        files = sorted(map(str, source.glob("rank-*")))
        size = sum(os.path.getsize(file) for file in files)
        copied = out.with_name("copied")

        def cp() -> None:
            shutil.rmtree(out, ignore_errors=True)
            shutil.rmtree(copied, ignore_errors=True)
            copied.mkdir()
            subprocess.run(["cp", "--reflink=never", *files, str(copied)], check=True)

        ratios, alone, stages = [], [], []
        cp()
        for _ in range(pairs):
            before = seconds(cp)
            shutil.rmtree(copied)
            course = run(source, out, two)
            after = seconds(cp)
            ratios.append(course.seconds["copy"] / ((before + after) / 2))
            alone.append(after / before)
            stages.append(course.seconds)
    low, median, high = statistics.quantiles(ratios, n=4)
    beside = {stage: statistics.median(found[stage] for found in stages) for stage in stages[0]}
    print(
        f"{name} {one.ranks} to {two.ranks} of {size / 1e9:.2f} GB: {median:.3f}x cp (quartiles {low:.3f} to {high:.3f}, cp by itself "
        f"{statistics.median(alone):.3f}, {pairs} pairs, load {os.getloadavg()[0]:.1f})  bar {BAR:.2f}: "
        f"{'met' if median <= BAR else 'MISSED'}; seconds: {', '.join(f'{k} {v:.3f}' for k, v in beside.items())}",
        flush=True,
    )
    return median <= BAR


def memory(base: str) -> bool:
    """Each in a process of its own: the highest anonymous memory while it runs, the interpreter included."""
    held = True
    for name, (one, two) in CASES.items():
        with made(base, one) as (source, out):
            words = [sys.executable, __file__, "--once", name, str(source), str(out)]
            process = subprocess.Popen(words)
            peak = 0
            while process.poll() is None:
                time.sleep(0.005)
                try:
                    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
                except OSError:
                    break
                line = next((line for line in status.splitlines() if line.startswith("RssAnon")), None)
                peak = max(peak, 0 if line is None else int(line.split()[1]) << 10)
            assert process.wait() == 0
            held &= peak <= MEMORY_BAR
            print(
                f"memory of {name} {one.ranks} to {two.ranks}: {peak / 2**20:.0f} MiB anonymous at the most  bar "
                f"{MEMORY_BAR >> 20} MiB: {'met' if peak <= MEMORY_BAR else 'MISSED'}",
                flush=True,
            )
    return held


def planning(base: str) -> bool:
    with tempfile.TemporaryDirectory(prefix="shardscope-reshard-", dir=base) as where:
        folder = Path(where)
        first = planned(llama(folder / "hf", LARGE, filled=False), Numbers(tp=8))
        source = folder / "tp8"
        source.mkdir()
        assert first.plan.target is not None
        ranks = Ranks(first.plan.target)
        for file in first.plan.files:
            header = build(file.tensors, metadata(file, ranks))
            with (source / file.name).open("wb") as out:
                out.write(header.data)
                out.truncate(header.size)
        tensors = {tensor.name: tensor for tensor in first.catalogue.tensors}
        for name, text in documents_beside(first.plan, tensors).items():
            (source / name).write_bytes(text)
        shutil.copy(folder / "hf/config.json", source)

        times, listed = [], []
        for _ in range(5):
            began = time.perf_counter()
            found = planned(source, Numbers(tp=4, pp=2))
            times.append(time.perf_counter() - began)
            began = time.perf_counter()
            document = transfers(found)
            listed.append(time.perf_counter() - began)
    count = len({item.name for file in found.plan.files for item in file.tensors})
    plan, copies = statistics.median(times), statistics.median(listed)
    print(
        f"planning {count} tensors from TP 8 to TP 4 x PP 2: {plan:.2f} s with inspection, {copies:.2f} s for the copies of "
        f"{len(document.pairs)} pairs of ranks (load {os.getloadavg()[0]:.1f})  bar {PLANNING_BAR:.2f} s: "
        f"{'met' if plan + copies <= PLANNING_BAR else 'MISSED'}",
        flush=True,
    )
    return plan + copies <= PLANNING_BAR


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=["tp", "fsdp", "memory", "planning"])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--base", default="/dev/shm")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.once:
        name, source, out = asked.names
        run(Path(source), Path(out), CASES[name][1])
        return 0
    held = True
    for name in asked.names:
        if name in CASES:
            held &= against_cp(name, asked.base, asked.pairs)
        else:
            held &= {"memory": memory, "planning": planning}[name](asked.base)
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
