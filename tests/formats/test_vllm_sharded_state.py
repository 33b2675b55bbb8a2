"""vLLM's sharded_state: readable headers of every rank, and no word on how they make a whole."""

import shutil
from pathlib import Path

from shardscope.engine.model.evidence import Basis, Confidence
from tests.checkpoints import write_safetensors
from tests.formats.looking import FIXTURES, codes, errors, look, the

FIXTURE = FIXTURES / "hf" / "vllm_sharded_state_tp2" / "checkpoint"
FUSED = "model.layers.0.self_attn.qkv_proj.weight"


def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "checkpoint"))


def test_the_fixture_lists_the_tensors_of_each_rank_as_they_are_stored() -> None:
    descriptor = look(FIXTURE)
    assert descriptor.classification.format == "vllm_sharded_state"
    assert descriptor.classification.confidence is Confidence.MEDIUM
    assert codes(descriptor) == {"vllm.geometry", "vllm.same_on_ranks"}
    assert descriptor.tensors.count == 30
    assert descriptor.topology.rank_files[1].files == (
        "model-rank-1-part-0.safetensors",
        "model-rank-1-part-1.safetensors",
    )


def test_missing_facts_block_conversion_and_loading() -> None:
    descriptor = look(FIXTURE)
    blocker = the(descriptor, "vllm.geometry")
    assert blocker.blocks == ("convert", "load")
    assert (blocker.params["count"], blocker.params["ranks"]) == (15, 2)
    assert descriptor.resources.logical_bytes.bytes is None
    assert "copies" in descriptor.resources.logical_bytes.note


def test_part_and_copy_cannot_be_told_apart() -> None:
    assert the(look(FIXTURE), "vllm.same_on_ranks").params["count"] == 15


def test_the_degree_is_inferred_from_names() -> None:
    axis = look(FIXTURE).topology.meshes[0].axes[0]
    assert (axis.name, axis.size, axis.basis) == ("tp", 2, Basis.INFERRED)


def test_a_missing_rank_in_the_middle_is_seen(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    for file in folder.glob("model-rank-1-*"):
        file.rename(file.with_name(file.name.replace("rank-1", "rank-3")))
    descriptor = look(folder)
    assert the(descriptor, "vllm.rank_missing").params["first"] == 1
    assert descriptor.topology.meshes[0].ranks_missing == ((1,), (2,))


def test_a_missing_first_part_is_seen_by_its_number(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / "model-rank-1-part-0.safetensors").unlink()
    descriptor = look(folder)
    assert {"vllm.part_missing", "vllm.tensors_differ"} <= errors(descriptor)


def test_a_missing_last_part_is_seen_by_the_other_ranks(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / "model-rank-1-part-1.safetensors").unlink()
    descriptor = look(folder)
    assert errors(descriptor) == {"vllm.tensors_differ"}
    assert the(descriptor, "vllm.tensors_differ").params["missing"] == 8


def test_one_part_under_two_names_is_an_error(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    shutil.copy(folder / "model-rank-0-part-1.safetensors", folder / "model-rank-0-part-01.safetensors")
    assert {"vllm.file_twice", "index.tensor_duplicate"} <= errors(look(folder))


def test_a_rank_of_another_save_differs_in_shape(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / "model-rank-1-part-1.safetensors").unlink()
    write_safetensors(folder / "model-rank-1-part-1.safetensors", {FUSED: ("F32", (64, 32))})
    descriptor = look(folder)
    assert the(descriptor, "vllm.shapes_differ").params["tensor"] == FUSED
    assert "vllm.tensors_differ" in errors(descriptor)


def test_a_truncated_part_is_an_error(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    file = folder / "model-rank-0-part-0.safetensors"
    file.write_bytes(file.read_bytes()[:-8])
    descriptor = look(folder)
    assert "header.truncated" in errors(descriptor)


def test_two_saves_in_one_folder_are_not_merged(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    write_safetensors(folder / "draft-rank-0-part-0.safetensors", {FUSED: ("F32", (4, 4))})
    descriptor = look(folder)
    assert "layout.weight_sets" in codes(descriptor)
    assert "vllm.tensors_differ" not in codes(descriptor)


def test_one_rank_on_its_own_is_described(tmp_path: Path) -> None:
    file = tmp_path / "model-rank-1-part-0.safetensors"
    shutil.copy(FIXTURE / file.name, file)
    descriptor = look(file)
    assert descriptor.classification.format == "vllm_sharded_state"
    assert not errors(descriptor)
