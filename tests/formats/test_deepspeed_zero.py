"""DeepSpeed saves by their names: stages, ranks, experts, and what is wrong with a set."""

import shutil
from pathlib import Path

import pytest

from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.evidence import Basis, Confidence
from shardscope.engine.model.topology import Axis
from tests.checkpoints import write_sharded, write_torch_zip
from tests.formats.looking import FIXTURES, codes, copied, errors, look, the

SAVES = sorted(
    folder.name for folder in (FIXTURES / "deepspeed").iterdir() if not folder.name.startswith("uc-from-")
)


def axis(descriptor: Descriptor, name: str, mesh: int = 0) -> Axis:
    return next(item for item in descriptor.topology.meshes[mesh].axes if item.name == name)


def write(folder: Path, *names: str) -> Path:
    for name in names:
        write_torch_zip(folder / name)
    return folder


@pytest.mark.parametrize("name", SAVES)
def test_every_save_is_recognised_with_low_confidence_and_nothing_missing(name: str) -> None:  # R010
    descriptor = look(FIXTURES / "deepspeed" / name / "checkpoint")

    assert descriptor.classification.format == "deepspeed_zero"
    assert descriptor.classification.confidence is Confidence.LOW
    assert errors(descriptor) == set()
    assert "trust.opaque_pickle" in codes(descriptor)
    assert descriptor.topology.meshes[0].ranks_missing == ()
    assert descriptor.state_scope.weights.presence == "opaque"
    assert descriptor.tensors.count is None


@pytest.mark.parametrize(
    ("name", "stage", "basis", "clause"),
    [
        ("zero0-w2-bf16", 0, Basis.INFERRED, "no partition"),
        ("zero1-w2-bf16", None, Basis.INFERRED, "1 or 2"),
        ("zero2-w4-fp32", None, Basis.INFERRED, "1 or 2"),
        ("zero3-w3-fp32", 3, Basis.INFERRED, "stage 3"),
    ],
)
def test_names_tell_stage_3_apart_and_leave_1_and_2_open(
    name: str, stage: int | None, basis: Basis, clause: str
) -> None:
    found = axis(look(FIXTURES / "deepspeed" / name / "checkpoint"), "zero_stage")

    assert (found.size, found.basis) == (stage, basis)
    assert clause in (found.evidence or "")


def test_the_memory_of_consolidation_is_warned_of_where_there_are_partitions() -> None:  # R116
    for name, there in (("zero2-w4-bf16", True), ("zero3-w2-bf16", True), ("zero0-w2-bf16", False)):
        descriptor = look(FIXTURES / "deepspeed" / name / "checkpoint")
        assert ("deepspeed.consolidation_memory" in codes(descriptor)) is there


def test_a_second_model_parallel_index_is_not_taken_for_tensor_parallelism() -> None:
    autotp = look(FIXTURES / "deepspeed" / "autotp2-llama-gqa3-dp2-zero2-fp32" / "checkpoint")
    pipeline = look(FIXTURES / "deepspeed" / "pipe2-zero1-fp32" / "checkpoint")

    assert axis(autotp, "mp").size == 2
    assert axis(autotp, "tp") == Axis("tp", None, Basis.UNKNOWN, "the names do not tell")
    assert "pipeline stages and tensor-parallel ranks" in (autotp.topology.note or "")
    assert (axis(pipeline, "pp").size, axis(pipeline, "tp").size) == (2, 1)


def test_experts_have_a_mesh_of_their_own_beside_the_dense_ranks() -> None:  # R197
    descriptor = look(FIXTURES / "deepspeed" / "moe-ep2-zero2-bf16" / "checkpoint")
    dense, expert = descriptor.topology.meshes

    assert (dense.name, dense.ranks_seen) == ("dense", ((0, 0, 0), (0, 0, 1)))
    assert (expert.name, expert.ranks_seen) == ("expert", ((0,), (1,), (2,), (3,)))
    assert axis(descriptor, "ep", 1).size is None
    held = [item for item in descriptor.topology.rank_files if item.mesh == "expert"]
    assert held[3].files == ("global_step2/layer_0_expert_3_mp_rank_00_model_states.pt",)


