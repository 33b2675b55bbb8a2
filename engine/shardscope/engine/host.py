"""Figures of this machine, for a person to hold beside those of the checkpoint. They never enter the descriptor.

Every figure is in bytes and null where the system does not tell. Sources: proc(5) `/proc/meminfo`, the kernel's
`Documentation/admin-guide/cgroup-v2.rst` (`memory.max`, `memory.current`) and `cgroup-v1/memory.rst`.
"""

import os
from typing import Final

from msgspec import Struct

UNLIMITED: Final = 1 << 60
"""cgroup v1 writes a number near 2^63 where there is no limit."""


class Host(Struct, frozen=True):
    """What this machine has to give at this moment."""

    disk_free: int | None
    """On the file system that holds the source, for a user without privileges."""
    ram_total: int | None
    ram_available: int | None
    """What can be had without swapping, as the kernel estimates it."""
    cgroup_limit: int | None
    """The tightest memory limit of the control groups around this process; null where there is none."""
    cgroup_used: int | None
    """What is charged to the control group of that limit."""


def probe(path: str, root: str = "/") -> Host:
    """Return the figures of this machine for work beside `path`. `root` is where `proc` and `sys` are found."""
    memory = _meminfo(root)
    limit, used = _cgroup(root)
    return Host(_disk_free(path), memory.get("MemTotal"), memory.get("MemAvailable"), limit, used)


def peak_rss(root: str = "/") -> int | None:
    """Return the most memory that this process had resident so far, in bytes; null where the system does not tell.

    `VmHWM` of proc(5): `ru_maxrss` survives exec, so it can be another program's.
    """
    for line in (_text(os.path.join(root, "proc/self/status")) or "").splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "VmHWM:" and words[1].isdecimal() and words[2] == "kB":
            return int(words[1]) * 1024
    return None


class ProcessLimits(Struct, frozen=True):
    """What this process may take at the most, whatever the machine has; null where nothing limits it. See getrlimit(2)."""

    open_files: int | None
    """Descriptors at once."""
    file_bytes: int | None
    """Of one file that it writes."""
    address_bytes: int | None
    """Of memory that it maps, whether it is used or not."""


def process_limits() -> ProcessLimits:
    """Return the limits in force (the soft ones) of this process."""
    import resource

    found = [
        resource.getrlimit(kind)[0]
        for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS)
    ]
    return ProcessLimits(*(None if limit == resource.RLIM_INFINITY else limit for limit in found))


def _disk_free(path: str) -> int | None:
    try:
        system = os.statvfs(path)
    except OSError:
        return None
    return system.f_bavail * system.f_frsize


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return None


def _number(path: str) -> int | None:
    text = (_text(path) or "").strip()
    return int(text) if text.isdecimal() and int(text) < UNLIMITED else None


def _meminfo(root: str) -> dict[str, int]:
    found = {}
    for line in (_text(os.path.join(root, "proc/meminfo")) or "").splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if len(words) == 2 and words[0].isdecimal() and words[1] == "kB":
            found[name] = int(words[0]) * 1024
    return found


def _cgroup(root: str) -> tuple[int | None, int | None]:
    """Return the tightest memory limit on the way up from this process's group, and the use counted against it."""
    tightest: tuple[int | None, int | None] = (None, None)
    for line in (_text(os.path.join(root, "proc/self/cgroup")) or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers == "":
            mount, limit_name, used_name = "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            mount, limit_name, used_name = (
                "sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
        else:
            continue
        parts = [part for part in group.split("/") if part not in ("", "..")]
        for depth in range(len(parts), -1, -1):
            folder = os.path.join(root, mount, *parts[:depth])
            limit = _number(os.path.join(folder, limit_name))
            if limit is not None and (tightest[0] is None or limit < tightest[0]):
                tightest = (limit, _number(os.path.join(folder, used_name)))
    return tightest
