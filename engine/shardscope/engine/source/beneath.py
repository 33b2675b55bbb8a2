"""Opening folders and files beneath a descriptor, by plain names and never through a link.

Two steps for a file: its folder, then its last name with `O_NOFOLLOW`. A folder several names down is reached with
one openat2 where the kernel has it, otherwise name by name; both refuse a link in any place of the path.
"""

import os
from collections.abc import Iterator

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.text import path_text

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags to list a folder."""
PASSAGE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags to go through a folder: search permission is enough."""
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""Flags to read a file: never waits for a writer, never takes a terminal."""

_PATH_BYTES = 4_095
"""One system call takes a path of 4,096 bytes, its closing zero included (`PATH_MAX`)."""


def check_plain(path: bytes) -> None:
    """Raise `Fault` `source.escape` unless `path` consists of plain names only."""
    if any(part in {b"", b".", b".."} for part in path.split(b"/")):
        raise Fault("source.escape", file=path_text(path))


def open_folder(base: int, path: bytes, flags: int = FOLDER) -> int:
    """Return a descriptor of the folder `path` beneath `base` (itself for an empty path); the caller closes it.

    Raises `OSError` with `ELOOP` or `ENOTDIR` where a link or another non-folder stands in the way.
    """
    if not path:
        return os.open(b".", flags, dir_fd=base)
    check_plain(path)
    if b"/" not in path:  # one name needs no resolving, and a flat checkpoint never loads ctypes
        return os.open(path, flags, dir_fd=base)
    from shardscope.engine.source.openat2 import openat2

    call = openat2()
    current = base
    steps = _lengths(path) if call else iter(path.split(b"/"))
    step = next(steps)
    while True:
        following = next(steps, None)
        wanted = flags if following is None else PASSAGE
        try:
            opened = call(current, step, wanted) if call else os.open(step, wanted, dir_fd=current)
        finally:
            if current != base:
                os.close(current)
        if following is None:
            return opened
        current, step = opened, following


def _lengths(path: bytes) -> Iterator[bytes]:
    """Split a path at slashes into lengths that one system call takes."""
    while len(path) > _PATH_BYTES:
        cut = path.rfind(b"/", 0, _PATH_BYTES)
        if cut < 0:
            break  # a name longer than any file system has; the kernel says so
        yield path[:cut]
        path = path[cut + 1 :]
    yield path
