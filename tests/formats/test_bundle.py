"""Bundles in the safe plane: recognised by their schema, checked whole, and read by nothing that decodes."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file

from shardscope.engine import prepare
from shardscope.engine.formats.bundle import is_below
from shardscope.engine.model.bundle import BundleDocument
from shardscope.engine.model.documents import json_schema
from shardscope.engine.model.evidence import Confidence
from shardscope.engine.model.plan import PlanOptions
from tests.bundles import FILE, Bundled
from tests.formats.decoding import decode, value
from tests.formats.looking import codes, errors, look, the

DOCS = Path(__file__).resolve().parents[2] / "docs"


def made(tmp_path: Path, **document: Any) -> Path:
    bundle = Bundled()
    bundle.document.update(document)
    return bundle.write(tmp_path / "in")


def test_a_bundle_is_told_by_its_schema_and_needs_no_decoding(tmp_path: Path) -> None:
    descriptor = look(made(tmp_path))
    assert descriptor.classification.format == "bundle"
    assert descriptor.classification.confidence is Confidence.HIGH
    assert not descriptor.blockers
    assert not descriptor.trust.opaque_files
    assert descriptor.state_scope.weights.reason == "5 tensors in 2 files"
    assert descriptor.resources.logical_bytes.bytes == 4 * (10 * 4 + 8 * 6 + 12 * 4 + 4)
    assert [(axis.name, axis.size) for axis in descriptor.topology.meshes[0].axes] == [("tp", 2)]


def test_its_catalogue_holds_what_it_stands_for(tmp_path: Path) -> None:
    found = decode(made(tmp_path))
    for name, array in Bundled().model.items():
        assert value(found, found.named(name)) == array.tobytes(), name
    tie = found.named("lm_head.weight")
    assert (tie.alias_of, tie.fragments) == (
        "model.embed.weight",
        found.named("model.embed.weight").fragments,
    )
    assert found.named("model.embed.weight").stored_shape == (12, 4)


@pytest.mark.parametrize("schema", ["shardscope.plan/1", "bundle/1", 1, None])
def test_another_document_of_that_name_is_no_bundle(schema: object, tmp_path: Path) -> None:
    descriptor = look(made(tmp_path, schema=schema))
    assert "bundle" not in descriptor.classification.format
    assert not any(code.startswith("bundle.") for code in codes(descriptor))


@pytest.mark.parametrize(
    ("change", "code", "part"),
    [
        ({"schema": "shardscope.bundle/2"}, "bundle.version", "shardscope.bundle/2"),
        ({"colour": "red"}, "bundle.document", "colour"),
        ({"tensors": []}, "bundle.document", "$.tensors"),
        ({"meshes": {"": {"axes": []}}}, "bundle.document", "$.meshes"),
        ({"tensors": {"w": {"dtype": "F32", "shape": [-1]}}}, "bundle.document", "$.tensors[...].shape[0]"),
        ({"tensors": {"w": {"dtype": "F32", "shape": [1], "pickle": "x"}}}, "bundle.document", "pickle"),
        (
            {"tensors": {"w": {"dtype": "F32", "shape": [1], "map": {"node": "exec"}}}},
            "bundle.document",
            "$.tensors[...].map",
        ),
    ],
)
def test_a_document_of_another_form_is_refused_with_its_place(
    change: dict[str, Any], code: str, part: str, tmp_path: Path
) -> None:
    descriptor = look(made(tmp_path, **change))
    found = the(descriptor, code)
    assert part in f"{found.params}"
    assert found.blocks == ("convert", "load")


def test_a_name_twice_is_refused_by_the_json_itself(tmp_path: Path) -> None:
    folder = made(tmp_path)
    text = (folder / FILE).read_text()
    (folder / FILE).write_text(text.replace('"model.up.weight"', '"model.embed.weight"', 1))
    assert any(code.startswith("json.") for code in codes(look(folder)))


def test_entries_that_no_tensor_has_are_told(tmp_path: Path) -> None:
    bundle = Bundled()
    bundle.files["rank0.safetensors"]["more"] = np.zeros(3, np.float32)
    found = the(look(bundle.write(tmp_path / "in")), "bundle.key_unused")
    assert (found.params["count"], found.params["first"], found.subject) == (1, "more", "rank0.safetensors")


def test_everything_wrong_is_told_at_once_with_the_name_of_each_tensor(tmp_path: Path) -> None:
    bundle = Bundled()
    bundle.tensor("model.up.weight")["fragments"].pop()
    bundle.tensor("model.norm.weight").update(shape=[5])
    bundle.tensor("lm_head.weight").update(alias_of="gone")
    descriptor = look(bundle.write(tmp_path / "in"))
    assert errors(descriptor) == {"bundle.rank", "bundle.shape", "bundle.alias"}
    assert descriptor.resources.logical_bytes.bytes is None
    for code, name in (("bundle.rank", "model.up.weight"), ("bundle.alias", "lm_head.weight")):
        assert name in the(descriptor, code).message


def test_of_many_wrong_tensors_the_first_are_told_and_the_others_counted_and_none_is_dropped(
    tmp_path: Path,
) -> None:
    bundle = Bundled()
    for number in range(40):
        broken = {"dtype": "F32", "shape": [4], "fragments": [{"rank": 0, "file": "gone", "key": "w"}]}
        bundle.document["tensors"][f"w.{number:02}"] = broken
    folder = bundle.write(tmp_path / "in")
    descriptor = look(folder)
    assert len([item for item in descriptor.blockers if item.code == "bundle.file_missing"]) == 24
    more = the(descriptor, "bundle.more")
    assert (more.params["count"], more.params["tensor"]) == (16, "w.24")
    told = tuple(f"w.{number:02}" for number in range(24))
    assert {item.code for item in prepare(folder, PlanOptions(exclude=told)).plan.blockers} == {"bundle.more"}


def test_words_of_the_document_are_made_harmless(tmp_path: Path) -> None:
    bundle = Bundled()
    bundle.document["producer"] = "me\x1b[31m\u202e"
    bundle.document["meshes"]["\x1b]0;x\x07"] = {"axes": [{"name": "a\x1b[2J", "size": 2}]}
    bundle.document["tensors"]["w\x1b[2J"] = {
        "dtype": "F32",
        "shape": [2],
        "map": {"node": "contiguous", "axis": "\x1b[5m", "dim": 0, "widths": [1, 1]},
        "mesh": "dense",
        "fragments": [{"rank": 0, "file": "a\x1b[1m", "key": "\x07"}],
        "note": "\x1b[31m",
    }
    folder = bundle.write(tmp_path / "in")
    descriptor = look(folder)
    assert errors(descriptor) == {"bundle.unsound"}
    text = msgspec.json.encode(descriptor).decode()
    shown = [item.message + item.remedy for item in descriptor.blockers]
    assert "\x1b" not in "".join(shown)
    assert "\\u001b" not in text
    assert "\u202e" not in text


def test_beside_another_save_of_the_model_neither_is_chosen(tmp_path: Path) -> None:
    folder = made(tmp_path)
    save_file({"model.norm.weight": np.zeros(4, np.float32)}, folder / "model.safetensors")
    descriptor = look(folder)
    assert "layout.weight_sets" in codes(descriptor)


def test_the_schema_holds_for_what_is_read(tmp_path: Path) -> None:
    schema = json_schema("shardscope.bundle/1")
    jsonschema.validate(Bundled().document, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(Bundled().document | {"colour": "red"}, schema)


def test_the_example_of_the_documentation_is_a_bundle() -> None:
    text = (DOCS / "bundle.md").read_text()
    (example,) = (part for part in re.findall(r"```json\n(.*?)```", text, re.DOTALL) if "schema" in part)
    document = msgspec.convert(json.loads(example), BundleDocument)
    assert document.tensors["lm_head.weight"].alias_of == "model.embed_tokens.weight"


def test_the_documentation_names_every_code() -> None:
    from shardscope.engine.model.codes.bundle import TABLE

    text = (DOCS / "bundle.md").read_text()
    assert not [row.code for row in TABLE if f"`{row.code}`" not in text]


@pytest.mark.parametrize(
    ("path", "below"),
    [("a", True), ("a/b.c", True), ("..a", True), ("a/..b", True), ("", False), ("/a", False), ("a/", False),
     ("a/../b", False), ("a\\b", False), (".", False), ("a//b", False)],
)  # fmt: skip
def test_paths_below_a_folder_are_told_by_their_words(path: str, below: bool) -> None:
    assert is_below(path) is below
