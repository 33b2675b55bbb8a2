"""Hugging Face safetensors: sets, indexes and headers against each other."""

import json
import shutil
from pathlib import Path

import pytest

from shardscope.engine import inspect
from shardscope.engine.model.evidence import Confidence, Status
from tests.checkpoints import LLAMA, write_config, write_safetensors, write_sharded, write_torch_zip
from tests.formats.looking import FIXTURES, codes, errors, look, the


@pytest.mark.parametrize(
    ("name", "tensors"),
    [
        ("gpt2_tied_sharded", 28),
        ("llama_sharded", 21),
        ("llama_single_bf16", 21),
        ("llama_tied_sharded", 20),
        ("mixtral_moe_sharded", 0),
    ],
)
def test_fixtures_of_transformers_are_high_confidence(name: str, tensors: int) -> None:  # R018 R022 R023
    descriptor = look(FIXTURES / "hf" / name / "checkpoint")
    assert descriptor.classification.format == "hf_safetensors"
    assert descriptor.classification.status is Status.CONDITIONAL
    assert descriptor.classification.confidence is Confidence.HIGH
    assert not errors(descriptor)
    index = FIXTURES / "hf" / name / "checkpoint" / "model.safetensors.index.json"
    if index.exists():
        tensors = len(json.loads(index.read_text())["weight_map"])
    assert descriptor.tensors.count == tensors


def test_edited_index_gives_its_three_errors() -> None:
    descriptor = look(FIXTURES / "hf" / "index_errors" / "checkpoint")
    assert descriptor.classification.format == "hf_safetensors"
    found = codes(descriptor)
    assert {
        "index.shard_missing",
        "index.tensor_missing",
        "index.tensor_elsewhere",
        "index.total_size",
    } <= found


def test_a_whole_save_has_no_blocker(tmp_path: Path) -> None:
    descriptor = look(write_sharded(tmp_path / "save"))
    assert not descriptor.blockers
    assert descriptor.classification.confidence is Confidence.HIGH
    assert descriptor.resources.logical_bytes.bytes == (64 + 16 + 32 + 4) * 4


def test_removed_shard_names_itself_and_its_tensors(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "save")
    (folder / "model-00002-of-00002.safetensors").unlink()
    descriptor = look(folder)
    assert errors(descriptor) == {"index.shard_missing", "layout.shard_gap"}
    missing = the(descriptor, "index.shard_missing")
    assert missing.params["count"] == 2
    assert "model-00002-of-00002.safetensors" in missing.message
    assert descriptor.classification.status is Status.CONDITIONAL
    assert descriptor.resources.logical_bytes.bytes is None


def test_renamed_shard_is_missing_and_unlisted(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "save")
    (folder / "model-00002-of-00002.safetensors").rename(folder / "other.safetensors")
    assert {"index.shard_missing", "layout.weight_sets"} <= codes(look(folder))


def test_truncated_shard_says_by_how_much(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "save")
    shard = folder / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-3])
    descriptor = look(folder)
    assert "header.truncated" in errors(descriptor)
    assert descriptor.classification.status is Status.REFUSED
    truncated = the(descriptor, "header.truncated")
    assert "3 bytes" in truncated.message
    assert descriptor.tensors.count == 4  # the header itself is whole
    assert descriptor.resources.logical_bytes.bytes is None


def test_shard_of_another_save_disagrees_with_the_index(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "save")
    write_safetensors(folder / "model-00002-of-00002.safetensors", {"other.weight": ("F32", (2, 2))})
    descriptor = look(folder)
    assert {"index.tensor_missing", "index.tensor_unlisted"} <= codes(descriptor)
    assert descriptor.classification.confidence is Confidence.MEDIUM


def test_older_save_with_other_total_is_seen(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "save", shards=2)
    write_sharded(tmp_path / "old", shards=3)
    for shard in (tmp_path / "old").glob("model-*-of-00003.safetensors"):
        shutil.copy(shard, folder)
    assert {"layout.totals_mixed", "layout.weight_sets"} <= codes(look(folder))


