"""Families whose tensors are listed from headers and which nothing here converts: GGUF, NumPy, Zarr and Orbax."""

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardscope.engine import inspect, materialize, prepare
from shardscope.engine.formats import numpy_arrays
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.evidence import Confidence
from shardscope.engine.model.format_names import HEADERS_ONLY
from shardscope.engine.model.plan import PlanOptions
from shardscope.engine.model.workflow import StepName, StepState
from shardscope.engine.previewing import layout, preview
from tests.checkpoints import write_json, write_sharded
from tests.formats.looking import codes, copied, errors, look, the
from tests.parse.gguf_files import Order, Row, gguf, number, texts, word

FILE = "tiny-q4.gguf"


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def write_arrays(root: Path) -> None:
    np.savez(root / "weights.npz", a=np.zeros(2, "f4"), b=np.zeros((2, 3), "f2"))


def write_zarr(root: Path, *, stored: bool = True, **changed: Any) -> None:
    """Write one array of version 2 with four chunks of 96 bytes."""
    declared = {
        "zarr_format": 2, "shape": [6, 8], "chunks": [3, 4], "dtype": "<f8", "order": "C", "compressor": None,
        "filters": None, "fill_value": 0,
    }  # fmt: skip
    write_json(root / ".zarray", declared | changed)
    for name in ("0.0", "0.1", "1.0", "1.1") if stored else ():
        (root / name).write_bytes(bytes(96))


def listed(path: Path) -> dict[str, tuple[str, tuple[int, ...], int]]:
    return {row.name: (row.dtype, row.shape, row.bytes) for row in inspect(path, digest="none").tensors}


@pytest.mark.parametrize(
    ("fixture", "count", "confidence"),
    [
        ("gguf/llama_mixed", 21, Confidence.HIGH),
        ("gguf/llama_mixed_be", 21, Confidence.HIGH),
        ("numpy/arrays", 12, Confidence.MEDIUM),
        ("zarr/group_v3", 4, Confidence.MEDIUM),
        ("orbax/zarr", 4, Confidence.HIGH),
        ("orbax/zarr3", 4, Confidence.HIGH),
    ],
)
def test_what_a_producer_wrote_is_listed_and_nothing_is_promised(  # R024
    fixture: str, count: int, confidence: Confidence, tmp_path: Path
) -> None:
    descriptor = look(copied(fixture, tmp_path))

    assert descriptor.tensors.count == count
    assert descriptor.classification.confidence is confidence
    assert not errors(descriptor)
    assert the(descriptor, "layout.headers_only").blocks == ("convert", "load")
    assert descriptor.state_scope.weights.presence == "present"
    steps = {step.name: step.state for step in descriptor.workflow.steps}
    assert steps[StepName.MATERIALIZE] is StepState.NOT_AVAILABLE
    assert steps[StepName.ADAPT] is StepState.NOT_AVAILABLE
    for figure in ("output_bytes", "temporary_bytes", "peak_ram_bytes"):
        assert getattr(descriptor.resources, figure).bytes is None


WRITERS: dict[str, Callable[[Path], Any]] = {
    "gguf": lambda root: (root / "a.gguf").write_bytes(gguf()),
    "numpy": write_arrays,
    "zarr": write_zarr,
    "orbax": lambda root: copied("orbax/zarr", root),
}


@pytest.mark.parametrize("name", sorted(HEADERS_ONLY))
def test_nothing_converts_it(name: str, tmp_path: Path) -> None:  # R112
    source = tmp_path / "in"
    source.mkdir()
    WRITERS[name](source)
    with pytest.raises(Fault) as caught:
        prepare(source, PlanOptions())

    assert look(source).classification.format == name
    assert caught.value.finding.code == "convert.headers_only"
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_what_lies_beside_it_is_converted_all_the_same(tmp_path: Path) -> None:
    source = tmp_path / "in"
    write_sharded(source)
    (source / "a.gguf").write_bytes(gguf([Row("only.here")]))
    prepared = prepare(source, PlanOptions())

    assert "only.here" not in {tensor.name for tensor in prepared.catalogue.tensors}
    assert prepared.catalogue.tensors
    with pytest.raises(Fault):
        materialize(source, tmp_path / "out", prepared, confirm=lambda _: False)


