"""The offline validator: what the package carries, and documents and pages from outside."""

import json
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine import inspect, validate
from shardscope.engine.capabilities import published, validation
from shardscope.engine.model.descriptor import to_json
from shardscope.engine.model.documents import json_schema
from shardscope.engine.model.limits import Limits
from tests.capabilities.statements import as_document
from tests.checkpoints import write_sharded

DATA = {
    name: json.loads(published.packaged(name))
    for name in ("support-matrix.json", "sources.json", "glossary.json")
}


@pytest.fixture
def descriptor(tmp_path: Path) -> Any:
    return json.loads(to_json(inspect(write_sharded(tmp_path / "ckpt")).descriptor))


def codes(tmp_path: Path, document: Any, name: str = "document.json") -> list[str]:
    file = tmp_path / name
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    found = validate([file])
    assert found.valid is (not found.blockers)
    assert found.checked[-1].valid is found.valid
    return [item.code for item in found.blockers]


# R118
def test_what_the_package_carries_is_valid() -> None:
    found = validate()

    assert found.valid
    assert found.blockers == ()
    assert [item.subject for item in found.checked if item.schema is None] == ["the registry of capabilities"]
    assert {item.schema for item in found.checked} >= {
        "shardscope.matrix/1",
        "shardscope.glossary/1",
        "shardscope.sources/1",
        "shardscope.capability/1",
    }


# R002
@pytest.mark.parametrize(("file", "name"), published.SCHEMA_FILES.items())
def test_the_schemas_beside_the_data_are_those_of_the_types(file: str, name: str) -> None:
    assert json.loads(published.packaged(file)) == json_schema(name)


# R002 R118
def test_a_schema_that_was_changed_alone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "packaged", lambda _: b"{}")

    found = validate()

    assert {item.code for item in found.blockers} == {"document.schema_stale"}
    assert len(found.blockers) == len(published.SCHEMA_FILES)


# R118
@pytest.mark.parametrize("name", DATA)
def test_the_data_is_a_document_like_any_other(tmp_path: Path, name: str) -> None:
    assert codes(tmp_path, DATA[name]) == []
    assert codes(tmp_path, DATA[name] | {"extra": 1}) == ["document.invalid"]


# R118
def test_rules_beyond_the_schema_hold_for_documents_from_outside(tmp_path: Path) -> None:
    matrix = json.loads(json.dumps(DATA["support-matrix.json"]))
    matrix["rows"][2]["cells"]["convert_to_hf"]["word"] = "supported"
    terms = json.loads(json.dumps(DATA["glossary.json"]))
    terms["terms"][0]["sources"] = ["R77", "R21"]

    assert codes(tmp_path, matrix) == ["matrix.unqualified"]
    assert codes(tmp_path, terms) == ["claims.source_unknown"]


# R021 R118
def test_a_descriptor_is_valid_until_a_field_is_added(tmp_path: Path, descriptor: Any) -> None:
    assert codes(tmp_path, descriptor) == []
    assert codes(tmp_path, descriptor | {"host": "gpu01"}) == ["document.invalid"]
    del descriptor["workflow"]
    assert codes(tmp_path, descriptor) == ["document.invalid"]


def test_a_capability_is_held_against_its_rules(tmp_path: Path) -> None:
    assert codes(tmp_path, as_document()) == []
    assert codes(tmp_path, as_document(format="deepspeed_zero")) == ["capability.revision_missing"]


# R119 R122
def test_a_page_is_held_against_the_rules_for_claims(tmp_path: Path) -> None:
    assert codes(tmp_path, "PyTorch documents it [R01].\n", "page.md") == []
    assert codes(tmp_path, "It holds [R88]. PyTorch guarantees it.\n", "PAGE.MD") == [
        "claims.source_unknown",
        "claims.wording",
    ]


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ("{", "json.syntax"),
        ("{}", "document.schema_unnamed"),
        ('{"schema": "x/1"}', "document.schema_unknown"),
    ],
)
def test_what_is_no_document_is_named(tmp_path: Path, document: str, code: str) -> None:
    assert codes(tmp_path, document) == [code]


def test_each_path_has_its_own_answer(tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    good.write_text(json.dumps(as_document()))
    absent = tmp_path / "absent.json"

    found = validate([absent, good, tmp_path])

    assert [item.valid for item in found.checked[-3:]] == [False, True, False]
    assert [item.code for item in found.blockers] == ["source.missing", "document.folder"]


def test_reading_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    file.write_text(json.dumps(as_document()))

    (item,) = validate([file], limits=Limits(json_bytes=8)).blockers
    assert item.code == "limit.json_bytes"


def test_a_hostile_document_leaves_nothing_on_the_screen(tmp_path: Path) -> None:
    from shardscope.engine.model.text import UNSAFE

    file = tmp_path / "evil\x1b[2J.json"
    file.write_text(json.dumps(as_document() | {"\x1b[2J\u202e": 1}))
    found = validate([file])

    told = " ".join(
        [found.checked[-1].subject, *(f"{b.subject} {b.message} {b.remedy}" for b in found.blockers)]
    )
    assert not UNSAFE.search(told)
