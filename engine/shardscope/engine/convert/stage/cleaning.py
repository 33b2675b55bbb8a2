"""Finding and removing what dead runs have left: staging folders and locks of ours, and nothing else.

Looking changes nothing. Removing takes the lock of the target first, so that nobody works there meanwhile, and then looks again.
What is not certainly ours and certainly dead stays, with the reason.
"""

import os
import stat
import time
from typing import Final, NamedTuple

from shardscope.engine.convert.disk.journal import read_journal
from shardscope.engine.convert.disk.leftovers import Leftover, recognise
from shardscope.engine.convert.disk.lock import Lock, read_owner
from shardscope.engine.convert.disk.names import (
    ATTEMPTS,
    JOURNAL,
    MARKER,
    MARKER_NEW,
    OUTPUT,
    PREVIOUS,
    STOP,
    TRIES,
    is_staging_name,
    lock_name,
    lock_stem,
    marked_target,
    staging_stem,
)
from shardscope.engine.convert.disk.owner import Life, life, this_process
from shardscope.engine.convert.disk.place import Place, mount_of
from shardscope.engine.convert.disk.refusals import reason
from shardscope.engine.convert.disk.removal import remove_staging
from shardscope.engine.convert.disk.steps import At, nowhere
from shardscope.engine.convert.stage.resuming import BLOCK, Held, folder_at, measure, walk
from shardscope.engine.model.blocker import Fault, blocker
from shardscope.engine.model.leftovers import Holds, LeftoverEntry
from shardscope.engine.model.staging import FileRecord, Owner
from shardscope.engine.model.text import path_text

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS: Final = frozenset({MARKER, MARKER_NEW, JOURNAL, OUTPUT, PREVIOUS, ATTEMPTS, STOP, *TRIES})
"""All that staging ever makes directly in its folder."""


class Found(NamedTuple):
    """One leftover: what a person is told, and how it is found again."""

    entry: LeftoverEntry
    path: bytes
    """Of the folder that holds it."""
    name: bytes
    stem: bytes
    """The target's name, as names beside it have it."""
    inode: int


def find(path: str | os.PathLike[str], *, old: bool = False) -> list[Found]:
    """Return what lies directly in the folder `path`, and beside `path` where it is, or was to be, a target; by name.

    With `old` an old output that was replaced may go, too. Raises `Fault` `clean.unreadable`.
    """
    given = os.fsencode(path)
    found: list[Found] = []
    if os.path.isdir(given):
        found += _in(given, given, old=old)
    holder, name = os.path.split(given.rstrip(b"/"))
    if name not in {b"", b".", b".."} and os.path.isdir(holder or b"."):
        found += [each for each in _in(holder or b".", holder or b".", old=old) if _is_about(each, name)]
    elif not found and not os.path.isdir(given):
        raise Fault("clean.unreadable", file=path_text(given), reason="no such folder")
    return found


def remove(found: Found, *, old: bool = False, at: At = nowhere) -> str | None:
    """Remove a leftover, once its target's lock is held and it is still what it was. Returns why it stays; null where it is gone.

    Raises nothing: what the system refuses is a reason.
    """
    try:
        place = Place(os.fsdecode(os.path.join(found.path, found.stem)))
    except Fault as fault:
        return _clause(fault)
    try:
        lock = Lock(place, at)
        try:
            lock.acquire()
        except Fault as fault:
            return _clause(fault)
        try:
            return None if found.entry.holds == "lock" else _remove(place, found, old=old, at=at)
        finally:
            lock.release()
    except OSError as error:
        return reason(error)
    finally:
        place.close()


def _remove(place: Place, found: Found, *, old: bool, at: At) -> str | None:
    status = _status(place.parent, found.name)
    if status is None or status.st_ino != found.inode:
        return "it is no longer what was listed"
    again = _staging(place.parent, found.name, found.path, old=old)
    if again is None or again.entry.holds != found.entry.holds:
        return "it is no longer what was listed"
    if again.entry.stays is not None:
        return again.entry.stays
    at("clean.remove")
    remove_staging(place.parent, found.name, at)
    return None


def _in(path: bytes, shown: bytes, *, old: bool) -> list[Found]:
    try:
        parent = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Fault("clean.unreadable", file=path_text(shown), reason=reason(error)) from error
    try:
        found = []
        for name in _names(parent):
            each = None
            if is_staging_name(name):
                each = _staging(parent, name, path, old=old)
            elif lock_stem(name) is not None:
                each = _lock(parent, name, path)
            if each is not None:
                found.append(each)
        return found
    except OSError as error:
        raise Fault("clean.unreadable", file=path_text(shown), reason=reason(error)) from error
    finally:
        os.close(parent)