def test_model_states_below_stage_3_are_shown_with_the_first_data_parallel_rank() -> None:
    descriptor = look(FIXTURES / "deepspeed" / "zero2-w4-bf16" / "checkpoint")

    files = [len(item.files) for item in descriptor.topology.rank_files]
    assert files == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("name", "file", "code"),
    [
        ("zero2-w4-bf16", "bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt", "deepspeed.rank_missing"),
        ("zero3-w3-fp32", "zero_pp_rank_1_mp_rank_00_model_states.pt", "deepspeed.rank_missing"),
        ("zero3-w3-fp32", "zero_pp_rank_2_mp_rank_00_optim_states.pt", "deepspeed.rank_missing"),
        ("zero1-w2-fp32", "mp_rank_00_model_states.pt", "deepspeed.model_states_missing"),
        ("autotp2-llama-gqa3-dp2-zero2-fp32", "mp_rank_00_model_states.pt", "deepspeed.rank_missing"),
        ("pipe2-zero1-fp32", "layer_03-model_states.pt", "deepspeed.layer_gap"),
        ("moe-ep2-zero2-bf16", "layer_0_expert_1_mp_rank_00_model_states.pt", "deepspeed.rank_missing"),
    ],
)
def test_a_file_that_was_removed_is_named(tmp_path: Path, name: str, file: str, code: str) -> None:
    root = copied(f"deepspeed/{name}", tmp_path)
    (tag,) = (path.parent for path in root.rglob(file))
    (tag / file).unlink()

    descriptor = look(root)
    assert descriptor.classification.format == "deepspeed_zero"
    found = the(descriptor, code)
    if code == "deepspeed.rank_missing":
        assert found.params["first"] == f"{tag.name}/{file}"
        assert any(mesh.ranks_missing for mesh in descriptor.topology.meshes)


def test_stage_3_without_partitions_has_no_weights(tmp_path: Path) -> None:
    root = copied("deepspeed/zero3-w3-fp32", tmp_path)
    for file in root.rglob("*_optim_states.pt"):
        file.unlink()

    descriptor = look(root)
    assert "deepspeed.partitions_missing" in errors(descriptor)
    assert descriptor.state_scope.weights.presence == "absent"


def test_a_recovery_script_gives_away_that_partitions_were_lost(tmp_path: Path) -> None:
    root = copied("deepspeed/zero2-w4-bf16", tmp_path)
    for file in root.rglob("*_optim_states.pt"):
        file.unlink()

    descriptor = look(root)
    assert "deepspeed.optimizer_absent" in codes(descriptor)
    assert axis(descriptor, "zero_stage").basis is Basis.UNKNOWN


def test_a_truncated_rank_file_is_named(tmp_path: Path) -> None:
    root = copied("deepspeed/zero2-w4-bf16", tmp_path)
    file = next(root.rglob("*rank_1_*_optim_states.pt"))
    file.write_bytes(file.read_bytes()[:-100])

    assert the(look(root), "zip.no_end_record").subject == f"global_step3/{file.name}"


def test_a_rank_file_under_a_foreign_name_leaves_a_gap(tmp_path: Path) -> None:
    root = copied("deepspeed/zero2-w4-bf16", tmp_path)
    file = next(root.rglob("*rank_1_*_optim_states.pt"))
    file.rename(file.with_name("rank1.pt"))

    descriptor = look(root)
    assert "deepspeed.rank_missing" in errors(descriptor)


def test_stages_2_and_3_in_one_folder_are_mixed(tmp_path: Path) -> None:  # collision 5
    root = copied("deepspeed/zero2-w4-fp32", tmp_path)
    copied("deepspeed/zero3-w3-fp32", root)

    descriptor = look(root)
    assert the(descriptor, "deepspeed.stages_mixed").blocks == ("decode", "convert", "load")
    assert axis(descriptor, "zero_stage").size is None


