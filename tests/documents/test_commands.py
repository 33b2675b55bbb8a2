"""Every command line of the documents is typed as it stands, and ends as the page says; what is not run says why, and where it is."""

import io
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from shardscope.app.cli.root import shardscope as command_line
from shardscope.app.main import main
from tests import demo
from tests.documents import desk
from tests.documents.pages import COMMAND, CONSOLE, ROOT, Block, blocks, pages, prose, text

ELSEWHERE = (
    (
        r"shardscope(?: explore)?(?: (?:\./\S+|--no-mouse|--hf-cache|--theme \S+))*$",
        "the explorer needs a terminal",
        "tests/terminal/test_explorer.py",
    ),
    (r".* --scheduler ", "needs a cluster", "tests/converting/test_cluster.py"),
    (r"shardscope watch (?!.*--once)", "runs until it is stopped", "tests/app/test_cli_watch.py"),
    (
        r"shardscope bench(?!.*--seconds 0)",
        "takes the time of a machine that others wait for",
        "tests/test_benching.py",
    ),
    (r"shardscope serve ", "serves until it is stopped", "tests/terminal/test_serve.py"),
)
"""Lines that a test of their own runs: pattern, reason, test."""
PAGES_ELSEWHERE = {"docs/silent-errors.md": "tests/producers/test_silent_errors.py"}
"""Pages of which every block is run by a test of their own, with the producers' tools."""
USAGE = "docs/commands.md"
"""Its blocks without a language are usage lines."""


def lines() -> Iterator[tuple[Block, str]]:
    for page in pages():
        for block in blocks(page):
            if block.language in CONSOLE:
                yield from ((block, line) for line, _ in block.commands() if COMMAND.match(unwrapped(line)))


def unwrapped(line: str) -> str:
    """The command within `eval "$(...)"`."""
    found = re.fullmatch(r'eval "\$\((.*)\)"', line)
    return found[1] if found else line


def elsewhere(line: str) -> bool:
    return any(re.match(pattern, line) for pattern, _, _ in ELSEWHERE)


RUN = [
    pytest.param(block, id=f"{block.page}:{block.line}")
    for block in dict.fromkeys(block for block, line in lines() if "shardscope" in line)
    if block.why_not is None and block.page not in PAGES_ELSEWHERE
]


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("laid") / "desk"
    folder.mkdir()
    desk.lay(folder)
    return folder