def decoded(path: Path) -> Inspection:
    return inspect(path, digest="none", decoding=Decoding(Intent("inspect", "command line")))


@pytest.mark.parametrize("fixture", ["gguf/llama_mixed", "numpy/arrays", "orbax/zarr", "zarr/group_v3"])
def test_decoding_takes_nothing_away(fixture: str, tmp_path: Path) -> None:
    folder = copied(fixture, tmp_path)
    assert list(decoded(folder).tensors) == list(inspect(folder, digest="none").tensors)


# GGUF


def test_gguf_is_told_in_the_order_of_rows_and_columns(tmp_path: Path) -> None:
    found = listed(copied("gguf/llama_mixed", tmp_path))
    assert found["blk.0.ffn_up.weight"] == ("Q5_0", (96, 64), 96 * 64 // 32 * 22)
    assert found["token_embd.weight"] == ("Q8_0", (48, 64), 48 * 64 // 32 * 34)
    assert found["blk.0.attn_norm.weight"] == ("F32", (64,), 256)


def test_elements_of_quantised_tensors_are_counted(tmp_path: Path) -> None:
    tensors = look(copied("gguf/llama_mixed", tmp_path)).tensors
    assert tensors.elements == sum(int(np.prod(shape)) for _, shape, _ in listed(tmp_path).values())
    assert {share.dtype for share in tensors.dtypes} == {
        "F32",
        "F16",
        "BF16",
        "Q4_0",
        "Q4_1",
        "Q5_0",
        "Q5_1",
        "Q8_0",
    }


def test_what_the_metadata_says_of_the_model_is_known(tmp_path: Path) -> None:
    model = inspect(copied("gguf/llama_mixed", tmp_path), digest="none").model
    assert model is not None
    assert (model.architecture, model.layers, model.heads, model.groups) == ("llama", 2, 4, 2)
    assert (model.head_size, model.vocabulary, model.experts) == (16, 48, None)


@pytest.mark.parametrize(
    ("version", "order"), [(1, Order("<", wide=False)), (2, Order()), (3, Order()), (3, Order(">"))]
)
def test_the_head_of_gguf_tells_version_and_counts(version: int, order: Order, tmp_path: Path) -> None:
    rows = [Row(f"t{n}", offset=32 * n) for n in range(7)]
    pairs = [number(f"k{n}", n, order) for n in range(5)]
    (tmp_path / "a.gguf").write_bytes(gguf(rows, pairs, version=version, order=order, data=7 * 32))
    descriptor = look(tmp_path)
    magic = next(item for item in descriptor.classification.evidence if item.kind == "magic")
    assert magic.says == f"GGUF version {version}, declares 7 tensors and 5 metadata keys"
    assert ("gguf.big_endian" in codes(descriptor)) is (order.sign == ">")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\xff\x00\xfe is none", "gguf.magic"),
        (b"GGUF\x03", "gguf.truncated"),
        (gguf(version=9), "gguf.version"),
        (gguf(tensors=1 << 62), "gguf.counts"),
        (gguf(pairs=[number("a", 1), number("a", 1)]), "gguf.key_twice"),
        (gguf([Row(), Row(offset=32)]), "gguf.name_twice"),
        (gguf(data=3), "gguf.data_cut_off"),
        (gguf([Row(type=200)]), "gguf.type_unknown"),
    ],
)
def test_a_header_that_makes_no_sense_is_an_error(content: bytes, code: str, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(content)
    descriptor = look(tmp_path)
    assert code in errors(descriptor)
    assert descriptor.resources.logical_bytes.bytes is None


def test_one_bad_file_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(gguf(version=9))
    (tmp_path / "b.gguf").write_bytes(gguf([Row("good")]))
    descriptor = look(tmp_path)
    assert "gguf.version" in errors(descriptor)
    assert descriptor.tensors.count == 1
    assert descriptor.trust.opaque_files == ("a.gguf",)


def write_split(root: Path, *, declared: int = 3, files: tuple[int, ...] = (1, 2, 3)) -> None:
    for part in files:
        pairs = [
            number("split.no", part - 1),
            number("split.count", 3),
            number("split.tensors.count", declared),
        ]
        (root / f"big-{part:05}-of-00003.gguf").write_bytes(gguf([Row(f"t{part}")], pairs))


def test_a_split_is_one_set(tmp_path: Path) -> None:
    write_split(tmp_path)
    descriptor = look(tmp_path)
    assert not errors(descriptor)
    assert descriptor.tensors.count == 3
    assert len([part for part in descriptor.components if part.format == "gguf"]) == 1


def test_a_split_that_lacks_a_file_is_counted(tmp_path: Path) -> None:
    write_split(tmp_path, files=(1, 3))
    assert the(look(tmp_path), "layout.shard_gap").params["first"] == 2


def test_a_split_whose_files_hold_another_number_of_tensors_is_an_error(tmp_path: Path) -> None:
    write_split(tmp_path, declared=4)
    found = the(look(tmp_path), "gguf.split")
    assert (found.params["declared"], found.params["found"]) == (4, 3)


def test_quantisations_side_by_side_are_sets_of_their_own(tmp_path: Path) -> None:
    for name in ("m-q4.gguf", "m-q8.gguf"):
        (tmp_path / name).write_bytes(gguf())
    assert the(look(tmp_path), "layout.weight_sets").params["count"] == 2


def test_a_template_is_named_and_a_secret_found(tmp_path: Path) -> None:
    pairs = [
        word("tokenizer.chat_template", "{{ ''.__class__ }}"),
        word("general.url", "https://user:hunter2hunter2@example.org/x"),
    ]
    (tmp_path / "a.gguf").write_bytes(gguf(pairs=pairs))
    descriptor = look(tmp_path)
    assert the(descriptor, "gguf.template").params["count"] == 1
    assert "config.secret" in codes(descriptor)
    assert "hunter2" not in json.dumps([item.message for item in descriptor.blockers])


def test_an_architecture_that_is_no_name_is_not_repeated(tmp_path: Path) -> None:
    pairs = [word("general.architecture", "\x1b[31m evil"), texts("tokenizer.ggml.tokens", "a", "b")]
    (tmp_path / "a.gguf").write_bytes(gguf(pairs=pairs))
    found = inspect(tmp_path, digest="none")
    assert found.model is not None
    assert (found.model.architecture, found.model.vocabulary) == (None, 2)
    assert "evil" not in json.dumps([item.says for item in found.descriptor.classification.evidence])


def test_gguf_of_a_million_names_stops_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(gguf([Row("a"), Row("b", offset=32)]))
    from shardscope.engine.model.limits import Limits

    found = inspect(tmp_path, digest="none", limits=Limits(tensors=1))
    assert "limit.tensors" in errors(found.descriptor)


# NumPy


def test_numpy_names_arrays_by_files_and_records(tmp_path: Path) -> None:
    found = listed(copied("numpy/arrays", tmp_path))
    assert found["plain"] == ("F32", (2, 3, 4), 96)
    assert found["layer.0.bias"] == ("F32", (3, 4), 48)
    assert found["mask"] == ("BOOL", (3, 4), 12)
    assert found["bfloat16"] == ("V2", (2, 3, 4), 48)
    assert found["record"] == ("record", (3,), 60)
    assert "objects" not in found


def test_an_array_of_objects_is_opaque_and_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy(np.array([{}], object)))
    (tmp_path / "b.npy").write_bytes(npy(np.zeros(3)))
    descriptor = look(tmp_path)
    assert "numpy.objects" in codes(descriptor)
    assert descriptor.trust.opaque_files == ("a.npy",)
    assert descriptor.tensors.count == 1


