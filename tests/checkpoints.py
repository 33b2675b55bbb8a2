"""Small checkpoints made on the spot, byte by byte, so that tests can break them in one place."""

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

BYTES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2, "U8": 1, "I8": 1, "BOOL": 1}

Tensors = Mapping[str, tuple[str, Sequence[int]]]
"""Name to dtype and shape."""

LLAMA: Tensors = {
    "model.embed_tokens.weight": ("F32", (16, 4)),
    "model.layers.0.self_attn.q_proj.weight": ("F32", (4, 4)),
    "model.layers.0.mlp.up_proj.weight": ("F32", (8, 4)),
    "model.norm.weight": ("F32", (4,)),
}


def safetensors_bytes(tensors: Tensors, metadata: Mapping[str, str] | None = None) -> bytes:
    """Return a valid safetensors file whose data are zeros."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata is not None else {}
    end = 0
    for name, (dtype, shape) in tensors.items():
        begin = end
        size = BYTES[dtype]
        for extent in shape:
            size *= extent
        end += size
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + bytes(end)


def write_safetensors(path: Path, tensors: Tensors, metadata: Mapping[str, str] | None = None) -> Path:
    """Write a valid safetensors file and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(safetensors_bytes(tensors, metadata))
    return path


def write_json(path: Path, value: Any) -> Path:
    """Write a JSON file and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def write_sharded(
    folder: Path, tensors: Tensors = LLAMA, shards: int = 2, stem: str = "model", config: bool = True
) -> Path:
    """Write a sharded Hugging Face save with its index (and a configuration) and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(tensors)
    weight_map: dict[str, str] = {}
    total = 0
    for number in range(shards):
        part = {name: tensors[name] for name in names[number::shards]}
        file = f"{stem}-{number + 1:05d}-of-{shards:05d}.safetensors"
        data = safetensors_bytes(part, {"format": "pt"})
        (folder / file).write_bytes(data)
        total += len(data) - 8 - int.from_bytes(data[:8], "little")
        weight_map |= dict.fromkeys(part, file)
    write_json(
        folder / f"{stem}.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": weight_map},
    )
    if config:
        write_config(folder)
    return folder


def write_config(folder: Path) -> Path:
    """Write the configuration of a small Llama."""
    return write_json(
        folder / "config.json",
        {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 4,
            "num_hidden_layers": 1,
            "num_attention_heads": 1,
            "vocab_size": 16,
            "torch_dtype": "float32",
            "transformers_version": "5.24.0",
        },
    )


def write_torch_zip(path: Path, pickled: bytes = b"\x80\x02}q\x00.", storages: int = 1) -> Path:
    """Write a zip with the records of torch.save; its pickle is whatever is given and is never loaded."""
    path.parent.mkdir(parents=True, exist_ok=True)
    root = path.stem
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{root}/data.pkl", pickled)
        archive.writestr(f"{root}/byteorder", "little")
        for number in range(storages):
            archive.writestr(f"{root}/data/{number}", bytes(64))
        archive.writestr(f"{root}/version", "3\n")
    return path


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return every file below a folder with its size, modification time and bytes, to compare before and after."""
    found = {}
    for root, _, files in os.walk(folder):
        for name in files:
            file = Path(root) / name
            status = file.lstat()
            found[str(file.relative_to(folder))] = (status.st_size, status.st_mtime_ns, file.read_bytes())
    return found
