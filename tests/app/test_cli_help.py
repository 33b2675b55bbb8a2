"""Help, version and the words that are near a command."""

import json
import re

import pytest

from shardscope.app.cli.root import COMMANDS
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import NAMES
from shardscope.engine.version import __version__
from tests.app.terminal import Command


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.mark.parametrize("arguments", [("--version",), ("--quiet", "--version")])
def test_version_names_the_documents(command: Command, arguments: tuple[str, ...]) -> None:
    said = command(*arguments)

    assert said.code == ExitCode.OK
    assert said.out.startswith(f"shardscope {__version__} (descriptor/1")
    assert said.out.count("/1") == len(NAMES)


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_short_help_is_the_head_of_full_help(command: Command, name: str | None) -> None:
    before = () if name is None else (name,)
    short = command(*before, "-h")
    full = command(*before, "--help")

    assert short.code == full.code == ExitCode.OK
    assert "Examples:" in full.out
    assert "Examples:" not in short.out
    assert len(short.out) < len(full.out)
    assert short.out.splitlines()[0] == full.out.splitlines()[0]
    assert all(len(line) <= 80 for line in full.out.splitlines() if not line.startswith("  shardscope "))


def test_every_command_is_in_the_help_with_what_it_is_for(command: Command) -> None:
    out = command("--help").out

    for name in COMMANDS:
        assert re.search(rf"^  {name} +[A-Z].*\.$", out, re.MULTILINE), name


@pytest.mark.parametrize("name", COMMANDS)
def test_common_options_are_taken_after_the_command(command: Command, name: str) -> None:
    out = command(name, "-h").out

    for option in ("--color", "-q, --quiet", "-v, --verbose", "-h, --help"):
        assert option in out


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("inspct", "x"), "'inspect'"),
        (("tensor", "x"), "'tensors'"),
        (("inspect", "--jsn", "x"), "'--json'"),
        (("inspect", "--limit", "header_byte=1", "x"), "'header_bytes'"),
        (("explain", "limit.header_byte"), "'limit.header_bytes'"),
        (("schema", "descripter"), "'descriptor'"),
    ],
)
def test_a_misspelled_word_gets_its_neighbour(
    command: Command, arguments: tuple[str, ...], hint: str
) -> None:
    said = command(*arguments)

    assert said.code == ExitCode.USAGE
    assert said.out == ""
    assert f"Did you mean {hint}?" in said.err
    assert "--help" in said.err.splitlines()[1]


def test_a_path_that_is_near_a_command_is_still_a_path(
    command: Command, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("near")
    (folder / "tensor").mkdir()
    monkeypatch.chdir(folder)

    said = command("tensor")

    assert "usage.no_terminal" in said.err
    assert "shardscope inspect tensor" in said.err


@pytest.mark.parametrize(
    ("value", "meant"),
    [("header_bytes=4096", 4096), ("header_bytes=64KiB", 65536), ("json_bytes=1 gib", 1 << 30)],
)
def test_limits_take_plain_and_binary_numbers(value: str, meant: int) -> None:
    from shardscope.app.cli.limit import Limit

    assert Limit().convert(value, None, None) == (value.partition("=")[0], meant)


@pytest.mark.parametrize(
    "value",
    [
        "header_bytes",
        "header_bytes=",
        "header_bytes=0",
        "header_bytes=1MB",
        "files=-1",
        f"worker_bytes={1 << 63}",
    ],
)
def test_limits_refuse_what_is_no_bound(command: Command, value: str) -> None:
    said = command("inspect", "--limit", value, "x")

    assert said.code == ExitCode.USAGE
    assert f"{value.partition('=')[0]} takes a number of 1 or more" in said.err


@pytest.mark.parametrize("words", [("validate",), ("map", "check"), ("map", "lower")])
def test_limits_on_decoding_are_none_where_nothing_decodes(command: Command, words: tuple[str, ...]) -> None:
    said = command(*words, "--limit", "pickle_bytes=5", "x")

    assert said.code == ExitCode.USAGE
    assert "there is no limit 'pickle_bytes'" in said.err


def test_the_explorer_takes_limits_on_decoding(command: Command) -> None:
    said = command("explore", "--limit", "pickle_bytes=5", "x")

    assert "shardscope inspect x --limit pickle_bytes=5" in said.err


# R025
def test_explain_says_what_a_code_means(command: Command) -> None:
    said = command("explain", "usage.no_terminal")

    assert said.code == ExitCode.OK
    assert said.out.splitlines()[:2] == [
        "usage.no_terminal",
        "error · found while: command · blocks: nothing · exit code 2",
    ]
    assert "says  The explorer needs a terminal, and REASON." in said.out
    assert all(len(line) <= 80 for line in said.out.splitlines())


def test_explain_alone_lists_every_code(command: Command) -> None:
    from shardscope.engine.model.codes import CODES

    listed = [line.split() for line in command("explain").out.splitlines()]
    document = json.loads(command("explain", "--json").out)

    assert [row[0] for row in listed] == list(CODES)
    assert [row["code"] for row in document["codes"]] == list(CODES)


def test_explain_knows_what_every_code_says(command: Command) -> None:
    from shardscope.engine.model.codes import CODES

    for code in CODES:
        out = command("explain", code).out
        assert "{" not in out, code
        assert "\nsays  " in out
