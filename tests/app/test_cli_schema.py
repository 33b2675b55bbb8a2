"""The JSON Schemas: strict, and true of what the commands print."""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from shardscope.app.cli.schema import short
from shardscope.engine.model.documents import DOCUMENTS
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import AUTHORED, NAMES
from tests.app.terminal import Command


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def schema(command: Command, name: str) -> Any:
    return json.loads(command("schema", name).out)


def test_every_document_has_a_schema(command: Command) -> None:
    assert set(DOCUMENTS) == set(NAMES)
    assert [line.split() for line in command("schema").out.splitlines()] == [
        [short(name), name] for name in NAMES
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spelled", [short, lambda name: name.partition(".")[2], str])
def test_a_schema_is_found_by_each_of_its_names(command: Command, name: str, spelled: Any) -> None:
    found = schema(command, spelled(name))

    jsonschema.Draft202012Validator.check_schema(found)
    assert found["title"] == name


ON_REQUEST = {"Descriptor": {"decoded"}, "CatalogueTensor": {"map", "stored"}}
"""Fields that stand only where a person asked for what they tell."""


SPARE = {"Piece", "IndexList", "ShardGroup", "LoweredTensor"}
"""Parts of maps, which leave out what has its default."""


# R021
@pytest.mark.parametrize("name", NAMES)
def test_no_object_takes_a_field_that_is_not_listed(command: Command, name: str) -> None:
    for title, definition in schema(command, name)["$defs"].items():
        if "properties" in definition:
            assert definition["additionalProperties"] is False
            left_out = {field for field, kind in definition["properties"].items() if "default" in kind}
            may = left_out if name in AUTHORED or title in SPARE else ON_REQUEST.get(title, set())
            assert set(definition["required"]) == set(definition["properties"]) - may


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("codes", ("explain", "--json")),
        ("codes", ("explain", "limit.tensors", "--json")),
        ("schemas", ("schema", "--json")),
        ("error", ("explain", "no.such", "--json")),
        ("error", ("inspect", "--json")),
        ("error", ("--json",)),
    ],
)
def test_what_is_printed_is_valid(command: Command, name: str, arguments: tuple[str, ...]) -> None:
    document = json.loads(command(*arguments).out)

    jsonschema.validate(document, schema(command, name))


def test_an_error_document_tells_its_own_exit_code(command: Command) -> None:
    said = command("inspect", "--json", "--digest", "sometimes", "x")

    assert json.loads(said.out)["exit"] == said.code == ExitCode.USAGE
    assert said.err == ""
