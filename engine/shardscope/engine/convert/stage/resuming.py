"""Going on with what an earlier run of the same plan left: its staging folder is taken over, and what it finished is verified.

A file that was finished counts for nothing until it was read and hashed again: its line in the journal may have reached the disk
before its bytes did, and anybody may have touched it. Only where the machine still runs that made it, and the kernel has seen no
change of it since its digest was taken, its bytes are those that were hashed. Everything else in the folder is removed, so that what
is made again is made in an empty place.
"""

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import msgspec
from msgspec import Struct

from shardscope.engine.convert.disk.journal import read_journal
from shardscope.engine.convert.disk.leftovers import Leftover, find_staging
from shardscope.engine.convert.disk.names import JOURNAL, MARKER, OUTPUT, lock_name
from shardscope.engine.convert.disk.owner import Life, life, seal_of, this_process
from shardscope.engine.convert.disk.place import Place
from shardscope.engine.convert.disk.removal import remove
from shardscope.engine.model.blocker import Blocker, Fault, Finding, Param, blocker
from shardscope.engine.model.plan import Plan
from shardscope.engine.model.progress import check
from shardscope.engine.model.staging import FileRecord, JournalHead
from shardscope.engine.model.text import path_text

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TILE: Final = 1 << 20
_SAID: Final = ("decisions", "left_out", "estimates", "blockers", "notes", "admission")
"""Fields of a plan that tell of it, and decide nothing that the others do not."""
BLOCK: Final = 512
"""Bytes of what `st_blocks` counts (stat(2))."""


class Held(Struct, frozen=True):
    """What a staging folder has on the disk."""

    files: int
    """Finished ones with a digest."""
    file_bytes: int
    allocated_bytes: int
    """Of all files in it, finished or not."""
    entries: int
    """Files and folders in it."""


class Resumable(Struct, frozen=True):
    """A staging folder of the same plan, whose run has ended."""

    name: bytes
    finished: Mapping[str, FileRecord]
    """Files with a digest, by name, as its journal has them."""
    held: Held


