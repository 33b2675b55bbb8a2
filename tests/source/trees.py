"""Small folders with everything a file system can hold, made on the spot."""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Inventory
from shardscope.engine.source.source import Source

NOBODY = 65_534


def make(root: Path, files: dict[str, bytes]) -> Path:
    """Write `files` by relative path, folders included, and return `root`."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def socket_at(path: Path) -> None:
    """Make a socket without any networking."""
    os.mknod(path, stat.S_IFSOCK | 0o600)


def null_device_at(path: Path) -> None:
    """Make a copy of the null device; the test is skipped where that is not allowed."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EACCES}:
            raise
        pytest.skip("only root makes devices")


def names(root: Path, *raw: bytes) -> Path:
    """Make empty files with exactly these names."""
    root.mkdir(exist_ok=True)
    for name in raw:
        os.close(os.open(os.fsencode(root) + b"/" + name, os.O_CREAT | os.O_WRONLY, 0o600))
    return root


def walked(root: Path | str, *, hf_cache: bool = False, **limits: int) -> Inventory:
    """Walk `root` once."""
    with Source(root, limits=Limits(**limits), hf_cache=hf_cache) as source:
        return source.walk()


def codes(blockers: "Inventory | list[Blocker]") -> dict[str, list[str | None]]:
    """Return the subjects of each code found."""
    rows = blockers.blockers if isinstance(blockers, Inventory) else blockers
    found: dict[str, list[str | None]] = {}
    for row in rows:
        found.setdefault(row.code, []).append(row.subject)
    return found


def paths(inventory: Inventory) -> list[str]:
    """Return the paths of the inventory as text, in its order."""
    return [entry.text for entry in inventory.entries]


@contextmanager
def deep(root: Path, name: bytes, depth: int) -> Iterator[None]:
    """Make `depth` nested folders with a file `weights.bin` in the last, whatever the length of the path.

    They are removed afterwards: pytest's own cleaning gives up on paths beyond PATH_MAX.
    """
    root.mkdir(exist_ok=True)
    here = os.open(root, os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        following = os.open(name, os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = following
    os.close(os.open(b"weights.bin", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=here))
    try:
        yield
    finally:
        os.unlink(b"weights.bin", dir_fd=here)
        for _ in range(depth):
            above = os.open(b"..", os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = above
            os.rmdir(name, dir_fd=here)
        os.close(here)


def picture(root: Path) -> str:
    """Return a digest of everything beneath `root`: names, kinds, modes, times and bytes."""
    digest = hashlib.sha256()
    for path in sorted([root, *root.rglob("*")]):
        status = path.lstat()
        digest.update(os.fsencode(path.relative_to(root)))
        digest.update(
            f"|{status.st_mode}|{status.st_size}|{status.st_mtime_ns}|{status.st_ctime_ns}|".encode()
        )
        if stat.S_ISREG(status.st_mode):
            digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def as_nobody() -> Iterator[None]:
    """Run the block without rights over files of others: root reads everything, so tests of permissions mean nothing to it."""
    if os.geteuid() != 0:
        yield
        return
    groups, group = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def open_to_all(path: Path) -> None:
    """Let everybody search the folders that lead to `path` (pytest keeps its temporary folders to the owner)."""
    for folder in path.parents:
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
