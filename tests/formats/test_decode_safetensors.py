"""Catalogues of families that need no pickle: fragments in absolute bytes, from headers and indexes alone."""

import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from shardscope.engine.geometry.checking.check import check
from tests.checkpoints import LLAMA, write_json, write_safetensors, write_sharded
from tests.formats import decoding
from tests.formats.decoding import Found, decode, expected, lowered, value
from tests.formats.looking import FIXTURES, copied
from tests.formats.test_dcp_safetensors import shard_name, write_rows, write_shard

WHOLE = [
    *(f"hf/{name}" for name in ("gpt2_tied_sharded", "index_errors", "llama_sharded", "llama_single_bf16")),
    *(f"hf/{name}" for name in ("llama_tied_sharded", "mistral_consolidated", "mixtral_moe_sharded")),
    "peft/lora_llama",
    "accelerate/offload_folder",
    *(f"dcp/hf_writer_{name}_world2" for name in ("rank0_full", "scalar_int", "sharded", "consolidated")),
]


@pytest.fixture(autouse=True)
def no_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no pickle be read: these families have none."""

    def read(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a pickle was read")

    monkeypatch.setattr(decoding, "read_pickles", read)


# R025 R084 R085
@pytest.mark.parametrize("fixture", WHOLE)
def test_every_tensor_is_where_its_fragments_say(fixture: str) -> None:
    found = decode(FIXTURES / fixture / "checkpoint")
    wanted = expected(FIXTURES / fixture)
    if fixture == "hf/index_errors":  # one file is absent
        wanted = {tensor.name: wanted[tensor.name] for tensor in found.tensors}
    assert sorted(tensor.name for tensor in found.tensors) == sorted(wanted)
    for name, (dtype, shape, data) in wanted.items():
        tensor = found.named(name)
        assert (tensor.dtype, tensor.shape) == (dtype, shape), name
        assert value(found, tensor) == data, name
        assert check(lowered(tensor)).findings == (), name
    assert {tensor.component for tensor in found.tensors} == {"model"}


def test_fragments_of_one_file_share_its_record(tmp_path: Path) -> None:
    found = decode(write_sharded(tmp_path, shards=2))
    records = {id(fragment.record) for tensor in found.tensors for fragment in tensor.fragments}
    assert len(records) == 2
    for tensor in found.tensors:
        (fragment,) = tensor.fragments
        size = (tmp_path / fragment.record.file).stat().st_size
        assert (fragment.record.begin, fragment.record.length, fragment.record.size) == (0, size, size)


def test_only_the_tensors_of_the_claim_are_listed_once(tmp_path: Path) -> None:
    """An adapter beside a model: two claims, one catalogue."""
    write_sharded(tmp_path, shards=1)
    write_json(tmp_path / "adapter_config.json", {"peft_type": "LORA", "r": 2})
    write_safetensors(
        tmp_path / "adapter_model.safetensors", {"base_model.model.q.lora_A.weight": ("F32", (2, 4))}
    )
    found = decode(tmp_path)
    assert len(found.facts) == 2
    assert sorted(tensor.name for tensor in found.tensors) == sorted(
        [*LLAMA, "base_model.model.q.lora_A.weight"]
    )


def test_offloaded_files_of_another_size_have_no_fragment(tmp_path: Path) -> None:
    copied("accelerate/offload_folder", tmp_path)
    with (tmp_path / "count.dat").open("ab") as file:
        file.write(b"x")
    found = decode(tmp_path)
    assert "offload.file_size" in found.errors
    assert found.named("count").fragments == ()
    assert found.named("count").note
    assert found.named("flag").fragments


# -- fragments of a distributed save


def test_fragments_lie_at_their_saved_offsets(tmp_path: Path) -> None:
    found = decode(write_rows(tmp_path, 3, 2, 2))
    (tensor,) = found.tensors
    assert tensor.shape == (7, 4)
    assert [fragment.shape for fragment in tensor.fragments] == [(3, 4), (2, 4), (2, 4)]
    assert [shard.pieces[0].source.offset for shard in lowered(tensor).ranks] == [0, 12, 20]


def test_a_hole_stays_a_hole_in_the_map(tmp_path: Path) -> None:  # R078
    found = decode(write_rows(tmp_path, 3, 2, 2))
    (tmp_path / shard_name(2)).unlink()
    found = decode(tmp_path)
    assert "dcp.hole" in found.errors
    (tensor,) = found.tensors
    assert tensor.shape == (7, 4)
    assert sum(shard.elements for shard in lowered(tensor).ranks) == 20


def test_pieces_at_one_place_are_replicas(tmp_path: Path) -> None:
    for shard in (1, 2):
        write_shard(tmp_path / shard_name(shard), {"a": ("F32", (2, 4), [0, 0])})
    (tensor,) = decode(tmp_path).tensors
    assert (len(tensor.fragments), len(tensor.replicas)) == (1, 1)
    assert tensor.replicas[0].label == tensor.fragments[0].label
    assert tensor.replicas[0].record.file != tensor.fragments[0].record.file


def test_a_declared_shape_is_the_shape(tmp_path: Path) -> None:
    write_shard(
        tmp_path / shard_name(1), {"a": ("F32", (2, 4), {"saved_offsets": [0, 0], "global_shape": [5, 4]})}
    )
    (tensor,) = decode(tmp_path).tensors
    assert tensor.shape == (5, 4)


def test_fragments_take_the_place_of_what_was_consolidated_from_them(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "dcp" / "hf_writer_consolidated_world2" / "checkpoint", tmp_path / "save")
    found = decode(tmp_path / "save")
    assert "dcp.consolidated_beside" in found.codes
    assert all("sharded/" in item.record.file for tensor in found.tensors for item in tensor.fragments)
    next((tmp_path / "save" / "sharded").glob("shard-00001-*")).unlink()
    found = decode(tmp_path / "save")
    assert found.errors
    assert not any("sharded/" in item.record.file for tensor in found.tensors for item in tensor.fragments)


# -- ranks without geometry


def rank_files(found: Found, name: str) -> list[tuple[int, str]]:
    return [
        (fragment.label, fragment.record.file)
        for tensor in found.tensors
        if tensor.name == name
        for fragment in tensor.fragments
    ]


def test_ranks_of_vllm_are_listed_as_they_are_and_never_as_a_whole() -> None:
    path = FIXTURES / "hf" / "vllm_sharded_state_tp2" / "checkpoint"
    found = decode(path)
    held = rank_files(found, "model.layers.0.self_attn.qkv_proj.weight")
    assert [(rank, file.partition("-part")[0]) for rank, file in held] == [
        (0, "model-rank-0"),
        (1, "model-rank-1"),
    ]
    assert len(found.tensors) == 30
    assert all(tensor.note for tensor in found.tensors)
    (blocker,) = (item for item in found.blockers if item.code == "vllm.geometry")
    assert "convert" in blocker.blocks
    for tensor in found.tensors:
        (fragment,) = tensor.fragments
        data = (path / fragment.record.file).read_bytes()
        assert value(found, tensor) == data[fragment.offset : fragment.offset + 4 * lowered(tensor).elements]