@pytest.mark.parametrize("block", RUN)
def test_a_block_of_commands_runs_as_it_stands(
    block: Block,
    laid: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    for thing in laid.iterdir():
        if thing.name in block.text:
            (shutil.copytree if thing.is_dir() else shutil.copy2)(thing, folder / thing.name)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    if "demo/" in block.text:
        demo.main(folder / "demo")
    if (
        "--plan plan.json" in block.text
    ):  # a plan is bound to the files that it was made for, by their times too
        Path("plan.json").write_text(desk.said("plan", "./ckpt", "--decode", "--json"))
    for line, ends in block.commands():
        if COMMAND.match(unwrapped(line)) and not line.startswith("make ") and not elsewhere(line):
            type_in(unwrapped(line), ends, capsysbinary)


def type_in(line: str, ends: int, capture: pytest.CaptureFixture[bytes]) -> None:
    """Run one line in this folder: a person's answer is `--yes`, and what stands in the way of an output goes first."""
    typed, _, pipe = (part.strip() for part in line.partition(" | "))
    typed, _, file = (part.strip() for part in typed.partition(" > "))
    words = [f"./{word[1:]}" if word.startswith("/") else word for word in shlex.split(typed)][1:]
    if (
        words
        and words[0] in ("convert", "reshard", "fix", "clean")
        and not {"--yes", "--plan-only"} & set(words)
    ):
        words.append("--yes")
    make_room(words)
    capture.readouterr()
    code = main(words)
    said = capture.readouterr()
    assert code == ends, f"{line}\n{said.out.decode()}{said.err.decode()}"
    if pipe.startswith("jq"):
        json.loads(said.out)
    if file:
        target = Path(file).expanduser()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(said.out)


def make_room(words: list[str]) -> None:
    """Remove what an earlier line of this desk left where this one writes, unless it says what to do with it."""
    outputs = [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-o", "--output")]
    if words[:1] in (["convert"], ["reshard"], ["fix"]) and not {"--replace", "--plan-only"} & set(words):
        outputs += [word for word in words[2:3] if not word.startswith("-")]
    for each in map(Path, outputs):
        if each.is_dir() and each.name != "ckpt":
            shutil.rmtree(each)
        elif each.is_file():
            each.unlink()


def test_what_is_not_run_here_says_why_and_is_run_somewhere() -> None:
    assert all((ROOT / where).is_file() for where in PAGES_ELSEWHERE.values())
    for pattern, _, where in ELSEWHERE:
        assert (ROOT / where).is_file()
        assert any(re.match(pattern, unwrapped(line)) for _, line in lines()), f"nothing is left of {pattern}"
    for block in dict.fromkeys(block for block, _ in lines()):
        if block.why_not is not None:
            assert len(block.why_not) > 10, (block.page, block.line)
            for test in re.findall(r"tests/[\w/]+\.py", block.why_not):
                assert (ROOT / test).is_file()


def test_no_command_line_hides_where_it_would_not_be_run() -> None:
    hidden = [
        f"{page}:{block.line}: {line}"
        for page in pages()
        for block in blocks(page)
        if block.language not in CONSOLE and (page, block.language) != (USAGE, "")
        for line in block.text.splitlines()
        if COMMAND.match(line.strip().removeprefix("$ "))
    ]
    hidden += [
        f"{page}: {line.strip()}"
        for page in pages()
        for line in prose(page).splitlines()
        if line.startswith("    ") and COMMAND.match(line.strip().removeprefix("$ "))
    ]
    assert hidden == [], "command lines stand in blocks of the language console"


@cache
def targets() -> frozenset[str]:
    return frozenset(re.findall(r"(?m)^([a-z-]+):", text_of_makefile()))


def text_of_makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_target_of_make_that_is_named_is_there() -> None:
    named = {found for _, line in lines() for found in re.findall(r"^make ([a-z-]+)", line)}
    named |= {found for page in pages() for found in re.findall(r"`make ([a-z-]+)", prose(page))}

    assert named >= {"demo", "inspect", "check", "docs", "site", "wheelhouse", "sbom", "audit", "fuzz"}
    assert named <= targets()
    for target in sorted(named & {"demo", "check", "wheelhouse"}):
        subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, check=True)


# --- commands within sentences

SPAN = re.compile(r"`(?:\.venv/bin/)?shardscope ([^`]+)`")


@pytest.mark.parametrize("page", [page for page in pages() if SPAN.search(prose(page))])
def test_a_command_in_a_sentence_is_one_with_the_options_that_it_has(page: str) -> None:
    wrong = [span for span in SPAN.findall(prose(page)) if not exists(" ".join(span.split()))]

    assert wrong == []


FRONT = {"shardscope": "explore", "report": "make", "map": "explain"}
"""What groups do, or are spoken of as doing, where no command of theirs is named."""


def exists(typed: str) -> bool:
    """Tell whether a command and every option that is named exist."""
    words = typed.partition(" > ")[0].replace("...", "").split()
    command: click.Command = command_line
    context = click.Context(command, info_name="shardscope")
    while words and isinstance(command, click.Group):
        inner = command.get_command(context, words[0])
        if inner is None:
            break
        command, context = inner, click.Context(inner, info_name=words.pop(0), parent=context)
    if (
        command is command_line
        and words
        and not words[0].startswith(("-", ".", "/"))
        and not words[0].isupper()
    ):
        return False
    if isinstance(command, click.Group):  # what it does without the name of a command
        command = command.get_command(context, FRONT.get(command.name or "", "")) or command
    known = {
        name for option in command.get_params(context) for name in (*option.opts, *option.secondary_opts)
    }
    return {word.partition("=")[0].strip("[]") for word in words if word.startswith(("-", "[-"))} <= known


def test_a_command_that_is_gone_would_be_found() -> None:
    assert exists("inspect ./ckpt --json")
    assert exists("report show report.zip")
    assert not exists("inspekt ./ckpt")
    assert not exists("inspect ./ckpt --jsn")


def test_pages_are_found() -> None:
    assert {"README.md", "docs/converting.md", "docs/schemas/manifest.md"} <= set(pages())
    assert all(text(page).startswith("# ") for page in pages())
    assert len(RUN) > 60
