"""FSDP rank files: counted by their names, opaque."""

import shutil
from pathlib import Path

import pytest

from shardscope.engine.model.evidence import Basis, Confidence
from shardscope.engine.model.state import Presence
from tests.checkpoints import write_config, write_json, write_safetensors, write_torch_zip
from tests.formats.looking import FIXTURES, codes, errors, look, the

TORCH = FIXTURES / "torch"


def copied(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(TORCH / name / "checkpoint", tmp_path / "checkpoint"))


def write_verl(actor: Path, world: int = 2) -> Path:
    """Write what verl leaves for one model of one step."""
    for rank in range(world):
        for kind in ("model", "optim", "extra_state"):
            write_torch_zip(actor / f"{kind}_world_size_{world}_rank_{rank}.pt")
    write_json(actor / "fsdp_config.json", {"FSDP_version": 2, "world_size": world})
    return actor


@pytest.mark.parametrize(
    ("name", "world", "confidence", "basis"),
    [
        ("fsdp1_local_world2", 2, Confidence.LOW, Basis.INFERRED),
        ("fsdp1_sharded_torch_save_world2", 2, Confidence.LOW, Basis.INFERRED),
        ("fsdp2_dtensor_torch_save_world2", 2, Confidence.MEDIUM, Basis.DECLARED),
        ("fsdp2_tp_dtensor_torch_save_dp2_tp2", 4, Confidence.MEDIUM, Basis.DECLARED),
    ],
)
def test_fixtures_are_rank_files(name: str, world: int, confidence: Confidence, basis: Basis) -> None:
    descriptor = look(TORCH / name / "checkpoint")
    assert descriptor.classification.format == "fsdp_rank_files"
    assert descriptor.classification.confidence is confidence
    (mesh,) = descriptor.topology.meshes
    assert (mesh.axes[0].name, mesh.axes[0].size, mesh.axes[0].basis) == ("world", world, basis)
    assert mesh.ranks_seen == tuple((rank,) for rank in range(world))
    assert not errors(descriptor)
    assert descriptor.state_scope.weights.presence is Presence.OPAQUE


def test_a_world_that_nothing_declares_is_said_to_be_unproven() -> None:
    descriptor = look(TORCH / "fsdp1_local_world2" / "checkpoint")
    assert the(descriptor, "fsdp.world_unproven").params["last"] == 1


def test_one_full_file_is_no_rank_file() -> None:
    assert look(TORCH / "fsdp1_full_world2" / "checkpoint").classification.format == "torch_save"


@pytest.mark.parametrize("rank", [0, 3])
def test_any_missing_rank_is_seen_where_names_hold_the_world(tmp_path: Path, rank: int) -> None:
    folder = copied("fsdp2_tp_dtensor_torch_save_dp2_tp2", tmp_path)
    (folder / f"model_world_size_4_rank_{rank}.pt").unlink()
    descriptor = look(folder)
    found = the(descriptor, "fsdp.rank_missing")
    assert (found.params["missing"], found.params["total"], found.params["first"]) == (1, 4, rank)
    assert descriptor.topology.meshes[0].ranks_missing == ((rank,),)


def test_a_missing_first_rank_is_seen_without_a_world(tmp_path: Path) -> None:
    folder = copied("fsdp1_local_world2", tmp_path)
    (folder / "model_rank0.bin").unlink()
    assert the(look(folder), "fsdp.rank_missing").params["first"] == 0


def test_the_optimizer_of_a_rank_that_has_a_model_is_missed(tmp_path: Path) -> None:
    for rank in range(3):
        write_torch_zip(tmp_path / f"model_rank{rank}.bin")
    for rank in range(2):
        write_torch_zip(tmp_path / f"optimizer_rank{rank}.bin")
    found = the(look(tmp_path), "fsdp.rank_missing")
    assert (found.params["pattern"], found.params["first"]) == ("optimizer_rank*.bin", 2)


def test_ranks_beyond_the_world_and_there_twice_are_errors(tmp_path: Path) -> None:
    folder = copied("fsdp2_dtensor_torch_save_world2", tmp_path)
    shutil.copy(folder / "model_world_size_2_rank_1.pt", folder / "model_world_size_2_rank_2.pt")
    assert the(look(folder), "fsdp.rank_extra").params["count"] == 1
    shutil.copy(folder / "model_world_size_2_rank_1.pt", folder / "model_world_size_2_rank_01.pt")
    assert the(look(folder), "fsdp.rank_duplicate").params["first"] == 1


