"""Every fixture converted, as a person would: the values are those that its producer had, and what has to be refused is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from shardscope.engine import materialize, prepare
from shardscope.engine.converting.materializing import Converted
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.plan import PlanOptions
from tests.formats.decoding import expected

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
REFUSED = {
    "dcp/bad_hole": "dcp.hole",
    "dcp/bad_huge_size": "dcp.tensor_size",
    "dcp/bad_missing_rank_file": "dcp.file_missing",
    "dcp/bad_path_traversal": "dcp.path_unsafe",
    "dcp/bad_payload_byte": "torch.record_crc",
    "dcp/bad_truncated_rank_file": "dcp.item_range",
    "deepspeed/edited-codegen-unsupported-tp2": "universal.unsupported",
    "deepspeed/handbuilt-legacy-categories-tp2-dp2": "universal.average",
    "deepspeed/uc-from-autotp2-llama-tied-vocab-zero1-bf16": "deepspeed.universal_shape",
    "deepspeed/uc-from-zero2-w4-bf16-roundrobin": "deepspeed.universal_values",
    **dict.fromkeys(("gguf/llama_mixed", "gguf/llama_mixed_be"), "convert.headers_only"),
    "hf/index_errors": "index.shard_missing",
    "hf/vllm_sharded_state_tp2": "vllm.geometry",
    "numpy/arrays": "convert.headers_only",
    **dict.fromkeys(("orbax/ocdbt", "orbax/zarr", "orbax/zarr3"), "convert.headers_only"),
    "torch/fsdp1_local_world2": "fsdp.local_state",
    "torch/zip_complex128": "torch.tensor_dtype",
    "torch/zip_meta": "torch.tensor_meta",
    "torch/zip_missing_storage": "torch.storage_missing",
    "torch/zip_quantized": "torch.tensor_kind",
    "torch/zip_skip_data": "torch.storage_unwritten",
    "torch/zip_sparse_coo": "torch.tensor_kind",
    "torch/zip_truncated": "zip.no_end_record",
    "zarr/group_v3": "convert.headers_only",
}
"""What each of these is refused for: the first blocker of its plan."""
NAMES = sorted(
    f"{path.parent.parent.name}/{path.parent.name}"
    for path in FIXTURES.glob("*/*/checkpoint")
    if path.is_dir()
)


def converted(source: Path, out: Path, **options: object) -> Converted:
    prepared = prepare(
        source,
        PlanOptions(**({"component": "all", "ties": "both"} | options)),  # type: ignore[arg-type]
        decoding=Decoding(Intent("convert", "command line"), "all"),
    )
    return materialize(source, out, prepared, confirm=lambda _: True)


def written(out: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    found = {}
    for file in sorted(out.glob("*.safetensors")):
        data = file.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        assert header.pop("__metadata__") == {"format": "pt"}
        for name, item in header.items():
            begin, end = (8 + length + offset for offset in item["data_offsets"])
            found[name] = (item["dtype"], tuple(item["shape"]), data[begin:end])
    return found


def widened(dtype: str, data: bytes) -> bytes:
    """Return 16-bit floats as 32-bit ones: producers widen what was stored in 16."""
    if dtype == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).tobytes()
    return np.frombuffer(data, "<f2").astype("<f4").tobytes() if dtype == "F16" else data


def rounded(data: bytes) -> bytes:
    """Return 32-bit floats as bfloat16, rounded to nearest even: what the producer stored in 16 bits stays so."""
    bits = np.frombuffer(data, "<u4").astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


# R078 R079 R081 R086 R110
@pytest.mark.parametrize("name", [name for name in NAMES if name not in REFUSED])
def test_the_output_holds_what_the_producer_had(name: str, tmp_path: Path) -> None:
    fixture = FIXTURES / name
    before = {
        path: (path.stat().st_mtime_ns, path.read_bytes()) for path in fixture.rglob("*") if path.is_file()
    }
    done = converted(fixture / "checkpoint", tmp_path / "out")
    found = written(tmp_path / "out")

    if (fixture / "expected.safetensors").exists():
        truth = expected(fixture)
        assert found.keys() == truth.keys()
        for key, (dtype, shape, data) in truth.items():
            assert found[key][1] == shape
            assert found[key][2] == data or widened(found[key][0], found[key][2]) == widened(dtype, data), key
    assert before == {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in before}
    assert {item.result for item in done.manifest.validation} <= {"held", "not recorded"}


# R112
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_to_be_refused_is_refused_by_its_code_and_nothing_is_written(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(Fault) as caught:
        converted(FIXTURES / name / "checkpoint", tmp_path / "out")

    assert caught.value.finding.code == REFUSED[name]
    assert not list(tmp_path.iterdir())


def test_every_refusal_is_of_a_fixture_that_is_there() -> None:
    assert set(REFUSED) <= set(NAMES)


MAPPED = {
    "megatron/dist_zarr_tp2": "megatron-llama",
    "megatron/legacy_premcore_tp2": "megatron-llama",
    "megatron/legacy_te_tp2_pp2_bf16": "megatron-llama",
    "megatron/legacy_tp2_pp2": "megatron-llama",
    "megatron/torch_dist_moe_ep2": "megatron-mixtral",
    "megatron/torch_dist_tp2_pp2": "megatron-llama",
    "megatron/torch_dist_tp2_pp2_singleton": "megatron-llama",
}


# R077
@pytest.mark.parametrize(
    "name", [name for name in MAPPED if (FIXTURES / name / "expected_hf.safetensors").exists()]
)
def test_a_mapping_gives_the_tensors_of_the_model(name: str, tmp_path: Path) -> None:
    fixture = FIXTURES / name
    done = converted(
        fixture / "checkpoint", tmp_path / "out", component="model", mapping=MAPPED[name], vocab_size=97
    )
    found, truth = written(tmp_path / "out"), expected(fixture, "expected_hf")

    assert found.keys() == truth.keys()
    for key, (dtype, shape, data) in truth.items():
        assert found[key][1] == shape
        narrow = found[key][0] == "BF16" and dtype == "F32"
        assert found[key][2] == (rounded(data) if narrow else data), key
    assert "mapping" in {item.kind for item in done.plan.decisions}


@pytest.mark.parametrize("name", sorted(MAPPED))
def test_a_vocabulary_is_trimmed_to_the_size_that_was_given(name: str, tmp_path: Path) -> None:
    fixture = FIXTURES / name
    converted(fixture / "checkpoint", tmp_path / "out", component="model", vocab_size=97)
    found, truth = written(tmp_path / "out"), expected(fixture)
    key = "embedding.word_embeddings.weight"
    dtype, shape, data = truth[key]

    assert found[key][1] == (97, shape[1])
    rows = data[: len(data) // shape[0] * 97]
    assert found[key][2] == (rounded(rows) if (found[key][0], dtype) == ("BF16", "F32") else rows)
