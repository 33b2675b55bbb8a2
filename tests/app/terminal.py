"""The command line as a test runs it: in this process for speed, in its own where signals and pipes matter."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shardscope.app.main import main

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Said:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


class Command:
    """`shardscope`, called in this process."""

    def __init__(self, capture: pytest.CaptureFixture[bytes]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str) -> Said:
        """Run it and return what came of it. Output is read as UTF-8, bytes that are not as `\\xNN`."""
        self._capture.readouterr()
        code = main(arguments)
        captured = self._capture.readouterr()
        return Said(
            code,
            captured.out.decode(errors="backslashreplace"),
            captured.err.decode(errors="backslashreplace"),
        )


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of a command that depends on nothing of whoever runs the tests."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "LANG": "C.UTF-8", "TERM": "xterm-256color", **changes}


def process(*arguments: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
    """Start `python -m shardscope` with pipes."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **options}
    return subprocess.Popen(
        [sys.executable, "-m", "shardscope", *arguments], env=dict(env or environment()), **options
    )


def run(*arguments: str, env: Mapping[str, str] | None = None, **options: Any) -> Said:
    """Run `python -m shardscope` to its end."""
    with process(*arguments, env=env, **options) as running:
        out, err = running.communicate(timeout=60)
    return Said(
        running.returncode,
        (out or b"").decode(errors="backslashreplace"),
        (err or b"").decode(errors="backslashreplace"),
    )