def _is_about(found: Found, target: bytes) -> bool:
    return is_staging_name(found.name, target) or found.name == lock_name(target)


def _staging(parent: int, name: bytes, path: bytes, *, old: bool) -> Found | None:
    """Return what a folder is that is named like a staging folder; null where it is not ours."""
    leftover = recognise(parent, name)
    stem = staging_stem(name)
    status = _status(parent, name)
    if leftover is None or stem is None or status is None:
        return None
    target = stem if leftover.marker is None else marked_target(leftover.marker)
    if target is None or not is_staging_name(name, target):
        return None  # its marker is about something else
    try:
        held, newest, staged, strange = _looked_into(parent, name)
        stays = strange or _why(parent, leftover, target, status, old=old)
    except (OSError, Fault) as error:
        held, newest, staged = Held(0, 0, 0, 0), status.st_mtime, True
        stays = _clause(error) if isinstance(error, Fault) else reason(error)
    holds: Holds = "old output" if leftover.old_target else "staged files" if staged else "nothing"
    entry = LeftoverEntry(
        path_text(path),
        path_text(name),
        path_text(target),
        holds,
        held.allocated_bytes,
        0 if leftover.old_target else held.files,
        0 if leftover.old_target else held.file_bytes,
        _age(newest),
        stays,
    )
    return Found(entry, path, name, stem, status.st_ino)


def _why(parent: int, leftover: Leftover, target: bytes, status: os.stat_result, *, old: bool) -> str | None:
    """Return why a staging folder stays; null where nothing speaks for it."""
    if status.st_uid != os.geteuid():
        return "it is another user's"
    if leftover.marker is not None and (running := _running(leftover.marker.owner)):
        return running
    stem = staging_stem(leftover.name)
    owner = None if stem is None else read_owner(parent, stem)
    if owner is not None and (running := _running(owner)):
        return running
    if leftover.old_target is None:
        return None
    if not _is_folder(parent, target):
        return "it holds what stood at the target, where nothing stands now"
    return None if old else "it holds the old output (--old removes it)"


def _running(owner: Owner) -> str | None:
    if owner != this_process() and life(owner) is Life.ALIVE:
        return f"process {owner.pid} still runs"
    return None


def _lock(parent: int, name: bytes, path: bytes) -> Found | None:
    """Return what a file is that is named like a lock; null where it is not ours."""
    stem = lock_stem(name)
    status = _status(parent, name)
    if stem is None or status is None or not stat.S_ISREG(status.st_mode):
        return None
    owner = read_owner(parent, stem)
    if owner is None and status.st_size:
        return None
    stays = "it is another user's" if status.st_uid != os.geteuid() else owner and _running(owner)
    entry = LeftoverEntry(
        path_text(path),
        path_text(name),
        path_text(stem),
        "lock",
        status.st_blocks * BLOCK,
        0,
        0,
        _age(status.st_mtime),
        stays or None,
    )
    return Found(entry, path, name, stem, status.st_ino)


def _looked_into(parent: int, name: bytes) -> tuple[Held, float, bool, str | None]:
    """Return what a staging folder has on the disk, when it was written last, whether files are staged, and what in it is not ours."""
    folder = os.open(name, _FOLDER, dir_fd=parent)
    try:
        strange, staged = None, False
        if any(each not in _OURS for each in _names(folder)):
            strange = "it holds something that shardscope does not make"
        mount, newest = mount_of(folder), os.fstat(folder).st_mtime
        for _, parts, status in walk(folder):
            newest = max(newest, status.st_mtime)
            staged = staged or len(parts) > 1
            if stat.S_ISDIR(status.st_mode):
                with folder_at(folder, parts) as inner:
                    if mount_of(inner) != mount:
                        strange = "something is mounted in it"
        return measure(folder, _finished(folder)), newest, staged, strange
    finally:
        os.close(folder)


def _finished(folder: int) -> dict[str, FileRecord]:
    try:
        journal = read_journal(folder)
    except Fault:
        return {}
    if journal is None:
        return {}
    return {record.file: record for record in journal[1] if record.task is not None and record.sha256}


def _is_folder(parent: int, name: bytes) -> bool:
    status = _status(parent, name)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _status(parent: int, name: bytes) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _names(folder: int) -> list[bytes]:
    with os.scandir(folder) as entries:
        return sorted(os.fsencode(entry.name) for entry in entries)


def _age(written: float) -> int:
    return max(0, int(time.time() - written))  # a clock that was set back makes nothing younger than new


def _clause(fault: Fault) -> str:
    message = blocker(fault.finding).message.rstrip(".")
    return message[:1].lower() + message[1:]
