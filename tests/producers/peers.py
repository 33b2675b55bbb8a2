"""The usual tools, run as a person runs them, and shardscope beside them on the same files."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
OLD_DEEPSPEED = Path(sys.prefix) / "deepspeed-0.19.6"
"""Where `make test-producers` puts an older DeepSpeed."""


class Said(NamedTuple):
    """How a conversion by shardscope ended."""

    exit: int
    code: str | None
    """Of the blocker that it stopped at; null where it did not."""
    text: str
    """What it told on both outputs, with white space joined."""


def source(name: str) -> Path:
    return FIXTURES / name / "checkpoint"


def shardscope(*words: object) -> Said:
    """Run the command line in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "shardscope", *map(str, words)], capture_output=True, text=True, check=False
    )
    codes = re.findall(r"\[([a-z_]+\.[a-z0-9_]+)\]", done.stderr)
    return Said(
        done.returncode, codes[-1] if codes else None, " ".join((done.stdout + " " + done.stderr).split())
    )


def convert(checkpoint: Path, out: Path, *options: object) -> Said:
    return shardscope("convert", checkpoint, out, "--decode", "--yes", *options)


def converted(checkpoint: Path, out: Path, *options: object) -> dict[str, Any]:
    """Return the tensors that shardscope writes, read by the safetensors library."""
    said = convert(checkpoint, out, *options)
    assert said.exit == 0, said.text
    return tensors(out)


def tensors(folder: Path) -> dict[str, Any]:
    """Return the tensors of all safetensors files of a folder; with an index, each from the file that it names."""
    from safetensors.torch import load_file

    files = sorted(folder.glob("*.safetensors"))
    found = {name: tensor for file in files for name, tensor in load_file(file).items()}
    assert files
    index = folder / "model.safetensors.index.json"
    if index.exists():
        listed = json.loads(index.read_text())["weight_map"]
        assert listed == {name: file.name for file in files for name in load_file(file)}
    return found


def truth(name: str) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(FIXTURES / name / "expected.safetensors")


def equal(one: Any, other: Any) -> bool:
    """Tell whether two tensors hold the same values in the same shape; 16-bit floats may have been widened."""
    import torch

    if one.shape != other.shape:
        return False
    if one.is_floating_point() and other.is_floating_point() and one.dtype != other.dtype:
        one, other = one.double(), other.double()
    return one.dtype == other.dtype and torch.equal(one, other)


def different(found: dict[str, Any], want: dict[str, Any]) -> set[str]:
    """Return the names that are absent from either or differ."""
    shared = found.keys() & want.keys()
    return (found.keys() ^ want.keys()) | {name for name in shared if not equal(found[name], want[name])}


# --- DeepSpeed


def zero_to_fp32(folder: Path) -> dict[str, Any]:
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

    found = get_fp32_state_dict_from_zero_checkpoint(str(folder))
    return {name: tensor.detach().contiguous() for name, tensor in found.items()}


def ds_to_universal(folder: Path, out: Path, *, package: Path | None = None) -> Path:
    """Run DeepSpeed's converter, or that of another version of it; return the folder of the Universal checkpoint."""
    import os

    tag = (folder / "latest").read_text().strip()
    out.mkdir(parents=True, exist_ok=True)
    made = out / f"{tag}_universal"
    environment = dict(os.environ)
    if package is not None:
        environment["PYTHONPATH"] = str(package)
    command = [
        sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", "--inject_missing_state",
        "--num_extract_workers", "1", "--num_merge_workers", "1",
        "--input_folder", str(folder / tag), "--output_folder", str(made),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return made


def universal(made: Path) -> dict[str, Any]:
    """Return the fp32 weights of a Universal checkpoint, as its files hold them."""
    import torch

    found = {}
    for file in sorted((made / "zero").glob("*/fp32.pt")):
        value = torch.load(file, weights_only=False)
        found[file.parent.name] = value["param"] if isinstance(value, dict) else value
    return found


# --- torch


def dcp_to_torch_save(folder: Path, file: Path) -> dict[str, Any]:
    """Return what torch's own conversion makes of a distributed checkpoint, flat, with the names joined by dots."""
    import torch
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save as theirs

    theirs(str(folder), str(file))
    return flat(torch.load(file, weights_only=False))


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return {prefix: value.detach()}
    if isinstance(value, dict):
        pairs = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        pairs = [(str(number), item) for number, item in enumerate(value)]
    else:
        return {}
    return {
        name: tensor
        for key, item in pairs
        for name, tensor in flat(item, f"{prefix}.{key}" if prefix else key).items()
    }


def consolidate(folder: Path, out: Path) -> dict[str, Any]:
    """Return what torch's consolidation makes of the safetensors files of a distributed checkpoint."""
    from safetensors import safe_open
    from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files

    names = set()
    for file in folder.glob("*.safetensors"):
        with safe_open(file, "pt") as opened:
            names |= set(opened.keys())
    out.mkdir(parents=True, exist_ok=True)
    consolidate_safetensors_files(str(folder), str(out), dict.fromkeys(names, 1))
    return tensors(out)


def copy(folder: Path, to: Path) -> Path:
    """Copy a fixture: what a tool leaves behind must not lie among them."""
    return Path(shutil.copytree(folder, to))
