"""Completion: scripts for three shells, and what they are told when they ask."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shardscope.app.cli.completion import SHELLS
from shardscope.app.cli.root import COMMANDS
from shardscope.engine.model.limits import DecodeLimits, Limits, decode_limit_names, limit_names
from tests.app.terminal import Command, environment, run


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capsysbinary)


def asked(line: str) -> list[str]:
    """Return what bash is offered at the end of `line`."""
    words = line.split(" ")
    said = run(
        env=environment(_SHARDSCOPE_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
    )
    assert said.code == 0, said.err
    return said.out.splitlines()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_printed(command: Command, shell: str) -> None:
    said = command("completion", shell)

    assert said.code == 0
    assert "_SHARDSCOPE_COMPLETE" in said.out
    if binary := shutil.which(shell):
        subprocess.run([binary, "-n"], input=said.out.encode(), check=True)


def test_commands_and_paths_are_offered_first() -> None:
    offered = asked("shardscope ")

    assert [item for item in offered if item.startswith("plain,")] == [f"plain,{name}" for name in COMMANDS]
    assert "file," in offered


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("shardscope exp", ["plain,explore", "plain,explain", "file,exp"]),
        ("shardscope --ver", ["plain,--version", "plain,--verbose"]),
        ("shardscope explain usage.", ["plain,usage.invalid", "plain,usage.no_terminal"]),
        ("shardscope schema d", ["plain,descriptor", "plain,descriptors", "plain,diff"]),
        ("shardscope inspect --digest a", ["plain,auto", "plain,all"]),
        ("shardscope inspect --limit zip_e", ["plain,zip_entries=1000000"]),
        ("shardscope inspect ./mod", ["file,./mod"]),
        ("shardscope ./ckpt --no", ["plain,--no-mouse"]),
    ],
)
def test_words_are_completed(line: str, expected: list[str]) -> None:
    assert asked(line) == expected


def test_every_limit_is_offered() -> None:
    assert asked("shardscope inspect --limit ") == [
        *(f"plain,{name}={getattr(Limits(), name)}" for name in limit_names()),
        *(f"plain,{name}={getattr(DecodeLimits(), name)}" for name in decode_limit_names()),
    ]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_the_script(command: Command, tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "shardscope").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m shardscope "$@"\n')
    (bin_folder / "shardscope").chmod(0o755)
    script = command("completion", "bash").out
    ask = "\nCOMP_WORDS=(shardscope explain trust.o); COMP_CWORD=2\n_shardscope_completion shardscope\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
    env = environment(PATH=f"{bin_folder}:/usr/bin:/bin")

    ran = subprocess.run(
        ["bash", "--norc"], input=(script + ask).encode(), capture_output=True, env=env, check=True
    )

    assert "trust.opaque" in ran.stdout.decode()
