"""Where an output is to appear: a last name in a folder that is held by descriptor from the first check to the last.

The way to that folder is the caller's own and may lead through links, as it may for a source; the last name may not be a
link, since a rename would replace the link and not what it leads to.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from shardscope.engine.convert.disk.names import NAME_BYTES
from shardscope.engine.convert.disk.refusals import reason, refusing
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.text import path_text
from shardscope.engine.source.missing import missing

_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_UP: Final = 4096
"""Folders between one and the root of the file system: `PATH_MAX` has no room for more."""

Inode = tuple[int, int]
"""Device and inode."""


class Place:
    """A target that may or may not exist. Close it after use.

    Opening raises `Fault`: `stage.target_name`, `stage.parent_missing`, `stage.parent_closed`, and for a source that cannot
    be looked at `source.missing` or `source.unreadable`.
    """

    def __init__(
        self, target: str | os.PathLike[str], sources: Iterable[str | os.PathLike[str]] = ()
    ) -> None:
        self._path = os.fsencode(target)
        holder, self.name = os.path.split(self._path.rstrip(b"/"))
        self.file = path_text(self.name)
        """The target's name, for sentences."""
        if self.name in {b"", b".", b".."} or b"\0" in self._path or len(self.name) > NAME_BYTES:
            raise Fault("stage.target_name", file=path_text(self._path))
        self._holder = holder or b"."
        self._sources: list[tuple[int, bool]] = []
        self.parent = self._open_parent()
        """Descriptor of the folder that holds the target."""
        try:
            for source in sources:
                self._sources.append(_open_source(source))
        except BaseException:
            self.close()
            raise

    @property
    def holder(self) -> bytes:
        """The path of the folder that holds the target, from the root: another process finds it there."""
        return os.path.join(os.getcwdb(), self._holder)

    def close(self) -> None:
        """Close what is held open."""
        for descriptor in (self.parent, *(source for source, _ in self._sources)):
            os.close(descriptor)
        self._sources.clear()

    def look(self) -> os.stat_result | None:
        """Return the status of the target itself, or nothing where there is none."""
        with refusing(self.file, self.parent):
            try:
                return os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
            except FileNotFoundError:
                return None

    def existing(self, *, replace: bool) -> Inode | None:
        """Return the folder that stands at the target, after making sure that it may be replaced; null where there is none.

        Raises `Fault`: `stage.target_link`, `stage.target_not_folder`, `stage.target_exists`, `stage.target_mount`,
        `stage.target_fixed`.
        """
        status = self.look()
        if status is None:
            return None
        if stat.S_ISLNK(status.st_mode):
            raise Fault("stage.target_link", file=self.file)
        if not stat.S_ISDIR(status.st_mode):
            raise Fault("stage.target_not_folder", file=self.file)
        if not replace:
            raise Fault("stage.target_exists", file=self.file)
        with _opened(self.name, self.parent) as descriptor:
            if mount_of(descriptor) != mount_of(self.parent):
                raise Fault("stage.target_mount", file=self.file)
        if not os.access(self.name, os.W_OK | os.X_OK, dir_fd=self.parent, effective_ids=True):
            raise Fault("stage.target_fixed", file=self.file)
        return status.st_dev, status.st_ino

    def check_sources(self, existing: Inode | None) -> None:
        """Make sure that target and sources are apart, whatever names and links lead to them.

        Raises `Fault`: `stage.target_is_source`, `stage.inside_source`, `stage.source_inside`.
        """
        for source, whole in self._sources:
            inode = _inode(os.fstat(source))
            if whole and existing == inode:
                raise Fault("stage.target_is_source", file=self.file)
            if whole and inode in _upwards(self.parent):
                raise Fault("stage.inside_source", file=self.file)
            if existing is not None and existing in _upwards(source):
                raise Fault("stage.source_inside", file=self.file)

    def check_parent(self) -> None:
        """Raise `Fault` `promote.parent_changed` unless the path still leads to the folder that is held."""
        try:
            now = os.stat(self._holder)
        except OSError as error:
            raise Fault("promote.parent_changed", file=self.file, change=reason(error)) from error
        if _inode(now) != _inode(os.fstat(self.parent)):
            raise Fault("promote.parent_changed", file=self.file, change="another folder took its place")

    def _open_parent(self) -> int:
        try:
            return os.open(self._holder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR}:
                raise Fault("stage.parent_missing", file=self.file) from error
            raise Fault("stage.parent_closed", file=self.file, reason=reason(error)) from error


def _open_source(path: str | os.PathLike[str]) -> tuple[int, bool]:
    """Return a descriptor of a source folder, or of the folder that holds a source file, and which of the two it is."""
    given = os.fsencode(path)
    try:
        try:
            return os.open(given, _LOOK), True
        except NotADirectoryError:
            return os.open(os.path.dirname(os.path.realpath(given)), _LOOK), False
    except OSError as error:
        file = path_text(os.path.basename(given.rstrip(b"/"))) or "."
        if error.errno == errno.ENOENT:
            raise missing(given) from error
        raise Fault("source.unreadable", file=file, reason=reason(error)) from error


def _inode(status: os.stat_result) -> Inode:
    return status.st_dev, status.st_ino


def _upwards(folder: int) -> Iterator[Inode]:
    """Yield the inodes of an open folder and of all that hold it."""
    current = os.dup(folder)
    try:
        last: Inode | None = None
        for _ in range(_UP):
            here = _inode(os.fstat(current))
            if here == last:
                return
            yield here
            last = here
            above = os.open(b"..", _LOOK, dir_fd=current)
            os.close(current)
            current = above
    finally:
        os.close(current)


@contextmanager
def _opened(name: bytes, folder: int) -> Iterator[int]:
    descriptor = os.open(name, _LOOK | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def mount_of(descriptor: int) -> str | int:
    """Return what tells mounts apart, bind mounts of one file system included (proc(5), `fdinfo`)."""
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
            return next(line.split()[1] for line in file if line.startswith("mnt_id:"))
    except (OSError, StopIteration, IndexError):
        return os.fstat(descriptor).st_dev
