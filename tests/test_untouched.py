"""No command changes anything of what it looks at: every command there is, on one source, byte by byte and time by time."""

import json
import shutil
from pathlib import Path

import pytest

from shardscope.app.cli.root import COMMANDS
from shardscope.engine.model.exits import ExitCode
from tests.app.terminal import Command
from tests.source.trees import picture

HERE = Path(__file__).resolve().parent
LOOKED: dict[str, tuple[tuple[str, ...], ...]] = {
    "inspect": (
        ("{safe}",),
        ("{pickled}", "--decode", "--json", "--checksums", "--digest", "all"),
        ("{all}", "--json"),
        ("{safe}", "--format", "sarif"),
        ("{safe}", "--format", "markdown"),
        ("{safe}", "{pickled}", "{all}", "--json"),
    ),
    "watch": (("{all}", "--once", "--settle", "0", "--interval", "0.05", "--json"),),
    "tensors": (("{safe}",), ("{pickled}", "--decode", "--fragments", "--json")),
    "layout": (("{safe}",),),
    "peek": (
        ("{safe}", "model.norm.weight", "--stats"),
        ("{pickled}", "w", "--decode", "--histogram", "--heat", "--slice", "::2", "--json"),
    ),
    "scan": (("{safe}",), ("{pickled}", "--decode", "--json")),
    "model": (("{safe}",), ("{pickled}", "--decode", "--json")),
    "pickles": (("{pickled}", "--decode"),),
    "plan": (("{safe}",), ("{pickled}", "--decode", "--json")),
    "convert": (
        ("{safe}", "{out}/a", "--yes"),
        ("{pickled}", "{out}/b", "--yes", "--decode"),
        ("{safe}", "{out}/a", "--yes", "--replace", "--verify", "full"),
    ),
    "reshard": (
        ("{safe}", "{out}/c", "--yes", "--tp", "2"),
        ("{safe}", "--tp", "2", "--plan-only", "--json"),
    ),
    "fix": (
        ("{safe}", "--what", "merge", "--plan-only", "--json"),
        ("{safe}", "{out}/d", "--yes", "--what", "drop", "--tensor", "model.norm.weight", "--what", "header"),
    ),
    "verify": (("{out}/a", "--against", "{safe}"),),
    "diff": (("{safe}", "{out}/a", "--values"),),
    "clean": (("{all}",), ("{all}", "--yes", "--old")),
    "report": (
        ("{safe}", "--preview"),
        ("{safe}", "-o", "{out}/r.zip"),
        ("show", "{out}/r.zip"),
        ("diff", "{out}/r.zip", "{out}/r.zip"),
    ),
    "map": (("check", "{all}/map.json"), ("explain", "{all}/map.json"), ("lower", "{all}/map.json")),
    "validate": (("{all}/map.json",),),
    "bench": (("--folder", "{out}", "--size", "1MiB", "--seconds", "0"),),
}
"""What is run of each command that is given a path. Paths are the source's, but for what is written."""
NO_PATH = {"explain", "matrix", "glossary", "schema", "config", "completion"}
"""Commands that are given none."""
SCREEN = {"explore", "serve"}
"""Tried by tests/test_soak.py and tests/app, with screens."""
FINE = {ExitCode.OK, ExitCode.BLOCKED}


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def test_every_command_is_tried() -> None:
    assert set(COMMANDS) - {*LOOKED, *NO_PATH, *SCREEN} == set()


# R035 R036
def test_no_command_changes_its_source(command: Command, tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    shutil.copytree(HERE / "fixtures" / "hf" / "llama_sharded" / "checkpoint", source / "safe")
    shutil.copytree(HERE / "fixtures" / "torch" / "zip_skip_data" / "checkpoint", source / "pickled")
    shutil.copy(next((HERE.parent / "docs" / "maps").glob("*.json")), source / "map.json")
    out.mkdir()
    places = {"safe": source / "safe", "pickled": source / "pickled", "all": source, "out": out}
    before = picture(source)
    ended = {}

    for name, runs in LOOKED.items():
        for words in runs:
            said = command(name, *(word.format(**places) for word in words))
            assert picture(source) == before, (name, words)
            ended[" ".join((name, *words))] = (said.code, said.err[-300:])

    crashed = {words: end for words, end in ended.items() if end[0] == ExitCode.INTERNAL}
    assert crashed == {}
    unfit = {words: end for words, end in ended.items() if end[0] == ExitCode.USAGE}
    assert unfit == {}
    done = [words for words, end in ended.items() if end[0] in FINE]
    assert len(done) > len(ended) * 3 // 4, json.dumps(ended, indent=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]
