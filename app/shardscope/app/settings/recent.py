"""The paths that were looked at, for those who set `recent = true`. Nobody else's are written anywhere."""

import json
import os
import stat
import tempfile
from contextlib import suppress
from typing import Final

KEPT: Final = 20
LARGEST: Final = 256 << 10
"""Bytes of the file that are read."""


def recent(path: str) -> tuple[str, ...]:
    """Return what the file at `path` remembers, the newest first; nothing where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return ()
            said = json.loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return ()
    listed = said if isinstance(said, list) else []
    return tuple(each for each in listed if isinstance(each, str) and os.path.isabs(each))[:KEPT]


def remember(path: str, looked_at: str) -> None:
    """Put `looked_at` first among what the file at `path` remembers: one file of mode 0600, replaced as a whole.

    That it could not be written is passed over: nothing depends on it.
    """
    newest = os.path.abspath(looked_at)
    listed = [newest, *(each for each in recent(path) if each != newest)][:KEPT]
    folder = os.path.dirname(path)
    with suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=folder, prefix=".recent-")  # 0600 by itself
        try:
            with open(descriptor, "w", encoding="ascii") as file:
                json.dump(listed, file, indent=1)
            os.replace(draft, path)
        except OSError:
            os.unlink(draft)
            raise
