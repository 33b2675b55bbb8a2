"""`shardscope inspect` on real files, in processes of its own."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.schemas import DESCRIPTOR, ERROR
from shardscope.engine.model.text import UNSAFE
from tests.app.terminal import Command, environment, process, run
from tests.checkpoints import LLAMA, write_safetensors, write_sharded
from tests.hostile import HOSTILE
from tests.schemas import validate

GROUPS = (
    "classification",
    "components",
    "producer",
    "topology",
    "state_scope",
    "tensors",
    "trust",
    "resources",
    "blockers",
)


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    return write_sharded(tmp_path / "ckpt")


def tree(folder: Path) -> dict[str, Any]:
    """Return every name below a folder with what a write would change."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in folder.rglob("*")
    }


# R020 R021 R048
@pytest.mark.parametrize("part", [".", "model-00001-of-00002.safetensors"])
def test_one_command_gives_one_valid_document(command: Command, sharded: Path, part: str) -> None:
    said = command("inspect", str(sharded / part), "--json")
    document = json.loads(said.out)

    validate(document, DESCRIPTOR)
    assert said.err == ""
    assert set(GROUPS) <= set(document)
    assert said.out.endswith("}\n")


# R049
def test_what_fails_closed_is_still_a_valid_descriptor(command: Command, sharded: Path) -> None:
    (sharded / "link").symlink_to("/etc/passwd")

    said = command("inspect", str(sharded), "--json")
    document = json.loads(said.out)

    validate(document, DESCRIPTOR)
    assert said.code == ExitCode.BLOCKED
    assert document["classification"]["status"] == "refused"


def test_two_runs_print_the_same_bytes(command: Command, sharded: Path) -> None:
    assert command("inspect", str(sharded), "--json").out == command("inspect", str(sharded), "--json").out


def test_the_report_gives_the_answer_first(command: Command, sharded: Path) -> None:
    lines = command("inspect", str(sharded)).out.splitlines()

    assert lines[0].startswith("Hugging Face safetensors")
    assert lines[1].startswith("conditional · confidence ")
    assert lines[2] == "Structural evidence only: no promise that this checkpoint loads or converts."


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_missing_path_is_said(command: Command, tmp_path: Path, flags: tuple[str, ...]) -> None:
    said = command("inspect", str(tmp_path / "absent"), *flags)

    assert said.code == ExitCode.UNREADABLE
    if flags:
        validate(json.loads(said.out), ERROR)
        assert json.loads(said.out)["error"]["code"] == "source.missing"
    else:
        assert said.out == ""
        assert "[source.missing]" in said.err


def test_a_limit_ends_in_its_own_exit_code(command: Command, sharded: Path) -> None:
    said = command(
        "inspect", str(sharded), "--json", "--limit", "header_bytes=64", "--limit", "json_bytes=1MiB"
    )
    document = json.loads(said.out)

    assert said.code == ExitCode.LIMIT
    assert (document["limits"]["header_bytes"], document["limits"]["json_bytes"]) == (64, 1 << 20)
    assert "limit.header_bytes" in {item["code"] for item in document["blockers"]}


@pytest.mark.parametrize(("mode", "hashed"), [("none", 0), ("auto", 4), ("all", 4)])
def test_digests_are_taken_as_asked(command: Command, sharded: Path, mode: str, hashed: int) -> None:
    document = json.loads(command("inspect", str(sharded), "--json", "--digest", mode).out)

    assert document["source"]["digest_mode"] == mode
    assert sum(entry["digest"]["sha256"] is not None for entry in document["source"]["entries"]) == hashed


def test_fail_on_raises_the_exit_code(command: Command, tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "ckpt")
    (folder / "odd\tname").mkdir()
    severities = {
        item["severity"] for item in json.loads(command("inspect", str(folder), "--json").out)["blockers"]
    }
    assert severities == {"warning"}

    codes = [
        command("inspect", str(folder), *flags).code
        for flags in ((), ("--fail-on", "error"), ("--fail-on", "warning"), ("--fail-on", "info"))
    ]

    assert codes == [ExitCode.OK, ExitCode.OK, ExitCode.BLOCKED, ExitCode.BLOCKED]


# R046 R047
def test_nothing_is_written_anywhere(sharded: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    before = tree(tmp_path)
    home.chmod(0o500)

    said = run("inspect", str(sharded), "--digest", "all", cwd=home, env=environment(HOME=str(home)))

    home.chmod(0o700)
    assert said.code == ExitCode.OK
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "marker"),
    [
        (("inspect",), "a\\x9b2Jb"),
        (("inspect", "--color", "never", "-v"), "a\\x9b2Jb"),
        (("inspect", "--json"), "d:smile:"),
        (("tensors",), "[/nope]"),
        (("tensors", "--csv"), "[/nope]"),
    ],
)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_no_hostile_name_reaches_the_streams(
    tmp_path: Path, arguments: tuple[str, ...], marker: str, locale: str
) -> None:
    folder = os.fsencode(tmp_path / "hostile")
    os.mkdir(folder)
    tensors = {}
    for raw, _ in HOSTILE.values():
        name = raw.encode("utf-8", "surrogateescape" if "\udcff" in raw else "surrogatepass")
        if b"\x00" not in name and b"/" not in name:
            os.mkdir(os.path.join(folder, b"d" + name))
        if not any("\ud800" <= char <= "\udfff" for char in raw):
            tensors[raw] = ("F32", (1,))
    write_safetensors(tmp_path / "hostile" / "model.safetensors", tensors, {"[red]\x1b[2J": "\u202e"})

    said = run(*arguments, str(tmp_path / "hostile"), env=environment(LC_ALL=locale))

    told = said.out + said.err
    assert marker in told
    assert not UNSAFE.search(told.replace("\n", ""))
    if locale == "C" and "--json" not in arguments and "--csv" not in arguments:
        assert told.isascii()


@pytest.mark.parametrize(
    "arguments", [("inspect",), ("inspect", "--json"), ("tensors",), ("tensors", "--json")]
)
def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    file = write_safetensors(
        tmp_path / "many.safetensors", {f"layer.{number}.weight": ("F32", (1,)) for number in range(20_000)}
    )
    with process(*arguments, str(file)) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        err = running.stderr.read()
        code = running.wait(timeout=60)

    assert (code, err.replace(b"20,000 tensors, 78.1 KiB\n", b"")) == (ExitCode.OK, b"")


def test_progress_in_a_log_is_asked_for(sharded: Path) -> None:
    said = run("inspect", str(sharded), "--json", "--progress")

    assert said.code == ExitCode.OK
    json.loads(said.out)


def test_tensors_of_a_real_file(command: Command, tmp_path: Path) -> None:
    file = write_safetensors(tmp_path / "model.safetensors", LLAMA)

    document = json.loads(command("tensors", str(file), "--json").out)

    assert {row["name"]: (row["dtype"], tuple(row["shape"])) for row in document["tensors"]} == dict(LLAMA)
