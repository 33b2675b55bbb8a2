"""What there is to write to and to work in: figures with their basis, for admission to hold a plan against. No policy.

Sources: statvfs(3), quotactl(2), getrlimit(2), and those of `engine/host`.
"""

import errno
import os
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.convert.disk.kernel import quota_left
from shardscope.engine.convert.disk.refusals import reason
from shardscope.engine.host import Host, probe, process_limits

_NO_QUOTA: Final = frozenset({errno.ESRCH, errno.ENOENT})


class Figure(Struct, frozen=True):
    """A number with what it rests on. Null and not `unlimited` means that the system does not tell; it is never guessed."""

    value: int | None
    basis: str
    """One clause: where the number is from, or why there is none."""
    unlimited: bool = False
    """It is known that nothing limits it."""


class Space(Struct, frozen=True):
    """What the file system of one folder has to give to this process."""

    free_bytes: Figure
    free_files: Figure
    """Files and folders that can still be made."""
    quota_bytes: Figure
    """Left of the tightest quota of this user and group."""
    quota_files: Figure
    file_bytes: Figure
    """Of one file, at the most."""


class Memory(Struct, frozen=True):
    """What there is to work in."""

    ram_available: Figure
    group_available: Figure
    """Left below the tightest memory limit of the control groups around this process."""
    address_bytes: Figure
    """That this process may map."""
    open_files: Figure
    """Descriptors that this process may still open."""


def space_beside(target: str | os.PathLike[str]) -> Space:
    """Return the figures for an output at `target`: its staging folder is beside it, on the same file system."""
    holder = os.path.dirname(os.fsencode(target).rstrip(b"/")) or b"."
    try:
        folder = os.open(holder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else "no path"
        unknown = Figure(None, f"the folder that holds the target cannot be opened: {why}")
        return Space(unknown, unknown, unknown, unknown, unknown)
    try:
        return space_of(folder)
    finally:
        os.close(folder)


def with_room(space: Space, held_bytes: int, files: int, what: str) -> Space:
    """Return the figures with room added that is taken now and will be used again; `what` says by what it is taken."""

    def more(figure: Figure, add: int) -> Figure:
        if figure.value is None or not add:
            return figure
        return Figure(figure.value + add, f"{figure.basis}; with what {what} holds")

    return replace(
        space,
        free_bytes=more(space.free_bytes, held_bytes),
        free_files=more(space.free_files, files),
        quota_bytes=more(space.quota_bytes, held_bytes),
        quota_files=more(space.quota_files, files),
    )


def space_of(folder: int) -> Space:
    """Return the figures of the file system of an open folder."""
    free_bytes, free_files = _free(folder)
    quota_bytes, quota_files = _quota(folder)
    limit = process_limits().file_bytes
    return Space(free_bytes, free_files, quota_bytes, quota_files, _limit(limit, "RLIMIT_FSIZE"))


def memory(root: str = "/") -> Memory:
    """Return what there is to work in. `root` is where `proc` and `sys` are found."""
    host = probe(root, root)
    limits = process_limits()
    return Memory(
        _or_unknown(host.ram_available, "MemAvailable of /proc/meminfo"),
        _group(host),
        _limit(limits.address_bytes, "RLIMIT_AS"),
        _descriptors(limits.open_files),
    )


def _free(folder: int) -> tuple[Figure, Figure]:
    try:
        system = os.fstatvfs(folder)
    except OSError as error:
        unknown = Figure(None, f"the file system does not tell: {reason(error)}")
        return unknown, unknown
    free = Figure(
        system.f_bavail * system.f_frsize, "statvfs: blocks that a user without privileges can have"
    )
    if system.f_files == 0:  # as Btrfs and many network file systems say
        return free, Figure(None, "statvfs: the file system does not count files", unlimited=True)
    return free, Figure(system.f_favail, "statvfs: inodes that a user without privileges can have")


def _quota(folder: int) -> tuple[Figure, Figure]:
    """Project quotas are not asked for: the file systems that have them take them into account in statvfs."""
    left: list[tuple[str, int | None, int | None]] = []
    for group in (False, True):
        who = "group" if group else "user"
        try:
            left.append((who, *quota_left(folder, group=group)))
        except OSError as error:
            if error.errno not in _NO_QUOTA:
                unknown = Figure(None, f"the quota of this {who} cannot be read: {reason(error)}")
                return unknown, unknown
    return (
        _tightest([(size, who) for who, size, _ in left]),
        _tightest([(files, who) for who, _, files in left]),
    )


def _tightest(left: list[tuple[int | None, str]]) -> Figure:
    limits = [(value, who) for value, who in left if value is not None]
    if not limits:
        return Figure(None, "quotactl: no quota of this user or group is in force", unlimited=True)
    value, who = min(limits)
    return Figure(value, f"quotactl: left of the quota of this {who}")


def _group(host: Host) -> Figure:
    if host.cgroup_limit is None:
        return Figure(None, "no control group around this process has a memory limit", unlimited=True)
    if host.cgroup_used is None:
        return Figure(None, "the control group does not tell how much of its limit is used")
    left = max(0, host.cgroup_limit - host.cgroup_used)
    return Figure(left, "memory limit of the control group, less what is charged to it")


def _descriptors(limit: int | None) -> Figure:
    if limit is None:
        return Figure(None, "RLIMIT_NOFILE is not set", unlimited=True)
    try:
        used = len(os.listdir("/proc/self/fd"))
    except OSError as error:
        return Figure(None, f"open descriptors cannot be counted: {reason(error)}")
    return Figure(max(0, limit - used), "RLIMIT_NOFILE, less what is open")


def _limit(value: int | None, name: str) -> Figure:
    if value is None:
        return Figure(None, f"{name} is not set", unlimited=True)
    return Figure(value, f"{name} of this process")


def _or_unknown(value: int | None, source: str) -> Figure:
    return Figure(value, source if value is not None else f"{source} cannot be read")
