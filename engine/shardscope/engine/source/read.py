"""Reading one file by position, and proof that it held still meanwhile."""

import errno
import os
from types import TracebackType
from typing import Self

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.source import Entry, Kind
from shardscope.engine.model.text import path_text
from shardscope.engine.source.beneath import FILE, PASSAGE, check_plain, open_folder
from shardscope.engine.source.identity import WORDS, difference, identity_of, kind_of

_MISSING = frozenset({errno.ENOENT, errno.ESTALE})
_REPLACED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR})


_CANNOT_TELL = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


class OpenFile:
    """A regular file of the inventory, open for positioned reads (`model.source.Reader`).

    Leaving the `with` block verifies that the file is still what the walk saw; `Fault` `source.changed` takes the
    place of a fault that reading it raised, because a file that changes under the reader explains everything else.
    """

    __slots__ = ("_descriptor", "entry")

    def __init__(self, entry: Entry, descriptor: int) -> None:
        self.entry = entry
        self._descriptor = descriptor

    @property
    def size(self) -> int:
        """Bytes of the file when the walk saw it, and when it was opened."""
        return self.entry.size

    def pread(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes at `offset`; fewer only at the end of the file.

        Raises `Fault` `source.read_failed` where the system refuses, `source.changed` where the file shrank.
        """
        length = min(length, self.size - offset)
        if length <= 0:
            return b""
        data = self._once(offset, length)
        if len(data) == length:
            return data
        parts = [data]
        got = len(data)
        while got < length:  # one call moves 2 GiB at most
            parts.append(self._once(offset + got, length - got))
            got += len(parts[-1])
        return b"".join(parts)

    def _once(self, offset: int, length: int) -> bytes:
        try:
            data = os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise self._failure(offset, error) from error
        if not data:
            raise self._shrunk(offset)
        return data

    def pread_into(self, offset: int, buffer: memoryview) -> int:
        """Fill `buffer` from `offset` and return how many bytes came: fewer only at the end of the file.

        Raises like `pread`.
        """
        wanted = min(len(buffer), self.size - offset)
        got = 0
        while got < wanted:
            try:
                count = os.preadv(self._descriptor, [buffer[got:wanted]], offset + got)
            except OSError as error:
                raise self._failure(offset + got, error) from error
            if not count:
                raise self._shrunk(offset + got)
            got += count
        return got

    def fileno(self) -> int:
        """Return the descriptor, for the kernel's copy from file to file alone: bytes that never pass through this process.

        It is open for reading only, and stays this object's to close.
        """
        return self._descriptor

    def hole_at(self, offset: int) -> int:
        """Return how many bytes from `offset` on the file system never stored, so that they read as zeros.

        Zero where the file system cannot tell. Raises `Fault` `source.read_failed`.
        """
        try:
            return os.lseek(self._descriptor, offset, os.SEEK_DATA) - offset
        except OSError as error:
            if error.errno == errno.ENXIO:  # no data behind `offset`
                return max(0, self.size - offset)
            if error.errno in _CANNOT_TELL:
                return 0
            raise self._failure(offset, error) from error

    def data_at(self, offset: int) -> int:
        """Return how many bytes from `offset` up to the next hole are stored; all of the rest where the file system cannot tell.

        Raises `Fault` `source.read_failed`.
        """
        try:
            return min(self.size, os.lseek(self._descriptor, offset, os.SEEK_HOLE)) - offset
        except OSError as error:
            if error.errno in _CANNOT_TELL | {errno.ENXIO}:
                return max(0, self.size - offset)
            raise self._failure(offset, error) from error

    def verify(self) -> None:
        """Raise `Fault` `source.changed` where the open file is no longer what the walk saw."""
        try:
            now = identity_of(os.fstat(self._descriptor))
        except OSError as error:
            raise self._failure(0, error) from error
        change = difference(self.entry.identity, now)
        if change is not None:
            raise _changed(self.entry, change)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None or isinstance(error, Fault):
                self.verify()
        finally:
            self.close()

    def _failure(self, offset: int, error: OSError) -> Fault:
        if error.errno in _MISSING:
            return _changed(self.entry, "it vanished")
        reason = os.strerror(error.errno or errno.EIO)
        return Fault("source.read_failed", file=path_text(self.entry.path), offset=offset, reason=reason)

    def _shrunk(self, offset: int) -> Fault:
        return _changed(self.entry, f"it shrank from {self.size:,} bytes to {offset:,} or fewer")


def adopted(descriptor: int, name: bytes) -> OpenFile:
    """Return a regular file that is open already, as one of an inventory: it is held against what it is now.

    The descriptor belongs to what is returned. Raises `OSError`.
    """
    status = os.fstat(descriptor)
    entry = Entry(
        path=name,
        kind=kind_of(status.st_mode),
        identity=identity_of(status),
        allocated=status.st_blocks * 512,
        links=status.st_nlink,
    )
    return OpenFile(entry, descriptor)


def open_file(base: int, entry: Entry) -> OpenFile:
    """Open a regular file of the inventory beneath `base` (the root, or the repository folder of the cache).

    Its status is compared with the walk's before it is opened, so that a device or FIFO that took its place is never
    opened, and again after.

    Raises `Fault`: `source.escape`, `source.not_regular`, `source.link`, `source.changed`, `source.unreadable`.
    """
    path = entry.path if entry.admitted is None else entry.admitted
    check_plain(path)
    if entry.kind is not Kind.FILE:
        raise Fault("source.not_regular", file=path_text(entry.path), what=WORDS[entry.kind])
    parent, _, name = path.rpartition(b"/")
    folder = base
    try:
        if parent:
            folder = open_folder(base, parent, PASSAGE)
        try:
            _compare(entry, os.stat(name, dir_fd=folder, follow_symlinks=False))
            descriptor = os.open(name, FILE, dir_fd=folder)
        finally:
            if folder != base:
                os.close(folder)
        try:
            _compare(entry, os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
    except OSError as error:
        raise _refusal(entry, error) from error
    return OpenFile(entry, descriptor)


def _compare(entry: Entry, status: os.stat_result) -> None:
    kind = kind_of(status.st_mode)
    if kind is not Kind.FILE:
        raise _changed(entry, f"{WORDS[kind]} took its place")
    change = difference(entry.identity, identity_of(status))
    if change is not None:
        raise _changed(entry, change)


def _changed(entry: Entry, change: str) -> Fault:
    return Fault("source.changed", file=path_text(entry.path), change=change)


def _refusal(entry: Entry, error: OSError) -> Fault:
    if error.errno in _MISSING:
        return _changed(entry, "it vanished")
    if error.errno in _REPLACED:
        return _changed(entry, "a link or something else took the place of a part of its path")
    return Fault(
        "source.unreadable", file=path_text(entry.path), reason=os.strerror(error.errno or errno.EIO)
    )
