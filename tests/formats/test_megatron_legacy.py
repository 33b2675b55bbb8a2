"""Megatron-LM saves of one file a rank: what the folder names tell, and what they leave open."""

import shutil
from pathlib import Path

import pytest

from shardscope.engine.model.evidence import Basis, Confidence
from tests.checkpoints import write_torch_zip
from tests.formats.looking import FIXTURES, codes, copied, errors, look, the

MODEL = "model_optim_rng.pt"
SAVES = sorted(folder.name for folder in (FIXTURES / "megatron").glob("legacy_*"))


def write(root: Path, *ranks: str) -> Path:
    """Write an iteration with a model file in each rank folder, and its tracker; return the iteration."""
    iteration = root / "iter_0000010"
    for rank in ranks:
        write_torch_zip(iteration / rank / MODEL)
    (root / "latest_checkpointed_iteration.txt").write_text("10")
    return iteration


@pytest.mark.parametrize("name", SAVES)
def test_every_save_is_recognised_with_low_confidence_and_nothing_missing(name: str) -> None:
    descriptor = look(FIXTURES / "megatron" / name / "checkpoint")

    assert descriptor.classification.format == "megatron_legacy"
    assert descriptor.classification.confidence is Confidence.LOW
    assert codes(descriptor) == {"trust.opaque_pickle"}
    assert descriptor.topology.meshes[0].ranks_missing == ()
    assert descriptor.state_scope.weights.presence == "opaque"
    assert descriptor.state_scope.rng.presence == "opaque"


@pytest.mark.parametrize("name", ["legacy_tp2_pp2", "legacy_tp1_ep2"])
def test_a_second_number_is_pipeline_or_expert_rank_and_that_is_said(name: str) -> None:
    descriptor = look(FIXTURES / "megatron" / name / "checkpoint")
    (mesh,) = descriptor.topology.meshes

    axes = {axis.name: axis for axis in mesh.axes}
    assert (axes["pp_or_ep"].size, axes["pp_or_ep"].basis) == (2, Basis.INFERRED)
    assert (axes["pp"].size, axes["pp"].basis) == (None, Basis.UNKNOWN)
    assert (axes["ep"].size, axes["ep"].basis) == (None, Basis.UNKNOWN)
    assert "or the expert-parallel rank" in (descriptor.topology.note or "")


def test_one_number_says_that_there_is_one_stage() -> None:
    descriptor = look(FIXTURES / "megatron" / "legacy_premcore_tp2" / "checkpoint")
    (mesh,) = descriptor.topology.meshes

    assert {axis.name: axis.size for axis in mesh.axes} == {"tp": 2, "pp": 1, "ep": 1, "dp": None}
    assert mesh.ranks_seen == ((0, 0, 0), (1, 0, 0))
    assert descriptor.topology.note is None


def test_three_numbers_are_two_meshes_over_the_same_folders(tmp_path: Path) -> None:  # R197
    write(tmp_path, *(f"mp_rank_{t:02d}_{p:03d}_{e:03d}" for t in (0, 1) for p in (0, 1) for e in (0, 1, 2)))

    descriptor = look(tmp_path)
    dense, expert = descriptor.topology.meshes
    assert {axis.name: axis.size for axis in dense.axes} == {"tp": 2, "pp": 2, "dp": None}
    assert {axis.name: axis.size for axis in expert.axes} == {"tp": 2, "pp": 2, "ep": 3}
    assert (len(dense.ranks_seen), len(expert.ranks_seen)) == (4, 12)
    assert errors(descriptor) == set()


def test_a_missing_rank_folder_is_named(tmp_path: Path) -> None:
    root = copied("megatron/legacy_tp2_pp2", tmp_path)
    shutil.rmtree(root / "iter_0000010" / "mp_rank_00_001")

    descriptor = look(root)
    assert the(descriptor, "megatron.rank_missing").params["first"] == "mp_rank_00_001"
    assert descriptor.topology.meshes[0].ranks_missing == ((0, 1),)


def test_a_rank_folder_without_its_model_is_named(tmp_path: Path) -> None:
    root = copied("megatron/legacy_te_tp2_pp2_bf16", tmp_path)
    (root / "iter_0000010" / "mp_rank_01_000" / MODEL).unlink()

    descriptor = look(root)
    assert the(descriptor, "megatron.model_file_missing").subject == "iter_0000010/mp_rank_01_000"
    assert descriptor.topology.meshes[0].ranks_missing == ((1, 0),)


def test_optimizer_files_belong_to_every_rank_or_to_none(tmp_path: Path) -> None:
    root = copied("megatron/legacy_te_tp2_pp2_bf16", tmp_path)
    (root / "iter_0000010" / "mp_rank_01_001" / "distrib_optim.pt").unlink()

    found = the(look(root), "megatron.optimizer_missing")
    assert (found.params["count"], found.params["total"]) == (1, 4)


