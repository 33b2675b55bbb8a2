"""Safetensors files for tests of fixes: sound ones by the format's own library, damaged ones byte by byte."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

Arrays = Mapping[str, Any]
"""Tensors by name, as numpy has them."""


def numbers(*shape: int, begin: int = 0, dtype: str = "<f4") -> Any:
    """Return an array in which no two elements are the same."""
    return (np.arange(begin, begin + int(np.prod(shape))) + 1).astype(dtype).reshape(shape)


def save(path: Path, tensors: Arrays, metadata: Mapping[str, str] | None = None) -> Path:
    """Write a sound file by the format's own library."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(dict(tensors), path, None if metadata is None else dict(metadata))
    return path


def write(path: Path, header: Mapping[str, Any] | bytes, data: bytes, pad: bytes = b" ") -> Path:
    """Write a file with a header as it is given."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += pad * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def entry(begin: int, end: int, dtype: str = "F32", *shape: int) -> dict[str, Any]:
    """Return an entry of a header; without a shape that of so many bytes in F32."""
    return {"dtype": dtype, "shape": list(shape or ((end - begin) // 4,)), "data_offsets": [begin, end]}


def index(folder: Path, weight_map: Mapping[str, str], total: int = 0, **metadata: Any) -> Path:
    """Write an index."""
    path = folder / "model.safetensors.index.json"
    path.write_text(
        json.dumps({"metadata": {"total_size": total, **metadata}, "weight_map": dict(weight_map)})
    )
    return path


def read(folder: Path) -> dict[str, Any]:
    """Return all tensors of a folder, as the format's own library reads them. A name in two files fails."""
    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="np") as opened:
            for name in opened.keys():  # noqa: SIM118 - it is no mapping
                assert name not in found
                found[name] = opened.get_tensor(name)
    return found


def metadata(path: Path) -> dict[str, str] | None:
    """Return the metadata of a file, as the format's own library reads them."""
    with safe_open(path, framework="np") as opened:
        found: dict[str, str] | None = opened.metadata()
    return found


def same(one: Arrays, other: Arrays) -> bool:
    """Tell whether two sets of tensors have the same names, types, shapes and bytes."""
    return one.keys() == other.keys() and all(
        (one[name].dtype, one[name].shape, one[name].tobytes())
        == (other[name].dtype, other[name].shape, other[name].tobytes())
        for name in one
    )
