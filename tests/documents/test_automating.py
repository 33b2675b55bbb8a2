"""What the pages about programs show is run: Python page by page, and the command lines within YAML."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from shardscope.app.main import main
from tests.documents import desk
from tests.documents.pages import blocks, text

PYTHON = ("docs/api.md", "docs/model.md", "docs/bundle.md", "docs/fixing.md")
"""Pages whose Python is run on the desk, block after block in one namespace."""
AUTOMATING = "docs/automating.md"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    desk.lay(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PYTHON)
def test_the_python_of_a_page_runs_as_it_stands(page: str, here: Path) -> None:
    shutil.rmtree(here / "out")
    names: dict[str, Any] = {"__name__": page}
    found = [block for block in blocks(page) if block.language == "python"]

    assert found
    for block in found:
        source = "\n" * block.line + block.text  # a traceback names the line of the page
        exec(compile(source, page, "exec"), names)


def test_the_public_names_are_shown_to_whoever_writes_programs(here: Path) -> None:
    shown = set(re.findall(r"engine\.(\w+)\(", text("docs/api.md")))

    assert shown >= {
        "inspect",
        "diff",
        "prepare",
        "materialize",
        "verify",
        "watch",
        "explain_model",
        "Decoding",
    }


def settings() -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of pre-commit and the workflow."""
    hooks, workflow = (yaml.safe_load(block.text) for block in blocks(AUTOMATING) if block.language == "yaml")
    return hooks, workflow


def ends(line: str, *more: str) -> int:
    words = shlex.split(line.partition(" >")[0])
    assert words[0] == "shardscope"
    return main([*words[1:], *more])


def test_the_hooks_pass_what_is_sound_and_stop_what_is_not(here: Path, capsys: object) -> None:
    (repository,) = settings()[0]["repos"]
    each, whole = repository["hooks"]
    files = sorted(str(path) for path in Path("ckpt").iterdir() if re.search(each["files"], path.name))

    assert (repository["repo"], each["language"], whole["pass_filenames"]) == ("local", "system", False)
    assert len(files) > 1
    assert ends(each["entry"], *files) == 0
    assert ends(whole["entry"]) == 0
    Path(files[0]).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert ends(each["entry"], *files) != 0
    assert ends(whole["entry"]) != 0


def test_the_steps_of_the_workflow_run(here: Path, capsys: object) -> None:
    steps = settings()[1]["jobs"]["whole"]["steps"]
    typed = [step["run"] for step in steps if step.get("run", "").startswith("shardscope ")]

    assert len(typed) == 4
    assert [ends(line) for line in typed] == [0, 0, 0, 0]
    others = [step["run"] for step in steps if "run" in step and step["run"] not in typed]
    assert all(" --no-index " in line for line in others)
