"""PyTorch distributed checkpoints: known by names and arrangement, opaque, and never with more than low confidence."""

import shutil
from pathlib import Path

import pytest

from shardscope.engine.model.evidence import Basis, Confidence
from shardscope.engine.model.state import Presence
from tests.checkpoints import write_json, write_torch_zip
from tests.formats.looking import FIXTURES, codes, errors, look, the

DCP = FIXTURES / "dcp"
PICKLED = sorted(folder.parent.name for folder in DCP.glob("*/checkpoint") if list(folder.glob("*.distcp")))
QUIET = {"trust.opaque_pickle", "dcp.set_unproven"}
"""What a whole save gives rise to."""


def copied(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(DCP / name / "checkpoint", tmp_path / "checkpoint"))


@pytest.mark.parametrize("name", PICKLED)
def test_fixtures_are_dcp_by_names_alone_and_opaque(name: str) -> None:  # R008 R039
    descriptor = look(DCP / name / "checkpoint")
    assert descriptor.classification.format == "torch_dcp"
    assert descriptor.classification.confidence is Confidence.LOW
    assert not errors(descriptor)
    assert descriptor.state_scope.optimizer.presence is Presence.UNKNOWN  # never absent: it may be inside
    assert descriptor.resources.logical_bytes.bytes is None


def test_a_plain_save_has_its_ranks_by_inference() -> None:
    descriptor = look(DCP / "dtensor_2d_dp2_tp2" / "checkpoint")
    assert codes(descriptor) == QUIET
    (mesh,) = descriptor.topology.meshes
    assert [(axis.name, axis.size, axis.basis) for axis in mesh.axes] == [
        ("world", 4, Basis.INFERRED),
        ("rank", 4, Basis.INFERRED),
    ]
    assert mesh.ranks_seen == ((0,), (1,), (2,), (3,))
    assert [item.files for item in descriptor.topology.rank_files][2] == ("__2_0.distcp",)


def test_many_files_of_one_rank_are_one_rank() -> None:
    descriptor = look(DCP / "fsdp2_file_per_item_world2" / "checkpoint")
    assert descriptor.topology.meshes[0].ranks_seen == ((0,), (1,))
    assert codes(descriptor) == QUIET


def test_a_word_in_front_of_the_rank_is_let_through(tmp_path: Path) -> None:
    folder = copied("fsdp2_flat_world2", tmp_path)
    (folder / "__1_0.distcp").rename(folder / "model__1_0.distcp")
    descriptor = look(folder)
    assert codes(descriptor) == QUIET
    assert descriptor.topology.meshes[0].ranks_seen == ((0,), (1,))


def test_files_of_a_larger_world_cannot_be_told_from_their_names() -> None:
    descriptor = look(DCP / "stale_files_world3_then_world2" / "checkpoint")
    assert the(descriptor, "dcp.set_unproven").params["count"] == 3
    assert "leave no gap" in (descriptor.topology.meshes[0].axes[0].evidence or "")


def test_safetensors_inside_are_listed_and_nothing_is_concluded_from_them() -> None:
    descriptor = look(DCP / "fsdp2_safetensors_distcp_world2" / "checkpoint")
    assert codes(descriptor) == QUIET | {"dcp.payload_safetensors"}
    assert descriptor.tensors.count == 21
    assert descriptor.state_scope.weights.presence is Presence.PRESENT
    assert descriptor.classification.confidence is Confidence.LOW


def test_compressed_items_are_named() -> None:
    descriptor = look(DCP / "fsdp2_zstd_world2" / "checkpoint")
    assert codes(descriptor) == QUIET | {"dcp.payload_compressed"}


def test_a_folder_of_torchtitan_hints_at_it(tmp_path: Path) -> None:
    shutil.copytree(DCP / "fsdp2_flat_world2" / "checkpoint", tmp_path / "step-10")
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "torch_dcp"
    assert [(fact.name, fact.basis) for fact in descriptor.producer] == [("torchtitan", Basis.INFERRED)]


def test_several_steps_are_candidates_and_none_is_picked(tmp_path: Path) -> None:
    for step in ("step-10", "step-20"):
        shutil.copytree(DCP / "fsdp2_flat_world2" / "checkpoint", tmp_path / step)
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "ambiguous"
    assert [item.name for item in descriptor.components if item.kind == "candidate"] == ["step-10", "step-20"]


# Metadata


def test_metadata_rank_by_rank_is_a_trap_for_other_tools() -> None:
    descriptor = look(DCP / "fsdp2_no_collectives_world2" / "checkpoint")
    assert codes(descriptor) == {"trust.opaque_pickle", "dcp.rank_metadata"}
    assert "uninitialised memory" in the(descriptor, "dcp.rank_metadata").remedy


@pytest.mark.parametrize(
    ("lost", "rank", "lacks"), [("__1.metadata", 1, "metadata"), ("__0_0.distcp", 0, "data")]
)
def test_a_rank_that_lost_one_half_is_named(tmp_path: Path, lost: str, rank: int, lacks: str) -> None:
    folder = copied("fsdp2_no_collectives_world2", tmp_path)
    (folder / lost).unlink()
    found = the(look(folder), "dcp.rank_unpaired")
    assert (found.params["first"], found.params["lacks"]) == (rank, lacks)


