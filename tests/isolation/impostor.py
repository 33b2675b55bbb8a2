"""Workers of the tests: the real one with another decoder, and some that do not keep to the rules.

`conftest.worker` starts a main function of this module in place of the product's. Nothing of the product can reach it.
"""

import ctypes
import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import pyseccomp

from shardscope.engine import isolation
from shardscope.engine.isolation import frames, lockdown, worker
from shardscope.engine.isolation.approved import PLAIN_CALLS, SYSTEM_CALLS
from shardscope.engine.isolation.escalation import runtime
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.escalation import Circumstances, Probes
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import Pickled, Plain

NOBODY = 65534
MACHINE = os.uname().machine
libc = ctypes.CDLL(None, use_errno=True)


def saying(text: str, pickles: int = 1) -> Pickled:
    return Pickled([Plain(text)], [0] * pickles, [], [], list(range(1, pickles + 1)), 1, 2)


def checked(result: int) -> int:
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
    return result


def call(name: str, *arguments: object) -> int:
    number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)
    return checked(libc.syscall(number, *arguments))


def start_thread() -> None:
    import _thread

    try:
        _thread.start_new_thread(time.sleep, (0,))
    except RuntimeError:
        raise OSError(errno.EPERM, "") from None


def executable_memory() -> None:
    if libc.mmap(None, 4096, 7, 0x22, -1, 0) == -1:
        raise OSError(ctypes.get_errno(), "")


libc.mmap.restype = ctypes.c_ssize_t
libc.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_ssize_t,
]  # fmt: skip
PAGE = libc.mmap(None, 4096, 3, 0x22, -1, 0)

ATTEMPTS: dict[str, Callable[[], object]] = {
    "open": lambda: os.open("/etc/hostname", os.O_RDONLY),
    "open beneath a descriptor": lambda: os.open("x", os.O_RDONLY, dir_fd=0),
    "openat2": lambda: call("openat2", -100, b"/", ctypes.create_string_buffer(24), 24),
    "write a file": lambda: os.open("/tmp/trespass", os.O_WRONLY | os.O_CREAT),
    "make a folder": lambda: os.mkdir("/tmp/trespass"),
    "remove a file": lambda: os.unlink("/etc/hostname"),
    "look at a file": lambda: os.stat("/etc/hostname"),
    "list a folder": lambda: os.listdir("/"),
    "memory file": lambda: os.memfd_create("x"),
    "pipe": os.pipe,
    "second descriptor": lambda: os.dup(1),
    "socket": lambda: checked(libc.socket(2, 1, 0)),
    "pair of sockets": lambda: checked(libc.socketpair(1, 1, 0, ctypes.create_string_buffer(8))),
    "connect": lambda: checked(libc.connect(0, ctypes.create_string_buffer(16), 16)),
    "fork": os.fork,
    "clone": lambda: call("clone3", ctypes.create_string_buffer(88), 88),
    "thread": start_thread,
    "exec": lambda: os.execv(sys.executable, [sys.executable, "-c", "pass"]),
    "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "kill the parent": lambda: os.kill(os.getppid() or 1, signal.SIGTERM),
    "kill somebody": lambda: os.kill(1, 0),
    "queue a signal": lambda: call("rt_sigqueueinfo", 1, 0, 0),
    "ptrace": lambda: checked(libc.ptrace(16, 1, 0, 0)),
    "read another's memory": lambda: call("process_vm_readv", 1, 0, 0, 0, 0, 0),
    "write another's memory": lambda: call("process_vm_writev", 1, 0, 0, 0, 0, 0),
    "raise a limit": lambda: call("prlimit64", 0, 7, ctypes.create_string_buffer(16), 0),
    "raise a limit of the parent": lambda: call("prlimit64", 1, 7, 0, ctypes.create_string_buffer(16)),
    "be dumpable": lambda: checked(libc.prctl(4, 1, 0, 0, 0)),
    "handle signals": lambda: call("rt_sigaction", 10, 0, 0, 8),
    "executable memory": executable_memory,
    "make memory executable": lambda: checked(libc.mprotect(ctypes.c_void_p(PAGE), 4096, 5)),
    "map a descriptor": lambda: checked(libc.mmap(None, 4096, 1, 2, 0, 0)),
    "io_uring": lambda: call("io_uring_setup", 1, ctypes.create_string_buffer(120)),
    "bpf": lambda: call("bpf", 0, 0, 0),
    "userfaultfd": lambda: call("userfaultfd", 0),
    "perf events": lambda: call("perf_event_open", 0, 0, -1, -1, 0),
    "keys": lambda: call("keyctl", 0, 0),
    "new user namespace": lambda: call("unshare", 0x10000000),
    "other user": lambda: os.setuid(0),
    "mount": lambda: call("mount", 0, 0, 0, 0, 0),
    "another filter": lambda: call("seccomp", 1, 0, 0),
    "terminal": lambda: call("ioctl", 2, 0x5412, b"x"),
    "set the clock": lambda: call("clock_settime", 0, ctypes.create_string_buffer(16)),
}
"""What a decoder that was taken over might try. Each must fail with EPERM."""

