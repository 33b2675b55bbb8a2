"""Capabilities from outside: one strict document in one plain file, or nothing."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from shardscope.engine import read_capability
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.schemas import CAPABILITY
from tests.capabilities.statements import DCP, as_document
from tests.schemas import validate


def written(tmp_path: Path, document: Any) -> Path:
    file = tmp_path / "capability.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return file


def refusal(path: Path, limits: Limits | None = None) -> str:
    with pytest.raises(Fault) as caught:
        read_capability(path, limits)
    assert str(caught.value.finding.params.get("file", path)).endswith(path.name)
    return caught.value.finding.code


def test_a_capability_is_read_as_it_was_written(tmp_path: Path) -> None:
    validate(as_document(), CAPABILITY)
    assert read_capability(written(tmp_path, as_document())) == DCP


def test_the_example_of_the_documentation_is_one(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs/intake.md"
    (example,) = [part.split("```")[0] for part in page.read_text().split("```json\n")[1:]]

    assert read_capability(written(tmp_path, example)).id == DCP.id


# R050 R075
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("producer_version", ">=2.9"),
        ("producer_version", "2.*"),
        ("producer_version", "*"),
        ("producer_version", "latest"),
        ("producer_version", ""),
        ("producer", "torch\n"),
        ("model_family", ""),
        ("id", "Name With Spaces"),
        ("id", "a" * 81),
        ("id", "\u202eevil"),
        ("extra", "dcp]; rm -rf"),
        ("adapter_version", None),
        ("requires", [{"distribution": "torch", "version": ">2"}]),
        ("requires", [{"distribution": "torch", "version": "2", "url": "x"}]),
        ("requires", {}),
        ("entry_point", "torch:load"),
        ("schema", "shardscope.capability/2"),
    ],
)
def test_what_is_not_exact_or_not_listed_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    document = as_document(**{field: value})
    with pytest.raises(jsonschema.ValidationError):
        validate(document, CAPABILITY)
    expected = "document.schema_unknown" if field == "schema" else "document.invalid"

    assert refusal(written(tmp_path, document)) == expected


@pytest.mark.parametrize("field", [name for name in as_document() if name != "schema"])
def test_no_field_may_be_left_out(tmp_path: Path, field: str) -> None:
    document = as_document()
    del document[field]

    assert refusal(written(tmp_path, document)) == "document.invalid"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "json.syntax"),
        ("[]", "json.not_object"),
        ("{}", "document.schema_unnamed"),
        ('{"schema": 1}', "document.schema_unnamed"),
        ('{"schema": "\\u001b[2J"}', "document.schema_unknown"),
        ('{"schema": "shardscope.capability/1", "schema": "x"}', "json.duplicate_key"),
        ('{"schema": "shardscope.schemas/1", "schemas": []}', "document.schema_other"),
    ],
)
def test_what_is_no_capability_is_named_as_what_it_is(tmp_path: Path, text: str, code: str) -> None:
    assert refusal(written(tmp_path, text)) == code


def test_a_format_or_a_revision_that_is_not_known_is_refused(tmp_path: Path) -> None:
    assert refusal(written(tmp_path, as_document(format="own_format"))) == "capability.format_unknown"
    assert (
        refusal(written(tmp_path, as_document(format="deepspeed_zero", producer="deepspeed")))
        == "capability.revision_missing"
    )


def test_the_file_is_bounded_and_plain(tmp_path: Path) -> None:
    file = written(tmp_path, as_document())
    link = tmp_path / "link.json"
    link.symlink_to(file)
    fifo = tmp_path / "fifo.json"
    os.mkfifo(fifo)

    assert refusal(file, Limits(json_bytes=64)) == "limit.json_bytes"
    assert refusal(file, Limits(json_depth=1)) == "limit.json_depth"
    assert refusal(link) == "source.root_link"
    assert refusal(fifo) == "source.not_regular"
    assert refusal(tmp_path) == "document.folder"
    assert refusal(tmp_path / "absent.json") == "source.missing"
