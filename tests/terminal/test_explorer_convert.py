"""A guided conversion on a real terminal of 80 by 24: typed through, and the end of its session."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardscope.app.cli.run import run
from shardscope.engine.convert.disk.leftovers import find_staging
from shardscope.engine.convert.disk.names import is_staging_name
from shardscope.engine.convert.disk.owner import Life, life
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.manifest import RUN_NAME
from tests.checkpoints import write_safetensors, write_sharded
from tests.terminal.tmux import PATIENCE, Terminal

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]


@pytest.fixture
def terminal(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Terminal]:
    monkeypatch.chdir(tmp_path)  # targets are typed: a short path is typed sooner
    terminal = Terminal(tmp_path_factory.mktemp("terminal"), (80, 24))
    try:
        yield terminal
    finally:
        terminal.close()


def held(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != RUN_NAME}


# R105 R110
@pytest.mark.parametrize("term", ["xterm", "screen"])
def test_a_person_types_through_a_conversion_in_sixteen_colours(
    terminal: Terminal, tmp_path: Path, term: str
) -> None:
    source, out = write_sharded(tmp_path / "source"), tmp_path / "out"
    terminal.run(str(source), TERM=term)
    terminal.until("whole?")
    terminal.press("C")
    terminal.until("1 what", "So far")
    terminal.press("n")
    terminal.until("Name a folder")
    terminal.press(*"out")
    terminal.until("An output can appear there.")
    terminal.press("Enter", "n")
    terminal.until("tied tensors", "$ shardscope convert")
    terminal.press("n")
    terminal.until("v changes, enter opens")
    terminal.press("n")
    terminal.until("Type convert to start")
    assert not out.exists()
    terminal.press(*"convert", "Enter")
    screen = terminal.until("Converted", "Verified", "shardscope verify")
    assert all(len(line) <= 80 for line in screen.splitlines())
    assert b"\x1b[38;2;" not in terminal.written
    terminal.press("q")
    terminal.until("ended with 0")

    assert run(["convert", str(source), str(tmp_path / "told"), "--yes", "--quiet"]) == ExitCode.OK
    assert held(out) == held(tmp_path / "told")


# R113
def test_finished_files_are_kept_when_the_terminal_goes_away(terminal: Terminal, tmp_path: Path) -> None:
    tensors = {f"w{number}": ("F32", (8192, 1024)) for number in range(8)}
    write_safetensors(tmp_path / "source/model.safetensors", tensors)
    terminal.run(str(tmp_path / "source"))
    terminal.until("whole?")
    terminal.press("C")
    terminal.until("So far")
    terminal.press("n", *"out", "Enter", "n")
    terminal.until("tied tensors")
    terminal.press("d", "s")
    terminal.until("cast to BF16", "file size 5GB")
    terminal.press(*["BSpace"] * 3, *"16MiB", "Enter")
    terminal.until("at most 16MiB", gone="file size 16MiB")
    terminal.press("f")
    terminal.until("every byte")
    terminal.press("n")
    terminal.until("v changes, enter opens")
    terminal.press("n")
    terminal.until("Type convert to start")
    terminal.press(*"convert")
    terminal.strike("Enter")
    until_finished(tmp_path)
    terminal.hang_up()  # as when a connection is lost
    ended(tmp_path)
    left = [path for path in tmp_path.iterdir() if is_staging_name(os.fsencode(path.name))]
    if not (tmp_path / "out").exists():  # it may have come to its end before it heard
        assert len(left) == 1
        assert list(left[0].glob("output/*.safetensors"))
    words = ("--dtype", "bf16", "--max-shard-size", "16MiB", "--verify", "full", "--yes", "--quiet")
    more = ("--replace", "--discard-old") if (tmp_path / "out").exists() else ("--resume",)
    assert run(["convert", str(tmp_path / "source"), "out", *words, *more]) == ExitCode.OK


def until_finished(folder: Path) -> None:
    """Wait until a file is finished: the journal has a line of it below its head."""
    end = time.monotonic() + PATIENCE
    while not any(len(path.read_bytes().splitlines()) > 1 for path in folder.glob(".out.*/journal.jsonl")):
        assert time.monotonic() < end
        time.sleep(0.01)


def ended(folder: Path) -> None:
    """Wait until the process has ended that staged something for `out`."""
    end = time.monotonic() + PATIENCE
    parent = os.open(folder, os.O_RDONLY)
    try:
        while any(
            each.marker is not None and life(each.marker.owner) is not Life.DEAD
            for each in find_staging(parent, b"out")
        ):
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        os.close(parent)
