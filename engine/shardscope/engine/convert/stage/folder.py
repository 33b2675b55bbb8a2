"""The first and last steps with a staging folder: making it, trying what its file system can do, telling what is in it at the end."""

import errno
import os
from typing import Final

from shardscope.engine.convert.disk.kernel import NO_SUCH_CALL, exchange
from shardscope.engine.convert.disk.names import OUTPUT, PREVIOUS, TRIES, staging_name
from shardscope.engine.convert.disk.place import Place
from shardscope.engine.convert.disk.refusals import reason, refused
from shardscope.engine.convert.disk.steps import At
from shardscope.engine.model.blocker import Fault

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def new_folder(place: Place) -> tuple[bytes, int]:
    """Make a staging folder beside a target; return its name and a descriptor, which the caller closes.

    Raises `Fault`: `stage.parent_closed`, and what else the system refuses.
    """
    name = staging_name(place.name)
    try:
        os.mkdir(name, 0o700, dir_fd=place.parent)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EPERM}:
            raise Fault("stage.parent_closed", file=place.file, reason=reason(error)) from error
        raise refused(error, place.file, folder=place.parent) from error
    try:
        return name, os.open(name, _FOLDER, dir_fd=place.parent)
    except BaseException:
        os.rmdir(name, dir_fd=place.parent)
        raise


def try_exchange(folder: int, file: str, at: At) -> None:
    """Learn now, and not after hours of copying, whether the file system of a staging folder can exchange two folders.

    Raises `Fault` `stage.no_exchange` about the target `file`; `OSError`.
    """
    at("exchange.try")
    for name in TRIES:
        os.mkdir(name, dir_fd=folder)
    try:
        exchange(folder, TRIES[0], folder, TRIES[1])
    except OSError as error:
        if error.errno not in NO_SUCH_CALL:
            raise
        raise Fault("stage.no_exchange", file=file) from error
    finally:
        for name in TRIES:
            os.rmdir(name, dir_fd=folder)


def sync_folder(folder: int, name: str) -> None:
    """Make the entries of an open folder durable. Raises `Fault` `promote.sync_failed`."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno in NO_SUCH_CALL:
            return  # some network file systems cannot; they keep their own order
        raise Fault("promote.sync_failed", file=name, reason=reason(error)) from error


def is_in_place(place: Place, output: int | None) -> bool:
    """Tell whether the folder of inode `output` stands at a target."""
    try:
        there = os.stat(place.name, dir_fd=place.parent, follow_symlinks=False)
        return (there.st_dev, there.st_ino) == (os.fstat(place.parent).st_dev, output)
    except OSError:
        return False


def holds_old(folder: int, output: int | None) -> bool:
    """Tell whether an old target lies in a staging folder whose new one has the inode `output`, or might."""
    if output is None:
        return False
    try:
        inside = os.listdir(folder)
        if os.fsdecode(PREVIOUS) in inside:
            return True
        if os.fsdecode(OUTPUT) not in inside:
            return False
        return os.stat(OUTPUT, dir_fd=folder, follow_symlinks=False).st_ino != output
    except OSError:
        return True
