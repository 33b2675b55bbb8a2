"""`shardscope config`: where the settings are, what is in force, what is wrong with them."""

import json
import os
from pathlib import Path

import pytest

from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command
from tests.schemas import validate


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm-256color")
    (tmp_path / "shardscope").mkdir()
    return tmp_path / "shardscope" / "config.toml"


def test_path_is_told_whether_it_exists_or_not(command: Command, config: Path) -> None:
    assert command("config", "path").out == f"{config}\n"
    assert not config.exists()


def test_show_tells_values_and_where_they_come_from(
    command: Command, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text('theme = "dracula"\nmouse = false\n\n[keys]\n"explore.files" = "H"\n')
    lines = {line.split()[0]: line.split()[1:] for line in command("config", "show").out.splitlines()[1:]}

    assert lines["theme"] == ["dracula", "line", "1"]
    assert lines["mouse"] == ["false", "line", "2"]
    assert lines["recent"] == ["false", "default"]
    assert lines["memory"] == ["256MiB", "default"]
    assert lines["keys.explore.files"] == ["H", "line", "5"]

    monkeypatch.setenv("NO_COLOR", "1")
    assert command("config", "show").out.splitlines()[1].split() == ["theme", "ansi-dark", "environment"]
    assert "keys.app.help" in command("config", "show", "--keys").out


def test_show_without_a_file_says_so(command: Command, config: Path) -> None:
    said = command("config", "show")

    assert said.code == ExitCode.OK
    assert said.out.startswith(f"{config} (there is none)\n")
    assert said.out.splitlines()[1].split() == ["theme", "shardscope-dark", "default"]


def test_validate_names_the_line_and_what_to_do(command: Command, config: Path) -> None:
    config.write_text('colour = 1\nglyphs = "latin"\n')
    said = command("config", "validate")

    assert said.code == ExitCode.BLOCKED
    assert "WARNING settings.unknown\n  Line 1 of the settings: there is no setting colour." in said.out
    assert "ERROR settings.value\n  Line 2 of the settings: glyphs takes" in said.out


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (None, ExitCode.OK, "the defaults hold"),
        ("mouse = true\n", ExitCode.OK, "valid"),
        ("themes = 1\n", ExitCode.OK, "correct the name (perhaps theme)"),
        ("theme = \n", ExitCode.BLOCKED, "no TOML at line 1, column 9"),
    ],
)
def test_a_warning_alone_is_no_failure(
    command: Command, config: Path, text: str | None, code: ExitCode, said: str
) -> None:
    if text is not None:
        config.write_text(text)
    found = command("config", "validate")

    assert found.code == code
    assert said in found.out


@pytest.mark.parametrize("words", [("show", "--keys"), ("validate",)])
def test_the_document_holds_to_its_schema(command: Command, config: Path, words: tuple[str, ...]) -> None:
    config.write_text('mouse = "no"\nrecent = true\n')
    document = json.loads(command("config", *words, "--json").out)

    validate(document, "shardscope.settings/1")
    assert document["exists"]
    assert {"name": "recent", "value": True, "source": "file", "line": 2} in document["settings"]
    assert document["blockers"][0]["code"] == "settings.value"


def test_no_command_writes_anything(command: Command, config: Path) -> None:
    for words in (("path",), ("show",), ("validate",)):
        command("config", *words)

    assert os.listdir(config.parent) == []
