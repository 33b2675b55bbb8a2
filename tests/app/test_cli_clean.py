"""`shardscope clean` as a person or a script calls it."""

import json
from pathlib import Path

import pytest

from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command, run
from tests.convert.targets import NEW, OLD, convert, hidden, make
from tests.convert.test_cleaning import left, running
from tests.schemas import validate


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def test_nothing_is_removed_without_a_word(command: Command, tmp_path: Path) -> None:
    path = left(tmp_path)
    said = run("clean", str(tmp_path))

    assert said.code == ExitCode.OK
    assert path.name in said.out
    assert "for out: staged files" in said.out
    assert path.exists()
    assert command("clean", str(tmp_path), "--json").code == ExitCode.OK
    assert path.exists()


def test_yes_removes_what_may_go_and_says_how_much(command: Command, tmp_path: Path) -> None:
    left(tmp_path)
    make(tmp_path / "old", OLD)
    convert(tmp_path / "old", replace=True)
    said = command("clean", str(tmp_path), "--yes")

    assert said.code == ExitCode.OK
    assert "stays: it holds the old output (--old removes it)" in said.out
    assert "Removed 1 leftover" in said.out
    assert len(hidden(tmp_path)) == 1
    assert command("clean", str(tmp_path), "--yes", "--old").code == ExitCode.OK
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert command("clean", str(tmp_path)).out == "Nothing is left of any run.\n"


def test_one_document(command: Command, tmp_path: Path) -> None:
    path = left(tmp_path)
    said = command("clean", str(tmp_path), str(tmp_path / "out"), f"{tmp_path}/.", "--yes", "--json")
    found = json.loads(said.out)
    validate(found, "shardscope.leftovers/1")

    assert [entry["name"] for entry in found["found"]] == [path.name]
    assert found["removed"] == [path.name]
    assert found["removed_bytes"] == found["found"][0]["bytes"] >= sum(map(len, NEW.values()))


def test_what_still_runs_stays(command: Command, tmp_path: Path) -> None:
    with running(tmp_path / "out") as pid:
        said = command("clean", str(tmp_path), "--yes", "--old")
        assert len(hidden(tmp_path)) == 2

    assert said.code == ExitCode.OK
    assert said.out.count(f"stays: process {pid} still runs") == 2


def test_a_folder_that_is_not_there(command: Command, tmp_path: Path) -> None:
    said = command("clean", str(tmp_path / "no" / "such"))

    assert said.code == ExitCode.UNREADABLE
    assert "clean.unreadable" in said.err


def test_names_of_targets_are_made_harmless(command: Command, tmp_path: Path) -> None:
    left(tmp_path, "\x1b[31mred\n")
    said = command("clean", str(tmp_path), "--yes")

    assert "\x1b" not in said.out
    assert "Removed 1 leftover" in said.out
