"""Removing a staging folder so that what an interruption leaves of it is still known for one: the marker goes last."""

import errno
import os
import shutil
import stat

from shardscope.engine.convert.disk.names import MARKER
from shardscope.engine.convert.disk.steps import At

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_staging(parent: int, name: bytes, at: At) -> None:
    """Remove the staging folder `name` beneath the descriptor `parent`. No link is followed. Raises `OSError`."""
    folder = os.open(name, _FOLDER, dir_fd=parent)
    try:
        with os.scandir(folder) as entries:
            inside = sorted(os.fsencode(entry.name) for entry in entries)
        for entry in (
            *(each for each in inside if each != MARKER),
            *(each for each in inside if each == MARKER),
        ):
            at("staging.remove")
            remove(folder, entry)
    finally:
        os.close(folder)
    at("staging.rmdir")
    os.rmdir(name, dir_fd=parent)


def remove(folder: int, name: bytes) -> None:
    """Remove a file, or a folder with all that it holds, beneath the descriptor `folder`. Raises `OSError`."""
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        _remove_folder(folder, name)
    else:
        os.unlink(name, dir_fd=folder)


def _remove_folder(folder: int, name: bytes) -> None:
    """Remove a folder in which a task that was told to stop may still remove or make a file."""
    for more in (True, True, False):
        try:
            shutil.rmtree(name, dir_fd=folder)
        except OSError as error:
            if not more or error.errno not in {errno.ENOENT, errno.ENOTEMPTY}:
                raise
        else:
            return
