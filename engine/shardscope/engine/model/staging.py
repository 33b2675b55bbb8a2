"""What a conversion leaves on the disk about itself while it runs: whose a lock is, what a staging folder is, what is done.

These are read back after a crash by another process, or on another machine of a shared file system, so each is strict.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Owner(Struct, frozen=True, forbid_unknown_fields=True):
    """A process, so that another one can tell whether it still runs. It names neither a user nor a host."""

    pid: Annotated[int, Meta(ge=1)]
    started: int | None
    """In clock ticks after the start of the machine: a number that is used again has another."""
    boot: str | None
    """Random for each start of a machine; containers on one machine share it."""
    namespace: int | None
    """Inode of the namespace of process numbers: a number means nothing outside of it."""
    host: str
    """Start of a SHA-256 over what identifies the machine."""


State = Literal["staging", "replacing", "gap", "replaced"]


class Marker(Struct, frozen=True, forbid_unknown_fields=True):
    """The file that makes a folder a staging folder: nothing without it is ever removed."""

    schema: Literal["shardscope.staging/1"]
    tool: str
    """Version of shardscope."""
    target: str
    """Last name of the target; bytes that are not UTF-8 are written `\\xNN`."""
    target_hex: str | None
    """Bytes of that name where it is not UTF-8."""
    owner: Owner
    state: State
    """`staging`: files are being made. `replacing`: an exchange with the old target may have happened. `gap`: the old target
    may have been set aside. `replaced`: what is kept here is the old target."""
    new_inode: int | None = None
    """Of the new folder, from `replacing` and `gap` on: tells which of the two a folder is."""


class JournalHead(Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a journal."""

    schema: Literal["shardscope.journal/1"]
    plan: str | None
    """Digest of the plan that is carried out."""


class Overflow(Struct, frozen=True, forbid_unknown_fields=True):
    """Finite numbers of one tensor that became infinite, because its new type does not reach as far."""

    tensor: str
    """Its name in the source."""
    count: int


class Seal(Struct, frozen=True, forbid_unknown_fields=True):
    """What the kernel says of a file that nobody has touched: any write, rename or change of rights gives it another one."""

    boot: str
    """Of the machine that made the file: a restart may lose what had not reached the disk."""
    inode: int
    mtime_ns: int
    ctime_ns: int
    """Nobody can set it."""


class FileRecord(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One finished file of the output: every further line of a journal."""

    file: str
    """Relative to the output."""
    size: int
    sha256: str | None
    """Null where digests were not wanted."""
    task: str | None = None
    """`FileTask.id`: a file of the same task has the same bytes. Null for what is no task: an index, carried files."""
    overflows: tuple[Overflow, ...] = ()
    seal: Seal | None = None
    """As it was when the digest had been taken. A file that has it still needs not be read again."""
