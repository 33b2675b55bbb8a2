"""Checkpoints around one large tensor, and the memory that converting them takes, measured in a process of their own."""

import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from shardscope.engine.model.manifest import MANIFEST_NAME, RUN_NAME
from tests.dcp_saves import write_save
from tests.formats import megatron_runs
from tests.formats.deepspeed_runs import Group, write_three, write_zero
from tests.torchfiles import Record, Tensor, pickled, write_archive

MIB = 1 << 20
COLUMNS = 4096
RANKS = 4

_MEASURED = """
import sys
from pathlib import Path
from shardscope.app.main import main
code = main(sys.argv[2:])
status = Path("/proc/self/status").read_text()
peak = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))
Path(sys.argv[1]).write_text(str(peak))
raise SystemExit(code)
"""


class Measured(msgspec.Struct):
    """What a conversion took, in bytes and seconds."""

    peak: int
    """VmHWM of the process, after its last line."""
    recorded: int
    """What it says itself, in its run record."""
    planned: int
    """The estimate of its plan."""
    seconds: dict[str, float]
    stderr: str


def convert(source: Path, out: Path, *options: str) -> Measured:
    """Convert `source` in a process of its own."""
    said = out.with_name(out.name + ".peak")
    ran = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(said), "convert", str(source), str(out), "--decode", "--yes", *options],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    run = json.loads((out / RUN_NAME).read_text())
    manifest = json.loads((out / MANIFEST_NAME).read_text())
    planned = manifest["estimates"]["peak_ram_bytes"]["bytes"]
    return Measured(
        int(said.read_text()), run["peak_rss_bytes"], planned, run["seconds_by_stage"], ran.stderr
    )


def zeros_crc(size: int) -> int:
    """Return the CRC-32 of so many zeros."""
    block, found = bytes(MIB), 0
    for start in range(0, size, MIB):
        found = zlib.crc32(block[: size - start], found)
    return found


def safetensors(folder: Path, size: int) -> Path:
    """One tensor of zeros in a file of holes."""
    folder.mkdir(parents=True)
    rows = size // 4 // COLUMNS
    text = json.dumps({"w": {"dtype": "F32", "shape": [rows, COLUMNS], "data_offsets": [0, size]}}).encode()
    text += b" " * (-len(text) % 8)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + size)
    return folder


def torch_zip(folder: Path, size: int, *, transposed: bool = False) -> Path:
    """One tensor of zeros in a file of torch.save; `transposed` stores it by columns."""
    folder.mkdir(parents=True)
    shape = (size // 4 // COLUMNS, COLUMNS)
    tensor = Tensor("0", size // 4, shape, (1, shape[0]) if transposed else None)
    records = [
        Record("archive/data.pkl", pickled({"w": tensor})),
        Record("archive/byteorder", b"little"),
        Record("archive/data/0", hole=size, crc=zeros_crc(size)),
        Record("archive/version", b"3\n"),
    ]
    write_archive(folder / "pytorch_model.bin", records)
    return folder


def dcp(folder: Path, size: int) -> Path:
    """One tensor of zeros, cut by rows among four ranks."""
    write_save(folder, {"w": ("float32", (size // 4 // COLUMNS // RANKS, COLUMNS))}, RANKS)
    return folder


def _weights(size: int) -> dict[str, np.ndarray]:
    return {"w": np.zeros((size // 4 // COLUMNS, COLUMNS), np.float32), "b": np.ones(37, np.float32)}


def zero_two(folder: Path, size: int) -> Path:
    """ZeRO stage 2 on four ranks: flat partitions that cut the tensor anywhere."""
    return write_zero(folder, {(0, 0): [Group(_weights(size))]}, dp=RANKS, stage=2)


def zero_three(folder: Path, size: int) -> Path:
    """ZeRO stage 3 on three ranks: the tensor's own partition on each."""
    return write_three(folder, {0: [_weights(size)]}, dp=3)


def megatron(folder: Path, size: int) -> Path:
    """Megatron-LM, one file a rank, tensor-parallel 2: the vocabulary is the large tensor."""
    run = megatron_runs.Run(
        tp=2, layers=1, heads=16, groups=16, head_size=64, ffn=64, vocabulary=size // 4096
    )
    run.tied = True
    megatron_runs.write(folder, run, megatron_runs.model(run))
    return folder


FAMILIES: dict[str, Callable[[Path, int], Path]] = {
    "safetensors": safetensors,
    "torch": torch_zip,
    "torch-transposed": lambda folder, size: torch_zip(folder, size, transposed=True),
    "dcp": dcp,
    "zero-2": zero_two,
    "zero-3": zero_three,
    "megatron": megatron,
}
