"""Numbers for people: binary units, short enough for a column. Nothing here needs a terminal library."""

from functools import lru_cache
from typing import Protocol


class HostFigures(Protocol):
    """Figures of this machine, in bytes; None where the system does not tell."""

    @property
    def disk_free(self) -> int | None:
        """Free on the file system of the source."""
        ...

    @property
    def ram_total(self) -> int | None:
        """Memory of the machine."""
        ...

    @property
    def ram_available(self) -> int | None:
        """Memory that can be had without swapping."""
        ...

    @property
    def cgroup_limit(self) -> int | None:
        """The tightest memory limit of the control groups around this process."""
        ...

    @property
    def cgroup_used(self) -> int | None:
        """What is charged to that limit."""
        ...


def memory_left(host: HostFigures) -> int | None:
    """Return what may still be used: what the machine has left, or what the control group allows if that is less."""
    rooms = [] if host.ram_available is None else [host.ram_available]
    if host.cgroup_limit is not None:
        rooms.append(max(0, host.cgroup_limit - (host.cgroup_used or 0)))
    return min(rooms, default=None)


@lru_cache(maxsize=4_096)
def size(count: int | None) -> str:
    """Return bytes in binary units, `unknown` for None."""
    if count is None:
        return "unknown"
    if abs(count) < 1024:
        return f"{count} B"
    import humanize  # 30 ms that a screen without sizes does not wait for

    return humanize.naturalsize(count, binary=True)


def number(count: int | None) -> str:
    """Return a count with its thousands apart, `unknown` for None."""
    return "unknown" if count is None else f"{count:,}"


def plural(count: int, word: str, words: str | None = None) -> str:
    """Return a count with its noun: `1 file`, `1,204 files`."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def magnitude(count: int) -> str:
    """Return a large count in three digits, as models are called by it: `6.74 B`; empty below a million."""
    for unit, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M")):
        if count >= unit:
            return f"{count / unit:.3g} {letter}"
    return ""


def share(part: int, whole: int) -> str:
    """Return a part of a whole in per cent, in three digits."""
    return f"{100 * part / whole:.3g}%" if whole else "0%"


def duration(seconds: float) -> str:
    """Return a time in the two largest units that matter: `8 s`, `2 min 05 s`, `3 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes:02} min"