def test_missing_metadata_is_an_error(tmp_path: Path) -> None:
    folder = copied("fsdp2_odd_world2", tmp_path)
    (folder / ".metadata").unlink()
    descriptor = look(folder)
    assert descriptor.classification.format == "torch_dcp"
    assert errors(descriptor) == {"dcp.metadata_missing"}


def test_temporary_metadata_tells_of_an_interrupted_save(tmp_path: Path) -> None:
    folder = copied("fsdp2_odd_world2", tmp_path)
    (folder / ".metadata").rename(folder / ".metadata.tmp")
    descriptor = look(folder)
    assert descriptor.classification.format == "torch_dcp"
    assert "dcp.save_interrupted" in errors(descriptor)
    assert "dcp.metadata_missing" not in codes(descriptor)


def test_temporary_metadata_beside_finished_tells_of_a_second_save(tmp_path: Path) -> None:
    folder = copied("fsdp2_odd_world2", tmp_path)
    shutil.copy(folder / ".metadata", folder / ".metadata.tmp")
    assert "dcp.resave_interrupted" in codes(look(folder))


def test_shared_and_single_metadata_are_two_saves(tmp_path: Path) -> None:
    folder = copied("fsdp2_no_collectives_world2", tmp_path)
    shutil.copy(folder / "__0.metadata", folder / ".metadata")
    assert "dcp.metadata_mixed" in codes(look(folder))


def test_metadata_without_data_is_an_error_and_only_where_it_looks_like_dcp(tmp_path: Path) -> None:
    folder = copied("fsdp2_odd_world2", tmp_path)
    for path in folder.glob("*.distcp"):
        path.unlink()
    descriptor = look(folder)
    assert descriptor.classification.format == "torch_dcp"
    assert errors(descriptor) == {"dcp.data_missing"}
    (folder / ".metadata").write_text("last edited by hand\n")
    descriptor = look(folder)
    assert descriptor.classification.format == "unknown"
    assert [item.format for item in descriptor.classification.alternatives] == ["torch_dcp"]


def test_a_pointer_in_the_place_of_metadata_or_data_is_named(tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n"
    for name in (".metadata", "__1_0.distcp"):
        folder = copied("fsdp2_odd_world2", tmp_path / name)
        (folder / name).write_bytes(pointer)
        assert the(look(folder), "file.lfs_pointer").subject == name


# Ranks


def test_a_missing_middle_rank_leaves_a_gap_and_a_missing_last_one_does_not(tmp_path: Path) -> None:
    folder = copied("dtensor_2d_dp2_tp2", tmp_path)
    (folder / "__1_0.distcp").unlink()
    gap = the(look(folder), "dcp.rank_gap")
    assert (gap.params["missing"], gap.params["first"], gap.params["last"]) == (1, 1, 3)
    shutil.copy(folder / "__0_0.distcp", folder / "__1_0.distcp")
    (folder / "__3_0.distcp").unlink()
    assert codes(look(folder)) == QUIET


def test_a_renamed_data_file_is_named(tmp_path: Path) -> None:
    folder = copied("fsdp2_odd_world2", tmp_path)
    (folder / "__1_0.distcp").rename(folder / "rank1.distcp")
    assert the(look(folder), "dcp.name_unknown").params["first"] == "rank1.distcp"


def test_hostile_ranks_cost_nothing(tmp_path: Path) -> None:
    folder = copied("fsdp2_odd_world2", tmp_path)
    (folder / "__1_0.distcp").rename(folder / "__999999999_0.distcp")
    descriptor = look(folder)
    assert the(descriptor, "dcp.rank_gap").params["missing"] == 999_999_998
    assert len(descriptor.topology.meshes[0].ranks_missing) <= 256


# Collisions


def test_the_backend_that_megatron_declares_decides(tmp_path: Path) -> None:
    folder = copied("fsdp2_odd_world2", tmp_path)
    write_json(folder / "metadata.json", {"sharded_backend": "torch_dist", "sharded_backend_version": 1})
    descriptor = look(folder)
    assert descriptor.classification.format == "megatron_dist"
    assert "torch_dcp" in {item.format for item in descriptor.classification.alternatives}


@pytest.mark.parametrize("value", [{"epoch": 3}, {"sharded_backend": 7}, ["sharded_backend"]])
def test_metadata_of_other_trainers_decides_nothing(tmp_path: Path, value: object) -> None:
    folder = copied("fsdp2_odd_world2", tmp_path)
    write_json(folder / "metadata.json", value)
    assert look(folder).classification.format == "torch_dcp"


def test_common_state_beside_dcp_without_a_declaration_is_ambiguous(tmp_path: Path) -> None:  # R040
    folder = copied("fsdp2_odd_world2", tmp_path)
    write_torch_zip(folder / "common.pt")
    descriptor = look(folder)
    assert descriptor.classification.format == "ambiguous"
    assert {"torch_dcp", "megatron_dist"} <= {item.format for item in descriptor.classification.alternatives}


def test_unrelated_files_change_nothing(tmp_path: Path) -> None:
    folder = copied("fsdp2_odd_world2", tmp_path)
    before = look(folder)
    (folder / "train.log").write_text("step 10")
    (folder / "events.out.tfevents.1").write_bytes(bytes(40))
    after = look(folder)
    assert after.classification == before.classification
    assert after.topology == before.topology
