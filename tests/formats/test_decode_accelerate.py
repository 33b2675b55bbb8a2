"""States that Accelerate saves, decoded: every part as what it is."""

import shutil
from pathlib import Path

import pytest

from shardscope.engine.model.state import Presence
from tests.formats.decoding import Found, decode, expected, value
from tests.formats.looking import FIXTURES

ACCELERATE = FIXTURES / "accelerate"


def assert_part(found: Found, component: str, want: dict[str, tuple[str, tuple[int, ...], bytes]]) -> None:
    got = {tensor.name: tensor for tensor in found.tensors if tensor.component == component}
    assert got.keys() == want.keys()
    for key, (dtype, shape, data) in want.items():
        assert (got[key].dtype, got[key].shape) == (dtype, shape), key
        assert value(found, got[key]) == data, key


@pytest.mark.parametrize("name", ["fsdp1_sharded_world2", "fsdp2_full_world2", "fsdp2_sharded_world2"])
def test_the_weights_are_equal_bit_for_bit(name: str) -> None:
    found = decode(ACCELERATE / name / "checkpoint")
    assert not found.errors
    assert_part(found, "model", expected(ACCELERATE / name))


@pytest.mark.parametrize("name", ["fsdp2_full_world2", "fsdp2_sharded_world2"])
def test_the_optimizer_is_equal_bit_for_bit_under_the_same_names_in_either_form(name: str) -> None:
    found = decode(ACCELERATE / name / "checkpoint")
    assert_part(found, "optimizer", expected(ACCELERATE / name, "expected_optimizer"))


def test_random_states_and_schedulers_are_state_and_not_tensors() -> None:
    found = decode(ACCELERATE / "fsdp2_full_world2" / "checkpoint")
    (facts,) = found.facts
    assert facts.state.rng.presence is Presence.PRESENT
    assert facts.state.scheduler.presence is Presence.PRESENT
    assert facts.state.scaler.presence is Presence.ABSENT
    assert not [tensor for tensor in found.tensors if tensor.component == "other"]
    assert not facts.opaque


def test_a_state_with_hugging_face_weights_and_json_beside(tmp_path: Path) -> None:
    full = ACCELERATE / "fsdp2_full_world2" / "checkpoint"
    for name in ("optimizer.bin", "scheduler.bin", "random_states_0.pkl"):
        shutil.copy(full / name, tmp_path / name)
    shutil.copy(ACCELERATE / "fsdp2_full_world2" / "expected.safetensors", tmp_path / "model.safetensors")
    (tmp_path / "trainer_state.json").write_text('{"global_step": 2}')
    found = decode(tmp_path)
    assert not found.errors
    assert_part(found, "model", expected(ACCELERATE / "fsdp2_full_world2"))
    assert_part(found, "optimizer", expected(ACCELERATE / "fsdp2_full_world2", "expected_optimizer"))


def test_weights_in_torch_files_and_states_of_ones_own(tmp_path: Path) -> None:
    full = ACCELERATE / "fsdp2_full_world2" / "checkpoint"
    shutil.copy(full / "random_states_0.pkl", tmp_path / "random_states_0.pkl")
    shutil.copy(full / "pytorch_model_fsdp.bin", tmp_path / "pytorch_model.bin")
    shutil.copy(full / "pytorch_model_fsdp.bin", tmp_path / "custom_checkpoint_0.pkl")
    found = decode(tmp_path)
    assert_part(found, "model", expected(ACCELERATE / "fsdp2_full_world2"))
    others = {tensor.name for tensor in found.tensors if tensor.component == "other"}
    assert others == {f"custom_checkpoint_0.{name}" for name in expected(ACCELERATE / "fsdp2_full_world2")}


def test_a_save_of_which_the_metadata_is_damaged_stays_opaque(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ACCELERATE / "fsdp2_sharded_world2" / "checkpoint", tmp_path / "state"))
    (folder / "optimizer_0" / ".metadata").write_bytes(b"\x80\x04K\x01.")
    found = decode(folder)
    assert found.errors == {"dcp.not_metadata"}
    assert_part(found, "model", expected(ACCELERATE / "fsdp2_sharded_world2"))
    assert {entry.folder for entry in found.facts[0].opaque} == {b"optimizer_0"}
    assert "trust.opaque_pickle" in found.codes
