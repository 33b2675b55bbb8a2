"""What the system refuses while files are made, as faults with the figures that a person needs."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from shardscope.engine.model.blocker import Fault


def refused(error: OSError, file: str, *, needed: int = 0, folder: int | None = None) -> Fault:
    """Return the fault that says why `file`, for which `needed` bytes were wanted, could not be written.

    `folder` is a descriptor on the same file system, for its figures.
    """
    match error.errno:
        case errno.ENOSPC:
            return _full(file, needed, folder)
        case errno.EDQUOT:
            return Fault("stage.quota", file=file, needed=needed)
        case errno.EFBIG:
            return Fault("stage.file_too_large", file=file, needed=needed)
        case errno.EROFS:
            return Fault("stage.read_only", file=file)
        case errno.EACCES | errno.EPERM:
            return Fault("stage.denied", file=file, reason=reason(error))
        case errno.ENOENT | errno.ESTALE:
            return Fault("stage.moved", file=file)
        case errno.EEXIST:
            return Fault("stage.file_exists", file=file)
        case _:
            return Fault("stage.write_failed", file=file, reason=reason(error))


@contextmanager
def refusing(file: str, folder: int | None = None) -> Iterator[None]:
    """Turn what the system refuses in the block into the fault about `file`."""
    try:
        yield
    except OSError as error:
        raise refused(error, file, folder=folder) from error


def reason(error: OSError) -> str:
    """Return what the system says, without a path."""
    return (error.strerror or type(error).__name__).lower()


def _full(file: str, needed: int, folder: int | None) -> Fault:
    try:
        system = None if folder is None else os.fstatvfs(folder)
    except OSError:
        system = None
    if system is not None and system.f_files and not system.f_favail:
        return Fault("stage.no_inodes", file=file)
    free = None if system is None else system.f_bavail * system.f_frsize
    return Fault("stage.no_space", file=file, needed=needed, free=free)
