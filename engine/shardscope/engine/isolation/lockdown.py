"""The worker gives up what it will not need, and tries whether that holds, before it sees a byte of a checkpoint.

Sources: `linux/prctl.h`, `linux/landlock.h`, seccomp(2), landlock(7), setrlimit(2). Importing this module loads libseccomp.
"""

import ctypes
import errno
import os
import resource
from collections.abc import Callable
from typing import ClassVar, Final

from landlock.plumbing import (
    FSAccess,
    RulesetAttr,
    get_create_ruleset,
    get_restrict_self,
    landlock_abi_version,
)

from shardscope.engine.isolation.approved import DESCRIPTORS, PLAIN_CALLS, SYSTEM_CALLS
from shardscope.engine.isolation.escalation import Lacking
from shardscope.engine.isolation.libseccomp import pyseccomp
from shardscope.engine.model.escalation import (
    Ceilings,
    Facility,
    IsolationProfile,
    Landlock,
    ProbeResult,
    Probes,
)

_PR_SET_PDEATHSIG: Final = 1
_PR_GET_DUMPABLE: Final = 3
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_GET_NO_NEW_PRIVS: Final = 39
_SIGKILL: Final = 9
_AF_UNIX: Final = 1
_SOCK_STREAM: Final = 1

_PROT_EXEC: Final = 4
_MAP_ANONYMOUS: Final = 0x20

_NETWORK_FROM: Final = 4
_SCOPES_FROM: Final = 6
_NETWORK_ALL: Final = 0b11
"""LANDLOCK_ACCESS_NET_BIND_TCP, LANDLOCK_ACCESS_NET_CONNECT_TCP, from ABI 4."""
_SCOPES_ALL: Final = 0b11
"""LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, LANDLOCK_SCOPE_SIGNAL, from ABI 6."""

_HIGHEST: Final = (1 << 63) - 1

_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]


class _Ruleset(RulesetAttr):  # type: ignore[misc]  # the library has no types
    """What the library's own structure lacks of `struct landlock_ruleset_attr`. Kernels accept it while the rest is zero."""

    _fields_: ClassVar = [("handled_access_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


def lock_down(memory_bytes: int, cpu_seconds: int) -> IsolationProfile:
    """Give up everything but reading and writing open pipes, memory and the clock; return what that came to.

    For the main thread of a process that has no other. Raises `Lacking` where a part cannot be had: the process is then
    half locked and good for nothing.
    """
    _prctl(_PR_SET_DUMPABLE, 0)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if _prctl(_PR_GET_NO_NEW_PRIVS) != 1:
        raise Lacking(Facility.NO_NEW_PRIVS)
    landlock = _landlock()
    ceilings = _ceilings(memory_bytes, cpu_seconds)
    os.environ.clear()  # the interpreter sets LC_CTYPE for itself
    system = os.uname()
    dumpable = _prctl(_PR_GET_DUMPABLE) != 0
    root = os.geteuid() == 0
    calls = _filter_calls()
    return IsolationProfile(
        kernel=system.release,
        machine=system.machine,
        root=root,
        no_new_privs=True,
        dumpable=dumpable,
        system_calls=calls,
        landlock=landlock,
        ceilings=ceilings,
        variables=len(os.environ),
        probes=_try_everything(),
    )


def die_with(parent: int) -> None:
    """Let the kernel end this process when the thread that started it ends, or now if it has."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int = 0) -> int:
    return int(_libc.prctl(option, value, 0, 0, 0))


def _ceilings(memory_bytes: int, cpu_seconds: int) -> Ceilings:
    return Ceilings(
        memory_bytes=_ceiling(resource.RLIMIT_AS, memory_bytes),
        cpu_seconds=_ceiling(resource.RLIMIT_CPU, cpu_seconds),
        file_bytes=_ceiling(resource.RLIMIT_FSIZE, 0),
        processes=_ceiling(resource.RLIMIT_NPROC, 0),
        descriptors=_ceiling(resource.RLIMIT_NOFILE, DESCRIPTORS),
        core_bytes=_ceiling(resource.RLIMIT_CORE, 0),
    )


def _ceiling(kind: int, wanted: int) -> int:
    """Set a limit, hard and soft, and return it: the one that was wanted, or a lower one that was there."""
    _, hard = resource.getrlimit(kind)
    value = min(wanted, _HIGHEST if hard == resource.RLIM_INFINITY else hard)
    try:
        resource.setrlimit(kind, (value, value))
    except (OSError, ValueError):
        raise Lacking(Facility.CEILINGS) from None
    return value


def _landlock() -> Landlock | None:
    """Take away every right that this kernel's Landlock knows, and give none back; null where the kernel has none."""
    try:
        ctypes.set_errno(0)  # the library takes whatever is in errno for a failure
        abi = landlock_abi_version()
        rights = Landlock(
            abi=abi,
            filesystem=int(FSAccess.all()),
            network=_NETWORK_ALL if abi >= _NETWORK_FROM else 0,
            scopes=_SCOPES_ALL if abi >= _SCOPES_FROM else 0,
        )
        wanted = _Ruleset(rights.filesystem, rights.network, rights.scopes)
        ctypes.set_errno(0)
        ruleset = get_create_ruleset()(ctypes.byref(wanted), ctypes.sizeof(wanted), 0)
        try:
            ctypes.set_errno(0)
            get_restrict_self()(ruleset, 0)
        finally:
            os.close(ruleset)
    except OSError:
        return None
    return rights


def _filter_calls() -> tuple[str, ...]:
    """Deny every system call but a few; return those."""
    anonymous = pyseccomp.Arg(3, pyseccomp.MASKED_EQ, _MAP_ANONYMOUS, _MAP_ANONYMOUS)
    not_executable = pyseccomp.Arg(2, pyseccomp.MASKED_EQ, _PROT_EXEC, 0)
    try:
        calls = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.EPERM))
        calls.set_attr(pyseccomp.Attr.ACT_BADARCH, pyseccomp.KILL_PROCESS)
        calls.set_attr(pyseccomp.Attr.CTL_TSYNC, 1)
        for name in PLAIN_CALLS:
            calls.add_rule(pyseccomp.ALLOW, name)
        calls.add_rule(pyseccomp.ALLOW, "mprotect", not_executable)
        calls.add_rule(pyseccomp.ALLOW, "mmap", not_executable, anonymous)
        calls.load()
    except OSError:
        raise Lacking(Facility.SECCOMP) from None
    return SYSTEM_CALLS


def _try_everything() -> Probes:
    return Probes(open=_tried(_open), socket=_tried(_socket), fork=_tried(_fork), execute=_tried(_execute))


def _tried(attempt: Callable[[], None]) -> ProbeResult:
    """Return `denied` where the filter answered. Another error means that the call got as far as the kernel."""
    try:
        attempt()
    except OSError as error:
        return "denied" if error.errno == errno.EPERM else "allowed"
    return "allowed"


def _open() -> None:
    os.close(os.open("/", os.O_RDONLY))


def _socket() -> None:
    descriptor = _libc.socket(_AF_UNIX, _SOCK_STREAM, 0)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "socket")
    os.close(descriptor)


def _fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _execute() -> None:
    """Try to become a program that is not there: what is not denied ends in another error and harms nothing."""
    os.execv("/", ["/"])  # noqa: S606 - that it fails is the point
