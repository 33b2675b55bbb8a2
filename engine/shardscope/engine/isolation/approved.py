"""The one containment that decoding takes place in. A worker builds it, and its parent compares.

What differs between machines (kernel, architecture, root, Landlock) is recorded; what must not differ is checked.
"""

from typing import Final

from shardscope.engine.model.escalation import Facility, IsolationProfile

PLAIN_CALLS: Final = (
    "read", "readv", "write",  # the two pipes
    "brk", "mremap", "munmap", "madvise",  # memory
    "futex",  # the interpreter's own lock
    "clock_gettime",  # where the clock is not in the vdso
    "restart_syscall", "rt_sigreturn", "exit", "exit_group",
)  # fmt: skip
MEMORY_CALLS: Final = ("mmap", "mprotect")
"""Without pages that can be executed; new mappings without a file."""

SYSTEM_CALLS: Final = tuple(sorted((*PLAIN_CALLS, *MEMORY_CALLS)))
DESCRIPTORS: Final = 3
"""The pipe of requests, the pipe of answers, and standard error that leads nowhere. No fourth can be had."""


def departure(profile: IsolationProfile, memory_bytes: int, cpu_seconds: int) -> Facility | None:
    """Return what a profile lacks of the approved one; null where it is that one, or tighter."""
    allowed = profile.probes.allowed()
    if allowed is not None:
        return allowed
    if not profile.no_new_privs:
        return Facility.NO_NEW_PRIVS
    if profile.system_calls != SYSTEM_CALLS:
        return Facility.SECCOMP
    ceilings = profile.ceilings
    none = (ceilings.file_bytes, ceilings.processes, ceilings.core_bytes)
    within = ceilings.memory_bytes <= memory_bytes and ceilings.cpu_seconds <= cpu_seconds
    if none != (0, 0, 0) or ceilings.descriptors > DESCRIPTORS or not within:
        return Facility.CEILINGS
    return Facility.ALONE if profile.dumpable or profile.variables else None
