"""What scenarios have in common: their outcome, and file systems for the length of a block."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.campaigns.bench import OPTIONS, Bench


class Skipped(Exception):  # noqa: N818 - an outcome
    """This machine cannot do it; the argument says what is missing."""


class Tried(NamedTuple):
    """What came of one scenario."""

    tried: int
    resumed: int
    """Runs that were gone on with, to bytes equal to those of a run that nothing happened to."""


def some(numbers: range, times: int) -> Iterator[int]:
    """Yield at most so many of the numbers, evenly, the first and the last among them."""
    if times >= len(numbers):
        yield from numbers
        return
    last = len(numbers) - 1
    yield from sorted({round(each * last / max(1, times - 1)) for each in range(times)})


def done(out: Path) -> None:
    """Remove a target's folder: thousands would fill the disk."""
    shutil.rmtree(out.parent)


def limited(bench: Bench, out: Path, limit: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a conversion under a limit of the shell."""
    words = [sys.executable, "-m", "shardscope", "convert", str(bench.source), str(out), "--yes", *OPTIONS]
    return subprocess.run(
        ["sh", "-c", f"{limit}; exec {shlex.join(words)}"], capture_output=True, check=False, timeout=60
    )


@contextmanager
def mounted(bench: Bench, kind: str, options: str) -> Iterator[Path]:
    """A file system for the length of the block. Raises `Skipped` where none can be mounted."""
    folder = bench.folder / "mounted"
    folder.mkdir(exist_ok=True)
    attach("-t", kind, "-o", options, "none", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def attach(*words: str) -> None:
    """Mount. Raises `Skipped`."""
    if os.geteuid() != 0:
        raise Skipped("mounting needs root")
    ran = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise Skipped(ran.stderr.strip())
