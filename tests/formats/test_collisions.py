"""Layouts that look like two things at once, each with the one right outcome.

The numbers that comments give ("collision 7") are those of this list; other modules hold the families' own.

1   DCP files inside a Megatron Core save           `test_megatron_dist`, `test_dcp`
2   `metadata.json` of another tool                 `test_megatron_dist`
3   ZeRO beside a Universal tree                    `test_deepspeed_universal`
4   `mp_rank_00` as a folder and as a file          `test_megatron_legacy`
5   two ZeRO stages in one folder                   `test_deepspeed_zero`
6   partitions with and without a prefix            `test_deepspeed_zero`
7   weights beside a step of DeepSpeed              here
8   safetensors beside `.bin`                       here
9   a tracker that leads nowhere or out             `test_deepspeed_zero`, `test_megatron_legacy`
10  an index that disagrees with the files          here, `test_hf_safetensors`
11  an adapter beside a base model                  here
12  an offload folder                               here, `test_accelerate`
13  DCP fragments named like shards                 `test_dcp_safetensors`
14  several steps in one root                       here, `test_hf_safetensors`
"""

import shutil
from pathlib import Path

import pytest

from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.evidence import Confidence, Status
from tests.checkpoints import (
    LLAMA,
    write_config,
    write_json,
    write_safetensors,
    write_sharded,
    write_torch_zip,
)
from tests.formats.looking import FIXTURES, codes, errors, look, the
from tests.formats.test_headers_only import write_arrays
from tests.formats.test_recognised_only import write_hdf5, write_onnx, write_saved_model
from tests.parse.gguf_files import gguf


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(FIXTURES / name / "checkpoint", folder, dirs_exist_ok=True))


def parts(descriptor: Descriptor) -> set[str]:
    return {part.format for part in descriptor.components if part.format}


def assert_both(descriptor: Descriptor, *formats: str) -> None:
    """Both are described, neither is picked."""
    assert descriptor.classification.format == "composite"
    assert descriptor.classification.status is Status.CONDITIONAL
    assert parts(descriptor) == set(formats)


def test_weights_beside_a_step_of_deepspeed_are_composite(tmp_path: Path) -> None:  # collision 7
    write_sharded(tmp_path)
    copied("deepspeed/zero2-w4-bf16", tmp_path)
    descriptor = look(tmp_path)
    assert_both(descriptor, "hf_safetensors", "deepspeed_zero")
    assert "layout.weight_sets" not in codes(descriptor)


def test_safetensors_beside_bin_are_two_sets(tmp_path: Path) -> None:  # collision 8
    write_sharded(tmp_path)
    write_torch_zip(tmp_path / "pytorch_model.bin")
    descriptor = look(tmp_path)
    assert_both(descriptor, "hf_safetensors", "hf_torch")
    assert the(descriptor, "layout.weight_sets").blocks == ("convert", "load")
    assert descriptor.resources.output_bytes.bytes is None


def test_a_file_with_tensors_that_the_index_does_not_list(tmp_path: Path) -> None:  # collision 10
    write_sharded(tmp_path)
    write_safetensors(tmp_path / "extra.safetensors", {"extra.weight": ("F32", (2,))})
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "hf_safetensors"
    assert "index.shard_missing" in errors(descriptor)
    assert "layout.weight_sets" in codes(descriptor)


def test_an_adapter_beside_a_base_model_is_composite(tmp_path: Path) -> None:  # collision 11
    copied("hf/llama_sharded", tmp_path)
    copied("peft/lora_llama", tmp_path)
    descriptor = look(tmp_path)
    assert_both(descriptor, "hf_safetensors", "peft_adapter")
    assert "adapter.base_model" in codes(descriptor)
    assert "layout.weight_sets" not in codes(descriptor)


def test_an_offload_folder_is_not_distributed(tmp_path: Path) -> None:  # collision 12, R007
    descriptor = look(copied("accelerate/offload_folder", tmp_path))
    assert descriptor.classification.format == "accelerate_offload"
    assert not descriptor.topology.meshes


def test_two_steps_in_one_root_are_not_merged(tmp_path: Path) -> None:  # collision 14, R040
    for step in ("checkpoint-10", "checkpoint-20"):
        copied("hf/mistral_consolidated", tmp_path / step)
    descriptor = look(tmp_path)
    assert descriptor.classification.status is Status.AMBIGUOUS
    assert "layout.several_candidates" in errors(descriptor)