def test_files_of_two_worlds_are_mixed(tmp_path: Path) -> None:
    folder = copied("fsdp2_dtensor_torch_save_world2", tmp_path)
    shutil.copy(folder / "model_world_size_2_rank_0.pt", folder / "model_world_size_4_rank_0.pt")
    descriptor = look(folder)
    assert {"fsdp.worlds_mixed", "fsdp.world_disagrees"} <= errors(descriptor)
    assert descriptor.classification.confidence is Confidence.LOW


def test_a_model_and_an_optimizer_of_different_worlds_are_mixed(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "model_world_size_1_rank_0.pt")
    for rank in range(2):
        write_torch_zip(tmp_path / f"optim_world_size_2_rank_{rank}.pt")
    assert "fsdp.worlds_mixed" in errors(look(tmp_path))


def test_a_configuration_that_declares_another_world_disagrees(tmp_path: Path) -> None:
    folder = copied("fsdp2_dtensor_torch_save_world2", tmp_path)
    write_json(folder / "fsdp_config.json", {"FSDP_version": 2, "world_size": 8})
    found = the(look(folder), "fsdp.world_disagrees")
    assert (found.params["declared"], found.params["found"]) == (8, "2")


@pytest.mark.parametrize("world", [0, -1, True, "2", 1 << 40, None])
def test_a_world_that_cannot_be_one_declares_nothing(tmp_path: Path, world: object) -> None:
    folder = copied("fsdp2_dtensor_torch_save_world2", tmp_path)
    write_json(folder / "fsdp_config.json", {"world_size": world})
    descriptor = look(folder)
    assert descriptor.topology.meshes[0].axes[0].basis is Basis.INFERRED
    assert descriptor.classification.confidence is Confidence.LOW


def test_flat_pieces_are_named_for_what_they_are(tmp_path: Path) -> None:
    for rank in range(2):
        write_torch_zip(tmp_path / f"pytorch_model_fsdp_rank{rank}.bin")
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "fsdp_rank_files"
    assert "fsdp.flat_pieces" in codes(descriptor)


def test_a_rank_file_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    folder = copied("fsdp2_dtensor_torch_save_world2", tmp_path)
    path = folder / "model_world_size_2_rank_1.pt"
    path.write_bytes(path.read_bytes()[:2000])
    assert "zip.no_end_record" in errors(look(folder))


def test_a_step_of_verl_is_understood_with_its_tracker(tmp_path: Path) -> None:
    write_verl(tmp_path / "global_step_5" / "actor")
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("5")
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "fsdp_rank_files"
    assert "tracker.stale" not in codes(descriptor)
    assert not errors(descriptor)
    assert descriptor.state_scope.optimizer.presence is Presence.OPAQUE
    assert descriptor.state_scope.rng.presence is Presence.OPAQUE


def test_a_stale_tracker_of_verl_is_said(tmp_path: Path) -> None:
    write_verl(tmp_path / "global_step_5" / "actor")
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("6")
    assert "tracker.stale" in errors(look(tmp_path))


def test_a_model_for_people_beside_rank_files_is_a_composite(tmp_path: Path) -> None:
    actor = write_verl(tmp_path / "actor")
    write_config(write_safetensors(actor / "huggingface" / "model.safetensors", {"w": ("F32", (2,))}).parent)
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "composite"
    assert {item.format for item in descriptor.components if item.format} == {
        "fsdp_rank_files",
        "hf_safetensors",
    }


def test_hostile_ranks_and_worlds_cost_nothing(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "model_world_size_999999999_rank_7.pt")
    descriptor = look(tmp_path)
    assert the(descriptor, "fsdp.rank_missing").params["missing"] == 999_999_998
    assert len(descriptor.topology.meshes[0].ranks_missing) <= 256


@pytest.mark.parametrize(
    "name",
    ["rank_{}.pt", "rank{}.pt", "checkpoint_rank{}.pth", "checkpoint_last-rank-{}.pt", "step=3.rank_{}.ckpt"],
)
def test_scripts_number_their_ranks_in_other_ways(tmp_path: Path, name: str) -> None:
    for rank in range(3):
        write_torch_zip(tmp_path / name.format(rank))
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "fsdp_rank_files"
    assert {each.name for each in descriptor.components} == {name.format("*")}


def test_one_file_of_a_rank_may_be_anything(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "checkpoint_rank0.pth")
    assert look(tmp_path).classification.format == "torch_save"


@pytest.mark.parametrize("name", ["mp_rank_{:02}.pt", "model_tp_rank{}.pt", "rng_rank{}.pth", "frank{}.pt"])
def test_ranks_of_one_axis_and_random_states_are_no_rank_files(tmp_path: Path, name: str) -> None:
    for rank in range(2):
        write_torch_zip(tmp_path / name.format(rank))
    assert look(tmp_path).classification.format != "fsdp_rank_files"
