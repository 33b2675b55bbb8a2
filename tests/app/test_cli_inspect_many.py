"""`shardscope inspect` on several paths: each has its entry, and none costs another its own."""

import json
from pathlib import Path

import pytest

from shardscope import engine
from shardscope.app.cli.inspect_many import outcomes
from shardscope.app.cli.session import Session
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.schemas import DESCRIPTORS, ERROR
from shardscope.engine.model.text import UNSAFE
from tests.app.terminal import Command
from tests.checkpoints import write_sharded
from tests.hostile import HOSTILE
from tests.schemas import validate


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def good(tmp_path: Path) -> str:
    return str(write_sharded(tmp_path / "good"))


@pytest.fixture
def bad(tmp_path: Path) -> str:
    folder = write_sharded(tmp_path / "bad")
    next(folder.glob("*-00002-*")).unlink()
    return str(folder)


def test_the_document_holds_each_descriptor_as_for_one_path(
    command: Command, good: str, bad: str, tmp_path: Path
) -> None:
    paths = (good, str(tmp_path / "absent"), bad, good)
    said = command("inspect", *paths, "--json")
    document = json.loads(said.out)

    validate(document, DESCRIPTORS)
    alone = [json.loads(command("inspect", path, "--json").out) for path in paths]
    assert alone[1]["schema"] == ERROR
    assert document["descriptors"] == [alone[0], None, alone[2], alone[0]]
    assert [each["path"] for each in document["asked"]] == list(paths)
    assert document["asked"][1]["error"] == alone[1]["error"]
    codes = [command("inspect", path).code for path in paths]
    assert [each["exit"] for each in document["asked"]] == codes
    assert codes == [ExitCode.OK, ExitCode.UNREADABLE, ExitCode.OK, ExitCode.OK]
    assert (said.code, said.err) == (ExitCode.UNREADABLE, "")


def test_the_worst_exit_code_wins_wherever_it_stands(command: Command, good: str, bad: str) -> None:
    assert command("inspect", good, good).code == ExitCode.OK
    for paths in ((good, bad), (bad, good)):
        assert command("inspect", *paths, "--fail-on", "error").code == ExitCode.BLOCKED


def test_the_text_has_a_block_for_each_and_the_whole_reports_on_request(
    command: Command, good: str, bad: str, tmp_path: Path
) -> None:
    text = command("inspect", good, str(tmp_path / "absent"), bad).out

    assert text.index("whole: yes") < text.index("source.missing") < text.index("whole: no")
    assert "ERROR index." in text
    assert "3 paths looked at, 1 not examined" in " ".join(text.split())
    reports = command("inspect", "-v", good, bad).out
    assert reports.count("\nNext\n") == 2


def test_sarif_has_a_run_for_each_and_markdown_a_heading(
    command: Command, good: str, bad: str, tmp_path: Path
) -> None:
    paths = (good, bad, str(tmp_path / "absent"))
    log = json.loads(command("inspect", *paths, "--format", "sarif").out)
    (alone,) = json.loads(command("inspect", bad, "--format", "sarif").out)["runs"]

    assert len({run["automationDetails"]["id"] for run in log["runs"]}) == len(paths)
    del log["runs"][1]["automationDetails"]
    assert log["runs"][1] == alone
    (failed,) = log["runs"][2]["invocations"]
    assert (failed["executionSuccessful"], failed["exitCode"]) == (False, ExitCode.UNREADABLE)
    page = command("inspect", *paths, "--format", "markdown").out
    assert page.count("\n# ") + page.startswith("# ") == len(paths)
    assert "`source.missing`" in page


def test_names_in_paths_are_harmless(command: Command, good: str) -> None:
    names = [f"/absent/{raw}".replace("\0", "") for raw, _ in HOSTILE.values() if "\ud800" not in raw]
    for form in ("text", "json", "sarif", "markdown"):
        said = command("inspect", good, *names, "--format", form)
        assert said.code == ExitCode.UNREADABLE
        assert UNSAFE.search(said.out.replace("\n", "")) is None


def test_an_error_of_our_own_and_a_stop_leave_the_others_their_answers(
    good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session = Session()

    def look(path: str) -> Inspection:
        if path == "broken":
            raise RuntimeError(path)
        if path == "stopped":
            session.interrupt.name = "SIGTERM"
            raise Cancelled
        return engine.inspect(path, digest="none")

    found = list(outcomes(session, (good, "broken", good, "stopped", good), look, None))

    ends = [ExitCode.OK, ExitCode.INTERNAL, ExitCode.OK, ExitCode.CANCELLED, ExitCode.CANCELLED]
    assert [item.exit for item in found] == ends
    assert [item.descriptor is not None for item in found] == [True, False, True, False, False]
    assert found[4].failure is not None
    assert "SIGTERM" in found[4].failure.message
    assert "RuntimeError" in capsys.readouterr().err


def test_what_is_wrong_with_the_command_line_is_no_entry(command: Command, good: str) -> None:
    assert command("inspect").code == ExitCode.USAGE
    said = command("inspect", good, good, "--component", "all", "--json")
    assert (said.code, json.loads(said.out)["schema"]) == (ExitCode.USAGE, ERROR)
    said = command("inspect", good, good, "--capability", "/absent.json", "--json")
    assert json.loads(said.out)["schema"] == ERROR