def test_variants_are_sets_of_their_own(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "save")
    half = {name: ("F16", shape) for name, (_, shape) in LLAMA.items()}
    write_sharded(folder, half, stem="model.fp16", config=False)
    (folder / "model.fp16.safetensors.index.json").rename(folder / "model.safetensors.index.fp16.json")
    descriptor = look(folder)
    assert sorted(part.name for part in descriptor.components if part.kind == "weights") == [
        "model",
        "model.fp16",
    ]
    assert "layout.weight_sets" in codes(descriptor)
    assert not errors(descriptor)


def test_shards_without_index_are_medium(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "save", config=False)
    (folder / "model.safetensors.index.json").unlink()
    descriptor = look(folder)
    assert codes(descriptor) >= {"index.absent"}
    assert descriptor.classification.confidence is Confidence.MEDIUM
    assert not errors(descriptor)


def test_tensor_in_two_files_is_reported_with_both(tmp_path: Path) -> None:
    folder = tmp_path / "save"
    for number in (1, 2):
        write_safetensors(folder / f"model-0000{number}-of-00002.safetensors", {"a": ("F32", (2,))})
    duplicate = the(look(folder), "index.tensor_duplicate")
    assert "model-00001" in duplicate.message
    assert "model-00002" in duplicate.message


def test_huge_total_in_a_name_costs_nothing(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model-00001-of-99999999999999999999.safetensors", {"a": ("F32", (2,))})
    gap = the(look(tmp_path), "layout.shard_gap")
    assert gap.params["missing"] == 99999999999999999998


def test_safetensors_beside_bin_are_both_reported(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "save")
    write_torch_zip(folder / "pytorch_model.bin")
    descriptor = look(folder)
    assert descriptor.classification.format == "composite"
    assert {"layout.weight_sets", "trust.opaque_pickle"} <= codes(descriptor)


def test_trainer_state_beside_weights_is_scope_not_a_second_format(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "save")
    for name in ("optimizer.pt", "scheduler.pt", "rng_state_0.pth", "scaler.pt"):
        write_torch_zip(folder / name)
    (folder / "trainer_state.json").write_text('{"global_step": 7}')
    descriptor = look(folder)
    assert descriptor.classification.format == "hf_safetensors"
    scope = descriptor.state_scope
    assert scope.weights.presence == "present"
    assert scope.optimizer.presence == scope.scheduler.presence == scope.rng.presence == "opaque"
    assert scope.progress.presence == "present"
    assert scope.data_position.presence == "absent"


def test_unrelated_files_change_neither_format_nor_confidence(tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "save")
    before = look(folder).classification
    (folder / "notes.txt").write_text("hello")
    (folder / "pictures").mkdir()
    (folder / "pictures" / "a.png").write_bytes(b"\x89PNG")
    after = look(folder).classification
    assert (before.format, before.confidence) == (after.format, after.confidence)


def test_steps_side_by_side_are_not_merged(tmp_path: Path) -> None:  # R040
    for step in (100, 200):
        write_sharded(tmp_path / f"checkpoint-{step}")
    inspection = inspect(tmp_path, digest="none")
    assert inspection.descriptor.classification.format == "ambiguous"
    assert inspection.descriptor.classification.status is Status.AMBIGUOUS
    assert inspection.exit_code() == 8
    assert "layout.several_candidates" in codes(inspection.descriptor)


def test_one_step_alone_is_what_it_holds(tmp_path: Path) -> None:
    write_sharded(tmp_path / "checkpoint-100")
    assert look(tmp_path).classification.format == "hf_safetensors"


def test_folder_of_a_pipeline_is_one_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "Pipeline"}')
    write_safetensors(tmp_path / "unet" / "diffusion_pytorch_model.safetensors", LLAMA)
    write_safetensors(tmp_path / "vae" / "diffusion_pytorch_model.safetensors", LLAMA)
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "hf_safetensors"
    assert len([part for part in descriptor.components if part.kind == "weights"]) == 2


def test_weights_without_config_are_medium(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", LLAMA)
    assert look(tmp_path).classification.confidence is Confidence.MEDIUM
    write_config(tmp_path)
    assert look(tmp_path).classification.confidence is Confidence.HIGH
