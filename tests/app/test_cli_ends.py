"""How a run ends: every exit code, in words and as a document, whatever went wrong."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shardscope.engine
from shardscope.app.cli.interrupt import Interrupt
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.progress import Cancelled
from tests.app.terminal import Command, environment, process, run


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Make the engine end in an exception."""

    def ends_in(error: BaseException) -> None:
        def inspect(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setitem(vars(shardscope.engine), "inspect", inspect)

    return ends_in


def params(code: str) -> dict[str, Any]:
    """Return parameters for every field of a code's sentences."""
    from shardscope.engine.model.blocker import parameter_kinds

    kinds = parameter_kinds(CODES[code].message) | parameter_kinds(CODES[code].remedy)
    return {name: 7 if kind in ("count", "bytes") else "seven" for name, kind in kinds.items()}


# R049
def test_a_fault_ends_in_the_exit_code_of_its_row(
    command: Command, engine: Callable[[BaseException], None]
) -> None:
    for code, row in CODES.items():
        engine(Fault(code, **params(code)))
        expected = row.exit or ExitCode.BLOCKED

        spoken = command("inspect", "x")
        document = command("inspect", "x", "--json")

        assert spoken.code == document.code == expected, code
        assert spoken.out == "", code
        assert spoken.err.startswith("shardscope: "), code
        if expected is not ExitCode.OUTPUT:
            assert json.loads(document.out)["error"]["code"] == code
            assert json.loads(document.out)["exit"] == expected, code
            assert document.err == "", code


SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize(
    "error", [KeyError(SECRET), OSError(5, "I/O error", f"/home/{SECRET}"), MemoryError()]
)
@pytest.mark.parametrize("flags", [(), ("--json",), ("-v",), ("-v", "--json")])
def test_an_error_of_ours_says_its_kind_and_place_and_nothing_else(
    command: Command, engine: Callable[[BaseException], None], error: Exception, flags: tuple[str, ...]
) -> None:
    engine(error)

    said = command("inspect", "x", *flags)

    assert said.code == ExitCode.INTERNAL
    told = said.out + said.err
    assert type(error).__name__ in told
    assert "shardscope.app.cli.examine line" in told
    assert SECRET not in told
    assert "Traceback" not in told
    assert os.sep + "shardscope" not in told
    if "--json" in flags:
        assert json.loads(said.out)["error"]["code"] == "internal.error"


def test_an_error_of_ours_ends_with_a_page_that_can_be_sent(
    command: Command, engine: Callable[[BaseException], None]
) -> None:
    engine(KeyError(SECRET))

    lines = command("inspect", "x").err.splitlines()
    engine(KeyError(SECRET))
    document = json.loads(command("inspect", "x", "--json").out)

    assert lines[1].endswith("[internal.error]")
    assert lines[2].startswith("  An error of shardscope ")
    assert lines[3:5] == ["  while    shardscope inspect", "  kind     KeyError"]
    assert lines[5].startswith("           shardscope.app.cli.run line ")
    assert any(line.startswith("  Python   3.") for line in lines)
    assert document["error"]["notes"] == [line[2:] for line in lines[2:]]


def test_what_led_to_an_error_of_ours_is_told_by_its_kind(
    command: Command, engine: Callable[[BaseException], None]
) -> None:
    class ZebulonError(Exception):
        pass

    error = RuntimeError(SECRET)
    error.__cause__ = ZebulonError(SECRET)
    engine(error)

    told = command("inspect", "x").err

    assert "  after    an error of another package" in told
    assert "ZebulonError" not in told


@pytest.mark.parametrize("error", [Cancelled(), KeyboardInterrupt()])
def test_a_stop_is_one_sentence(
    command: Command, engine: Callable[[BaseException], None], error: BaseException
) -> None:
    engine(error)

    said = command("inspect", "x")
    document = json.loads(command("inspect", "x", "--json").out)

    assert said.code == ExitCode.CANCELLED
    assert said.err == "shardscope: Stopped by Ctrl-C; nothing was written.\n"
    assert document["exit"] == ExitCode.CANCELLED


@pytest.mark.parametrize(
    ("name", "number"), [("Ctrl-C", signal.SIGINT), ("SIGTERM", signal.SIGTERM), ("SIGHUP", signal.SIGHUP)]
)
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_a_signal_stops_the_engine_through_its_event(
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    number: signal.Signals,
    flags: tuple[str, ...],
) -> None:
    def inspect(*_: Any, cancel: Any, **__: Any) -> None:
        os.kill(os.getpid(), number)
        assert cancel.wait(5)
        raise Cancelled

    monkeypatch.setitem(vars(shardscope.engine), "inspect", inspect)

    said = command("inspect", "x", *flags)

    assert said.code == ExitCode.CANCELLED
    assert f"Stopped by {name}; nothing was written." in said.out + said.err


def test_a_second_signal_does_not_wait(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def inspect(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)

    monkeypatch.setitem(vars(shardscope.engine), "inspect", inspect)
    begin = time.monotonic()

    assert command("inspect", "x").code == ExitCode.CANCELLED
    assert time.monotonic() - begin < 10


def test_handlers_are_put_back_and_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt().installed():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("arguments", [("explain",), ("--help",), ("--version",), ("schema", "descriptor")])
def test_a_closed_pipe_is_no_error(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        said = run(*arguments, stdout=writer)
    finally:
        os.close(writer)

    assert (said.code, said.err) == (ExitCode.OK, "")


@pytest.mark.skipif(not stat.S_ISCHR(os.stat("/dev/full").st_mode), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("explain",), ("explain", "--json"), ("--help",), ("--version",)])
def test_a_full_disk_is_said(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        said = run(*arguments, stdout=full)

    assert said.code == ExitCode.OUTPUT
    assert said.err.startswith("shardscope: Standard output could not be written: no space left on device.\n")
    assert len(said.err.splitlines()) == 2


def test_a_closed_output_is_said() -> None:
    said = run("explain", stdout=None, preexec_fn=lambda: os.close(1))

    assert said.code == ExitCode.OUTPUT
    assert "could not be written: it is closed" in said.err


def test_the_explorer_refuses_without_a_terminal() -> None:
    said = run("some folder")

    assert said.code == ExitCode.USAGE
    assert said.out == ""
    assert "standard input is none" in said.err
    assert "shardscope inspect 'some folder'" in said.err


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_the_explorer_refuses_a_terminal_that_cannot_draw(term: str) -> None:
    main, other = os.openpty()
    try:
        with process(
            "x", env=environment(TERM=term), stdin=other, stdout=other, stderr=other, close_fds=True
        ) as running:
            assert running.wait(timeout=30) == ExitCode.USAGE
        shown = os.read(main, 4096).decode()
    finally:
        os.close(main)
        os.close(other)

    assert f"TERM is {term}" in shown
    assert "\x1b" not in shown


def test_ctrl_c_ends_a_process_with_130(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    code = (
        "import shardscope.engine, sys, time\n"
        "from shardscope.app.main import main\n"
        "from shardscope.engine.model.progress import Cancelled\n"
        "def inspect(path, cancel, **_):\n"
        "    print('working', file=sys.stderr, flush=True)\n"
        "    cancel.wait(30)\n"
        "    raise Cancelled\n"
        "shardscope.engine.inspect = inspect\n"
        "sys.exit(main(['inspect', 'x']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == b"working\n"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)

    assert (running.returncode, out) == (ExitCode.CANCELLED, b"")
    assert err == b"shardscope: Stopped by Ctrl-C; nothing was written.\n"


def test_a_path_that_cannot_be_read_is_no_wrong_command_line(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`os.access` is what click asks of a path, and root may read everything: only the engine knows, when it opens it."""
    monkeypatch.setattr(os, "access", lambda *_, **__: False)

    assert command("inspect", str(tmp_path)).code == ExitCode.OK
    assert command("diff", str(tmp_path), str(tmp_path)).code == ExitCode.UNSUPPORTED


def test_a_sentence_ends_its_lines_between_words_on_a_terminal_alone(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    lines = command("tensors", str(tmp_path / "link")).err.splitlines()
    monkeypatch.setattr("shardscope.app.cli.failure.is_terminal", lambda stream: stream is sys.stderr)
    monkeypatch.setattr("shardscope.app.cli.paragraphs.WIDTH", 40)
    wrapped = command("tensors", str(tmp_path / "link")).err.splitlines()

    assert len(lines) == 2
    assert len(wrapped) > 2
    assert max(map(len, wrapped)) <= 40
    assert " ".join(wrapped) == " ".join(lines)


# R042
def test_what_is_neither_file_nor_folder_cannot_be_examined(command: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")

    for name in ("fifo", "link"):
        assert command("peek", str(tmp_path / name), "w").code == ExitCode.UNREADABLE