def test_values_are_the_same_however_they_are_laid(tmp_path: Path) -> None:
    """The catalogue knows order, byte order and packing: what compares and shows values reads the same numbers."""
    array = np.arange(24, dtype="f4").reshape(2, 3, 4)
    for name, save in (("a", np.savez), ("b", np.savez_compressed)):
        (tmp_path / name).mkdir()
        save(tmp_path / name / "x.npz", c=array, f=np.asfortranarray(array), b=array.astype(">f4"))
    catalogue = inspect(tmp_path / "b", digest="none", with_catalogue=True).catalogue
    assert catalogue is not None
    by_name = {tensor.name: tensor.fragments[0] for tensor in catalogue.tensors}
    assert by_name["f"].strides == (1, 2, 6)
    assert by_name["b"].record.big_endian
    assert {fragment.record.coding for fragment in by_name.values()} == {"deflate"}
    assert by_name["c"].strides is None


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\x93NUMPY\x01\x00\xff\xff{}", "npy.malformed"),
        (b"\xff\x00\xfe is none", "numpy.header"),
        (npy(np.zeros(9))[:-1], "numpy.cut_off"),
    ],
)
def test_a_numpy_file_that_cannot_be_is_an_error(content: bytes, code: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    assert code in errors(look(tmp_path))


def test_what_follows_an_array_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy(np.zeros(9)) * 2)
    assert the(look(tmp_path), "numpy.overlong").params["extra"] == len(npy(np.zeros(9)))


