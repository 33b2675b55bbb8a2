"""The memory of a whole conversion, measured: within its budget and a fixed sum for the program, and never above its estimate.

`tests/benchmarks/convert_memory.py` and `convert_catalogue.py` measure the large ones.
"""

from pathlib import Path

import pytest

from shardscope.engine.convert.plans.planning import PROGRAM_BYTES, program_bytes
from shardscope.engine.model.catalogue import Catalogue
from tests.convert.large import FAMILIES, MIB, convert
from tests.convert.material import plain, single
from tests.dcp_saves import write_save

BUDGET = 16 * MIB


# R087 R106 R107 R115
@pytest.mark.parametrize(("family", "dtype"), [("safetensors", "bf16"), ("dcp", "keep"), ("torch", "keep")])
def test_a_large_tensor_stays_within_a_small_budget(tmp_path: Path, family: str, dtype: str) -> None:
    source = FAMILIES[family](tmp_path / "source", 256 * MIB)
    found = convert(source, tmp_path / "out", "--memory", "16MiB", "--digest", "none", "--dtype", dtype)

    assert found.peak <= BUDGET + 64 * MIB
    assert found.peak <= found.planned <= BUDGET + 64 * MIB
    assert abs(found.peak - found.recorded) <= 8 * MIB  # measured, a little before the end


# R105
def test_what_a_catalogue_takes_is_within_its_estimate(tmp_path: Path) -> None:
    write_save(tmp_path / "source", {f"layers.{n}.weight": ("float32", (2, 4)) for n in range(200)}, 10)
    found = convert(tmp_path / "source", tmp_path / "out", "--digest", "none")

    assert found.peak <= found.planned


# R115
def test_the_estimate_counts_tensors_fragments_and_files_and_no_bytes() -> None:
    def of(sizes: list[int], files: int = 1) -> int:
        return program_bytes(
            files, Catalogue(tuple(single(f"w{n}", "F32", (n,), plain("a", 0, 4 * n)) for n in sizes))
        )

    assert of([]) > PROGRAM_BYTES
    assert of([1]) == of([1 << 40])
    assert of([1]) < of([1, 2]) < of([1, 2], 2)
