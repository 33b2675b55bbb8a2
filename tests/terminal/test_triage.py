"""A person on a poor terminal, from the first look to the decoded tensors: sixteen colours, TERM=xterm and TERM=screen.

The checkpoint is one that DeepSpeed wrote, with files beside it whose names want to act on a terminal. Whatever is typed, the
bytes that reach the terminal hold none of their escapes.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from safetensors import safe_open

from tests.terminal.test_explorer import COLOURS, FIXTURES, MANY_COLOURS, PAYLOADS
from tests.terminal.tmux import Terminal

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.timeout(240),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]


def triage(terminal: Terminal) -> None:
    """What is it, why, what stands in the way, which rank holds what, which files?"""
    terminal.until("DeepSpeed ZeRO", "press d to decode as data", "nothing decoded")
    terminal.press("2")
    terminal.until("Why")
    terminal.press("3")
    terminal.until("list:")
    terminal.press("x")
    terminal.until("it says", "what to do")
    terminal.press("q")
    terminal.until("list:", gone="it says")
    terminal.press("4")
    terminal.until("dp")
    terminal.press("5")
    terminal.until("Against this machine")
    terminal.press("f")
    terminal.until("latest")
    terminal.press("G", "g", "/")
    terminal.until("find text")
    terminal.type("lat")
    terminal.until("1 of 1", gone="d decode")
    terminal.press("Enter")
    terminal.until("1 of 1", "d decode")
    terminal.press("Enter")
    terminal.until("global_step")
    terminal.press("?")
    terminal.until("search the keys")
    terminal.type("replica")
    terminal.until("Glossary")
    terminal.escape("Glossary")
    terminal.press("1")
    terminal.until("whole?")


def decode(terminal: Terminal) -> None:
    """What do its pickles say? Asked for, contained, and nothing run."""
    terminal.press("d")
    terminal.until("open denied", "a capital D decodes")
    terminal.press("D")
    terminal.until("decoded: examined")
    terminal.press("6")
    terminal.until("embed.weight")
    terminal.press("y")
    terminal.until("sent to the clipboard", "--decode")
    terminal.escape("sent to the clipboard")


def convert(terminal: Terminal) -> None:
    """What does a loader get? Asked for twice: that its pickles are read, and by a typed word that files are written."""
    out = terminal.folder / "out"
    terminal.press("C")
    terminal.until("open denied", "a capital D decodes")
    terminal.press("D")
    terminal.until("In this checkpoint", "So far")
    terminal.press("n")
    terminal.until("Name a folder that is to be made")
    terminal.type(str(out))
    terminal.until("An output can appear there")
    terminal.press("Enter")
    terminal.until("n next")
    terminal.press("n")
    terminal.until("tied tensors", "Decided", "model tensors only")
    terminal.press("n")
    terminal.until("v changes", "32 tensors")
    terminal.press("n")
    terminal.until("Type convert to start", "free on target", "not promised")
    assert not out.exists()
    terminal.type("convert")
    terminal.press("Enter")
    terminal.until("Converted", "written and verified", "shardscope verify")
    assert {path.name for path in out.iterdir()} == {
        "model.safetensors",
        "shardscope-manifest.json",
        "shardscope-run.json",
    }
    with safe_open(out / "model.safetensors", "numpy") as written:
        assert len(written.keys()) == 32
        assert written.get_slice("embed.weight").get_shape() == [53, 18]
    terminal.escape("shardscope verify")
    terminal.until("embed.weight")


def report(terminal: Terminal) -> None:
    """What could a stranger be sent? Every line is seen, and exactly that is written."""
    target = terminal.folder / "report.zip"
    terminal.press("r")
    terminal.until("what goes in", "decoded", "nothing written")
    terminal.press("p")
    terminal.until("searched: clean", "README.txt")
    terminal.press("c", "n")
    terminal.until("of them differ", "because")
    terminal.press("w")
    terminal.until("enter writes")
    terminal.press("C-u")
    terminal.type(str(target))
    terminal.press("Enter")
    terminal.until("exactly what was shown")
    with ZipFile(target) as bundle:
        assert "descriptor.json" in bundle.namelist()
        assert all(b"\x1b" not in bundle.read(name) for name in bundle.namelist())
    for leaves in ("exactly what was shown", "searched: clean", "what goes in"):
        terminal.escape(leaves)


STEPS: tuple[Callable[[Terminal], None], ...] = (triage, decode, convert, report)
"""In the order of a person's work."""


@pytest.fixture
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path_factory.mktemp("terminal"), (80, 24))
    try:
        yield terminal
    finally:
        terminal.close()


def checkpoint(folder: Path) -> Path:
    """Copy the checkpoint, and put the names beside it."""
    shutil.copytree(FIXTURES / "deepspeed/zero2-w4-bf16/checkpoint", folder)
    for raw, _ in PAYLOADS.values():
        if not {"\x00", "\ud800"} & set(raw):
            (folder / raw.replace("/", "_")).write_bytes(b"{}")
    return folder


@pytest.mark.parametrize("term", ["xterm", "screen"])
def test_work_on_sixteen_colours_lets_no_name_through(terminal: Terminal, tmp_path: Path, term: str) -> None:
    terminal.run(str(checkpoint(tmp_path / "run42")), TERM=term)
    for step in STEPS:
        step(terminal)
    terminal.press("q")
    terminal.until("ended with 0")

    written = terminal.written
    for what, (raw, _) in PAYLOADS.items():
        assert (
            raw.encode("utf-8", "surrogatepass" if "\ud800" in raw else "surrogateescape") not in written
        ), what
    for escape in (b"\x1b]0;", b"\x1b]8;", b"\xc2\x9b", b"\xe2\x80\xae", b"\xff"):
        assert escape not in written, escape
    assert written.count(b"\x1b]52;") == 1  # what y sent, and nobody else
    assert COLOURS.search(written)
    assert not MANY_COLOURS.search(written)
