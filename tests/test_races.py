"""Checkpoints that change while a command looks at them, at every moment there is: noticed and said, and nothing from elsewhere is told.

The walk and the reader have tests of their own (tests/source/test_races.py, tests/source/test_read.py); these are whole commands. A
change is made by a hook in the middle of the work, so that no thread has to be fast enough.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.model.exits import ExitCode
from shardscope.engine.source import read
from shardscope.engine.source import source as sources
from tests.app.terminal import Command
from tests.checkpoints import write_safetensors

FIXTURES = Path(__file__).resolve().parent / "fixtures"
Act = Callable[[], None]

COMMANDS = {
    "inspect": ("inspect", "--json", "--digest", "all"),
    "decode": ("inspect", "--decode", "--json", "--checksums"),
    "plan": ("plan", "--json"),
    "scan": ("scan", "--json"),
    "peek": ("peek", "model.norm.weight", "--stats", "--json"),
    "report": ("report", "--json", "-o", "{out}"),
}
HARMS = ("grows", "shrinks", "is replaced", "is removed", "lies behind a link")
MOMENTS = ("after it was listed", "before it is opened", "while it is read", "after it was read")


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def harm(how: str, file: Path, neighbour: Path) -> None:
    """Change a file, or the folder that it is in."""
    match how:
        case "grows":
            with file.open("ab") as grown:
                grown.write(b"\0" * 4_096)
        case "shrinks":
            os.truncate(file, file.stat().st_size // 2)
        case "is replaced":
            shutil.copy(neighbour / "other.safetensors", neighbour / "again")
            os.replace(neighbour / "again", file)
        case "is removed":
            file.unlink()
        case "lies behind a link":
            file.parent.rename(file.parent.with_name("was"))
            file.parent.symlink_to(neighbour, target_is_directory=True)


def at(moment: str, file: Path, act: Act, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have `act` happen once, at a moment of the work; the list says when it has."""
    happened: list[str] = []
    name = os.fsencode(file.name)

    def once() -> None:
        if not happened:
            happened.append(moment)
            act()

    def before(owner: Any, function: str, concerns: Callable[..., bool]) -> None:
        real = getattr(owner, function)

        def hooked(*arguments: Any, **options: Any) -> Any:
            if concerns(*arguments):
                once()
            return real(*arguments, **options)

        monkeypatch.setattr(owner, function, hooked)

    match moment:
        case "after it was listed":
            before(sources, "judge_links", lambda *_: True)
        case "before it is opened":
            before(sources, "open_file", lambda _, entry: entry.path.endswith(name))
        case "while it is read":
            before(read.OpenFile, "_once", lambda reader, *_: reader.entry.path.endswith(name))
        case "after it was read":
            before(sources.Source, "recheck", lambda *_: True)
    return happened


# R042 R043
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("how", HARMS)
@pytest.mark.parametrize("what", COMMANDS)
def test_a_change_is_noticed_and_nothing_from_elsewhere_is_told(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, how: str, moment: str
) -> None:
    root, neighbour = tmp_path / "root", tmp_path / "neighbour"
    fixture = FIXTURES / ("torch/zip_skip_data" if what == "decode" else "hf/llama_single_bf16")
    shutil.copytree(fixture / "checkpoint", root / "part")
    file = next((root / "part").glob("model.pt" if what == "decode" else "*.safetensors"))
    neighbour.mkdir()
    write_safetensors(neighbour / "other.safetensors", {"zebulon.weight": ("F32", (64, 64))})
    shutil.copy(neighbour / "other.safetensors", neighbour / file.name)
    happened = at(moment, file, lambda: harm(how, file, neighbour), monkeypatch)
    name, *options = (word.format(out=tmp_path / "out.zip") for word in COMMANDS[what])

    said = command(name, str(root), *options)

    assert happened == [moment]
    assert said.code != ExitCode.INTERNAL, said.err
    assert (said.code == ExitCode.OK) == (
        what == "report"
    )  # to tell what was found is all that a report is for
    assert "source.changed" in said.out + said.err
    assert "zebulon" not in said.out + said.err
