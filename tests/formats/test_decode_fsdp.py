"""FSDP rank files, decoded: what every rank holds, put together by what the pickles say of meshes and shards."""

import shutil
import zipfile
import zlib
from math import prod
from pathlib import Path

import pytest

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.evidence import Basis, Confidence
from tests.dcp_saves import WIDTHS, Item, tensor_pickle
from tests.formats.decoding import Found, decode, expected, value
from tests.formats.looking import FIXTURES
from tests.formats.test_decode_dcp import assert_equal

TORCH = FIXTURES / "torch"
WHOLE = (
    "fsdp1_sharded_torch_save_world2",
    "fsdp2_dtensor_torch_save_world2",
    "fsdp2_tp_dtensor_torch_save_dp2_tp2",
    "fsdp1_full_world2",
)


@pytest.mark.parametrize("name", WHOLE)
def test_every_whole_save_is_listed_and_equal_bit_for_bit(name: str) -> None:
    found = decode(TORCH / name / "checkpoint")
    assert not found.errors
    assert_equal(found, TORCH / name)


def test_a_local_state_is_refused_and_nothing_of_it_is_listed() -> None:
    found = decode(TORCH / "fsdp1_local_world2" / "checkpoint")
    assert found.errors == {"fsdp.local_state"}
    assert not found.tensors


def copied(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(TORCH / name / "checkpoint", tmp_path / "checkpoint"))


def repickled(path: Path, old: bytes, new: bytes) -> None:
    """Change the pickle of a file of torch.save, and write its records into a new archive."""
    with zipfile.ZipFile(path) as archive:
        records = {item.filename: archive.read(item) for item in archive.infolist()}
    (pickled,) = (name for name in records if name.endswith("/data.pkl"))
    assert old in records[pickled]
    records[pickled] = records[pickled].replace(old, new)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in records.items():
            archive.writestr(name, data)


def the(found: Found, code: str) -> Blocker:
    (item,) = (item for item in found.blockers if item.code == code)
    return item


def test_meshes_and_copies_on_the_meshes_of_other_groups(tmp_path: Path) -> None:  # R079 R082
    found = decode(TORCH / "fsdp2_tp_dtensor_torch_save_dp2_tp2" / "checkpoint")
    (mesh,) = found.facts[0].topology.meshes
    assert [(axis.name, axis.size) for axis in mesh.axes] == [("world", 4), ("dp", 2), ("tp", 2)]
    assert [axis.basis for axis in mesh.axes[1:]] == [Basis.DECLARED] * 2
    up, emb = found.named("up.weight"), found.named("emb.weight")
    assert [item.label for item in up.fragments] == [0, 1, 2, 3]
    assert not up.replicas
    assert [item.label for item in emb.fragments] == [
        0,
        2,
    ]  # the same rows on both ranks of the tensor-parallel pair
    assert [item.label for item in emb.replicas] == [0, 2]
    assert [item.record.file for item in emb.replicas] == [
        "model_world_size_4_rank_1.pt",
        "model_world_size_4_rank_3.pt",
    ]
    assert not found.facts[0].opaque
    assert found.facts[0].confidence is Confidence.HIGH


def test_a_missing_rank_leaves_its_shards_missing(tmp_path: Path) -> None:
    folder = copied("fsdp2_dtensor_torch_save_world2", tmp_path)
    (folder / "model_world_size_2_rank_1.pt").unlink()
    found = decode(folder)
    assert found.errors == {"fsdp.rank_missing", "fsdp.shard_missing"}
    params = the(found, "fsdp.shard_missing").params
    assert (params["tensor"], params["rank"]) == ("0.weight", 1)
    assert found.named("0.weight").note == "1 of 2 shards are missing"
    rep = found.named("rep")  # the other rank has it as well
    assert rep.note is None
    assert value(found, rep) == expected(TORCH / "fsdp2_dtensor_torch_save_world2")["rep"][2]


def test_a_file_under_the_name_of_another_rank_is_told_by_its_meshes(tmp_path: Path) -> None:  # R078
    folder = copied("fsdp2_dtensor_torch_save_world2", tmp_path)
    one, other = (folder / f"model_world_size_2_rank_{rank}.pt" for rank in range(2))
    one.rename(folder / "aside")
    other.rename(one)
    (folder / "aside").rename(other)
    found = decode(folder)
    assert found.errors == {"fsdp.rank_differs"}
    item = next(item for item in found.blockers if item.code == "fsdp.rank_differs")
    assert (item.params["found"], item.params["named"]) == (1, 0)


