"""Who owns a lock or a staging folder, and whether that process still runs.

Sources: proc(5) (`/proc/PID/stat`, field 22 is the start time), `/proc/sys/kernel/random/boot_id`, pid_namespaces(7).
"""

import hashlib
import os
from enum import Enum, auto

from shardscope.engine.model.staging import Owner, Seal


class Life(Enum):
    """What can be known here about another process."""

    ALIVE = auto()
    DEAD = auto()
    HIDDEN = auto()
    """On this machine, but its number means nothing here: another container."""
    ELSEWHERE = auto()
    """On another machine."""


def this_process() -> Owner:
    """Return the identity of this process."""
    pid = os.getpid()
    return Owner(pid, _started(pid), _boot(), _namespace(), _host())


def life(owner: Owner) -> Life:
    """Tell whether `owner` still runs, as far as this process can see."""
    here = this_process()
    if owner.boot is None or owner.boot != here.boot:
        rebooted = owner.boot is not None and here.boot is not None and owner.host == here.host
        return Life.DEAD if rebooted else Life.ELSEWHERE
    if owner.namespace is None or owner.namespace != here.namespace:
        return Life.HIDDEN
    started = _started(owner.pid)
    if started is not None:
        return Life.ALIVE if started == owner.started else Life.DEAD
    return Life.ALIVE if _exists(owner.pid) else Life.DEAD


def seal_of(status: os.stat_result) -> Seal | None:
    """Return the seal of a file by its status; null where the kernel does not tell one start of the machine from another."""
    boot = _boot()
    return None if boot is None else Seal(boot, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)


def _started(pid: int) -> int | None:
    """Return the start time of a process that runs; null for one that is gone, a zombie, or hidden from this user."""
    text = _read(f"/proc/{pid}/stat")
    fields = text.rpartition(")")[2].split()  # the command before it may hold anything
    return int(fields[19]) if len(fields) > 19 and fields[0] not in {"Z", "X"} else None


def _exists(pid: int) -> bool:
    """Tell whether a process is there that `/proc` does not show to this user."""
    if os.path.exists(f"/proc/{pid}"):
        return False  # it is shown, and it is a zombie
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except OSError:
        pass
    return True


def _boot() -> str | None:
    return _read("/proc/sys/kernel/random/boot_id").strip() or None


def _namespace() -> int | None:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def _host() -> str:
    text = f"{os.uname().nodename}\n{_read('/etc/machine-id').strip()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096)
    except OSError:
        return ""
