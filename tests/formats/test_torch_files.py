"""Pickle-backed files: recognised by names, magic and zip directory, and opaque."""

from pathlib import Path

import pytest

from shardscope.engine.model.evidence import Confidence, Status
from tests.checkpoints import write_config, write_json, write_safetensors, write_torch_zip
from tests.formats.looking import FIXTURES, codes, errors, look, the


@pytest.mark.parametrize("name", ["bin_sharded", "bin_single_tied"])
def test_fixtures_in_bin_files_are_hf_torch_and_opaque(name: str) -> None:  # R038
    descriptor = look(FIXTURES / "hf" / name / "checkpoint")
    assert descriptor.classification.format == "hf_torch"
    assert descriptor.classification.confidence is Confidence.MEDIUM
    assert descriptor.classification.status is Status.CONDITIONAL
    assert codes(descriptor) == {"trust.opaque_pickle"}
    assert descriptor.state_scope.weights.presence == "opaque"
    assert descriptor.tensors.count is None
    assert descriptor.resources.logical_bytes.bytes is None


def test_an_opaque_pickle_blocks_conversion_and_loading_but_not_inspection() -> None:
    descriptor = look(FIXTURES / "hf" / "bin_single_tied" / "checkpoint")
    assert the(descriptor, "trust.opaque_pickle").blocks == ("convert", "load")


@pytest.mark.parametrize(
    "name",
    sorted(
        folder.parent.name
        for folder in (FIXTURES / "torch").glob("zip_*/checkpoint")
        if folder.parent.name not in {"zip_truncated", "zip_trainer_nested"}
    ),
)
def test_fixtures_of_torch_save_are_recognised_by_their_records(name: str) -> None:
    descriptor = look(FIXTURES / "torch" / name / "checkpoint")
    assert descriptor.classification.format == "torch_save"
    assert descriptor.classification.confidence is Confidence.MEDIUM
    assert "trust.opaque_pickle" in codes(descriptor)


def test_the_stream_from_before_zip_is_recognised_by_its_magic() -> None:
    descriptor = look(FIXTURES / "torch" / "legacy_stream" / "checkpoint")
    assert descriptor.classification.format == "torch_save"
    assert "magic" in {item.kind for item in descriptor.classification.evidence}


def test_a_zip_cut_before_its_directory_is_an_error() -> None:
    descriptor = look(FIXTURES / "torch" / "zip_truncated" / "checkpoint")
    assert "zip.no_end_record" in errors(descriptor)


def test_a_canary_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # R032
    monkeypatch.chdir(tmp_path)
    for family, name in (("torch", "zip_canary_reduce"), ("dcp", "bad_metadata_canary")):
        folder = FIXTURES / family / name / "checkpoint"
        if folder.exists():
            look(folder)
    assert not list(tmp_path.iterdir())


def test_a_name_alone_is_low_confidence(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x00\x01 nothing that torch writes")
    descriptor = look(tmp_path)
    assert descriptor.classification.confidence is Confidence.LOW


def test_an_index_that_names_a_missing_bin_says_so(tmp_path: Path) -> None:
    write_torch_zip(tmp_path / "pytorch_model-00001-of-00002.bin")
    write_json(
        tmp_path / "pytorch_model.bin.index.json",
        {
            "metadata": {"total_size": 8},
            "weight_map": {
                "a": "pytorch_model-00001-of-00002.bin",
                "b": "pytorch_model-00002-of-00002.bin",
            },
        },
    )
    descriptor = look(tmp_path)
    assert {"index.shard_missing", "layout.shard_gap"} <= errors(descriptor)


def test_a_bin_index_that_names_safetensors_says_so(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"a": ("F32", (2,))})
    write_json(tmp_path / "pytorch_model.bin.index.json", {"weight_map": {"a": "model.safetensors"}})
    assert "index.foreign_file" in codes(look(tmp_path))


def test_a_safetensors_file_named_bin_is_named_for_what_it_is(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "pytorch_model.bin", {"a": ("F32", (2,))})
    assert "file.wrong_format" in codes(look(tmp_path))


def test_a_single_file_of_any_name_is_looked_at(tmp_path: Path) -> None:
    file = write_torch_zip(tmp_path / "weights.dat")
    assert look(file).classification.format == "torch_save"


def test_an_adapter_is_not_a_model(tmp_path: Path) -> None:  # R019
    descriptor = look(FIXTURES / "peft" / "lora_llama" / "checkpoint")
    assert descriptor.classification.format == "peft_adapter"
    assert descriptor.classification.confidence is Confidence.HIGH
    assert {"adapter.base_model", "adapter.base_revision"} <= codes(descriptor)  # R141
    assert not errors(descriptor)
    assert descriptor.tensors.count


def test_an_adapter_in_a_bin_file_stays_opaque() -> None:
    descriptor = look(FIXTURES / "peft" / "lora_gpt2_bin_rslora" / "checkpoint")
    assert descriptor.classification.format == "peft_adapter"
    assert descriptor.classification.confidence is Confidence.MEDIUM
    assert "trust.opaque_pickle" in codes(descriptor)


@pytest.mark.parametrize(
    ("gone", "code"),
    [
        ("adapter_config.json", "adapter.config_missing"),
        ("adapter_model.safetensors", "adapter.weights_missing"),
    ],
)
def test_half_an_adapter_says_which_half_is_missing(tmp_path: Path, gone: str, code: str) -> None:
    source = FIXTURES / "peft" / "lora_llama" / "checkpoint"
    for file in source.iterdir():
        if file.is_file() and file.name != gone:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "peft_adapter"
    assert code in errors(descriptor)


def test_an_adapter_beside_its_base_is_composite(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"a": ("F32", (2,))})
    write_config(tmp_path)
    write_safetensors(tmp_path / "adapter_model.safetensors", {"a.lora_A.weight": ("F32", (2,))})
    write_json(tmp_path / "adapter_config.json", {"peft_type": "LORA", "r": 2})
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "composite"
    kinds = [part.format for part in descriptor.components if part.format]
    assert sorted(kinds) == ["hf_safetensors", "peft_adapter"]