def test_a_partial_placement_is_refused(tmp_path: Path) -> None:
    folder = copied("fsdp2_dtensor_torch_save_world2", tmp_path)
    for file in folder.glob("*.pt"):
        repickled(file, b"placement_types\nReplicate\n", b"placement_types\nPartial\n")
    found = decode(folder)
    assert found.errors == {"fsdp.partial"}
    assert the(found, "fsdp.partial").params["tensor"] == "rep"
    assert "rep" not in {tensor.name for tensor in found.tensors}


def test_a_placement_that_is_not_known_is_refused(tmp_path: Path) -> None:
    folder = copied("fsdp2_dtensor_torch_save_world2", tmp_path)
    for file in folder.glob("*.pt"):
        repickled(file, b"placement_types\nReplicate\n", b"placement_types\nReplicant\n")
    found = decode(folder)
    assert found.errors == {"fsdp.layout_unknown"}
    assert "placement" in str(the(found, "fsdp.layout_unknown").params["reason"])


def test_ranks_that_describe_a_tensor_differently_are_refused(tmp_path: Path) -> None:
    folder = copied("fsdp1_sharded_torch_save_world2", tmp_path)
    repickled(folder / "model_rank1.bin", b"torch\nfloat32\n", b"torch\nint32\n")
    found = decode(folder)
    assert "fsdp.layout_differs" in found.errors
    assert the(found, "fsdp.layout_differs").params["reason"] == "F32 and I32"


def test_copies_with_other_checksums_are_refused(tmp_path: Path) -> None:  # R079
    folder = copied("fsdp2_tp_dtensor_torch_save_dp2_tp2", tmp_path)
    path = folder / "model_world_size_4_rank_1.pt"  # its rows fill their storage
    with zipfile.ZipFile(path) as archive:
        records = {item.filename: archive.read(item) for item in archive.infolist()}
    first = next(name for name in records if name.endswith("/data/0"))
    records[first] = bytes(len(records[first]))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in records.items():
            archive.writestr(name, data)
    found = decode(folder)
    assert found.errors == {"fsdp.replicas_differ"}
    assert the(found, "fsdp.replicas_differ").params["tensor"] == "emb.weight"


def test_plain_pieces_of_other_shapes_are_refused(tmp_path: Path) -> None:
    whole, part = (tmp_path / f"model_world_size_2_rank_{rank}.pt" for rank in range(2))
    write_item(whole, "float32", (4, 3))
    write_item(part, "float32", (2, 3))
    found = decode(tmp_path)
    assert found.errors == {"fsdp.shapes_differ"}
    assert the(found, "fsdp.shapes_differ").params["reason"] == "4 x 3 and 2 x 3"


def test_flat_pieces_of_an_optimizer_are_refused(tmp_path: Path) -> None:
    for rank in range(2):
        write_item(tmp_path / f"model_world_size_2_rank_{rank}.pt", "float32", (4, 3))
        write_item(tmp_path / f"optim_world_size_2_rank_{rank}.pt", "float32", (12,), fill=rank)
    found = decode(tmp_path)
    assert found.errors == {"fsdp.flat_optimizer"}
    assert {tensor.component for tensor in found.tensors} == {"model"}


def write_item(path: Path, dtype: str, shape: tuple[int, ...], fill: int = 0) -> None:
    """Write a file of torch.save that holds one tensor."""
    elements = bytes([fill]) * (WIDTHS[dtype] * prod(shape))
    item = Item(tensor_pickle(dtype, shape), len(elements), zlib.crc32(elements))
    path.write_bytes(item.head + elements + item.tail)


def test_a_rank_file_that_is_none_is_said_to_be_so_once(tmp_path: Path) -> None:
    folder = copied("fsdp2_dtensor_torch_save_world2", tmp_path)
    (folder / "model_world_size_2_rank_1.pt").write_text("<html>404</html>" * 20)
    found = decode(folder)
    assert [item.code for item in found.blockers if item.subject == "model_world_size_2_rank_1.pt"] == [
        "file.html"
    ]
    assert "fsdp.shard_missing" in found.errors


def test_rank_files_of_a_script_are_equal_bit_for_bit(tmp_path: Path) -> None:
    name = "fsdp2_tp_dtensor_torch_save_dp2_tp2"
    folder = copied(name, tmp_path)
    (folder / "fsdp_config.json").unlink()
    for rank in range(4):
        (folder / f"model_world_size_4_rank_{rank}.pt").rename(folder / f"rank_{rank}.pt")
    found = decode(folder)
    assert not found.errors
    assert_equal(found, TORCH / name)