NOT_BLINDLY = ("pause", "vhangup", "rt_sigsuspend", "sync")
"""Where a filter failed to deny them, these would hang the test or the machine."""
PAST_FILTERS = {"x86_64": {335, 336}}
"""uretprobe and uprobe: the kernel lets its own breakpoints pass by every filter. Called by anything else they do nothing or
end the process."""


def outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "?")
    return "done"


def every_other_call() -> str:
    """Try each number of a system call that is not allowed, without arguments; say which was not denied."""
    names = (*SYSTEM_CALLS, *NOT_BLINDLY)
    skipped = {pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) for name in names}
    skipped |= PAST_FILTERS.get(MACHINE, set())
    reached = []
    for number in range(480):
        if number not in skipped:
            ctypes.set_errno(0)
            if libc.syscall(number, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != errno.EPERM:
                reached.append(str(number))
    return ",".join(reached)


def recurse(depth: int) -> int:
    return recurse(depth + 1) + 1


def grow() -> None:
    held = []
    while True:
        held.append(bytearray(1 << 20))


def decode(data: bytes, limits: DecodeLimits, pickles: int) -> Pickled:  # noqa: C901 - one word after the other
    """Do what the bytes say."""
    word, _, rest = data.decode().partition(":")
    match word:
        case "try":
            return saying(outcome(ATTEMPTS[rest]))
        case "every":
            return saying(every_other_call())
        case "surroundings":
            return saying(f"{dict(os.environ)!r} {sys.path!r} {sys.flags.isolated} {sys.flags.no_site}")
        case "modules":
            return saying(" ".join(sorted(sys.modules)))
        case "end":
            os._exit(int(rest))
        case "segfault":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "x32":
            libc.syscall(0x40000000 | 39)
        case "grow":
            grow()
        case "claim":
            bytearray(8 << 30)
        case "loop":
            while True:
                pass
        case "fail":
            raise LookupError(rest)
        case "deep":
            recurse(0)
        case "fault":
            raise Fault(rest, limit=1, found=2)
        case "foreign fault":
            raise Fault("internal.error", doing="nothing", kind="nothing")
        case "incomplete fault":
            raise Fault("limit.pickle_bytes")
        case "long":
            return saying("x" * int(rest))
        case "surrogate":
            return saying("\ud800")
        case "nowhere":
            return Pickled([Plain(0)], [1], [], [], [1], 1, 2)
        case "import":
            import xml.dom.minidom  # noqa: F401 - it was not imported before
    return saying(word, pickles)


def main(parent: int) -> None:
    """The real worker with this decoder."""
    worker.serve(parent, decode)


def nobody(parent: int) -> None:
    """The same without any privilege."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    worker.serve(parent, decode)


def put(name: str, value: object) -> None:
    """Change a name that `lockdown` has from elsewhere."""
    setattr(lockdown, name, value)


def unfiltered(parent: int) -> None:
    """One that forgets the filter, and is honest about it."""
    lockdown._filter_calls = lambda: ()
    worker.serve(parent, decode)


def lying(parent: int) -> None:
    """One that forgets the filter, and lies."""
    denied = Probes("denied", "denied", "denied", "denied")
    lockdown._filter_calls = lambda: SYSTEM_CALLS
    lockdown._try_everything = lambda: denied
    worker.serve(parent, decode)


def roomy(parent: int) -> None:
    """One that leaves itself room for more descriptors."""
    put("DESCRIPTORS", 64)
    worker.serve(parent, decode)


def visible(parent: int) -> None:
    """One that others can look into."""
    dumpable = lockdown._PR_SET_DUMPABLE
    prctl = lockdown._prctl
    lockdown._prctl = lambda option, value=0: 0 if option == dumpable else prctl(option, value)
    worker.serve(parent, decode)


def talkative(parent: int) -> None:
    """One whose filter allows a call more, harmless as it may be."""
    put("PLAIN_CALLS", (*PLAIN_CALLS, "getpid"))
    put("SYSTEM_CALLS", tuple(sorted((*SYSTEM_CALLS, "getpid"))))
    worker.serve(parent, decode)


def without_landlock(parent: int) -> None:
    """One on a kernel that has no Landlock."""

    def missing() -> int:
        raise OSError(errno.ENOSYS, "")

    put("landlock_abi_version", missing)
    worker.serve(parent, decode)


def forbidden(parent: int) -> None:
    """One in a container that allows no filters."""

    def load(_: object) -> None:
        raise OSError(errno.EPERM, "")

    pyseccomp.SyscallFilter.load = load
    worker.serve(parent, decode)


def without_packages(parent: int) -> None:
    """One where the packages are not installed."""
    forget("landlock", "landlock.plumbing")
    worker.serve(parent, decode)


def without_library(parent: int) -> None:
    """One where libseccomp is not installed."""
    load = ctypes.CDLL

    def missing(name: str | None, **options: object) -> ctypes.CDLL:
        if name is not None and "seccomp" in name:
            raise OSError(name)
        return load(name, **options)  # type: ignore[arg-type]  # as it was called

    forget("pyseccomp")
    del sys.modules["pyseccomp"]
    ctypes.CDLL = missing  # type: ignore[assignment,misc]  # the loader that pyseccomp calls
    worker.serve(parent, decode)


def forget(*names: str) -> None:
    """Make modules that were imported impossible to import."""
    for name in ("shardscope.engine.isolation.lockdown", "shardscope.engine.isolation.libseccomp"):
        del sys.modules[name]
    del isolation.lockdown
    for name in names:
        sys.modules[name] = None  # type: ignore[assignment]  # how Python says that there is none


def silent(parent: int) -> None:
    """One that never says anything."""
    while True:
        time.sleep(60)


class Rogue:
    """A worker that locks itself in and answers every request with bytes of its own choosing."""

    def __init__(self, parent: int) -> None:
        frame = frames.receive_frame(0)
        assert frame is not None
        start = frames.start_of(frame)
        lockdown.die_with(parent)
        profile = lockdown.lock_down(start.limits.worker_bytes, start.cpu_seconds)
        self.here = Circumstances(start.operation, "", runtime(), profile, start.limits)
        frames.send(1, frames.framed(frames.encode(frames.Ready(profile))))

    def asked(self) -> tuple[str, bytes]:
        """Return the nonce and the bytes of the next request."""
        frame = frames.receive_frame(0)
        if frame is None:
            os._exit(0)
        record = frames.request_of(frame).escalation
        data = frames.receive(0, record.length)
        assert data is not None
        return record.nonce, bytes(data)


def rogue(parent: int) -> None:
    """Answer as the bytes of the request say."""
    worker_ = Rogue(parent)
    while True:
        nonce, data = worker_.asked()
        word, _, rest = data.decode().partition(":")
        good = frames.framed(frames.encode(frames.Read(nonce, saying(rest or word))))
        match word:
            case "announce":
                frames.send(1, (1 << 62).to_bytes(8, "big"))
            case "flood":
                while True:
                    frames.send(1, b"\xff" * 65536)
            case "noise":
                frames.send(1, frames.framed(bytes.fromhex(rest)))
            case "half":
                frames.send(1, good[: len(good) // 2])
                os._exit(0)
            case "stale":
                frames.send(1, frames.framed(frames.encode(frames.Read("0" * 32, saying("x")))))
            case "twice":
                frames.send(1, good + good)
            case "finding":
                frames.send(1, frames.framed(frames.encode(frames.Refused(nonce, Finding(rest)))))
            case "drip":
                for begin, end in pairwise(range(len(good) + 1)):
                    frames.send(1, good[begin:end])
            case _:
                frames.send(1, good)


def early(parent: int) -> None:
    """Answer before the request is there."""
    Rogue(parent)
    frames.receive_frame(0)
    frames.send(1, frames.framed(b"\x00"))
    while os.read(0, 1 << 16):
        pass
