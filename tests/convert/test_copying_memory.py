"""A budget of memory holds whatever the tensor's size; the estimate that admission takes is one that holds too."""

import subprocess
import sys
from pathlib import Path

import pytest

from shardscope.engine.convert.copies.work import LARGEST, SMALLEST, Written, memory
from shardscope.engine.model.catalogue import Record
from tests.convert.material import plain, single

SCRIPT = Path(__file__).with_name("copying_memory.py")
MIB = 1 << 20


def measured(folder: Path, case: str, budget: int, workers: int, gib: float) -> tuple[int, int]:
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), case, str(budget), str(workers), str(gib)],
        capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    peak, estimate = map(int, ran.stdout.split())
    return peak, estimate


# R105
@pytest.mark.slow
@pytest.mark.parametrize("case", ["columns", "cast"])
def test_a_tensor_of_four_gibibytes_stays_within_its_budget(tmp_path: Path, case: str) -> None:
    peak, estimate = measured(tmp_path, case, 256, 2, 4)
    assert peak <= estimate + 16 * MIB
    assert estimate <= 256 * MIB


@pytest.mark.parametrize("case", ["columns", "cast", "kernel", "deflate"])
def test_a_small_budget_holds_too(tmp_path: Path, case: str) -> None:
    peak, estimate = measured(tmp_path, case, 8, 2, 0.25)
    assert peak <= estimate + 16 * MIB


def test_the_estimate_follows_what_is_done_and_not_how_much() -> None:
    def of(size: int, dtype: str, record: Record, budget: int = 256 * MIB, workers: int = 2) -> int:
        return memory([Written(single("w", "F32", (size,), record), dtype, 0)], budget, workers).bytes

    few, many = plain("a", 0, 40), plain("a", 0, 4 << 30)
    assert of(10, "F32", few) == of(1 << 30, "F32", many)
    assert of(10, "F32", few) < of(10, "BF16", few)
    assert of(10, "F32", few) < of(10, "F32", Record("a", 0, 10, 40, "deflate"))
    for workers in (1, 2, 16):
        for budget in (32 * MIB, 256 * MIB):
            assert of(10, "F32", few, budget, workers) <= budget
    plan = memory([], 1, 1)
    assert plan.step == SMALLEST
    assert memory([], 1 << 40, 1).step == LARGEST
