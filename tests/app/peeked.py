"""A checkpoint of many types whose numbers are known, for the screen that shows them."""

import json
from pathlib import Path
from typing import Final

import numpy as np

HOSTILE: Final = "w.\x1b[31m[red]x[/red]\u202e\n" + "x" * 300
EXPERTS: Final = "model.layers.0.mlp.experts.down_proj"
"""In blocks of MXFP4, with scales of 2."""
WEIGHT: Final = "model.layers.0.mlp.up_proj.weight"


def halves(numbers: np.ndarray) -> bytes:
    """Return numbers as bfloat16, cut and not rounded."""
    return (numbers.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()


def weight() -> np.ndarray:
    """Return a matrix with a loud column, a loud row, rows of zeros, and everything that is not finite."""
    numbers = np.random.default_rng(1).normal(size=(96, 320)) * 0.02
    numbers[:, 77] *= 300
    numbers[17] *= 40
    numbers[60:64] = 0
    numbers[0, 0] = -0.0
    numbers[3, 5], numbers[4, 6], numbers[5, 7] = np.nan, np.inf, -np.inf
    return numbers


def write(path: Path) -> Path:
    """Write the checkpoint."""
    chance = np.random.default_rng(2)
    tensors: dict[str, tuple[str, tuple[int, ...], bytes]] = {
        WEIGHT: ("BF16", (96, 320), halves(weight())),
        "norm": ("F32", (1000,), np.arange(1000, dtype="<f4").tobytes()),
        "scalar": ("F64", (), np.array(np.pi).tobytes()),
        "conv": ("F16", (8, 4, 3, 3), np.arange(288, dtype="<f2").tobytes()),
        "qweight": ("I32", (32, 64), chance.integers(-(2**31), 2**31, (32, 64)).astype("<i4").tobytes()),
        "empty": ("F32", (0, 7), b""),
        f"{EXPERTS}_blocks": ("U8", (2, 4, 2, 16), chance.integers(0, 256, (2, 4, 2, 16), "u1").tobytes()),
        f"{EXPERTS}_scales": ("U8", (2, 4, 2), np.full((2, 4, 2), 128, "u1").tobytes()),
        HOSTILE: ("F32", (4, 4), np.arange(16, dtype="<f4").tobytes()),
    }
    entries, data = {}, b""
    for name, (dtype, shape, numbers) in tensors.items():
        ends = [len(data), len(data) + len(numbers)]
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": ends}
        data += numbers
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path
