"""Laying out one file of a checkpoint: what is asked of the file system, and what is said where nothing can be laid out."""

import os
import threading
from pathlib import Path

import pytest

from shardscope.engine import inspect
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.previewing import layout
from tests import torchfiles
from tests.checkpoints import safetensors_bytes, write_safetensors

TENSORS = {"a": ("U8", (1 << 20,)), "b": ("U8", (1 << 20,))}


def test_holes_of_a_sparse_file_are_told(tmp_path: Path) -> None:
    data = safetensors_bytes(TENSORS)
    path = tmp_path / "model.safetensors"
    with path.open("wb") as file:
        file.write(data[: -(2 << 20)])
        file.truncate(len(data))
        begin = len(data) - (2 << 20) + (1 << 20)
        file.seek(begin)
        file.write(os.urandom(4096))
    found = layout(inspect(tmp_path), b"model.safetensors")
    assert found.container == "safetensors"
    assert found.size == len(data)
    if not found.holes:
        pytest.skip("the file system keeps no holes")
    by_name = {each.name: each for each in found.ranges if each.name}
    assert by_name["a"].hole > 900_000
    assert 900_000 < by_name["b"].hole < 1 << 20
    assert all(begin < end <= found.size for begin, end in found.holes)


def test_a_broken_header_says_why_and_is_still_covered(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 100)
    found = layout(inspect(tmp_path), b"model.safetensors")
    assert found.container == "unknown"
    assert [(each.begin, each.end, each.kind) for each in found.ranges] == [(0, 100, "unknown")]
    assert found.says


def test_folders_and_empty_files_have_no_stretches(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "empty.bin").write_bytes(b"")
    inspection = inspect(tmp_path)
    assert layout(inspection, b"sub").says == ("A directory, not a regular file.",)
    assert layout(inspection, b"sub/empty.bin").ranges == ()


def test_a_file_that_changed_since_is_not_laid_out(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "model.safetensors", TENSORS)
    inspection = inspect(tmp_path)
    path.write_bytes(safetensors_bytes({"a": ("U8", (8,))}))
    found = layout(inspection, b"model.safetensors")
    assert found.container == "unknown"
    assert "changed" in found.says[0]


def test_records_get_the_names_of_their_tensors_once_decoded(tmp_path: Path) -> None:
    value = {"w": torchfiles.Tensor("0", 4, (2, 2)), "v": torchfiles.Tensor("1", 2, (2,))}
    torchfiles.save(tmp_path / "pytorch_model.bin", value, {"0": bytes(16), "1": bytes(8)})
    safe = layout(inspect(tmp_path), b"pytorch_model.bin")
    assert safe.container == "torch archive"
    assert [each.note for each in safe.ranges if each.kind == "storage"] == ["", ""]
    wish = Decoding(Intent("inspect", "command line"))
    decoded = layout(inspect(tmp_path, decoding=wish), b"pytorch_model.bin")
    assert [each.note for each in decoded.ranges if each.kind == "storage"] == ["w", "v"]


def test_laying_out_can_be_cancelled(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", TENSORS)
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        layout(inspect(tmp_path), b"model.safetensors", cancel=cancel)
