"""Small outputs to stage, and a look at what lies in a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shardscope.engine.convert.disk.steps import At, nowhere
from shardscope.engine.convert.stage.promotion import Promoted, promote
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.model.blocker import Fault, blocker

Files = dict[str, bytes]

OLD: Files = {"config.json": b"{}", "model.safetensors": b"old" * 1000}
NEW: Files = {
    "config.json": b'{"new": 1}',
    "model.safetensors": bytes(range(256)) * 1200,
    "sub/ranks.json": b"[]",
}
ALLOWED = 1 << 20
NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")


def make(folder: Path, files: Files) -> Path:
    """Write files and return their folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def read(folder: Path) -> Files | None:
    """Return every file below a folder, or nothing where there is no folder."""
    if not folder.exists():
        return None
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def hidden(folder: Path) -> list[str]:
    """Return the names that begin with a dot."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def fill(staging: Staging, files: Files = NEW) -> None:
    """Write all files in pieces, as copying does."""
    for name, data in files.items():
        with staging.create(name, len(data)) as file:
            for offset in range(0, len(data), 65536):
                staging.at("file.write")
                file.write_at(offset, data[offset : offset + 65536])
            file.finish()


def convert(
    target: Path, *, replace: bool = False, allow_gap: bool = False, keep: bool = False, at: At = nowhere
) -> Promoted:
    """Stage and promote the new files."""
    with Staging(target, allowed=ALLOWED, replace=replace, allow_gap=allow_gap, keep=keep, at=at) as staging:
        fill(staging)
        return promote(staging)


@contextmanager
def fault(code: str) -> Iterator[pytest.ExceptionInfo[Fault]]:
    """Expect a fault of this code, whose sentences can be rendered."""
    with pytest.raises(Fault) as caught:
        yield caught
    assert caught.value.finding.code == code, caught.value.finding
    stated = blocker(caught.value.finding)
    assert stated.message.endswith(".")
    assert stated.remedy.endswith(".")


@contextmanager
def mounted(folder: Path, kind: str, options: str) -> Iterator[Path]:
    """A file system for the length of the block; skips where this machine mounts none."""
    import subprocess

    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", kind, "-o", options, "none", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"this machine does not mount {kind}: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def unprivileged(folder: Path) -> Iterator[None]:
    """Run the block as a user whose rights count; `folder`, given by a path that others can reach, becomes theirs."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
