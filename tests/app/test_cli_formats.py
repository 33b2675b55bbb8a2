"""What inspection found as SARIF and as Markdown: complete, valid, and harmless to whoever reads it."""

import json
import os
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from shardscope.app.cli.markdown import escaped
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.text import UNSAFE
from tests.app.terminal import Command
from tests.checkpoints import write_safetensors, write_sharded
from tests.hostile import HOSTILE

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    folder = write_sharded(tmp_path / "ckpt")
    (folder / "a b.safetensors").write_bytes(b"\xff" * 64)
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02.")
    return folder


def test_sarif_has_a_rule_for_each_code_and_a_result_for_each_blocker(command: Command, broken: Path) -> None:
    descriptor = json.loads(command("inspect", str(broken), "--json").out)
    said = command("inspect", str(broken), "--format", "sarif")
    log = json.loads(said.out)
    (run,) = log["runs"]

    assert (log["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "shardscope")
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == sorted({item["code"] for item in descriptor["blockers"]})
    assert len(rules) > 1
    for result, item in zip(run["results"], descriptor["blockers"], strict=True):
        assert rules[result["ruleIndex"]] == result["ruleId"] == item["code"]
        assert result["level"] == {"error": "error", "warning": "warning", "info": "note"}[item["severity"]]
        assert item["message"] in result["message"]["text"]
    places = [
        location["physicalLocation"]["artifactLocation"]
        for result in run["results"]
        for location in result.get("locations", ())
        if "physicalLocation" in location
    ]
    assert {"uri": "a%20b.safetensors", "uriBaseId": "CHECKPOINT"} in places
    assert str(broken) not in said.out


@pytest.mark.skipif(
    "SARIF_SCHEMA" not in os.environ, reason="SARIF_SCHEMA names no sarif-schema-2.1.0.json of OASIS"
)
def test_sarif_is_valid_by_its_own_schema(command: Command, broken: Path) -> None:
    """The schema is not kept here: its licence is that of a standards body. Fetch it, and point the variable at it."""
    schema = json.loads(Path(os.environ["SARIF_SCHEMA"]).read_text())
    check = jsonschema.validators.validator_for(schema)(schema, format_checker=jsonschema.FormatChecker())
    for path in (broken, *sorted(FIXTURES.glob("*/*/checkpoint"))):
        said = command("inspect", str(path), "--format", "sarif")
        assert [error.message for error in check.iter_errors(json.loads(said.out))] == [], path


@pytest.mark.parametrize("form", ["sarif", "markdown"])
def test_both_are_the_same_bytes_twice_and_end_like_inspect(
    command: Command, broken: Path, form: str
) -> None:
    one, other = (command("inspect", str(broken), "--format", form) for _ in range(2))

    assert one == other
    assert one.code == command("inspect", str(broken)).code
    assert command("inspect", str(broken), "--format", form, "--fail-on", "info").code != ExitCode.OK


def test_json_can_be_asked_for_in_either_way(command: Command, broken: Path, tmp_path: Path) -> None:
    assert command("inspect", str(broken), "--format", "json") == command("inspect", str(broken), "--json")
    assert command("inspect", str(broken), "--format", "sarif", "--json").code == ExitCode.USAGE
    absent = command("inspect", str(tmp_path / "absent"), "--format", "json")
    assert json.loads(absent.out)["error"]["code"] == "source.missing"


def test_markdown_says_what_is_in_the_way(command: Command, broken: Path) -> None:
    lines = command("inspect", str(broken), "--format", "markdown").out.splitlines()

    assert lines[0].startswith("## ")
    assert any(line.startswith("**") and "confidence" in line for line in lines)
    assert "### In the way" in lines
    assert any(line.startswith("- **error** `header.") for line in lines)


@pytest.mark.parametrize("form", ["sarif", "markdown"])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_of_a_checkpoint_gets_through_as_it_is(
    command: Command, tmp_path: Path, form: str, name: str
) -> None:
    folder = write_sharded(tmp_path / "ckpt")
    write_safetensors(folder / "more.safetensors", {name: ("F32", (2,))})
    (folder / "bad.safetensors").write_bytes(b"\xff" * 20)

    said = command("inspect", str(folder), "--format", form)

    assert UNSAFE.search(said.out.replace("\n", "")) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("model_a*b", r"model\_a\*b"),
        ("[x](y)", r"\[x\](y)"),
        ("<img src=x>", r"\<img src=x\>"),
        ("a|b", r"a\|b"),
        ("@someone", "`@`someone"),
        ("see #12", "see `#`12"),
        ("http://x.example", "http:`//`x.example"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("`code`", r"\`code\`"),
    ],
)
def test_markup_in_a_name_is_shown_and_not_read(text: str, shown: str) -> None:
    assert escaped(text) == shown