def test_layer_wise_optimizer_files_tell_a_data_parallel_degree(tmp_path: Path) -> None:
    iteration = write(tmp_path, "mp_rank_00", "mp_rank_01")
    for rank, number in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 2)):
        write_torch_zip(iteration / f"mp_rank_{rank:02d}" / f"layer_wise_optimizer_{number}.pt")

    descriptor = look(tmp_path)
    first = the(descriptor, "megatron.layer_wise_missing").params["first"]
    assert first == "iter_0000010/mp_rank_01/layer_wise_optimizer_1.pt"
    assert any((axis.evidence or "").startswith("3 by") for axis in descriptor.topology.meshes[0].axes)


def test_a_truncated_rank_file_is_named(tmp_path: Path) -> None:
    root = copied("megatron/legacy_tp2_pp2", tmp_path)
    file = root / "iter_0000010" / "mp_rank_01_001" / MODEL
    file.write_bytes(file.read_bytes()[:1000])

    assert the(look(root), "zip.no_end_record").subject == f"iter_0000010/mp_rank_01_001/{MODEL}"


def test_rank_folders_of_two_layouts_are_mixed(tmp_path: Path) -> None:
    root = copied("megatron/legacy_tp2_pp2", tmp_path)
    shutil.copytree(root / "iter_0000010" / "mp_rank_00_000", root / "iter_0000010" / "mp_rank_00")

    assert the(look(root), "megatron.rank_names_mixed").params["counts"] == "1 and 2"


def test_two_paddings_of_one_rank_are_a_duplicate(tmp_path: Path) -> None:
    write(tmp_path, "mp_rank_00", "mp_rank_000", "mp_rank_01")

    assert the(look(tmp_path), "megatron.rank_duplicate").params["count"] == 2


def test_two_iterations_are_candidates_and_the_tracker_picks_none(tmp_path: Path) -> None:  # collision 14
    root = copied("megatron/legacy_tp2_pp2", tmp_path)
    shutil.copytree(root / "iter_0000010", root / "iter_0000020")

    descriptor = look(root)
    assert descriptor.classification.format == "ambiguous"
    named = {item.name: item.named_by for item in descriptor.components if item.kind == "candidate"}
    assert named == {"iter_0000010": "latest_checkpointed_iteration.txt", "iter_0000020": None}


@pytest.mark.parametrize(
    ("text", "code"), [("20", "tracker.stale"), ("release", "tracker.stale"), ("../10", "tracker.malformed")]
)
def test_a_tracker_that_names_nothing_here(tmp_path: Path, text: str, code: str) -> None:  # collision 9
    root = copied("megatron/legacy_tp2_pp2", tmp_path)
    (root / "latest_checkpointed_iteration.txt").write_text(text)

    assert code in codes(look(root))


def test_an_iteration_without_tracker_may_be_unfinished(tmp_path: Path) -> None:
    root = copied("megatron/legacy_tp2_pp2", tmp_path)
    (root / "latest_checkpointed_iteration.txt").unlink()

    assert "megatron.no_tracker" in codes(look(root))
    assert "megatron.no_tracker" not in codes(look(root / "iter_0000010"))


def test_a_folder_mp_rank_00_is_megatron_and_a_file_of_that_start_is_deepspeed(tmp_path: Path) -> None:
    # collision 4
    write_torch_zip(tmp_path / "file" / "mp_rank_00_model_states.pt")
    write_torch_zip(tmp_path / "folder" / "mp_rank_00" / MODEL)
    write_torch_zip(tmp_path / "both" / "mp_rank_00" / MODEL)
    write_torch_zip(tmp_path / "both" / "mp_rank_00_model_states.pt")

    found = {name: look(tmp_path / name) for name in ("file", "folder", "both")}
    assert found["file"].classification.format == "deepspeed_zero"
    assert found["folder"].classification.format == "megatron_legacy"
    assert found["both"].classification.format == "composite"
    assert {item.format for item in found["both"].components} == {"deepspeed_zero", "megatron_legacy"}


def test_rank_folders_without_a_known_file_are_weighed_and_rejected(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "mp_rank_00" / "weights.pt")

    descriptor = look(tmp_path)
    assert descriptor.classification.format == "torch_save"
    assert "megatron_legacy" in {item.format for item in descriptor.classification.alternatives}


def test_huge_numbers_in_names_cost_nothing(tmp_path: Path) -> None:
    write(tmp_path, "mp_rank_00_000_000", "mp_rank_999999_999999_999999")

    descriptor = look(tmp_path)
    assert the(descriptor, "megatron.rank_missing").params["missing"] == 10**18 - 2
    assert len(descriptor.topology.meshes[1].ranks_missing) == 256
