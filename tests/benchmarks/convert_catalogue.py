"""The memory that a conversion takes for what it has to remember: `python tests/benchmarks/convert_catalogue.py [NAME...]`.

Tensors of a few elements, many of them, in many fragments and files; the bar is the estimate of the plan. The figures in
`convert/plans/planning.py` are from here: an upper bound for each row, and never so far above that a plan is denied for nothing.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from tests.benchmarks.dcp_catalogue import names
from tests.checkpoints import write_sharded
from tests.convert.large import MIB, convert
from tests.dcp_saves import write_save
from tests.formats import megatron_runs
from tests.formats.deepspeed_runs import Group, write_three, write_zero


def chunks(ranks: int, tensors: int) -> Callable[[Path], object]:
    """A distributed save."""
    return lambda folder: write_save(folder, names(tensors), ranks)


def shards(tensors: int, files: int) -> Callable[[Path], object]:
    """A Hugging Face save."""
    named = {f"model.layers.{n // 9}.mlp.experts.{n % 9}.weight": ("F32", (4,)) for n in range(tensors)}
    return lambda folder: write_sharded(folder, named, shards=files)


def zero(stage: int, tensors: int, ranks: int) -> Callable[[Path], object]:
    """A DeepSpeed save, whose optimizer states are catalogued, too."""
    weights = {f"model.layers.{n}.weight": np.ones((5, 7), np.float32) for n in range(tensors)}
    if stage == 3:
        return lambda folder: write_three(folder, {0: [weights]}, dp=ranks)
    return lambda folder: write_zero(folder, {(0, 0): [Group(weights)]}, dp=ranks, stage=2)


def megatron(layers: int, tp: int) -> Callable[[Path], object]:
    """A Megatron-LM save."""
    run = megatron_runs.Run(tp=tp, layers=layers, heads=32, groups=16, head_size=2, ffn=64, vocabulary=128)
    return lambda folder: megatron_runs.write(folder, run, megatron_runs.model(run))


CASES: dict[str, Callable[[Path], object]] = {
    "dcp 1x100": chunks(1, 100),
    "dcp 10x1000": chunks(10, 1_000),
    "dcp 1x10000": chunks(1, 10_000),
    "dcp 64x2000": chunks(64, 2_000),
    "hf 10000": shards(10_000, 10),
    "hf 100000": shards(100_000, 100),
    "zero-2 1000x64": zero(2, 1_000, 64),
    "zero-3 500x64": zero(3, 500, 64),
    "megatron 32x8": megatron(32, 8),
    "megatron 64x8": megatron(64, 8),
}


def main() -> int:
    """Measure, print a table, and fail where an estimate does not hold."""
    wanted = sys.argv[1:] or list(CASES)
    missed = 0
    print(f"{'save':<18}{'peak':>8}{'planned':>9}  MiB")
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix="shardscope-catalogue-") as where:
            CASES[name](Path(where) / "source")
            found = convert(Path(where) / "source", Path(where) / "out", "--digest", "none")
        missed += found.peak > found.planned
        print(f"{name:<18}{found.peak / MIB:>8.0f}{found.planned / MIB:>9.0f}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
