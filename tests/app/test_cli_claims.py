"""`matrix`, `glossary`, `validate` and `inspect --capability`: claims and capabilities from the command line."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine import glossary, sources, support_matrix
from shardscope.engine.capabilities.published import GLOSSARY, MATRIX, SOURCES, packaged
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import DESCRIPTOR, ERROR, VALIDATION
from shardscope.engine.version import __version__
from tests.app.terminal import Command
from tests.capabilities.statements import as_document
from tests.checkpoints import write_sharded
from tests.schemas import validate

FOR_SAFETENSORS: dict[str, Any] = {
    "id": "hf-transformers-5.24.0",
    "format": "hf_safetensors",
    "producer": "transformers",
    "producer_version": "5.24.0",
    "requires": [],
}


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    return write_sharded(tmp_path / "ckpt")


def written(tmp_path: Path, name: str = "capability.json", **changes: Any) -> str:
    file = tmp_path / name
    file.write_text(json.dumps(as_document(**{**FOR_SAFETENSORS, **changes})))
    return str(file)


# R001
@pytest.mark.parametrize(
    ("arguments", "file"),
    [(("matrix",), MATRIX), (("matrix", "--sources"), SOURCES), (("glossary",), GLOSSARY)],
)
def test_the_document_is_the_data(command: Command, arguments: tuple[str, ...], file: str) -> None:
    document = json.loads(command(*arguments, "--json").out)

    assert document == json.loads(packaged(file))
    validate(document, document["schema"])


# R001 R012 R013
def test_the_matrix_as_text_holds_every_cell(command: Command) -> None:
    said = command("matrix")
    text = " ".join(said.out.split())

    assert said.code == ExitCode.OK
    assert all(len(line) <= 80 for line in said.out.splitlines())
    for row in support_matrix().rows:
        assert row.title in text
        assert all(f"{cell.word} {cell.note} [{', '.join(cell.sources)}]" in text for _, cell in row.each())
    assert "architecture, runtime, kernels, dtype or quantization, memory and quality gates" in text  # R015


# R119 R121
def test_the_register_as_text_holds_every_source(command: Command) -> None:
    text = " ".join(command("matrix", "--sources").out.split())

    for entry in sources().entries:
        assert f"for {entry.supported_use} but {entry.qualification}" in text


# R003
def test_the_glossary_as_text_holds_the_eight_terms(command: Command) -> None:
    said = command("glossary")
    text = " ".join(said.out.split())

    assert sum(not line.startswith(" ") and line != "" for line in said.out.splitlines()) == 8
    assert all(f"here {term.relevance}" in text for term in glossary().terms)


# R118
def test_validate_without_a_path_checks_what_is_carried(command: Command) -> None:
    said = command("validate")

    assert said.code == ExitCode.OK
    assert all(line.startswith(("valid", " ")) for line in said.out.splitlines())
    for subject in ("support matrix", "glossary", "register of sources", "registry of capabilities"):
        assert subject in said.out


# R118
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (json.dumps(as_document()), ExitCode.OK),
        (json.dumps(as_document(producer_version="2.*")), ExitCode.BLOCKED),
        ("not JSON", ExitCode.BLOCKED),
        (None, ExitCode.UNREADABLE),
    ],
)
def test_validate_ends_as_it_found(
    command: Command, tmp_path: Path, text: str | None, code: ExitCode
) -> None:
    file = tmp_path / "document.json"
    if text is not None:
        file.write_text(text)

    said = command("validate", str(file))
    document = json.loads(command("validate", str(file), "--json").out)

    assert said.code == code
    assert ("INVALID" in said.out) is (code != ExitCode.OK)
    validate(document, VALIDATION)
    assert document["valid"] is (code == ExitCode.OK)
    assert command("validate", "--no-such-option").code == ExitCode.USAGE


# R021 R118
def test_what_the_commands_print_validates(command: Command, sharded: Path, tmp_path: Path) -> None:
    files = []
    for number, arguments in enumerate(
        (
            ("inspect", str(sharded), "--json"),
            ("inspect", str(sharded), "--json", "--capability", written(tmp_path)),
            ("tensors", str(sharded), "--json"),
            ("explain", "--json"),
            ("schema", "--json"),
            ("matrix", "--json"),
            ("matrix", "--sources", "--json"),
            ("glossary", "--json"),
            ("validate", "--json"),
            ("explain", "no.such", "--json"),
        )
    ):
        file = tmp_path / f"{number}.json"
        file.write_text(command(*arguments).out)
        files.append(str(file))

    said = command("validate", *files)

    assert (said.code, said.err) == (ExitCode.OK, "")


# R051 R054
def test_a_capability_is_held_against_the_checkpoint(command: Command, sharded: Path, tmp_path: Path) -> None:
    said = command("inspect", str(sharded), "--json", "--capability", written(tmp_path))
    document = json.loads(said.out)
    adapter = document["adapter"]

    validate(document, DESCRIPTOR)
    assert said.code == ExitCode.OK
    assert (adapter["status"], adapter["candidates"]) == ("exact", [FOR_SAFETENSORS["id"]])
    assert adapter["dependencies"][0]["project"]["observed"] == __version__


# R052 R053
def test_what_is_missing_is_reported(command: Command, sharded: Path, tmp_path: Path) -> None:
    needs = written(tmp_path, requires=[{"distribution": "no-such-distribution", "version": "4.2"}])

    said = command("inspect", str(sharded), "--capability", needs)
    text = " ".join(said.out.split())

    assert said.code == ExitCode.OK
    assert "capability.dependency_missing" in text
    assert "no-such-distribution 4.2, and it is not installed" in text
    assert f"`shardscope[dcp]` of shardscope {__version__}" in text


# R055
def test_two_capabilities_fail_closed(command: Command, sharded: Path, tmp_path: Path) -> None:
    one, two = written(tmp_path), written(tmp_path, "two.json", id="two")

    said = command("inspect", str(sharded), "--json", "--capability", one, "--capability", two)
    document = json.loads(said.out)

    assert said.code == ExitCode.UNSUPPORTED
    assert document["adapter"]["status"] == "ambiguous"
    assert document["blockers"][0]["code"] == "capability.ambiguous"


# R050 R057 R058 R059
def test_a_capability_lasts_for_one_run_and_changes_nothing_else(
    command: Command, sharded: Path, tmp_path: Path
) -> None:
    file = written(tmp_path)
    before = command("inspect", str(sharded), "--json").out
    matrix = command("matrix", "--json").out
    named = json.loads(command("inspect", str(sharded), "--json", "--capability", file).out)
    plain = json.loads(before)

    assert command("inspect", str(sharded), "--json").out == before
    assert command("matrix", "--json").out == matrix
    assert plain.pop("adapter")["status"] == "none"
    assert named.pop("adapter")["status"] == "exact"
    assert named == plain


# R050
def test_no_variable_and_no_file_nearby_brings_a_capability(
    command: Command, sharded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(sharded)
    written(sharded, "shardscope.capability.json")
    for name in ("SHARDSCOPE_CAPABILITY", "SHARDSCOPE_CAPABILITIES", "SHARDSCOPE_INSPECT_CAPABILITY"):
        monkeypatch.setenv(name, os.fspath(sharded / "capability.json"))
    monkeypatch.chdir(sharded)

    assert json.loads(command("inspect", ".", "--json").out)["adapter"]["status"] == "none"


@pytest.mark.parametrize(
    ("changes", "code", "exit_code"),
    [
        ({"producer_version": ">=5"}, "document.invalid", ExitCode.BLOCKED),
        ({"format": "own"}, "capability.format_unknown", ExitCode.BLOCKED),
        (None, "source.missing", ExitCode.UNREADABLE),
    ],
)
def test_a_capability_that_cannot_be_read_ends_the_run(
    command: Command,
    sharded: Path,
    tmp_path: Path,
    changes: dict[str, Any] | None,
    code: str,
    exit_code: ExitCode,
) -> None:
    file = str(tmp_path / "absent.json") if changes is None else written(tmp_path, **changes)

    said = command("inspect", str(sharded), "--json", "--capability", file)
    document = json.loads(said.out)

    validate(document, ERROR)
    assert (said.code, document["error"]["code"]) == (exit_code, code)


# R063 R064
def test_the_report_has_a_line_for_each_step(command: Command, sharded: Path) -> None:
    lines = command("inspect", str(sharded)).out.partition("\nSteps")[2].splitlines()[1:7]

    assert [line.split()[0] for line in lines] == [
        "inspect",
        "escalate",
        "adapt",
        "validate",
        "materialize",
        "load",
    ]
