"""The flag that stops tasks in other processes: a file in the staging folder that stays empty until somebody writes to it.

It is opened for each look, and not only asked for: network file systems promise that whoever opens a file sees what was written
before, and may keep it to themselves for half a minute that a new name has appeared.
"""

import os
import threading
import time
from typing import Final

from shardscope.engine.convert.disk.names import STOP

EVERY: Final = 0.05
"""Seconds between two looks at the least."""
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def lower_flag(folder: int) -> None:
    """Make the flag in the staging folder at a descriptor. Raises `OSError`."""
    os.close(os.open(STOP, _NEW, 0o666, dir_fd=folder))


def raise_flag(folder: int) -> None:
    """Tell all tasks to stop. Raises `OSError`."""
    descriptor = os.open(STOP, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(descriptor, b"stop\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Flag(threading.Event):
    """Is set once the flag of the staging folder at a descriptor was raised, or is gone with its folder."""

    def __init__(self, folder: int) -> None:
        super().__init__()
        self._folder = folder
        self._next = 0.0

    def is_set(self) -> bool:
        """Tell whether to stop; the file is looked at when the last look is `EVERY` seconds old."""
        if not super().is_set() and time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY
            if self._raised():
                self.set()
        return super().is_set()

    def _raised(self) -> bool:
        try:
            descriptor = os.open(STOP, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
        except OSError:
            return True  # nobody waits for a file whose staging folder is gone
        try:
            return os.fstat(descriptor).st_size > 0
        finally:
            os.close(descriptor)
