"""What Accelerate leaves: saved states, whose parts keep their own families, and offload folders."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine import inspect
from shardscope.engine.model.evidence import Confidence
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.state import Presence
from tests.checkpoints import LLAMA, write_config, write_json, write_safetensors, write_torch_zip
from tests.formats.looking import FIXTURES, codes, errors, look, the

ACCELERATE = FIXTURES / "accelerate"
STATES = ["fsdp1_sharded_world2", "fsdp2_full_world2", "fsdp2_sharded_world2"]


def copied(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ACCELERATE / name / "checkpoint", tmp_path / "checkpoint"))


# Saved states


@pytest.mark.parametrize("name", STATES)
def test_fixtures_are_states_with_every_part(name: str) -> None:
    descriptor = look(ACCELERATE / name / "checkpoint")
    assert descriptor.classification.format == "accelerate_state"
    assert descriptor.classification.confidence is Confidence.LOW
    assert not errors(descriptor)
    scope = descriptor.state_scope
    assert {
        scope.weights.presence,
        scope.optimizer.presence,
        scope.scheduler.presence,
        scope.rng.presence,
    } == {Presence.OPAQUE}
    assert descriptor.topology.meshes[0].ranks_seen == ((0,), (1,))
    kinds = [item.kind for item in descriptor.components]
    assert {"weights", "optimizer", "scheduler", "rng"} <= set(kinds)


def test_distributed_parts_keep_their_family() -> None:
    descriptor = look(ACCELERATE / "fsdp2_sharded_world2" / "checkpoint")
    parts = {item.name: (item.kind, item.format) for item in descriptor.components}
    assert parts["pytorch_model_fsdp_0"] == ("weights", "torch_dcp")
    assert parts["optimizer_0"] == ("optimizer", "torch_dcp")
    assert not descriptor.classification.alternatives  # nobody else looks into its folders


def test_a_part_on_its_own_is_a_distributed_save() -> None:
    descriptor = look(ACCELERATE / "fsdp2_sharded_world2" / "checkpoint" / "pytorch_model_fsdp_0")
    assert descriptor.classification.format == "torch_dcp"


def test_a_state_without_fsdp_holds_hugging_face_weights(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", LLAMA, {"format": "pt"})
    write_config(tmp_path)
    for name in (
        "optimizer.bin",
        "scheduler.bin",
        "random_states_0.pkl",
        "custom_checkpoint_0.pkl",
        "scaler.pt",
    ):
        write_torch_zip(tmp_path / name)
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "accelerate_state"
    assert descriptor.tensors.count == len(LLAMA)
    assert descriptor.state_scope.weights.presence is Presence.PRESENT
    assert descriptor.state_scope.scaler.presence is Presence.OPAQUE
    assert descriptor.resources.logical_bytes.bytes is not None
    assert "custom state" in {item.kind for item in descriptor.components}
    assert not errors(descriptor)


def test_a_state_without_fsdp_can_hold_bin_weights(tmp_path: Path) -> None:
    for name in ("pytorch_model.bin", "optimizer.bin", "random_states_0.pkl"):
        write_torch_zip(tmp_path / name)
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "accelerate_state"
    assert "hf_torch" in {item.format for item in descriptor.components}


def test_rank_files_beside_random_states_are_a_part(tmp_path: Path) -> None:
    for rank in range(2):
        for stem in ("pytorch_model_fsdp_0", "optimizer_0"):
            write_torch_zip(tmp_path / f"{stem}_rank{rank}.bin")
        write_torch_zip(tmp_path / f"random_states_{rank}.pkl")
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "accelerate_state"
    assert [item.format for item in descriptor.classification.alternatives] == ["fsdp_rank_files"]
    (tmp_path / "optimizer_0_rank1.bin").unlink()
    assert the(look(tmp_path), "fsdp.rank_missing").params["pattern"] == "optimizer_0_rank*.bin"


def test_a_step_of_the_trainer_keeps_its_companions(tmp_path: Path) -> None:
    folder = copied("fsdp2_sharded_world2", tmp_path)
    for path in folder.glob("random_states_*"):
        path.unlink()
    write_torch_zip(folder / "rng_state_0.pth")
    write_torch_zip(folder / "training_args.bin")
    write_json(folder / "trainer_state.json", {"global_step": 10})
    descriptor = look(folder)
    assert descriptor.classification.format == "accelerate_state"
    assert descriptor.state_scope.progress.presence is Presence.PRESENT
    assert not errors(descriptor)


def test_several_states_are_candidates(tmp_path: Path) -> None:
    for number in range(2):
        shutil.copytree(ACCELERATE / STATES[1] / "checkpoint", tmp_path / f"checkpoint_{number}")
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "ambiguous"
    assert "layout.several_candidates" in codes(descriptor)


def test_lost_parts_are_named(tmp_path: Path) -> None:
    folder = copied("fsdp2_sharded_world2", tmp_path)
    shutil.rmtree(folder / "pytorch_model_fsdp_0")
    assert "accelerate.weights_missing" in errors(look(folder))
    shutil.rmtree(folder / "optimizer_0")
    assert "accelerate.optimizer_missing" in codes(look(folder))


def test_lost_metadata_of_one_part_is_named_with_its_folder(tmp_path: Path) -> None:
    folder = copied("fsdp2_sharded_world2", tmp_path)
    (folder / "optimizer_0" / ".metadata").unlink()
    assert the(look(folder), "dcp.metadata_missing").subject == "optimizer_0"


def test_an_empty_part_is_named(tmp_path: Path) -> None:
    folder = copied("fsdp2_sharded_world2", tmp_path)
    for path in (folder / "pytorch_model_fsdp_0").iterdir():
        path.unlink()
    assert the(look(folder), "accelerate.folder_empty").subject == "pytorch_model_fsdp_0"


def test_random_states_and_data_of_different_ranks_disagree(tmp_path: Path) -> None:
    folder = copied("fsdp2_sharded_world2", tmp_path)
    (folder / "random_states_1.pkl").rename(folder / "random_states_3.pkl")
    descriptor = look(folder)
    assert the(descriptor, "accelerate.random_states_gap").params["missing"] == 2
    assert "accelerate.ranks_disagree" in codes(descriptor)


def test_full_and_sharded_weights_in_one_state_are_two_sets(tmp_path: Path) -> None:
    folder = copied("fsdp2_sharded_world2", tmp_path)
    write_torch_zip(folder / "pytorch_model_fsdp.bin")
    assert the(look(folder), "layout.weight_sets").params["count"] == 2


def test_a_model_that_deepspeed_saved_is_not_missed(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "random_states_0.pkl")
    (tmp_path / "latest").write_text("pytorch_model")
    write_torch_zip(tmp_path / "pytorch_model" / "mp_rank_00_model_states.pt")
    descriptor = look(tmp_path)
    assert not {"accelerate.weights_missing", "accelerate.optimizer_missing"} & codes(descriptor)


# Offload folders


def test_an_offload_folder_is_not_distributed() -> None:  # R007 R060
    descriptor = look(ACCELERATE / "offload_folder" / "checkpoint")
    assert descriptor.classification.format == "accelerate_offload"
    assert descriptor.classification.confidence is Confidence.HIGH
    assert not descriptor.topology.meshes
    assert "Not distributed" in (descriptor.topology.note or "")
    assert codes(descriptor) == set()


def test_offloaded_tensors_are_listed_with_their_true_dtype() -> None:
    found = inspect(ACCELERATE / "offload_folder" / "checkpoint", digest="none")
    rows = {row.name: (row.dtype, row.shape, row.begin, row.end, row.file) for row in found.tensors}
    assert rows["bf16.weight"] == ("BF16", (32,), 0, 64, "bf16.weight.dat")
    assert rows["f8.weight"] == ("F8_E4M3", (4, 4), 0, 16, "f8.weight.dat")
    assert rows["count"] == ("I64", (), 0, 8, "count.dat")
    assert found.descriptor.tensors.count == len(rows) == 25
    assert found.descriptor.resources.logical_bytes.bytes == sum(end for _, _, _, end, _ in rows.values())


def test_a_file_that_was_cut_off_has_the_wrong_size(tmp_path: Path) -> None:
    folder = copied("offload_folder", tmp_path)
    (folder / "bf16.weight.dat").write_bytes(bytes(63))
    descriptor = look(folder)
    found = the(descriptor, "offload.file_size")
    assert (found.params["found"], found.params["expected"]) == (63, 64)
    assert descriptor.resources.logical_bytes.bytes is None
    assert descriptor.classification.confidence is Confidence.MEDIUM


def test_missing_and_foreign_files_are_named(tmp_path: Path) -> None:
    folder = copied("offload_folder", tmp_path)
    (folder / "lm_head.weight.dat").rename(folder / "old_head.weight.dat")
    descriptor = look(folder)
    assert the(descriptor, "offload.file_missing").params["tensor"] == "lm_head.weight"
    assert the(descriptor, "offload.file_unlisted").params["first"] == "old_head.weight.dat"


def test_a_lost_index_leaves_raw_numbers(tmp_path: Path) -> None:
    folder = copied("offload_folder", tmp_path)
    (folder / "index.json").unlink()
    descriptor = look(folder)
    assert descriptor.classification.format == "accelerate_offload"
    assert descriptor.classification.confidence is Confidence.LOW
    assert "offload.index_missing" in errors(descriptor)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (7, "it is a number"),
        ({"shape": [2]}, "its dtype is null"),
        ({"dtype": "float32"}, "its shape is no list"),
        ({"dtype": "float32", "shape": [-1]}, "its shape holds something else than numbers from 0 up"),
        ({"dtype": "float32", "shape": [True]}, "its shape holds something else than numbers from 0 up"),
        ({"dtype": "float32", "shape": [1] * 99}, "its shape has too many axes"),
        ({"dtype": "float32", "shape": [1 << 40, 1 << 40]}, "its shape is beyond 63 bits"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named(tmp_path: Path, entry: Any, reason: str) -> None:
    folder = copied("offload_folder", tmp_path)
    index = json.loads((folder / "index.json").read_text())
    write_json(folder / "index.json", index | {"count": entry})
    assert the(look(folder), "offload.entry_malformed").params["reason"] == reason


def test_an_unknown_dtype_and_a_tensor_elsewhere_are_named(tmp_path: Path) -> None:
    folder = copied("offload_folder", tmp_path)
    index = json.loads((folder / "index.json").read_text())
    index["flag"]["dtype"] = "posit8"
    index["other"] = {
        "safetensors_file": "/home/me/model.safetensors",
        "weight_name": "w",
        "dtype": "float32",
    }
    write_json(folder / "index.json", index)
    descriptor = look(folder)
    assert the(descriptor, "offload.dtype_unknown").params["tensor"] == "flag"
    assert "/home/me" not in the(descriptor, "offload.elsewhere").message


def test_other_raw_files_with_an_index_are_not_taken_for_tensors(tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_bytes(b"1,2,3")
    write_json(tmp_path / "index.json", {"files": ["a.dat"]})
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "unknown"
    assert [item.format for item in descriptor.classification.alternatives] == ["accelerate_offload"]


def test_an_index_beyond_the_limit_of_tensors_stops_with_its_name() -> None:
    folder = ACCELERATE / "offload_folder" / "checkpoint"
    assert "limit.tensors" in codes(inspect(folder, digest="none", limits=Limits(tensors=10)).descriptor)