def test_a_record_that_is_no_array_is_noticed(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", npy(np.zeros(2)))
        archive.writestr("run.py", "print()")
    descriptor = look(tmp_path)
    assert the(descriptor, "numpy.member").params["record"] == "run.py"
    assert descriptor.tensors.count == 1


def test_of_very_many_arrays_only_the_first_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_arrays, "LOOKED", 3)
    for number_ in range(5):
        (tmp_path / f"{number_}.npy").write_bytes(npy(np.zeros(2)))
    descriptor = look(tmp_path)
    assert the(descriptor, "numpy.unlisted").params["count"] == 2
    assert descriptor.tensors.count == 3
    assert descriptor.resources.logical_bytes.bytes is None


# Zarr


def test_a_group_owns_the_arrays_below_it(tmp_path: Path) -> None:
    assert listed(copied("zarr/group_v3", tmp_path)) == {
        "layer/weight": ("F32", (5, 6), 120),
        "scalar": ("F64", (), 8),
        "sharded": ("I32", (8,), 32),
        "zeros": ("U16", (8,), 16),
    }


def test_chunks_that_are_not_there_are_counted(tmp_path: Path) -> None:
    write_zarr(tmp_path)
    (tmp_path / "1.0").unlink()
    found = the(look(tmp_path), "zarr.chunk_missing")
    assert (found.params["count"], found.params["value"]) == (1, "0")


@pytest.mark.parametrize("name", ["2.0", "0.0.0", "00.0", "-1.0", "0.0.tmp", "1.٣"])
def test_chunks_without_a_place_are_foreign(name: str, tmp_path: Path) -> None:
    write_zarr(tmp_path)
    (tmp_path / name).write_bytes(bytes(96))
    assert the(look(tmp_path), "zarr.foreign").params["count"] == 1


def test_a_chunk_of_another_size_is_an_error(tmp_path: Path) -> None:
    write_zarr(tmp_path)
    (tmp_path / "1.1").write_bytes(bytes(95))
    assert the(look(tmp_path), "zarr.chunk_size").params["found"] == 95


def test_packed_chunks_have_any_size(tmp_path: Path) -> None:
    write_zarr(tmp_path, compressor={"id": "zstd"})
    (tmp_path / "1.1").write_bytes(bytes(5))
    assert not errors(look(tmp_path))