def test_prefixed_and_plain_partitions_in_one_folder_are_mixed(tmp_path: Path) -> None:  # collision 6
    root = copied("deepspeed/zero2-w4-bf16", tmp_path)
    copied("deepspeed/zero2-w4-fp32", root)

    descriptor = look(root)
    assert the(descriptor, "deepspeed.prefix_mixed").params["prefixes"] == "none, bf16_"
    assert len(descriptor.topology.meshes[0].ranks_duplicate) == 4


def test_two_paddings_of_one_rank_are_a_duplicate(tmp_path: Path) -> None:
    root = write(tmp_path, "mp_rank_00_model_states.pt", "mp_rank_0_model_states.pt")

    descriptor = look(root)
    assert the(descriptor, "deepspeed.rank_duplicate").params["count"] == 2
    assert descriptor.topology.meshes[0].ranks_duplicate == ((0, 0),)


def test_two_saves_with_other_world_sizes_on_top_of_each_other(tmp_path: Path) -> None:
    names = [f"zero_pp_rank_{dp}_mp_rank_00_optim_states.pt" for dp in range(4)]
    write(tmp_path, *names, "zero_pp_rank_0_mp_rank_01_optim_states.pt", "mp_rank_00_model_states.pt")

    found = [item for item in look(tmp_path).blockers if item.code == "deepspeed.rank_missing"]
    assert {(item.params["what"], item.params["missing"]) for item in found} == {
        ("optimizer partition", 3),
        ("model state", 1),
    }


def test_tensor_parallel_layers_of_a_pipeline_need_every_rank(tmp_path: Path) -> None:
    layers = [f"layer_{layer:02d}-model_{rank:02d}-model_states.pt" for layer in (1, 3, 4) for rank in (0, 1)]
    models = [f"mp_rank_{rank:02d}_model_states.pt" for rank in range(4)]
    write(tmp_path, *layers, *models)
    (tmp_path / layers[3]).unlink()

    descriptor = look(tmp_path)
    assert (axis(descriptor, "tp").size, axis(descriptor, "pp").size) == (2, 2)
    assert the(descriptor, "deepspeed.rank_missing").params["first"] == layers[3]
    assert the(descriptor, "deepspeed.layer_gap").params["first"] == 2