def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 of what decides which bytes a plan writes, the source and the version included.

    Memory, workers, and how much is verified before promotion change none of them.
    """
    facts = msgspec.to_builtins(plan)
    for name in _SAID:
        facts.pop(name, None)
    for name in ("memory_bytes", "workers", "verify"):
        facts["options"].pop(name)
    return hashlib.sha256(msgspec.json.encode(facts, order="deterministic")).hexdigest()


def find_resumable(place: Place, plan: str | None) -> Resumable | None:
    """Return the staging folder of `plan` beside a target in which most is finished; null where there is none. Needs the lock.

    Raises `Fault`: `resume.other_plan` where there are only others, `resume.foreign`, `resume.running`, `stage.journal_damaged`;
    `OSError`.
    """
    found, others = [], []
    for each in find_staging(place.parent, place.name):
        if each.marker is None or each.old_target is not None:
            continue
        head, finished, held = _looked_into(place.parent, each.name)
        if head is None:
            continue
        if plan is None or head.plan != plan:
            others.append(each)
            continue
        _check_ours(place, each)
        found.append(Resumable(each.name, finished, held))
    if found:
        return max(found, key=lambda each: each.held.file_bytes)
    if others:
        raise Fault("resume.other_plan", file=place.file, staging=path_text(others[0].name))
    return None


def peek(target: str | os.PathLike[str], plan: str) -> Resumable | None:
    """Return the staging folder that `find_resumable` would find, without the lock: for figures.

    What cannot be looked at is not there. Raises nothing.
    """
    try:
        place = Place(target)
    except Fault:
        return None
    found = []
    try:
        for each in find_staging(place.parent, place.name):
            if each.marker is not None and each.old_target is None and _is_over(each):
                head, finished, held = _looked_into(place.parent, each.name)
                if head is not None and head.plan == plan:
                    found.append(Resumable(each.name, finished, held))
    except (OSError, Fault):
        return None
    finally:
        place.close()
    return max(found, key=lambda each: each.held.file_bytes, default=None)


def available(earlier: Resumable) -> Blocker | None:
    """Return what to say of a staging folder that nobody asked to go on with; null where nothing in it is finished."""
    held = earlier.held
    if not held.files:
        return None
    named: dict[str, Param] = {
        "staging": path_text(earlier.name),
        "files": held.files,
        "size": held.file_bytes,
    }
    return blocker(Finding("resume.available", named))


def leaves_good(error: BaseException) -> bool:
    """Tell whether files that were finished before an error are as good as if it had not happened.

    They are not where the source changed or is damaged, or where what was staged is not what it should be.
    """
    if not isinstance(error, Fault):
        return True
    code = error.finding.code
    return code.startswith(("stage.", "promote.", "cluster.", "source.")) and code != "source.changed"


def sweep(folder: int, output: int, finished: Mapping[str, FileRecord]) -> None:
    """Remove everything from the staging folder `folder` but marker, journal, and finished files of its `output`.

    No link is followed. Raises `OSError`.
    """
    for name in _inside(folder):
        if name not in {MARKER, JOURNAL, OUTPUT}:
            remove(folder, name)
    for path, inside, status in list(walk(output)):
        if path in finished and stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            continue
        with folder_at(output, inside[:-1]) as at:
            if stat.S_ISDIR(status.st_mode):
                with suppress(OSError):  # finished files are in it
                    os.rmdir(inside[-1], dir_fd=at)
            else:
                os.unlink(inside[-1], dir_fd=at)


def holds(
    descriptor: int,
    record: FileRecord,
    cancel: threading.Event | None = None,
    done: Callable[[int], None] | None = None,
) -> bool:
    """Tell whether a file is regular, of one name, and has size and digest of its record.

    All of it is read, unless its seal shows that nobody touched it since its digest was taken on this running machine. `done` hears how many bytes were. Raises `Cancelled`. What cannot be read does not hold.
    """
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_size != record.size:
        return False
    if record.seal is not None and record.seal == seal_of(status):
        return True
    digest, at, tile = hashlib.sha256(), 0, memoryview(bytearray(min(_TILE, max(1, record.size))))
    while at < record.size:
        check(cancel)
        try:
            count = os.preadv(descriptor, [tile], at)
        except OSError:
            return False
        if count == 0:
            return False
        digest.update(tile[:count])
        at += count
        if done is not None:
            done(at)
    return digest.hexdigest() == record.sha256


def measure(folder: int, finished: Mapping[str, FileRecord]) -> Held:
    """Return what a staging folder has on the disk. Raises `OSError`."""
    allocated = entries = files = file_bytes = 0
    for path, _, status in walk(folder):
        entries += 1
        allocated += status.st_blocks * BLOCK
        record = finished.get(path.removeprefix(f"{OUTPUT.decode()}/"))
        if record is not None and path.startswith(f"{OUTPUT.decode()}/") and record.size == status.st_size:
            files, file_bytes = files + 1, file_bytes + record.size
    return Held(files, file_bytes, allocated, entries)


def _looked_into(parent: int, name: bytes) -> tuple[JournalHead | None, dict[str, FileRecord], Held]:
    folder = os.open(name, _FOLDER, dir_fd=parent)
    try:
        journal = read_journal(folder)
        if journal is None:
            return None, {}, Held(0, 0, 0, 0)
        head, records = journal
        finished = {
            record.file: record for record in records if record.sha256 is not None and record.task is not None
        }
        return head, finished, measure(folder, finished)
    finally:
        os.close(folder)


def _is_over(leftover: Leftover) -> bool:
    """Tell whether the run of a staging folder has ended, as far as its owner shows."""
    return leftover.marker is None or (
        leftover.marker.owner == this_process() or life(leftover.marker.owner) is not Life.ALIVE
    )


def _check_ours(place: Place, leftover: Leftover) -> None:
    """Raise `Fault` unless a folder is of this user, closed to others, and its run has ended."""
    staging = path_text(leftover.name)
    if leftover.marker is not None and not _is_over(leftover):
        raise Fault("resume.running", staging=staging, pid=leftover.marker.owner.pid)
    status = os.stat(leftover.name, dir_fd=place.parent, follow_symlinks=False)
    lock = os.stat(lock_name(place.name), dir_fd=place.parent, follow_symlinks=False)
    if status.st_uid != lock.st_uid:  # our lock shows whom this file system takes us for
        raise Fault("resume.foreign", staging=staging, reason="another user made it")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Fault("resume.foreign", staging=staging, reason="others may write to it")


def walk(folder: int) -> Iterator[tuple[str, tuple[bytes, ...], os.stat_result]]:
    """Yield what lies below an open folder, what is in a folder before the folder itself: path in words, parts and status."""
    yield from _walk(folder, ())


def _walk(folder: int, above: tuple[bytes, ...]) -> Iterator[tuple[str, tuple[bytes, ...], os.stat_result]]:
    for name in _inside(folder):
        parts = (*above, name)
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            inner = os.open(name, _FOLDER, dir_fd=folder)
            try:
                yield from _walk(inner, parts)
            finally:
                os.close(inner)
        yield os.fsdecode(b"/".join(parts)), parts, status


@contextmanager
def folder_at(folder: int, parts: Sequence[bytes]) -> Iterator[int]:
    """A descriptor of a folder below another one, for the length of the block. Raises `OSError`."""
    at = os.dup(folder)
    try:
        for part in parts:
            inner = os.open(part, _FOLDER, dir_fd=at)
            os.close(at)
            at = inner
        yield at
    finally:
        os.close(at)


def _inside(folder: int) -> list[bytes]:
    with os.scandir(folder) as entries:
        return sorted(os.fsencode(entry.name) for entry in entries)
