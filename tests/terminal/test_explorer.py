"""The explorer on a real terminal: what a hostile checkpoint can write there, which colours, and how it ends."""

import base64
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkpoints import write_sharded
from tests.hostile import HOSTILE
from tests.terminal.tmux import Terminal

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]

PAYLOADS = {
    what: (raw, seen)
    for what, (raw, seen) in HOSTILE.items()
    if not raw.isprintable() or what == "clear screen"
}
COLOURS = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")
MANY_COLOURS = re.compile(rb"\x1b\[(?:[0-9;]*;)?[34]8;[25];")


@pytest.fixture
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path_factory.mktemp("terminal"))
    try:
        yield terminal
    finally:
        terminal.close()


def hostile_checkpoint(folder: Path) -> Path:
    """Write a checkpoint whose file names, tensor names, keys and values want to act on a terminal."""
    names = sorted(raw for raw, _ in HOSTILE.values() if not re.search("[\ud800-\udfff]", raw))
    tensors = {
        name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * number, 4 * number + 4]}
        for number, name in enumerate(names)
    }
    text = json.dumps({"__metadata__": {name: name for name in names}, **tensors}).encode()
    folder.mkdir()
    content = len(text).to_bytes(8, "little") + text + bytes(4 * len(tensors))
    (folder / "model.safetensors").write_bytes(content)
    (folder / "config.json").write_text(json.dumps({"architectures": names}))
    for raw, _ in PAYLOADS.values():
        if "\x00" not in raw and "\ud800" not in raw:
            (folder / os.fsdecode(os.fsencode(raw)).replace("/", "_")).write_bytes(b"{}")
    return folder


def assert_nothing_got_through(terminal: Terminal) -> None:
    written = terminal.written
    for what, (raw, _) in PAYLOADS.items():
        for form in {raw.encode("utf-8", "surrogateescape" if "\ud800" not in raw else "surrogatepass")}:
            assert form not in written, what
    assert b"\x1b]0;" not in written
    assert b"\x1b]52;" not in written
    assert b"\x1b]8;" not in written
    assert b"\xc2\x9b" not in written
    assert b"\xe2\x80\xae" not in written
    assert b"\xff" not in written


def test_no_name_of_a_checkpoint_acts_on_the_terminal(terminal: Terminal, tmp_path: Path) -> None:
    terminal.run(str(hostile_checkpoint(tmp_path / "ckpt")))
    terminal.until("whole?")
    terminal.press("6")
    terminal.until("dtype", "a␛]52;c;cm0gLXJm␇b  ")
    for key, shown in (("2", "Why"), ("3", "list:"), ("4", "No rank"), ("5", "Against this machine")):
        terminal.press(key)
        terminal.until(shown)
    terminal.press("f")
    terminal.until("a␛[2Jb")
    terminal.press("G")
    terminal.press("Enter")
    terminal.until("__metadata__")
    terminal.press("?")
    terminal.until("search the keys")
    terminal.escape("search the keys")
    terminal.press(":")
    terminal.until("Search for commands")

    assert_nothing_got_through(terminal)


def test_the_path_itself_may_be_hostile(terminal: Terminal, tmp_path: Path) -> None:
    folder = write_sharded(tmp_path / "a\x1b]0;owned\x07b")
    terminal.run(str(folder.parent))
    terminal.until("whole?", "owned")
    terminal.press("C-c")
    terminal.until("ended with 130")
    assert b"\x1b]0;owned" not in terminal.written


def test_sixteen_colours_are_those_of_the_terminal(terminal: Terminal, tmp_path: Path) -> None:
    terminal.run(str(write_sharded(tmp_path / "ckpt")), TERM="xterm")
    terminal.until("whole?")
    terminal.press("3", "6", "?")
    terminal.until("search the keys")

    assert COLOURS.search(terminal.written)
    assert not MANY_COLOURS.search(terminal.written)


def test_no_colour_means_none(terminal: Terminal, tmp_path: Path) -> None:
    terminal.run(str(write_sharded(tmp_path / "ckpt")), NO_COLOR="1", COLORTERM="truecolor")
    terminal.until("whole?")
    terminal.press("3", "6", "j", "?")
    terminal.until("search the keys")
    terminal.escape("search the keys")
    terminal.press(":")
    terminal.until("Search for commands")

    assert not COLOURS.search(terminal.written), COLOURS.search(terminal.written)


def test_the_mouse_is_left_to_the_terminal_when_asked(terminal: Terminal, tmp_path: Path) -> None:
    terminal.run(str(write_sharded(tmp_path / "ckpt")), "--no-mouse")
    terminal.until("whole?")

    assert b"\x1b[?1000h" not in terminal.written
    assert b"\x1b[?1003h" not in terminal.written


def test_y_copies_through_the_terminal_and_q_gives_it_back(terminal: Terminal, tmp_path: Path) -> None:
    folder = str(write_sharded(tmp_path / "ckpt"))
    terminal.run(folder)
    terminal.until("whole?")
    terminal.press("y")
    terminal.until("sent to the clipboard")
    command = base64.b64encode(f"shardscope inspect {folder}".encode())
    assert b"\x1b]52;c;" + command in terminal.written

    terminal.escape("sent to the clipboard")
    terminal.press("q")
    terminal.until("ended with 0")
    assert b"\x1b[?1049l" in terminal.written


def test_a_path_that_is_not_there_is_a_page_and_an_exit_code(terminal: Terminal, tmp_path: Path) -> None:
    terminal.run(str(tmp_path / "nothing"))
    terminal.until("Cannot look", "source.missing")
    terminal.press("q")
    terminal.until("ended with 3")


FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def test_decoding_is_asked_for_and_shows_what_it_found(terminal: Terminal) -> None:
    terminal.run(str(FIXTURES / "deepspeed/zero2-w4-bf16/checkpoint"), TERM="xterm")
    terminal.until("5 opaque files: press d to decode as data", "nothing decoded")
    terminal.press("d")
    terminal.until("open denied", "a capital D decodes")
    terminal.press("Enter")
    terminal.until("nothing decoded", gone="open denied")

    terminal.press("d")
    terminal.until("open denied", "a capital D decodes")
    terminal.press("D")
    terminal.until("decoded: examined", "Tensors 33", "deepspeed 0.19.8")
    terminal.press("6")
    terminal.until("embed.weight")
    terminal.press("j", "Enter")
    terminal.until("1 fragment in 1 file", "begins at")
    terminal.escape("begins at")
    terminal.press("9")
    terminal.until("none is foreign", "collections.OrderedDict")
    assert COLOURS.search(terminal.written)
    assert not MANY_COLOURS.search(terminal.written)
    terminal.press("C-r")
    terminal.until("nothing decoded", "press d to decode as data")


def test_a_pickle_that_would_run_something_is_named_and_runs_nothing(terminal: Terminal) -> None:
    fixture = FIXTURES / "dcp/bad_metadata_canary/checkpoint"
    terminal.run(str(fixture), NO_COLOR="1", COLORTERM="truecolor")
    terminal.until("press d to decode as data")
    terminal.press("d")
    terminal.until("a capital D decodes")
    terminal.press("D")
    terminal.until("decoded: examined")
    terminal.press("9")
    terminal.until("foreign", "called")
    assert not COLOURS.search(terminal.written)
    assert sorted(path.name for path in fixture.iterdir()) == [".metadata", "__0_0.distcp", "__1_0.distcp"]