@pytest.mark.parametrize(
    "changed",
    [{"shape": [-1]}, {"dtype": "|O"}, {"chunks": [0, 4]}, {"zarr_format": 1}, {"dtype": [["a", "<f4"]]}],
)
def test_a_description_that_declares_nothing_is_an_error(changed: dict[str, Any], tmp_path: Path) -> None:
    write_zarr(tmp_path, **changed)
    assert "zarr.invalid" in errors(look(tmp_path))


def test_a_description_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    write_zarr(tmp_path)
    (tmp_path / ".zarray").write_text("{'shape'}")
    descriptor = look(tmp_path)
    assert "json.syntax" in errors(descriptor)
    assert descriptor.tensors.count in (0, None)


# Orbax


def test_orbax_arrays_have_the_names_of_the_tree(tmp_path: Path) -> None:
    assert listed(copied("orbax/zarr3", tmp_path)) == {
        "params.dense.bias": ("F32", (4,), 16),
        "params.dense.kernel": ("BF16", (8, 4), 64),
        "params.emb": ("F32", (3, 2), 24),
        "step": ("I64", (), 8),
    }


def test_a_database_of_orbax_is_recognised_only(tmp_path: Path) -> None:
    descriptor = look(copied("orbax/ocdbt", tmp_path))
    assert codes(descriptor) == {"layout.recognised_only"}
    assert "declares a tree of 4 arrays" in {item.says for item in descriptor.classification.evidence}
    assert descriptor.trust.code_references == ("item_handlers",)
    assert descriptor.tensors.count is None


def test_an_array_that_the_tree_names_and_nobody_has_is_an_error(tmp_path: Path) -> None:
    shutil.rmtree(copied("orbax/zarr", tmp_path) / "params.emb")
    found = the(look(tmp_path), "orbax.array_missing")
    assert (found.params["count"], found.params["tensor"]) == (1, "params.emb")


def test_a_chunk_that_was_written_and_is_gone_is_an_error(tmp_path: Path) -> None:
    (copied("orbax/zarr", tmp_path) / "params.dense.bias" / "0").unlink()
    assert the(look(tmp_path), "orbax.chunk_missing").params["tensor"] == "params.dense.bias"


def test_a_chunk_that_may_be_left_out_is_a_warning(tmp_path: Path) -> None:
    folder = copied("orbax/zarr3", tmp_path)
    tree = json.loads((folder / "_METADATA").read_text())
    write_json(folder / "_METADATA", tree | {"store_array_data_equal_to_fill_value": False})
    (folder / "params.dense.bias" / "c" / "0").unlink()
    descriptor = look(folder)
    assert "zarr.chunk_missing" in codes(descriptor)
    assert not errors(descriptor)


def test_a_tree_that_gives_another_shape_is_an_error(tmp_path: Path) -> None:
    folder = copied("orbax/zarr", tmp_path)
    text = (folder / "_METADATA").read_text()
    (folder / "_METADATA").write_text(text.replace("[8, 4]", "[4, 8]"))
    assert the(look(folder), "orbax.shape").params["tensor"] == "params.dense.kernel"


def test_a_save_that_was_not_committed_is_a_warning(tmp_path: Path) -> None:
    folder = copied("orbax/zarr", tmp_path)
    write_json(folder / "_CHECKPOINT_METADATA", {"init_timestamp_nsecs": 1, "commit_timestamp_nsecs": None})
    assert "orbax.uncommitted" in codes(look(folder))


@pytest.mark.parametrize(
    "document",
    [
        "[]",
        "{}",
        '{"tree_metadata": []}',
        '{"tree_metadata": {"a": 7, "b": {"key_metadata": [1], "value_metadata": {"write_shape": ["x"]}}}}',
        '{"tree_metadata": {"a": {"key_metadata": [{"key": null}], "value_metadata": []}}}',
    ],
)
def test_a_tree_of_odd_shape_breaks_nothing(document: str, tmp_path: Path) -> None:
    folder = copied("orbax/zarr", tmp_path)
    (folder / "_METADATA").write_text(document)
    assert look(folder).tensors.count == 4


