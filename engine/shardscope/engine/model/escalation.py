"""Decoding as an exception: who asked for it, in what containment, and the record that allows it once.

An `Intent` is what a person says: `--decode` on a command line, or a dialog. It holds for one invocation and is never written
down. From it an `Escalation` is made for each pickle: single use, bound to the bytes, the operation, this machine, the runtime,
the containment and the limits. None of that is trust: a record says that decoding was asked for, not that the bytes are good.
"""

from enum import StrEnum
from typing import Annotated, Final, Literal, NoReturn, TypeAlias

from msgspec import Meta, Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import DecodeLimits

PROTOCOL: Final = 1
"""Of the frames between shardscope and its worker. A record of another protocol is refused."""

Operation: TypeAlias = Literal["inspect", "convert", "verify", "preflight"]
"""What is done with what is decoded. In a `preflight` nothing is: its worker reads no pickle."""

Hex128: TypeAlias = Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
Hex256: TypeAlias = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class Intent:
    """A person's wish to decode, said in this invocation: good for one containment, and for nothing that lasts.

    It cannot be copied or stored. Only what has just heard a person makes one; no setting and no variable does.
    """

    __slots__ = ("_spent", "asked", "operation")

    def __init__(self, operation: Operation, asked: Literal["command line", "dialog"]) -> None:
        self.operation: Final = operation
        self.asked: Final = asked
        self._spent = False

    def spend(self) -> Operation:
        """Return what was asked for, the first time. Raises `Fault` from then on."""
        if self._spent:
            raise Fault("isolation.intent_spent", operation=self.operation)
        self._spent = True
        return self.operation

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or stored."""
        raise TypeError("consent is neither copied nor stored")


class Facility(StrEnum):
    """What containment needs of a machine, as a sentence names it."""

    LINUX = "Linux"
    INTERPRETER = "a Python interpreter that starts by itself"
    HOST = "an identity of this machine under /proc or /etc"
    LIBRARY = "the library libseccomp"
    PACKAGES = "the Python packages pyseccomp and landlock"
    NO_NEW_PRIVS = "the promise to gain no privileges (no_new_privs)"
    CEILINGS = "limits on a process (setrlimit)"
    MEMORY = "a worker the memory to lock itself in (limit worker_bytes)"
    SECCOMP = "a filter of system calls (seccomp)"
    ALONE = "a process without an environment that others cannot look into"
    OPEN = "a process that cannot open a path"
    SOCKET = "a process that cannot make a socket"
    FORK = "a process that cannot start another"
    EXEC = "a process that cannot become another program"
    SEEN = "a containment that the kernel confirms (/proc/PID/status)"


ProbeResult: TypeAlias = Literal["denied", "allowed"]


class Probes(Struct, frozen=True, forbid_unknown_fields=True):
    """What the worker tried inside its own containment before it saw a byte. Nothing but four times `denied` will do."""

    open: ProbeResult
    socket: ProbeResult
    fork: ProbeResult
    execute: ProbeResult

    def allowed(self) -> Facility | None:
        """Return the first that was not denied."""
        results = (self.open, self.socket, self.fork, self.execute)
        facilities = (Facility.OPEN, Facility.SOCKET, Facility.FORK, Facility.EXEC)
        return next(
            (facility for facility, told in zip(facilities, results, strict=True) if told != "denied"), None
        )


class Landlock(Struct, frozen=True, forbid_unknown_fields=True):
    """Rights that Landlock took away, as bits of `linux/landlock.h`. No rule gives any of them back."""

    abi: int
    filesystem: int
    network: int
    scopes: int


class Ceilings(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits on the worker's process (setrlimit(2)), soft and hard alike."""

    memory_bytes: int
    """Of its address space."""
    cpu_seconds: int
    """Over its life, which spans several pickles; each of them has `DecodeLimits.pickle_seconds` by the clock."""
    file_bytes: int
    processes: int
    """Does not bind root, which is why the filter of system calls denies new processes as well."""
    descriptors: int
    core_bytes: int


class IsolationProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """The containment of a worker, as it found it from within. Containment is not proof.

    What is tried on one machine counts for that machine: kernel and architecture belong to the profile.
    """

    kernel: str
    machine: str
    root: bool
    no_new_privs: bool
    dumpable: bool
    """Others of the same user can look into it."""
    system_calls: tuple[str, ...]
    """All that the filter allows, some only without their dangerous arguments. Others fail with EPERM."""
    landlock: Landlock | None
    """Null where the kernel has none: a second lock on doors that the filter has locked already."""
    ceilings: Ceilings
    variables: int
    """In its environment."""
    probes: Probes


class Runtime(Struct, frozen=True, forbid_unknown_fields=True):
    """What decodes: both sides must be the same."""

    python: str
    shardscope: str
    protocol: int = PROTOCOL


class Circumstances(Struct, frozen=True, forbid_unknown_fields=True):
    """What a record is bound to besides the bytes: both sides establish it for themselves and compare."""

    operation: Operation
    host: str
    """This machine since it was started, hashed."""
    runtime: Runtime
    profile: IsolationProfile
    limits: DecodeLimits


class Escalation(Struct, frozen=True, forbid_unknown_fields=True):
    """The record that allows one decoding of one stretch of bytes. It is made, used and forgotten."""

    nonce: Hex128
    sha256: Hex256
    """Of the pickle bytes. It binds; it vouches for nothing."""
    length: Annotated[int, Meta(ge=0)]
    pickles: Annotated[int, Meta(ge=1)]
    circumstances: Circumstances