def test_expert_optimizer_files_tell_the_expert_parallel_degree(tmp_path: Path) -> None:
    experts = [f"layer_{layer}_expert_{n}_mp_rank_00_model_states.pt" for layer in (0, 1) for n in range(4)]
    optimizer = [f"expp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in (0, 2)]
    write(tmp_path, "mp_rank_00_model_states.pt", *experts, *optimizer)

    descriptor = look(tmp_path)
    assert [mesh.name for mesh in descriptor.topology.meshes] == ["dense", "expert", "expert optimizer"]
    assert descriptor.topology.meshes[2].ranks_missing == ((1, 0),)
    assert the(descriptor, "deepspeed.rank_missing").params["what"] == "expert optimizer"


def test_layers_with_other_numbers_of_experts_are_pointed_out(tmp_path: Path) -> None:
    names = [f"layer_0_expert_{n}_mp_rank_00_model_states.pt" for n in range(4)]
    names += [f"layer_1_expert_{n}_mp_rank_00_model_states.pt" for n in range(3)]
    write(tmp_path, "mp_rank_00_model_states.pt", *names)

    descriptor = look(tmp_path)
    assert the(descriptor, "deepspeed.expert_counts").params["counts"] == "3, 4"
    assert descriptor.topology.meshes[1].ranks_missing == ((3,),)


def test_offloaded_tensors_are_refused_by_name(tmp_path: Path) -> None:
    root = copied("deepspeed/zero3-w2-bf16", tmp_path)
    (root / "global_step3" / "offloaded_tensors" / "rank00").mkdir(parents=True)

    found = the(look(root), "deepspeed.offloaded")
    assert found.subject == "global_step3/offloaded_tensors"
    assert set(found.blocks) == {"decode", "convert", "load"}


def test_a_tag_folder_without_latest_may_be_unfinished(tmp_path: Path) -> None:
    root = copied("deepspeed/zero2-w4-bf16", tmp_path)
    assert "deepspeed.no_latest" not in codes(look(root))
    (root / "latest").unlink()

    assert the(look(root), "deepspeed.no_latest").params["tracker"] == "latest"
    assert "deepspeed.no_latest" not in codes(
        look(root / "global_step3")
    )  # what is beside it was not looked at


@pytest.mark.parametrize(
    ("text", "code"), [("global_step9", "tracker.stale"), ("../global_step3", "tracker.unsafe")]
)
def test_a_tracker_that_leads_nowhere_or_out(tmp_path: Path, text: str, code: str) -> None:  # collision 9
    root = copied("deepspeed/zero2-w4-bf16", tmp_path)
    (root / "latest").write_text(text)

    descriptor = look(root)
    assert code in errors(descriptor)
    assert descriptor.classification.format == "deepspeed_zero"


def test_two_tags_in_one_root_are_candidates_and_none_is_picked(tmp_path: Path) -> None:  # collision 14
    root = copied("deepspeed/zero2-w4-bf16", tmp_path)
    shutil.copytree(root / "global_step3", root / "global_step5")

    descriptor = look(root)
    assert descriptor.classification.format == "ambiguous"
    assert "layout.several_candidates" in errors(descriptor)
    named = {item.name: item.named_by for item in descriptor.components if item.kind == "candidate"}
    assert named == {"global_step3": "latest", "global_step5": None}


def test_a_trainer_folder_with_weights_beside_a_tag_is_a_composite(tmp_path: Path) -> None:
    root = write_sharded(tmp_path / "checkpoint-3")
    copied("deepspeed/zero3-w2-bf16", root)

    descriptor = look(root)
    assert descriptor.classification.format == "composite"
    assert {"hf_safetensors", "deepspeed_zero"} <= {item.format for item in descriptor.components}
    assert descriptor.tensors.count == 4


def test_recovery_scripts_are_listed_as_code_and_never_run() -> None:
    descriptor = look(FIXTURES / "deepspeed" / "zero2-w4-bf16" / "checkpoint")

    scripts = next(item for item in descriptor.components if item.kind == "recovery scripts")
    assert scripts.files == ("zero_to_fp32.py", "zero_to_torch.py")
    assert descriptor.trust.code_files == scripts.files


def test_one_rank_file_on_its_own_is_a_torch_file(tmp_path: Path) -> None:
    file = write_torch_zip(tmp_path / "mp_rank_00_model_states.pt")

    descriptor = look(file)
    assert descriptor.classification.format == "torch_save"
    assert "deepspeed_zero" in {item.format for item in descriptor.classification.alternatives}


def test_huge_numbers_in_names_cost_nothing_and_stay_in_the_document(tmp_path: Path) -> None:
    names = ["zero_pp_rank_999999_mp_rank_999999_optim_states.pt", "mp_rank_00_model_states.pt"]
    names += ["layer_999999-model_999999-model_states.pt", "layer_00-model_states.pt"]
    write(tmp_path, *names, "layer_999999_expert_999999_mp_rank_999999_model_states.pt")

    descriptor = look(tmp_path)
    found = [item.params["missing"] for item in descriptor.blockers if item.code == "deepspeed.rank_missing"]
    assert max(int(item or 0) for item in found) == 10**12 - 1
    assert len(descriptor.topology.meshes[0].ranks_missing) <= 256


def test_names_that_only_look_alike_are_left_alone(tmp_path: Path) -> None:
    names = ["mp_rank_xx_model_states.pt", "zero_pp_rank_0_optim_states.pt", "my_mp_rank_00_model_states.pt"]
    write(tmp_path, *names)

    assert look(tmp_path).classification.format == "torch_save"