def test_a_million_chunks_are_not_looped_over(tmp_path: Path) -> None:
    write_zarr(tmp_path, stored=False, shape=[1 << 30, 1 << 8], chunks=[1, 1])
    assert the(look(tmp_path), "zarr.chunk_missing").params["count"] == 1 << 38


def test_a_preview_of_gguf_is_its_header(tmp_path: Path) -> None:
    folder = copied("gguf/llama_mixed", tmp_path)
    shown = preview(inspect(folder, digest="none"), FILE.encode())
    assert shown.kind == "gguf header"
    assert "tokenizer.ggml.tokens: 48 of string" in shown.lines
    assert shown.lines[-1].startswith("blk.1.ffn_down.weight  Q8_0 [64, 96]  bytes ")


def kinds(path: Path) -> list[tuple[str, int]]:
    found = inspect(path, digest="none")
    shown = layout(found, FILE.encode())
    assert shown.container == "gguf"
    assert shown.ranges[0].begin == 0
    assert all(one.end == other.begin for one, other in pairwise(shown.ranges))
    assert shown.ranges[-1].end == (path / FILE).stat().st_size
    return [(each.kind, each.end - each.begin) for each in shown.ranges]


def test_every_byte_of_gguf_has_a_place(tmp_path: Path) -> None:
    folder = copied("gguf/llama_mixed", tmp_path)
    found = [kind for kind, _ in kinds(folder)]
    assert found[:2] == ["header", "padding"]
    assert found.count("tensor") == 21
    assert set(found) == {"header", "padding", "tensor"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            gguf([Row("a"), Row("b", offset=256)], data=300),
            ["header", "padding", "tensor", "gap", "tensor", "padding", "trailing"],
        ),
        (gguf([Row("a", (64,)), Row("b", offset=256)], data=100), ["header", "padding", "tensor", "tensor"]),
        (gguf([], data=None), ["header"]),
    ],
)
def test_gaps_and_ends_of_gguf_are_shown(content: bytes, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert [kind for kind, _ in kinds(tmp_path)] == expected


def sharding(*meshes: object) -> dict[str, object]:
    return {
        f"bg{number}==": mesh if isinstance(mesh, str) else json.dumps(mesh)
        for number, mesh in enumerate(meshes)
    }


MESH = {
    "sharding_type": "NamedSharding",
    "shape": [2, 4],
    "axis_names": ["data", "model"],
    "partition_spec": ["data"],
}


def test_the_mesh_that_arrays_were_on_is_told(tmp_path: Path) -> None:
    folder = copied("orbax/zarr", tmp_path)
    write_json(folder / "_sharding", sharding(MESH, MESH, MESH | {"shape": [8], "axis_names": ["x"]}))
    note = look(folder).topology.note
    assert note == "2 arrays on a mesh of devices, data 2 x model 4, and others on 1 more"


@pytest.mark.parametrize(
    "mesh",
    [
        "not json", "[]", {"shape": [2]}, {"shape": [2], "axis_names": ["a", "b"]}, {"shape": ["2"], "axis_names": ["a"]},
        {"shape": [-2], "axis_names": ["a"]}, {"shape": [], "axis_names": []}, {"shape": [2], "axis_names": ["\x1b[31m"]},
        {"shape": [True], "axis_names": ["a"]}, {"shape": [1 << 60], "axis_names": ["a"]},
    ],
)  # fmt: skip
def test_a_mesh_that_makes_no_sense_is_not_told(mesh: object, tmp_path: Path) -> None:
    folder = copied("orbax/zarr", tmp_path)
    write_json(folder / "_sharding", sharding(mesh))
    assert look(folder).topology.note is None


def test_parts_that_processes_wrote_may_be_smaller_than_the_array(tmp_path: Path) -> None:
    folder = copied("orbax/zarr", tmp_path)
    text = (folder / "_METADATA").read_text()
    (folder / "_METADATA").write_text(text.replace("[8, 4]", "[4, 2]"))
    assert not errors(look(folder))
