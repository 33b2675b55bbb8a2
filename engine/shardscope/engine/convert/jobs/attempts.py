"""Attempts: the files that tasks of other processes make beside the output, each under a name that nobody else has.

    .NAME.shardscope-staging-1f0c9a3e/
        attempts/
            9f86d081884c7d65-5be1c0de    what one attempt at one task has written so far
        stop                             the flag

A worker that was given up may still be writing: to its own attempt, which nobody wants any more. Only the process that holds the
staging folder moves a whole attempt to its name in the output.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from shardscope.engine.convert.disk.leftovers import put
from shardscope.engine.convert.disk.names import ATTEMPTS
from shardscope.engine.convert.disk.output import OutputFile, reserve
from shardscope.engine.convert.disk.refusals import refused
from shardscope.engine.convert.jobs.flag import Flag, lower_flag
from shardscope.engine.convert.jobs.tasks import KEY, Area, Done, FileTask
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.staging import FileRecord

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make_room(folder: int) -> None:
    """Make the folder of attempts and the flag in the staging folder at a descriptor. Raises `OSError`."""
    os.mkdir(ATTEMPTS, 0o700, dir_fd=folder)
    lower_flag(folder)


@contextmanager
def entered(area: Area) -> Iterator[tuple[int, Flag]]:
    """Descriptor of the attempts of a staging folder, and its flag. Raises `Fault` `cluster.staging_elsewhere`."""
    try:
        outer = os.open(area.path, _FOLDER)
        try:
            if os.fstat(outer).st_ino != area.inode:
                raise Fault("cluster.staging_elsewhere", reason="another folder has its name")
            folder = os.open(ATTEMPTS, _FOLDER, dir_fd=outer)
            try:
                yield folder, Flag(outer)
            finally:
                os.close(folder)
        finally:
            os.close(outer)
    except FileNotFoundError as error:
        raise Fault("cluster.staging_elsewhere", reason="it is not there") from error


class Attempt:
    """One attempt at a task: a new file, open for writing. Use it in a `with` block; what is not whole is removed by leaving.

    Raises `Fault`: those of `convert.output`, and what the system refuses.
    """

    def __init__(self, task: FileTask, folder: int) -> None:
        self._task = task
        self._folder = folder
        self.name = f"{task.id[:KEY]}-{os.urandom(4).hex()}"
        self._whole = False

    def __enter__(self) -> OutputFile:
        try:
            self._descriptor = os.open(self.name, _NEW, 0o666, dir_fd=self._folder)
            try:
                reserve(self._descriptor, self._task.size, allocated=True)
            except BaseException:
                self._drop()
                raise
        except OSError as error:
            raise refused(error, self._task.name, needed=self._task.size, folder=self._folder) from error
        self.file = OutputFile(self._task.name, self._task.size, self._descriptor, self._finished)
        return self.file

    def __exit__(self, *_: object) -> None:
        if not self._whole:
            self._drop()
        else:
            self.file.close()

    @property
    def inode(self) -> int:
        """Of the file, while it is open."""
        return os.fstat(self._descriptor).st_ino

    def _finished(self, file: OutputFile, _record: FileRecord) -> None:
        """Make the file durable here: nobody else can, for what this machine still holds in memory."""
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise file.refusal(error) from error
        self._whole = True

    def _drop(self) -> None:
        os.close(self._descriptor)
        try:
            os.unlink(self.name, dir_fd=self._folder)
        except OSError:
            return  # its staging folder is gone, or will take it along


def looked_at(folder: int, task: FileTask, done: Done) -> int:
    """Return a descriptor of an attempt that says it is whole, after a look of one's own; the caller closes it.

    `folder` is the staging folder's. Raises `Fault` `cluster.attempt_differs`, `OSError`.
    """
    attempts = os.open(ATTEMPTS, _FOLDER, dir_fd=folder)
    try:
        if "/" in done.attempt or not done.attempt.startswith(task.id[:KEY] + "-"):
            raise Fault("cluster.attempt_differs", file=task.name, problem="it has no name of an attempt")
        try:
            descriptor = os.open(
                done.attempt, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=attempts
            )
        except FileNotFoundError:
            raise Fault("cluster.attempt_differs", file=task.name, problem="it is not there") from None
    finally:
        os.close(attempts)
    status = os.fstat(descriptor)
    problem = None
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        problem = "it is no regular file of one name"
    elif status.st_ino != done.inode:
        problem = "another file has its name"
    elif status.st_size != task.size or done.copied.bytes != task.size:
        problem = f"it has {status.st_size:,} bytes of {task.size:,}"
    if problem is not None:
        os.close(descriptor)
        raise Fault("cluster.attempt_differs", file=task.name, problem=problem)
    return descriptor


def take(folder: int, done: Done, output: int, name: bytes) -> None:
    """Give an attempt its name beneath the descriptor `output`, where nothing has it. Raises `OSError`.

    `folder` is the staging folder's.
    """
    attempts = os.open(ATTEMPTS, _FOLDER, dir_fd=folder)
    try:
        put(attempts, done.attempt.encode(), output, name)
    finally:
        os.close(attempts)


def drop_attempts(folder: int, task: FileTask) -> None:
    """Remove what attempts at a task have left. One that is still writing writes on, to a file without a name.

    `folder` is the staging folder's. Raises `OSError`.
    """
    attempts = os.open(ATTEMPTS, _FOLDER, dir_fd=folder)
    try:
        for name in os.listdir(attempts):
            if name.startswith(task.id[:KEY] + "-"):
                os.unlink(name, dir_fd=attempts)
    finally:
        os.close(attempts)
