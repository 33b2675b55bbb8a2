"""Meta's and Mistral's release layouts: known by names and headers, the cut by convention only."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from shardscope.engine.model.evidence import Basis, Confidence
from tests.checkpoints import write_config, write_json, write_safetensors, write_sharded, write_torch_zip
from tests.formats.looking import FIXTURES, codes, errors, look, the

META = FIXTURES / "hf" / "meta_consolidated_mp2" / "checkpoint"
MISTRAL = FIXTURES / "hf" / "mistral_consolidated" / "checkpoint"
PARAMS = {"dim": 4, "n_layers": 1, "n_heads": 1, "vocab_size": 16}
OWN = {
    "tok_embeddings.weight": ("F32", (16, 4)),
    "layers.0.attention.wq.weight": ("F32", (4, 4)),
    "norm.weight": ("F32", (4,)),
}


def copied(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "checkpoint"))


def test_the_fixture_of_meta_is_opaque_and_its_cut_is_not_recorded() -> None:
    descriptor = look(META)
    assert descriptor.classification.format == "meta_consolidated"
    assert descriptor.classification.confidence is Confidence.MEDIUM
    assert codes(descriptor) == {"trust.opaque_pickle", "consolidated.dimensions"}
    assert the(descriptor, "consolidated.dimensions").blocks == ("convert", "load")
    assert descriptor.tensors.count is None
    assert descriptor.state_scope.weights.presence == "opaque"


def test_the_degree_of_model_parallelism_is_inferred_from_names() -> None:
    mesh = look(META).topology.meshes[0]
    assert [(axis.name, axis.size, axis.basis) for axis in mesh.axes] == [("tp", 2, Basis.INFERRED)]
    assert mesh.ranks_seen == ((0,), (1,))
    assert not mesh.ranks_missing


def test_a_missing_middle_rank_is_seen_and_a_missing_last_one_is_not(tmp_path: Path) -> None:
    for number in (0, 1, 3):
        write_torch_zip(tmp_path / f"consolidated.{number:02}.pth")
    write_json(tmp_path / "params.json", PARAMS)
    descriptor = look(tmp_path)
    assert "consolidated.rank_missing" in errors(descriptor)
    assert the(descriptor, "consolidated.rank_missing").params["first"] == 2
    assert descriptor.topology.meshes[0].ranks_missing == ((2,),)

    (tmp_path / "consolidated.03.pth").unlink()
    assert not errors(look(tmp_path))


def test_the_checklist_of_a_release_declares_the_last_rank(tmp_path: Path) -> None:
    folder = copied(META, tmp_path)
    lines = [f"{'0' * 32}  consolidated.{number:02}.pth" for number in range(3)]
    (folder / "checklist.chk").write_text("\n".join([*lines, f"{'0' * 32}  params.json"]) + "\n")
    descriptor = look(folder)
    assert {"consolidated.rank_missing", "consolidated.listed_missing"} <= errors(descriptor)
    assert the(descriptor, "consolidated.listed_missing").params["target"] == "consolidated.02.pth"
    axis = descriptor.topology.meshes[0].axes[0]
    assert (axis.size, axis.basis) == (3, Basis.DECLARED)


def test_a_checklist_that_is_none_says_so(tmp_path: Path) -> None:
    folder = copied(META, tmp_path)
    (folder / "checklist.chk").write_text("404: not found\n")
    assert "consolidated.checklist" in codes(look(folder))


def test_a_rank_of_another_release_has_other_storages(tmp_path: Path) -> None:
    folder = copied(META, tmp_path)
    write_torch_zip(folder / "consolidated.01.pth", storages=3)
    assert "consolidated.ranks_differ" in errors(look(folder))


def test_a_truncated_rank_is_an_error(tmp_path: Path) -> None:
    folder = copied(META, tmp_path)
    file = folder / "consolidated.01.pth"
    file.write_bytes(file.read_bytes()[:20_000])
    assert "zip.no_end_record" in errors(look(folder))


def test_one_rank_under_two_names_is_an_error(tmp_path: Path) -> None:
    folder = copied(META, tmp_path)
    shutil.copy(folder / "consolidated.01.pth", folder / "consolidated.1.pth")
    descriptor = look(folder)
    assert "consolidated.rank_twice" in errors(descriptor)
    assert descriptor.topology.meshes[0].ranks_duplicate == ((1,),)


def test_a_huge_rank_number_costs_nothing(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "consolidated.999999.pth")
    descriptor = look(tmp_path)
    assert the(descriptor, "consolidated.rank_missing").params["missing"] == 999_999


@pytest.mark.parametrize("source", [META, MISTRAL], ids=["meta", "mistral"])
def test_params_json_is_missed(source: Path, tmp_path: Path) -> None:
    folder = copied(source, tmp_path)
    before = look(folder).classification
    (folder / "params.json").unlink()
    descriptor = look(folder)
    assert "consolidated.params_missing" in codes(descriptor)
    assert descriptor.classification.format == before.format
    assert descriptor.classification.confidence.rank < before.confidence.rank


def test_the_fixture_of_mistral_is_read_by_its_headers() -> None:
    descriptor = look(MISTRAL)
    assert descriptor.classification.format == "mistral_consolidated"
    assert descriptor.classification.confidence is Confidence.HIGH
    assert codes(descriptor) == {"consolidated.names"}
    assert the(descriptor, "consolidated.names").blocks == ("load",)
    assert descriptor.tensors.count == 21
    assert descriptor.resources.logical_bytes.bytes == 86_656


def test_shards_of_mistral_are_checked_against_their_index(tmp_path: Path) -> None:
    write_sharded(tmp_path, OWN, 3, "consolidated", config=False)
    write_json(tmp_path / "params.json", PARAMS)
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "mistral_consolidated"
    assert descriptor.classification.confidence is Confidence.HIGH
    assert not errors(descriptor)

    (tmp_path / "consolidated-00002-of-00003.safetensors").unlink()
    assert {"index.shard_missing", "layout.shard_gap"} <= errors(look(tmp_path))


def test_the_name_without_mistrals_tensors_is_a_rejected_alternative(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "consolidated.safetensors", {"model.norm.weight": ("F32", (4,))})
    write_config(tmp_path)
    classification = look(tmp_path).classification
    assert classification.format == "hf_safetensors"
    assert [item.format for item in classification.alternatives] == ["mistral_consolidated"]


def test_params_of_another_tool_speak_for_nothing(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "consolidated.safetensors", {"model.norm.weight": ("F32", (4,))})
    write_json(tmp_path / "params.json", {"lr": 0.1})
    assert look(tmp_path).classification.format == "hf_safetensors"


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize(("harm", "code"), [(cut, "header.truncated"), (emptied, "file.empty")])
def test_a_damaged_file_of_mistral_is_named(harm: Callable[[Path], None], code: str, tmp_path: Path) -> None:
    folder = copied(MISTRAL, tmp_path)
    harm(folder / "consolidated.safetensors")
    descriptor = look(folder)
    assert descriptor.classification.format == "mistral_consolidated"
    assert code in errors(descriptor)
