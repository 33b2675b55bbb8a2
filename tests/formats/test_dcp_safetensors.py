"""DCP written as safetensors: fragments, offsets, holes and unproven ends, all from headers."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine import inspect
from shardscope.engine.model.evidence import Confidence
from shardscope.engine.model.limits import Limits
from tests.checkpoints import safetensors_bytes, write_config, write_json, write_safetensors
from tests.formats.looking import FIXTURES, codes, errors, look, the

SHARDED = FIXTURES / "dcp" / "hf_writer_sharded_world2" / "checkpoint"
CONSOLIDATED = FIXTURES / "dcp" / "hf_writer_consolidated_world2" / "checkpoint"
FRAGMENTS = ("torch_dcp_safetensors", Confidence.HIGH)

Piece = tuple[str, Sequence[int], Any]
"""dtype, shape and the entry of DCP_SHARDING_INFO: offsets, or the whole entry."""


def shard_name(shard: int, file: int = 1, files: int = 1) -> str:
    return f"shard-{shard:05d}-model-{file:05d}-of-{files:05d}.safetensors"


def write_shard(
    path: Path, pieces: Mapping[str, Piece], *, version: str = "1.0", info: str | None = None
) -> Path:
    """Write one file as torch does: tensors, and where each of them begins in the whole."""
    sharding = {
        name: entry if isinstance(entry, dict) else {"saved_offsets": entry}
        for name, (_, _, entry) in pieces.items()
    }
    metadata = {
        "format": "pt",
        "DCP_VERSION": version,
        "DCP_SHARDING_INFO": json.dumps(sharding) if info is None else info,
    }
    return write_safetensors(
        path, {name: (dtype, shape) for name, (dtype, shape, _) in pieces.items()}, metadata
    )


def write_rows(folder: Path, *sizes: int, columns: int = 4, name: str = "model.embed_tokens.weight") -> Path:
    """Write a matrix cut by rows, one shard a size."""
    start = 0
    for shard, size in enumerate(sizes, 1):
        write_shard(folder / shard_name(shard), {name: ("F32", (size, columns), [start, 0])})
        start += size
    return folder


def copied(fixture: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fixture, tmp_path / "checkpoint"))


# What real writers leave


@pytest.mark.parametrize("name", ["hf_writer_sharded_world2", "hf_writer_scalar_int_world2"])
def test_fragments_of_two_ranks_fill_their_tensors(name: str) -> None:  # R195
    descriptor = look(FIXTURES / "dcp" / name / "checkpoint")
    found = descriptor.classification
    assert (found.format, found.confidence) == FRAGMENTS
    assert errors(descriptor) == set()
    assert "the fragments of" in found.evidence[-1].says
    assert descriptor.topology.meshes[0].ranks_seen == ((0,), (1,))
    assert not descriptor.topology.meshes[0].ranks_missing
    assert descriptor.state_scope.weights.presence == "present"


def test_logical_bytes_are_those_of_the_whole_tensors() -> None:
    expected = FIXTURES / "dcp" / "hf_writer_scalar_int_world2" / "expected.safetensors"
    data = expected.read_bytes()
    whole = len(data) - 8 - int.from_bytes(data[:8], "little")
    descriptor = look(FIXTURES / "dcp" / "hf_writer_scalar_int_world2" / "checkpoint")
    assert descriptor.resources.logical_bytes.bytes == whole


def test_the_table_lists_fragments_as_they_are_stored() -> None:  # R005
    table = inspect(SHARDED, digest="none").tensors
    rows = [(row.file, row.shape) for row in table if row.name == "embed.weight"]
    assert rows == [(shard_name(1), (6, 13)), (shard_name(2), (5, 13))]


def test_a_save_of_whole_tensors_with_an_index_is_an_ordinary_hugging_face_save() -> None:  # R004
    descriptor = look(FIXTURES / "dcp" / "hf_writer_rank0_full_world2" / "checkpoint")
    assert descriptor.classification.format == "hf_safetensors"
    assert not descriptor.topology.meshes
    (alternative,) = [
        item for item in descriptor.classification.alternatives if item.format == "torch_dcp_safetensors"
    ]
    assert "whole" in alternative.reason


def test_consolidated_files_beside_their_fragments_are_a_composite_that_counts_the_weights_once() -> None:
    descriptor = look(CONSOLIDATED)
    assert descriptor.classification.format == "composite"
    assert {item.format for item in descriptor.components if item.kind == "weights"} == {
        "hf_safetensors",
        "torch_dcp_safetensors",
    }
    assert descriptor.resources.logical_bytes.bytes == 1554
    assert errors(descriptor) == set()
    assert "dcp.extent_unproven" not in codes(descriptor)  # the consolidated headers prove the sizes


def test_consolidated_files_turn_a_missing_last_shard_into_a_hole(tmp_path: Path) -> None:  # R195
    folder = copied(CONSOLIDATED, tmp_path)
    for path in (folder / "sharded").glob("shard-00002-*"):
        path.unlink()
    assert "dcp.hole" in errors(look(folder))


# Names decide nothing


def test_fragments_named_like_hugging_face_shards_are_told_by_their_headers(tmp_path: Path) -> None:
    for number, start in ((1, 0), (2, 3)):
        name = f"model-{number:05d}-of-00002.safetensors"
        write_shard(tmp_path / name, {"w": ("F32", (3, 4), [start, 0])})
    write_json(
        tmp_path / "model.safetensors.index.json",
        {"metadata": {}, "weight_map": {"w": "model-00001-of-00002.safetensors"}},
    )
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "torch_dcp_safetensors"
    assert descriptor.resources.logical_bytes.bytes == 6 * 4 * 4


def test_files_named_like_fragments_without_offsets_are_not_dcp(tmp_path: Path) -> None:
    for shard in (1, 2):
        write_safetensors(tmp_path / shard_name(shard), {f"w{shard}": ("F32", (2, 2))})
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "hf_safetensors"
    assert "torch_dcp_safetensors" in {item.format for item in descriptor.classification.alternatives}


def test_an_ordinary_save_is_not_asked_twice(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model-00001-of-00001.safetensors", {"w": ("F32", (2, 2))}, {"format": "pt"})
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "hf_safetensors"
    assert not [a for a in descriptor.classification.alternatives if a.format == "torch_dcp_safetensors"]


def test_one_fragment_opened_on_its_own_is_described(tmp_path: Path) -> None:
    path = write_shard(tmp_path / shard_name(2), {"w": ("F32", (3, 4), [3, 0])})
    descriptor = look(path)
    assert descriptor.classification.format == "torch_dcp_safetensors"
    assert "dcp.hole" in errors(descriptor)


# What is missing


def test_a_missing_first_shard_is_a_hole(tmp_path: Path) -> None:  # R195
    folder = copied(SHARDED, tmp_path)
    (folder / shard_name(1)).unlink()
    descriptor = look(folder)
    assert the(descriptor, "dcp.hole").params["count"] == 9
    assert the(descriptor, "dcp.shard_gap").params["first"] == shard_name(1)
    assert descriptor.topology.meshes[0].ranks_missing == ((0,),)
    assert descriptor.resources.logical_bytes.bytes is None
    assert descriptor.classification.confidence is Confidence.MEDIUM


def test_a_missing_middle_shard_is_a_hole_with_its_place(tmp_path: Path) -> None:  # R195
    write_rows(tmp_path, 4, 4, 4)
    (tmp_path / shard_name(2)).unlink()
    hole = the(look(tmp_path), "dcp.hole")
    assert (hole.params["missing"], hole.params["total"]) == (16, 48)
    assert hole.params["where"] == "4 to 8, 0 to 4"


def test_a_missing_last_shard_leaves_the_size_unproven(tmp_path: Path) -> None:  # R195
    folder = copied(SHARDED, tmp_path)
    (folder / shard_name(2)).unlink()
    descriptor = look(folder)
    assert errors(descriptor) == set()
    assert the(descriptor, "dcp.extent_unproven").params["short"] == 0


def test_the_configuration_turns_a_missing_last_shard_into_a_hole(tmp_path: Path) -> None:
    write_config(tmp_path)  # a vocabulary of 16, hidden size 4
    write_rows(tmp_path, 4, 4, 4)
    assert the(look(tmp_path), "dcp.hole").params["where"] == "12 to 16, 0 to 4"


def test_one_tensor_of_declared_size_settles_how_many_shards_there_were(tmp_path: Path) -> None:
    write_config(tmp_path)
    for shard in (1, 2):
        pieces: dict[str, Piece] = {
            "model.embed_tokens.weight": ("F32", (8, 4), [8 * (shard - 1), 0]),
            "model.norm.weight": ("F32", (2,), [2 * (shard - 1)]),
        }
        write_shard(tmp_path / shard_name(shard), pieces)
    descriptor = look(tmp_path)
    assert codes(descriptor) == set()
    assert any("no further shard" in item.says for item in descriptor.classification.evidence)


def test_a_padded_vocabulary_is_no_contradiction(tmp_path: Path) -> None:
    write_config(tmp_path)
    write_rows(tmp_path, 16, 16)
    descriptor = look(tmp_path)
    assert errors(descriptor) == set()
    assert "dcp.extent_unproven" in codes(descriptor)


def test_global_shapes_prove_the_sizes(tmp_path: Path) -> None:
    for shard in (1, 2):
        entry = {"saved_offsets": [4 * (shard - 1), 0], "global_shape": [8, 4], "later": {"member": 1}}
        write_shard(tmp_path / shard_name(shard), {"w": ("F32", (4, 4), entry)})
    assert codes(look(tmp_path)) == set()
    (tmp_path / shard_name(2)).unlink()
    assert the(look(tmp_path), "dcp.hole").params["missing"] == 16


def test_global_shapes_that_are_too_small_or_differ_are_errors(tmp_path: Path) -> None:
    for shard, shape in ((1, [6, 4]), (2, [7, 4])):
        entry = {"saved_offsets": [4 * (shard - 1), 0], "global_shape": shape}
        write_shard(tmp_path / shard_name(shard), {"w": ("F32", (4, 4), entry)})
    assert errors(look(tmp_path)) == {"dcp.extent_contradicted", "dcp.extent_disagrees"}


# What does not fit


def test_a_shard_of_another_save_overlaps(tmp_path: Path) -> None:
    write_rows(tmp_path, 4, 4)
    write_shard(tmp_path / shard_name(3), {"model.embed_tokens.weight": ("F32", (3, 4), [6, 0])})
    overlap = the(look(tmp_path), "dcp.overlap")
    assert overlap.params["repeated"] == 8
    assert overlap.params["first"] == shard_name(2)
    assert overlap.params["second"] == shard_name(3)


def test_a_copied_shard_repeats_what_the_other_holds(tmp_path: Path) -> None:
    folder = copied(SHARDED, tmp_path)
    shutil.copy(folder / shard_name(1), folder / "shard-1-model-1-of-1.safetensors")
    assert {"dcp.overlap"} <= errors(look(folder))
    assert "dcp.shard_duplicate" in codes(look(folder))


def test_fragments_of_different_dtype_or_rank_are_errors(tmp_path: Path) -> None:
    write_shard(tmp_path / shard_name(1), {"w": ("F32", (2, 2), [0, 0]), "v": ("F32", (4,), [0])})
    write_shard(tmp_path / shard_name(2), {"w": ("BF16", (2, 2), [2, 0]), "v": ("F32", (2, 2), [0, 0])})
    descriptor = look(tmp_path)
    assert errors(descriptor) == {"dcp.dtype_mixed", "dcp.rank_mixed"}
    assert the(descriptor, "dcp.dtype_mixed").params["dtypes"] == "BF16, F32"
    assert descriptor.resources.logical_bytes.bytes is None


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"saved_offsets": [0]}, "1 offsets for 2 axes"),
        ({"saved_offsets": [0, -1]}, "saved_offsets holds a negative number"),
        ({"saved_offsets": [0, 1.5]}, "saved_offsets holds a number that is no integer"),
        ({"saved_offsets": [0, True]}, "saved_offsets holds a boolean that is no integer"),
        ({"saved_offsets": [0, 1 << 63]}, "saved_offsets holds a number beyond 63 bits"),
        ({"saved_offsets": [0, (1 << 63) - 2]}, "it ends beyond 63 bits"),
        ({"saved_offsets": "0, 0"}, "saved_offsets is a string"),
        ({}, "it has no saved_offsets"),
        ({"saved_offsets": [0, 0], "global_shape": [4]}, "global_shape has 1 numbers for 2 axes"),
        ({"saved_offsets": [0, 0], "global_shape": [4, None]}, "global_shape holds null that is no integer"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, entry: dict[str, Any], reason: str
) -> None:
    write_shard(tmp_path / shard_name(1), {"w": ("F32", (4, 4), entry), "v": ("F32", (2,), [0])})
    found = the(look(tmp_path), "dcp.sharding_entry")
    assert found.params == {"count": 1, "file": shard_name(1), "reason": reason, "tensor": "w"}


def test_sharding_information_that_is_no_object_is_an_error(tmp_path: Path) -> None:
    for number, info in enumerate(("[]", "{", '{"w": {}, "w": {}}'), 1):
        write_shard(tmp_path / shard_name(number), {"w": ("F32", (4,), [0])}, info=info)
    descriptor = look(tmp_path)
    reasons = {b.params["reason"] for b in descriptor.blockers if b.code == "dcp.sharding_malformed"}
    assert reasons == {"it is a list", "json.syntax", "json.duplicate_key"}


def test_sharding_information_is_read_within_the_limits_of_json(tmp_path: Path) -> None:
    write_shard(tmp_path / shard_name(1), {"w": ("F32", (4,), [0])}, info="[" * 80 + "]" * 80)
    assert "limit.json_depth" in codes(inspect(tmp_path, limits=Limits(json_depth=20)).descriptor)


def test_a_file_without_offsets_among_others_is_named(tmp_path: Path) -> None:
    write_rows(tmp_path, 4, 4)
    write_safetensors(tmp_path / shard_name(3), {"w": ("F32", (4, 4))})
    found = the(look(tmp_path), "dcp.sharding_absent")
    assert (found.params["count"], found.params["first"]) == (1, shard_name(3))


def test_tensors_and_offsets_that_have_no_counterpart_are_named(tmp_path: Path) -> None:
    info = json.dumps({"w": {"saved_offsets": [0]}, "ghost": {"saved_offsets": [0]}})
    write_shard(tmp_path / shard_name(1), {"w": ("F32", (4,), [0]), "lost": ("F32", (4,), [0])}, info=info)
    descriptor = look(tmp_path)
    assert the(descriptor, "dcp.sharding_unlisted").params["tensor"] == "lost"
    assert the(descriptor, "dcp.sharding_orphan").params["tensor"] == "ghost"


def test_an_unknown_dtype_blocks_conversion_and_leaves_the_bytes_unknown(tmp_path: Path) -> None:  # R196
    data = safetensors_bytes(
        {"w": ("F32", (4,))}, {"DCP_VERSION": "1.0", "DCP_SHARDING_INFO": '{"w": {"saved_offsets": [0]}}'}
    )
    (tmp_path / shard_name(1)).write_bytes(data.replace(b'"F32"', b'"F3X"'))
    descriptor = look(tmp_path)
    assert descriptor.classification.format == "torch_dcp_safetensors"
    assert "convert" in the(descriptor, "header.dtype_unknown").blocks
    assert descriptor.resources.logical_bytes.bytes is None


def test_scalars_integers_and_empty_pieces_are_fragments_like_others(tmp_path: Path) -> None:  # R196
    write_shard(tmp_path / shard_name(1), {"step": ("I64", (), []), "w": ("U8", (3,), [0])})
    write_shard(tmp_path / shard_name(2), {"w": ("U8", (0,), [3])})
    descriptor = look(tmp_path)
    assert errors(descriptor) == set()
    assert descriptor.resources.logical_bytes.bytes == 8 + 3


def test_sub_byte_fragments_are_counted_in_bits(tmp_path: Path) -> None:  # R196
    for shard in (1, 2):
        info = json.dumps({"w": {"saved_offsets": [4 * (shard - 1)]}})
        header: dict[str, Any] = {
            "__metadata__": {"DCP_VERSION": "1.0", "DCP_SHARDING_INFO": info},
            "w": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]},
        }
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        (tmp_path / shard_name(shard)).write_bytes(len(text).to_bytes(8, "little") + text + bytes(2))
    descriptor = look(tmp_path)
    assert errors(descriptor) == set()
    assert descriptor.resources.logical_bytes.bytes == 4


def test_a_truncated_shard_keeps_the_others_described(tmp_path: Path) -> None:
    folder = copied(SHARDED, tmp_path)
    path = folder / shard_name(2)
    path.write_bytes(path.read_bytes()[:1500])
    descriptor = look(folder)
    assert "header.truncated" in errors(descriptor)
    assert descriptor.tensors.count == 18
    assert descriptor.resources.logical_bytes.bytes is None


def test_a_shard_whose_header_is_lost_leaves_the_family_and_a_blocker(tmp_path: Path) -> None:
    folder = copied(SHARDED, tmp_path)
    (folder / shard_name(1)).write_bytes(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64
    )
    descriptor = look(folder)
    assert descriptor.classification.format == "torch_dcp_safetensors"
    assert {"file.lfs_pointer", "dcp.hole"} <= errors(descriptor)


def test_an_index_beside_fragments_is_a_trap(tmp_path: Path) -> None:
    folder = copied(SHARDED, tmp_path)
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"up.bias": shard_name(1)}})
    descriptor = look(folder)
    assert descriptor.classification.format == "torch_dcp_safetensors"
    assert "dcp.index_beside" in codes(descriptor)


def test_totals_that_differ_and_a_version_that_is_new_are_said(tmp_path: Path) -> None:
    write_shard(tmp_path / shard_name(1, 1, 2), {"w": ("F32", (2,), [0])}, version="2.0")
    write_shard(tmp_path / shard_name(1, 1, 3), {"v": ("F32", (2,), [0])})
    assert {"layout.totals_mixed", "dcp.version_unknown"} <= codes(look(tmp_path))


def test_hostile_numbers_in_names_cost_nothing(tmp_path: Path) -> None:
    write_shard(tmp_path / shard_name(999_999_999, 1, 999_999_999), {"w": ("F32", (2,), [0])})
    descriptor = look(tmp_path)
    assert the(descriptor, "dcp.shard_gap").params["missing"] == 999_999_999**2 - 1
    assert len(descriptor.topology.meshes[0].ranks_missing) <= 256


def test_fragments_beyond_the_limit_of_steps_stop_with_its_name(tmp_path: Path) -> None:
    write_rows(tmp_path, *[1] * 12)
    descriptor = inspect(tmp_path, digest="none", limits=Limits(fragment_steps=10)).descriptor
    assert "limit.fragment_steps" in codes(descriptor)


def test_a_secret_in_a_tensor_name_is_not_repeated(tmp_path: Path) -> None:
    token = "hf_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7"
    write_shard(tmp_path / shard_name(1), {token: ("F32", (2,), [4])})
    assert token not in the(look(tmp_path), "dcp.hole").message


def test_the_order_and_the_names_of_files_that_do_not_matter_change_nothing(tmp_path: Path) -> None:
    folder = copied(SHARDED, tmp_path)
    before = look(folder).classification
    (folder / "notes.txt").write_text("of the run")
    (folder / "aaa.log").write_text("started")
    after = look(folder).classification
    assert (after.format, after.confidence, after.evidence) == (
        before.format,
        before.confidence,
        before.evidence,
    )
