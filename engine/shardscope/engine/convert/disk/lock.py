"""One conversion for each target: a lock file beside it that says whose it is.

The kernel holds the lock (`flock`) and lets go of it when the process ends in whatever way, so that a lock that was left
behind is known for what it is. The identity inside tells people and other machines who has it, and stands in for the
kernel's lock on file systems without one. There, two runs that find the same dead lock in the same instant might both go
on; promotion still lets each output appear whole or not at all.
"""

import errno
import fcntl
import os
import stat
from typing import Final

import msgspec

from shardscope.engine.convert.disk.names import lock_name
from shardscope.engine.convert.disk.owner import Life, life, this_process
from shardscope.engine.convert.disk.place import Place
from shardscope.engine.convert.disk.refusals import reason, refused, refusing
from shardscope.engine.convert.disk.steps import At, nowhere
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.staging import Owner
from shardscope.engine.model.text import path_text

_LOCK_BYTES: Final = 4096
"""Enough for an identity; a longer file is not ours."""
_ATTEMPTS: Final = 20
"""Others may take and release the lock between two steps of ours; more often than this is no accident."""
_NO_FLOCK: Final = frozenset({errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL})


class Lock:
    """The lock of a target. `acquire` raises `Fault` and never waits."""

    def __init__(self, place: Place, at: At = nowhere) -> None:
        self._place = place
        self._name = lock_name(place.name)
        self._file = path_text(self._name)
        self._at = at
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises `Fault`: `stage.busy`, `stage.locked_elsewhere`, `stage.lock_foreign`, and what the folder refuses.
        """
        with refusing(self._file, self._place.parent):
            self._acquire()

    def _acquire(self) -> None:
        for _ in range(_ATTEMPTS):
            descriptor, created = self._open()
            if descriptor is None:
                continue
            try:
                held = self._take(descriptor, created=created)
            except BaseException:
                os.close(descriptor)
                raise
            if held:
                self._descriptor = descriptor
                return
            os.close(descriptor)
        raise self._busy(None)

    def release(self) -> None:
        """Remove the lock file, then let go; without effect where the lock is not held."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            self._at("lock.remove")
            if self._is_at_path(descriptor):
                os.unlink(self._name, dir_fd=self._place.parent)
        except OSError:
            pass  # a lock that stays behind is known to be dead
        finally:
            os.close(descriptor)

    def _open(self) -> tuple[int | None, bool]:
        """Return a descriptor and whether the file is new; null where another process was faster."""
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        self._at("lock.create")
        try:
            return os.open(self._name, flags | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=self._place.parent), True
        except FileExistsError:
            pass
        except OSError as error:
            raise refused(error, self._file, folder=self._place.parent) from error
        try:
            descriptor = os.open(self._name, flags & ~os.O_RDWR, dir_fd=self._place.parent)
        except FileNotFoundError:
            return None, False
        except OSError as error:
            raise Fault("stage.lock_foreign", file=self._file, reason=reason(error)) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Fault("stage.lock_foreign", file=self._file, reason="it is not a regular file")
        return descriptor, False

    def _take(self, descriptor: int, *, created: bool) -> bool:
        """Take the file at `descriptor` as the lock, or clear a dead one away; false: look again."""
        self._at("lock.flock")
        guarded = self._flock(descriptor)
        if not self._is_at_path(descriptor):
            return False
        if not created:
            self._judge(descriptor, guarded=guarded)
            self._at("lock.break")
            try:
                os.unlink(self._name, dir_fd=self._place.parent)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise Fault("stage.lock_foreign", file=self._file, reason=reason(error)) from error
            return False
        self._at("lock.write")
        try:
            os.pwrite(descriptor, msgspec.json.encode(this_process()) + b"\n", 0)
        except OSError as error:
            os.unlink(self._name, dir_fd=self._place.parent)
            raise refused(error, self._file, folder=self._place.parent) from error
        self._at("lock.written")
        return self._is_at_path(descriptor)

    def _flock(self, descriptor: int) -> bool:
        """Take the kernel's lock; false where this file system has none. Raises `Fault` where another one holds it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if self._is_at_path(descriptor):
                raise self._busy(_owner(descriptor)) from error
            return False
        except OSError as error:
            if error.errno in _NO_FLOCK:
                return False
            raise Fault("stage.lock_foreign", file=self._file, reason=reason(error)) from error
        return True

    def _judge(self, descriptor: int, *, guarded: bool) -> None:
        """Raise `Fault` unless the lock was left behind. `guarded` says that the kernel would keep a living one from us."""
        text = os.pread(descriptor, _LOCK_BYTES + 1, 0)
        if guarded and not text:
            return  # its maker ended before it wrote
        owner = _decoded(text)
        if owner is None:
            raise Fault("stage.lock_foreign", file=self._file, reason="it does not say whose it is")
        match life(owner):
            case Life.ALIVE:
                raise self._busy(owner)
            case Life.HIDDEN if not guarded:
                raise Fault("stage.locked_elsewhere", file=self._file, where="another container")
            case Life.ELSEWHERE:
                raise Fault("stage.locked_elsewhere", file=self._file, where="another machine")

    def _is_at_path(self, descriptor: int) -> bool:
        try:
            there = os.stat(self._name, dir_fd=self._place.parent, follow_symlinks=False)
        except FileNotFoundError:
            return False
        here = os.fstat(descriptor)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def _busy(self, owner: Owner | None) -> Fault:
        return Fault("stage.busy", file=self._place.file, pid=None if owner is None else owner.pid)


def read_owner(parent: int, target: bytes) -> Owner | None:
    """Return whose the lock of `target` beneath the descriptor `parent` is; null where there is none that says so.

    The lock is left alone. Raises nothing.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(lock_name(target), flags, dir_fd=parent)
    except OSError:
        return None
    try:
        return _owner(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _owner(descriptor: int) -> Owner | None:
    return _decoded(os.pread(descriptor, _LOCK_BYTES + 1, 0))


def _decoded(text: bytes) -> Owner | None:
    if len(text) > _LOCK_BYTES:
        return None
    try:
        return msgspec.json.decode(text, type=Owner)
    except msgspec.MsgspecError:
        return None
