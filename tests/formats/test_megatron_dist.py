"""Megatron Core distributed checkpoints: what decides between them and DCP, and what zarr arrays tell."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from shardscope.engine import inspect
from shardscope.engine.model.evidence import Confidence
from shardscope.engine.model.limits import Limits
from tests.checkpoints import write_json, write_sharded, write_torch_zip
from tests.formats.looking import FIXTURES, codes, copied, errors, look, the

TORCH_DIST = sorted(folder.name for folder in (FIXTURES / "megatron").glob("torch_dist*"))
STEP = "iter_0000010"
FC1 = f"{STEP}/decoder.layers.mlp.linear_fc1.weight"


@pytest.mark.parametrize("name", TORCH_DIST)
def test_metadata_json_decides_between_megatron_and_dcp(name: str) -> None:  # R008 collision 1
    descriptor = look(FIXTURES / "megatron" / name / "checkpoint")

    assert descriptor.classification.format == "megatron_dist"
    assert descriptor.classification.confidence is Confidence.MEDIUM
    assert errors(descriptor) == set()
    (alternative,) = descriptor.classification.alternatives
    assert (alternative.format, "metadata.json" in alternative.reason) == ("torch_dcp", True)
    assert descriptor.tensors.count is None
    ranks = int(name.partition("ep")[2] or 4)
    assert len(descriptor.topology.meshes[0].ranks_seen) == ranks


@pytest.mark.parametrize("name", [*TORCH_DIST, "dist_zarr_tp2"])
def test_placement_is_no_model_mapping(name: str) -> None:  # R009 R133
    found = the(look(FIXTURES / "megatron" / name / "checkpoint"), "megatron.model_mapping")

    assert found.blocks == ("convert",)
    for word in ("offsets", "rank offsets", "replicas"):
        assert word in found.message


def test_without_metadata_json_both_readings_stay_open(tmp_path: Path) -> None:  # collision 1
    root = copied("megatron/torch_dist_tp2_pp2", tmp_path)
    (root / STEP / "metadata.json").unlink()

    descriptor = look(root)
    assert descriptor.classification.format == "ambiguous"
    assert the(descriptor, "layout.ambiguous").params["formats"] == "megatron_dist and torch_dcp"


def test_a_truncated_metadata_json_decides_nothing(tmp_path: Path) -> None:  # collision 1
    root = copied("megatron/torch_dist_tp2_pp2", tmp_path)
    file = root / STEP / "metadata.json"
    file.write_text(file.read_text()[:-20])

    descriptor = look(root)
    assert descriptor.classification.format == "ambiguous"
    assert any(code.startswith("json.") for code in errors(descriptor))


@pytest.mark.parametrize(
    "value",
    [{"epoch": 3, "loss": 0.5}, {"sharded_backend": 3}, {"sharded_backend": None}, ["sharded_backend"]],
)
def test_metadata_json_of_other_trainers_is_not_megatron(tmp_path: Path, value: object) -> None:
    # collision 2
    root = write_sharded(tmp_path)
    write_json(root / "metadata.json", value)

    descriptor = look(root)
    assert descriptor.classification.format == "hf_safetensors"
    assert "megatron_dist" in {item.format for item in descriptor.classification.alternatives}


def test_a_large_metadata_json_is_another_tools_and_decides_nothing(tmp_path: Path) -> None:  # collision 2
    root = copied("megatron/torch_dist_tp2_pp2", tmp_path)
    write_json(root / STEP / "metadata.json", {"sharded_backend": "torch_dist", "history": "x" * 70_000})

    assert look(root).classification.format == "ambiguous"


def test_iterations_in_plain_dcp_are_dcp_and_the_flavours_are_named(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "dcp" / "fsdp2_flat_world2" / "checkpoint", tmp_path / "iter_0000005")
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("5")

    descriptor = look(tmp_path)
    assert descriptor.classification.format == "torch_dcp"
    (alternative,) = [a for a in descriptor.classification.alternatives if a.format == "megatron_dist"]
    assert "fsdp_dtensor" in alternative.reason


def remove(name: str) -> Callable[[Path], None]:
    return lambda root: (root / name).unlink()


def cut(name: str, to: int) -> Callable[[Path], object]:
    return lambda root: (root / name).write_bytes((root / name).read_bytes()[:to])


def lose_shards(root: Path) -> None:
    for file in root.rglob("*.distcp"):
        file.unlink()


def interrupt(root: Path) -> None:
    (root / STEP / ".metadata").rename(root / STEP / ".metadata.tmp")


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (remove(f"{STEP}/common.pt"), "megatron.common_missing"),
        (remove(f"{STEP}/.metadata"), "dcp.metadata_missing"),
        (interrupt, "dcp.save_interrupted"),
        (lose_shards, "dcp.data_missing"),
        (remove(f"{STEP}/__2_1.distcp"), "megatron.writer_uneven"),
        (cut(f"{STEP}/common.pt", 900), "zip.no_end_record"),
        (remove("latest_checkpointed_iteration.txt"), "megatron.no_tracker"),
    ],
)
def test_damage_to_torch_dist_is_named(tmp_path: Path, damage: Callable[[Path], object], code: str) -> None:
    root = copied("megatron/torch_dist_tp2_pp2", tmp_path)
    damage(root)

    descriptor = look(root)
    assert descriptor.classification.format == "megatron_dist"
    assert code in codes(descriptor)


def test_a_writer_without_any_file_is_a_gap(tmp_path: Path) -> None:
    root = copied("megatron/torch_dist_tp2_pp2", tmp_path)
    for file in root.rglob("__1_*.distcp"):
        file.unlink()

    descriptor = look(root)
    assert "dcp.rank_gap" in codes(descriptor)
    assert descriptor.topology.meshes[0].ranks_missing == ((1,),)


def test_an_unknown_backend_is_named_and_nothing_is_guessed(tmp_path: Path) -> None:
    root = copied("megatron/torch_dist_tp2_pp2", tmp_path)
    file = root / STEP / "metadata.json"
    file.write_text(file.read_text().replace("torch_dist", "newer_thing"))

    descriptor = look(root)
    assert descriptor.classification.format == "megatron_dist"
    assert the(descriptor, "megatron.backend_unknown").params["backend"] == "newer_thing"


def test_two_backends_in_one_folder_are_mixed(tmp_path: Path) -> None:
    root = copied("megatron/dist_zarr_tp2", tmp_path)
    copied("megatron/torch_dist_tp2_pp2", root)

    found = the(look(root), "megatron.backends_mixed")
    assert found.params["backend"] == "torch_dist"


def test_zarr_arrays_are_listed_with_their_declared_shapes() -> None:
    inspection = inspect(FIXTURES / "megatron" / "dist_zarr_tp2" / "checkpoint", digest="none")
    descriptor = inspection.descriptor

    assert descriptor.classification.format == "megatron_dist"
    assert descriptor.classification.confidence is Confidence.HIGH
    assert errors(descriptor) == set()
    table = {row.name: row for row in inspection.tensors}
    fc1 = table["decoder.layers.mlp.linear_fc1.weight"]
    assert (fc1.dtype, fc1.shape, fc1.bytes, fc1.file) == ("F32", (4, 96, 32), 4 * 96 * 32 * 4, FC1)
    assert {row.dtype for row in table.values()} == {"F32", "BF16"}
    assert descriptor.state_scope.weights.presence == "present"
    assert descriptor.state_scope.optimizer.presence == "absent"
    assert descriptor.resources.logical_bytes.bytes == sum(row.bytes for row in table.values())


def test_random_states_tell_the_degrees_of_a_zarr_save() -> None:
    descriptor = look(FIXTURES / "megatron" / "dist_zarr_tp2" / "checkpoint")

    (mesh,) = descriptor.topology.meshes
    assert {axis.name: axis.size for axis in mesh.axes} == {"tp": 2, "pp": 1, "dp": None}


def test_the_cut_of_a_weight_tells_tp_where_random_states_do_not(tmp_path: Path) -> None:
    root = copied("megatron/dist_zarr_tp2", tmp_path)
    shutil.rmtree(root / STEP / "rng_state")

    (mesh,) = look(root).topology.meshes
    assert {axis.name: axis.size for axis in mesh.axes} == {"tp": 2, "dp": None}


def edit(**values: object) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        file = root / FC1 / ".zarray"
        file.write_text(json.dumps(json.loads(file.read_text()) | values))

    return change


def add(name: str, size: int = 3072) -> Callable[[Path], object]:
    return lambda root: (root / name).write_bytes(bytes(size))


def lose_arrays(root: Path) -> None:
    for file in list(root.rglob(".zarray")):
        shutil.rmtree(file.parent)


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (remove(f"{FC1}/2.1.0"), "megatron.chunk_missing"),
        (cut(f"{FC1}/2.1.0", 3000), "megatron.chunk_size"),
        (add(f"{FC1}/9.9.9"), "megatron.chunk_unexpected"),
        (add(f"{FC1}/02.1.0"), "megatron.chunk_unexpected"),
        (add(f"{FC1}/2.1"), "megatron.chunk_unexpected"),
        (remove(f"{FC1}/.zarray"), "megatron.key_empty"),
        (cut(f"{FC1}/.zarray", 60), "json.syntax"),
        (edit(dtype="<f3"), "megatron.zarray_invalid"),
        (edit(shape=[4, -1, 32]), "megatron.zarray_invalid"),
        (edit(shape=[1 << 62, 1 << 62, 32]), "megatron.zarray_invalid"),
        (edit(chunks=[1, 0, 32]), "megatron.zarray_invalid"),
        (edit(chunks=[1, 96]), "megatron.zarray_invalid"),
        (edit(compressor={"id": "zstd", "level": 3}), "megatron.zarr_encoding"),
        (edit(dtype=">f4"), "megatron.zarr_encoding"),
        (edit(order="F"), "megatron.zarr_encoding"),
        (edit(shape=[4, 192, 32]), "megatron.chunk_missing"),
        (remove(f"{STEP}/common.pt"), "megatron.common_missing"),
        (lose_arrays, "megatron.arrays_missing"),
        (cut(f"{STEP}/rng_state/shard_0.0_1.2.pt", 500), "zip.no_end_record"),
    ],
)
def test_damage_to_zarr_is_named(tmp_path: Path, damage: Callable[[Path], object], code: str) -> None:
    root = copied("megatron/dist_zarr_tp2", tmp_path)
    damage(root)

    descriptor = look(root)
    assert descriptor.classification.format == "megatron_dist"
    assert code in codes(descriptor)
    assert descriptor.classification.confidence is not Confidence.HIGH or code.endswith("common_missing")


def test_missing_chunks_are_counted_against_the_declared_grid(tmp_path: Path) -> None:
    root = copied("megatron/dist_zarr_tp2", tmp_path)
    for number in (1, 3):
        (root / FC1 / f"0.{number}.0").unlink()

    descriptor = look(root)
    found = the(descriptor, "megatron.chunk_missing")
    assert (found.params["missing"], found.params["first"]) == (2, f"{FC1}/0.1.0")
    assert descriptor.resources.logical_bytes.bytes is None


def test_zarr_without_metadata_json_is_an_interrupted_save(tmp_path: Path) -> None:
    root = copied("megatron/dist_zarr_tp2", tmp_path)
    (root / STEP / "metadata.json").unlink()

    descriptor = look(root)
    assert descriptor.classification.format == "megatron_dist"
    assert "megatron.metadata_missing" in errors(descriptor)
    assert descriptor.tensors.count == 9


def test_optimizer_arrays_are_no_weights(tmp_path: Path) -> None:
    root = copied("megatron/dist_zarr_tp2", tmp_path)
    before = look(root).resources.logical_bytes.bytes
    shutil.copytree(root / FC1, root / STEP / "optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.weight")

    descriptor = look(root)
    assert descriptor.state_scope.optimizer.presence == "present"
    assert descriptor.resources.logical_bytes.bytes == before


def test_the_limit_of_tensors_holds_for_arrays() -> None:
    root = FIXTURES / "megatron" / "dist_zarr_tp2" / "checkpoint"
    descriptor = inspect(root, limits=Limits(tensors=3), digest="none").descriptor

    assert the(descriptor, "limit.tensors").params["limit"] == 3
    assert descriptor.tensors.count == 3


def test_two_iterations_are_candidates(tmp_path: Path) -> None:  # collision 14
    root = copied("megatron/torch_dist_tp2_pp2", tmp_path)
    shutil.copytree(root / STEP, root / "iter_0000020")

    assert "layout.several_candidates" in errors(look(root))


def test_common_pt_alone_is_a_torch_file(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "common.pt")

    assert look(tmp_path).classification.format == "torch_save"
