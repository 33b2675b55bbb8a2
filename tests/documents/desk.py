"""A folder with everything that the command lines of the documents name, so that each can be typed there as it stands."""

import contextlib
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from shardscope.app.main import main
from tests.bundles import Bundled
from tests.capabilities.statements import as_document
from tests.documents.pages import ROOT

FIXTURES = ROOT / "tests/fixtures"
CHECKPOINTS = {
    "ckpt": "hf/llama_sharded",
    "hf": "hf/llama_sharded",
    "step-1": "dcp/fsdp2_flat_world2",
    "step-2": "dcp/fsdp2_flat_world2",
    "step-100": "hf/llama_sharded",
    "step-200": "hf/llama_sharded",
    "export": "hf/llama_sharded",
    "base": "hf/llama_sharded",
    "a": "hf/llama_sharded",
    "b": "hf/llama_sharded",
    "zero-8": "deepspeed/zero3-w3-fp32",
    "zero-16": "deepspeed/zero3-w3-fp32",
    "zero": "deepspeed/zero3-w3-fp32",
    "megatron": "megatron/torch_dist_tp2_pp2",
    "adapter": "peft/lora_llama",
    "dcp": "dcp/fsdp2_flat_world2",
    "run/checkpoint-500": "hf/llama_sharded",
}
"""Name on the desk: fixture."""
W = np.arange(128, dtype="<f4").reshape(16, 8)
INFO = {"universal_checkpoint_version": 0.4, "parameter_with_row_parallelism_patterns": ["^w$"]}


def lay(desk: Path) -> None:
    """Put everything on an empty desk."""
    for name, fixture in CHECKPOINTS.items():
        shutil.copytree(FIXTURES / fixture / "checkpoint", desk / name)
    for file in (
        "hf/llama_single_bf16/checkpoint/model.safetensors",
        "hf/bin_single_tied/checkpoint/pytorch_model.bin",
    ):
        shutil.copy2(FIXTURES / file, desk)
    (desk / "docs").mkdir()
    shutil.copy(ROOT / "docs/support-matrix.md", desk / "docs")
    shutil.copytree(ROOT / "docs/maps", desk / "docs/maps")
    Bundled().write(desk / "bundle")
    damaged(desk)
    merged(desk)
    packed(desk)
    maps(desk)
    documents(desk)


def damaged(desk: Path) -> None:
    """A checkpoint whose index is of another save, and one whose download stopped within a file."""
    for name in ("damaged", "half"):
        shutil.copytree(FIXTURES / "hf/llama_sharded/checkpoint", desk / name)
    index = desk / "damaged/model.safetensors.index.json"
    stale = json.loads(index.read_text())
    del stale["weight_map"]["lm_head.weight"]
    write(index, stale)
    shard = desk / "half/model-00005-of-00010.safetensors"
    os.truncate(shard, shard.stat().st_size - 2_000)


def merged(desk: Path) -> None:
    """The base with the adapter merged into it, as peft does it."""
    tensors = {
        name: tensor
        for file in (desk / "base").glob("*.safetensors")
        for name, tensor in load_file(file).items()
    }
    factors = load_file(desk / "adapter/adapter_model.safetensors")
    for name, factor in factors.items():
        module = name.removeprefix("base_model.model.")
        if module.endswith(".lora_B.weight"):
            inner = factors[name.replace("lora_B", "lora_A")]
            tensors[module.replace(".lora_B", "")] += 2 * (factor @ inner)
        elif ".lora_" not in module:
            tensors[module] = factor
    (desk / "merged").mkdir()
    save_file(tensors, desk / "merged/model.safetensors", {"format": "pt"})


def packed(desk: Path) -> None:
    """Weights of four bits as GPTQ and MXFP4 pack them, and blocks of ggml."""
    module, experts = "model.layers.0.mlp.up_proj", "model.layers.0.mlp.experts.down_proj"
    words, zeros, scales = (
        np.full((8, 32), 0x76543210, "<i4"),
        np.full((2, 4), 0x77777777, "<i4"),
        np.ones((2, 32), "<f2"),
    )
    held: dict[str, dict[str, np.ndarray]] = {
        "gptq": {f"{module}.qweight": words, f"{module}.qzeros": zeros, f"{module}.scales": scales}
    }
    blocks, powers = np.full((4, 8, 2, 16), 0x21, "u1"), np.full((4, 8, 2), 127, "u1")
    held["gpt-oss"] = {f"{experts}_blocks": blocks, f"{experts}_scales": powers}
    methods = {
        "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 32},
        "gpt-oss": {"quant_method": "mxfp4"},
    }
    for name, tensors in held.items():
        (desk / name).mkdir()
        save_file(tensors, desk / name / "model.safetensors", {"format": "pt"})
        write(desk / name / "config.json", {"quantization_config": methods[name]})
    shutil.copy2(FIXTURES / "gguf/llama_mixed/checkpoint/tiny-q4.gguf", desk / "model.gguf")


