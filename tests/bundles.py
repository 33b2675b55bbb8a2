"""Bundles made on the spot, sound ones, so that tests can break them in one place."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

Arrays = dict[str, np.ndarray]
FILE = "shardscope-bundle.json"


class Bundled:
    """A bundle while it is made: its document, its files, and the tensors that it stands for."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)

        def made(*shape: int) -> np.ndarray:
            return rng.standard_normal(shape, dtype=np.float32)

        embed, up, qkv, norm = made(10, 4), made(8, 6), made(12, 4), made(4)
        self.model: Arrays = {
            "model.embed.weight": embed,
            "model.up.weight": up,
            "model.qkv.weight": qkv,
            "model.norm.weight": norm,
        }
        padded = np.concatenate([embed, np.zeros((2, 4), np.float32)])
        query, key, value = qkv[:6], qkv[6:9], qkv[9:]
        self.files: dict[str, Arrays] = {
            "rank0.safetensors": {
                "embed": padded[:6],
                "up": np.ascontiguousarray(up[:, :3]),
                "qkv": np.concatenate([query[:3], key[:2], value[:2]]),
                "norm": norm,
            },
            "parts/rank1.safetensors": {
                "embed": padded[6:],
                "up": np.ascontiguousarray(up[:, 3:]),
                "qkv": np.concatenate([query[3:], key[2:], value[2:], np.zeros((3, 4), np.float32)]),
                "norm": norm,
            },
        }
        self.document: dict[str, Any] = {
            "schema": "shardscope.bundle/1",
            "producer": "a test",
            "meshes": {"dense": {"axes": [{"name": "tp", "size": 2}]}},
            "tensors": {
                "model.embed.weight": {
                    "dtype": "F32",
                    "shape": [10, 4],
                    "map": {
                        "node": "contiguous", "axis": "tp", "dim": 0, "widths": [6, 6],
                        "of": {"node": "trim", "dim": 0, "logical_size": 10, "padded_size": 12},
                    },
                    "mesh": "dense",
                    "fragments": fragments("embed"),
                    "padded_shape": [12, 4],
                },
                "model.up.weight": {
                    "dtype": "F32",
                    "shape": [8, 6],
                    "map": {"node": "contiguous", "axis": "tp", "dim": 1, "widths": [3, 3]},
                    "mesh": "dense",
                    "fragments": fragments("up"),
                },
                "model.qkv.weight": {
                    "dtype": "F32",
                    "shape": [12, 4],
                    "shards": [
                        shard(0, [7, 4], [(0, 0, 12), (24, 12, 8), (36, 20, 8)]),
                        shard(1, [8, 4], [(12, 0, 12), (32, 12, 4), (44, 16, 4)], padding=12),
                    ],
                    "fragments": fragments("qkv"),
                },
                "model.norm.weight": {"dtype": "F32", "shape": [4], "fragments": fragments("norm")},
                "lm_head.weight": {"dtype": "F32", "shape": [10, 4], "alias_of": "model.embed.weight"},
            },
        }  # fmt: skip

    def tensor(self, name: str) -> dict[str, Any]:
        """Return the entry of a tensor, to change it."""
        found: dict[str, Any] = self.document["tensors"][name]
        return found

    def write(self, folder: Path) -> Path:
        """Write the bundle into a new folder and return that."""
        folder.mkdir(parents=True)
        for name, arrays in self.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            save_file(arrays, folder / name)
        (folder / FILE).write_text(json.dumps(self.document))
        return folder

    def copied(self) -> "Bundled":
        """Return a bundle of its own."""
        return copy.deepcopy(self)


def fragments(key: str) -> list[dict[str, Any]]:
    """Return a fragment of each of two ranks."""
    files = ("rank0.safetensors", "parts/rank1.safetensors")
    return [{"rank": rank, "file": file, "key": key} for rank, file in enumerate(files)]


def shard(rank: int, shape: list[int], runs: list[tuple[int, int, int]], padding: int = 0) -> dict[str, Any]:
    """Return a shard of runs: address in the full tensor, address in the shard, elements."""
    pieces = [
        {
            "shape": [count],
            "source": {"offset": source, "strides": [1]},
            "dest": {"offset": dest, "strides": [1]},
            "holders": [rank],
        }
        for source, dest, count in runs
    ]
    return {"ranks": [rank], "shape": shape, "pieces": pieces, "padding": padding}
