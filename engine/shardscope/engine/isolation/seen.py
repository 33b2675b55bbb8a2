"""What the kernel says about a worker, seen from outside: its own word is not all there is."""

from typing import Final

from shardscope.engine.model.escalation import Facility

_WANTED: Final = {"NoNewPrivs": "1", "Seccomp": "2"}
"""proc(5): no new privileges, and a filter of system calls (`SECCOMP_MODE_FILTER`)."""


def confirmed(pid: int) -> Facility | None:
    """Return what is missing where `/proc` does not confirm that a process is locked in; null where it does.

    Null as well where `/proc` hides it: a mount option does so for processes that others may not look into, as the
    worker is.
    """
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            lines = file.read(1 << 16).splitlines()
    except OSError:
        return None
    told = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    agrees = all(told.get(name, "").strip() == value for name, value in _WANTED.items())
    return None if agrees else Facility.SEEN
