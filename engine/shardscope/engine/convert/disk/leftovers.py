"""Staging folders that a run left behind: how they are known, and the one repair that must not wait.

A folder is ours when it has a staging folder's name and holds our marker, or nothing but the beginning of one. Whoever
holds the lock of a target knows that every staging folder of that target belongs to a run that has ended.
"""

import errno
import os
import stat

from msgspec import Struct

from shardscope.engine.convert.disk.kernel import NO_SUCH_CALL, rename_new
from shardscope.engine.convert.disk.marker import read_marker
from shardscope.engine.convert.disk.names import MARKER_NEW, OUTPUT, PREVIOUS, is_staging_name, marks
from shardscope.engine.convert.disk.place import Place
from shardscope.engine.convert.disk.refusals import reason
from shardscope.engine.convert.disk.steps import At
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.staging import Marker
from shardscope.engine.model.text import path_text

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Leftover(Struct, frozen=True):
    """A staging folder on the disk."""

    name: bytes
    marker: Marker | None
    """Null where its run ended before the marker was whole; then there is nothing else in it either."""
    old_target: bytes | None
    """Name, in it, of the folder that was the target before; null where there is none."""


def find_staging(parent: int, target: bytes | None = None) -> list[Leftover]:
    """Return the staging folders (of `target`) directly beneath the descriptor `parent`, by name. Raises `OSError`."""
    found = []
    with os.scandir(parent) as entries:
        names = sorted(os.fsencode(entry.name) for entry in entries)
    for name in names:
        if not is_staging_name(name, target):
            continue
        leftover = recognise(parent, name)
        if leftover is None or (
            target is not None and leftover.marker and not marks(leftover.marker, target)
        ):
            continue
        found.append(leftover)
    return found


def recognise(parent: int, name: bytes) -> Leftover | None:
    """Return what the folder `name` is; null where it is not ours."""
    if not is_staging_name(name):
        return None
    try:
        folder = os.open(name, _FOLDER, dir_fd=parent)
    except OSError:
        return None
    try:
        marker = read_marker(folder)
        if marker is None:
            with os.scandir(folder) as entries:
                strange = any(os.fsencode(entry.name) != MARKER_NEW for entry in entries)
            return None if strange else Leftover(name, None, None)
        return Leftover(name, marker, _old_target(folder, marker))
    except OSError:
        return None
    finally:
        os.close(folder)


def _old_target(folder: int, marker: Marker) -> bytes | None:
    if _inode(folder, PREVIOUS) is not None:
        return PREVIOUS
    inode = _inode(folder, OUTPUT)
    exchanged = marker.state in {"replacing", "replaced"} and inode is not None and inode != marker.new_inode
    return OUTPUT if exchanged else None


def _inode(folder: int, name: bytes) -> int | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_ino if stat.S_ISDIR(status.st_mode) else None


def close_gap(place: Place, at: At) -> list[Finding]:
    """Put an old target back that a run set aside and ended before the new one had its place. Needs the target's lock.

    Raises `Fault` `stage.gap_open` where that fails.
    """
    if place.look() is not None:
        return []
    try:
        open_gaps = [
            each
            for each in find_staging(place.parent, place.name)
            if each.marker is not None and each.marker.state == "gap" and each.old_target == PREVIOUS
        ]
        for each in open_gaps[:1]:
            folder = os.open(each.name, _FOLDER, dir_fd=place.parent)
            try:
                at("gap.close")
                put(folder, PREVIOUS, place.parent, place.name)
                os.fsync(place.parent)
            finally:
                os.close(folder)
            return [Finding("stage.gap_closed", {"file": place.file, "staging": path_text(each.name)})]
    except OSError as error:
        raise Fault("stage.gap_open", file=place.file, reason=reason(error)) from error
    return []


def put(folder: int, old: bytes, other: int, new: bytes) -> str:
    """Rename a folder to a name that nothing has, and return how: `EEXIST` where something has it.

    File systems without that form of rename get the plain one after a look. It can replace nothing but an empty folder that
    somebody makes in between.
    """
    try:
        rename_new(folder, old, other, new)
    except OSError as error:
        if error.errno not in NO_SUCH_CALL:
            raise
    else:
        return "exclusive rename"
    try:
        os.stat(new, dir_fd=other, follow_symlinks=False)
    except FileNotFoundError:
        pass
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    try:
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=other)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.ENOTDIR}:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
        raise
    return "plain rename"