def maps(desk: Path) -> None:
    """Shard maps, and the arrays that they are about."""
    for ranks in (2, 4, 8):
        write(desk / f"tp{ranks}.json", cut({"w": W.shape}, ranks))
    for name in ("written.json", "derived.json"):
        shutil.copy(desk / "tp2.json", desk / name)
    shutil.copy(ROOT / "docs/maps/column_tp4.json", desk / "column_tp4.json")
    parts = [
        {"size": 4 * each, "name": name, "map": contiguous([each] * 4)}
        for name, each in (("q", 8), ("k", 2), ("v", 2))
    ]
    fused = {"shape": [48, 8], "dtype": "F32", "map": {"node": "sub_param_concat", "dim": 0, "parts": parts}}
    write(desk / "map.json", document(4) | {"tensors": {"h.0.attn.qkv.weight": fused}})
    for rank, names in enumerate((("rank0.npy", "a.npy"), ("rank1.npy", "b.npy"))):
        for name in names:
            np.save(desk / name, W[8 * rank : 8 * rank + 8])
    save_file({"w": W}, desk / "full.safetensors")
    config = json.loads((desk / "ckpt/model.safetensors.index.json").read_text())
    shapes = {
        name: shape for name, shape in tensor_shapes(desk / "ckpt").items() if name in config["weight_map"]
    }
    write(desk / "target.json", cut(shapes, 2))


def contiguous(widths: list[int]) -> dict[str, Any]:
    """A cut of the rows."""
    return {"node": "contiguous", "axis": "tp", "dim": 0, "widths": widths}


def document(ranks: int) -> dict[str, Any]:
    """A document of maps without a tensor."""
    return {"schema": "shardscope.shardmap/1", "meshes": {"dense": {"axes": [{"name": "tp", "size": ranks}]}}}


def cut(shapes: dict[str, tuple[int, ...]], ranks: int) -> dict[str, Any]:
    """A document of maps: matrices by rows, vectors on every rank."""
    tensors = {
        name: {
            "shape": list(shape),
            "dtype": "F32",
            "map": contiguous([shape[0] // ranks] * ranks) if len(shape) == 2 else {"node": "replicate"},
        }
        for name, shape in shapes.items()
    }
    return document(ranks) | {"tensors": tensors}


def tensor_shapes(checkpoint: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of a folder of safetensors."""
    listed = json.loads(said("tensors", str(checkpoint), "--json"))
    return {each["name"]: tuple(each["shape"]) for each in listed["tensors"]}


def documents(desk: Path) -> None:
    """What other commands printed or wrote."""
    write(desk / "dcp.json", as_document())
    write(desk / "info.json", INFO)
    write(desk / "shapes.json", {"w": [[4096, 1024], [4096, 1024]]})
    write(
        desk / "rename.json",
        {"schema": "shardscope.renames/1", "rules": [{"prefix": "model.", "to": "base."}]},
    )
    with inside(desk):
        for name, line in {
            "affine_map.json": ("map", "to-deepspeed", "map.json"),
            "ckpt.json": ("inspect", "./ckpt", "--json"),
            "decoded.json": ("inspect", "./ckpt", "--decode", "--json"),
            "plan.json": ("plan", "./ckpt", "--decode", "--json"),
            "error.json": ("convert", "./ckpt", "./ckpt", "--json", "--yes"),
        }.items():
            (desk / name).write_text(said(*line))
        said("convert", "./ckpt", "./out", "--yes", "--quiet")
        for bundle in ("report.zip", "before.zip", "after.zip"):
            said("report", "./ckpt", "-o", bundle)


def write(path: Path, document: object) -> None:
    """Write a JSON document."""
    path.write_text(json.dumps(document))


@contextlib.contextmanager
def inside(folder: Path) -> Any:
    """Work in a folder for a while."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def said(*arguments: str) -> str:
    """Run shardscope in this process and return its standard output."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        main(arguments)
    return raw.getvalue().decode()
