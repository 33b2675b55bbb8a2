"""Converting in a real terminal of 80 by 24: the question, the progress, the end, and what is left on the screen."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.checkpoints import write_safetensors
from tests.convert.large import MIB, safetensors
from tests.hostile import HOSTILE
from tests.terminal.tmux import Terminal

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]

STYLES = re.compile(rb"\x1b\[([0-9;]*)m")
START = "Type convert to start"
Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    terminals: list[Terminal] = []

    def begin(*arguments: str, **environment: str) -> Terminal:
        terminals.append(Terminal(tmp_path_factory.mktemp("terminal"), (80, 24)))
        terminals[-1].run(*arguments, **environment)
        return terminals[-1]

    yield begin
    for terminal in terminals:
        terminal.close()


def colors(terminal: Terminal) -> set[bytes]:
    """Return the parameters of every style that was written and sets a colour."""
    return {
        word
        for found in STYLES.findall(terminal.written)
        for word in found.split(b";")
        if len(word) == 2 and word[:1] in b"349" and word not in (b"39", b"49")
    }


def answer(terminal: Terminal, text: str) -> None:
    terminal.until(START)
    terminal.press(*text, "Enter")


# R105 R113
def test_a_person_reads_confirms_watches_and_is_told(start: Start, tmp_path: Path) -> None:
    source = safetensors(tmp_path / "source", 512 * MIB)
    out = tmp_path / "out"
    terminal = start("convert", str(source), str(out), "--dtype", "bf16", TERM="xterm")
    screen = terminal.until(START)
    assert "Admission  admitted" in screen
    assert all(len(line) <= 80 for line in screen.splitlines())
    answer(terminal, "convert")
    terminal.until("Converted  1 tensor", "shardscope verify", "ended with 0")

    # It was drawn, in no more than 16 colours, and is gone.
    assert re.search(rb"copy .*of 256\.0 MiB, .*MiB/s", terminal.written)
    assert re.search("model\\.safetensors · peak memory \\d+\\.\\d MiB".encode(), terminal.written)
    assert colors(terminal)
    assert not re.search(rb"\x1b\[[0-9;]*[34]8;[25];", terminal.written)
    assert "peak memory 5" not in terminal.screen.split("Converted")[0]
    assert out.exists()


@pytest.mark.parametrize("said", ["no", "conver", ""])
def test_anything_but_the_word_writes_nothing(start: Start, tmp_path: Path, said: str) -> None:
    source = safetensors(tmp_path / "source", MIB)
    terminal = start("convert", str(source), str(tmp_path / "out"))
    answer(terminal, said)
    terminal.until("The plan was not confirmed.", "ended with 2")

    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_one_ctrl_c_at_the_question_is_enough(start: Start, tmp_path: Path) -> None:
    source = safetensors(tmp_path / "source", MIB)
    terminal = start("convert", str(source), str(tmp_path / "out"))
    terminal.until(START)
    terminal.press("C-c")
    screen = terminal.until("ended with 130")

    assert "\nshardscope: Stopped by Ctrl-C; nothing was written." in screen
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


# R113
def test_ctrl_c_while_copying_says_what_is_left(start: Start, tmp_path: Path) -> None:
    source = safetensors(tmp_path / "source", 1024 * MIB)
    terminal = start("convert", str(source), str(tmp_path / "out"), "--dtype", "bf16", "--yes")
    terminal.until("copy ")
    terminal.press("C-c")
    screen = terminal.until("ended with 130")

    assert "Stopped by Ctrl-C while copying." in screen
    assert "Nothing was promoted: out is as it was" in screen
    assert "copy ━" not in screen
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} == {"source"}


def test_without_colour_there_is_none(start: Start, tmp_path: Path) -> None:
    source = safetensors(tmp_path / "source", MIB)
    terminal = start("convert", str(source), str(tmp_path / "out"), "--yes", NO_COLOR="1")
    terminal.until("Converted  1 tensor", "ended with 0")

    assert not colors(terminal)


@pytest.mark.parametrize("what", ["clear screen", "window title", "bidi override", "newline", "markup style"])
def test_names_of_a_checkpoint_do_nothing(start: Start, tmp_path: Path, what: str) -> None:
    raw, seen = HOSTILE[what]
    write_safetensors(tmp_path / "source/model.safetensors", {raw: ("F32", (4,)), "b": ("F32", (4,))})
    terminal = start("convert", str(tmp_path / "source"), str(tmp_path / "out"), "--yes", "--dtype", "bf16")
    terminal.until("ended with 0")

    for part in (b"\x1b[2J", b"\x1b]0;owned", "\u202e".encode()):
        assert part not in terminal.written.partition(b"-m shardscope")[2].partition(b"\n")[2]
    assert seen in terminal.written.decode("utf-8", "replace")