def test_gguf_beside_safetensors_is_composite(tmp_path: Path) -> None:
    write_sharded(tmp_path)
    (tmp_path / "model-q4.gguf").write_bytes(gguf())
    descriptor = look(tmp_path)
    assert_both(descriptor, "hf_safetensors", "gguf")
    assert "layout.weight_sets" in codes(descriptor)
    assert descriptor.tensors.count == len(LLAMA) + 1
    assert descriptor.resources.output_bytes.bytes is None


def test_mistrals_file_beside_shards_is_the_same_model_twice(tmp_path: Path) -> None:
    write_sharded(tmp_path)
    copied("hf/mistral_consolidated", tmp_path)
    descriptor = look(tmp_path)
    assert_both(descriptor, "hf_safetensors", "mistral_consolidated")
    assert the(descriptor, "layout.weight_sets").params["sets"] == "hf_safetensors, mistral_consolidated"
    assert not errors(descriptor)


def test_metas_files_below_original_are_the_same_model_twice(tmp_path: Path) -> None:
    write_sharded(tmp_path)
    copied("hf/meta_consolidated_mp2", tmp_path / "original")
    descriptor = look(tmp_path)
    assert_both(descriptor, "hf_safetensors", "meta_consolidated")
    assert the(descriptor, "layout.weight_sets").subject == "."
    assert descriptor.topology.meshes[0].axes[0].size == 2


def test_both_releases_in_one_folder_are_composite(tmp_path: Path) -> None:
    copied("hf/meta_consolidated_mp2", tmp_path)
    copied("hf/mistral_consolidated", tmp_path)
    assert_both(look(tmp_path), "meta_consolidated", "mistral_consolidated")


def test_every_framework_of_one_repository_is_listed(tmp_path: Path) -> None:
    write_sharded(tmp_path)
    write_torch_zip(tmp_path / "pytorch_model.bin")
    write_hdf5(tmp_path)
    (tmp_path / "onnx").mkdir()
    write_onnx(tmp_path / "onnx")
    descriptor = look(tmp_path)
    assert_both(descriptor, "hf_safetensors", "hf_torch", "keras", "onnx")
    assert the(descriptor, "layout.weight_sets").params["count"] == 4


def test_a_saved_model_beside_safetensors_is_composite(tmp_path: Path) -> None:
    write_sharded(tmp_path)
    write_saved_model(tmp_path)
    assert_both(look(tmp_path), "hf_safetensors", "tensorflow")


def test_npz_alone_is_numpy(tmp_path: Path) -> None:
    write_arrays(tmp_path)
    assert look(tmp_path).classification.format == "numpy"


def test_npz_beside_weights_is_composite(tmp_path: Path) -> None:
    write_sharded(tmp_path)
    write_arrays(tmp_path)
    assert_both(look(tmp_path), "hf_safetensors", "numpy")


@pytest.mark.parametrize("content", [gguf(), b"tjgg" + bytes(64)], ids=["gguf", "ggml"])
def test_gguf_named_bin_is_gguf(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "ggml-model-q4_0.bin").write_bytes(content)
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "gguf"
    assert descriptor.classification.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(
    ("content", "found"), [(gguf(), "a GGUF file"), (b"\x89HDF\r\n\x1a\n" + bytes(64), "an HDF5 file")]
)
def test_another_format_under_the_name_of_torch_weights_is_refused(
    content: bytes, found: str, tmp_path: Path
) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(content)
    write_config(tmp_path)
    descriptor = look(tmp_path)
    assert descriptor.classification.status is Status.REFUSED
    assert the(descriptor, "file.wrong_format").params["found"] == found


def test_hdf5_named_bin_is_named_for_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    descriptor = look(tmp_path)
    assert descriptor.classification.confidence is Confidence.LOW
    assert "file.wrong_format" in errors(descriptor)


def test_vllm_ranks_beside_shards_are_composite(tmp_path: Path) -> None:
    write_sharded(tmp_path)
    copied("hf/vllm_sharded_state_tp2", tmp_path)
    descriptor = look(tmp_path)
    assert_both(descriptor, "hf_safetensors", "vllm_sharded_state")
    assert "index.tensor_duplicate" not in codes(descriptor)


def test_params_json_alone_is_no_checkpoint(tmp_path: Path) -> None:
    write_json(tmp_path / "params.json", {"dim": 4, "n_layers": 1})
    assert look(tmp_path).classification.format == "unknown"
