"""What the source room hands out: entries of one walk, and readers that are bounded by construction."""

from enum import StrEnum
from functools import cached_property
from typing import Protocol

from msgspec import Struct

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.text import display_name, path_text


class Kind(StrEnum):
    """What a directory entry is, as `lstat` tells."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    FIFO = "fifo"
    SOCKET = "socket"
    DEVICE = "device"
    UNKNOWN = "unknown"
    """Its type could not be read."""


class Identity(Struct, frozen=True, gc=False):
    """What must not change between the walk and the last read of an entry."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Entry(Struct, frozen=True, gc=False):
    """One directory entry below the root. `path` is the key: raw bytes, `/` between the parts, no leading `./`.

    When the root is a single file, the inventory has one entry whose path is that file's name.
    """

    path: bytes
    kind: Kind
    identity: Identity
    allocated: int
    """Bytes of the blocks that the file system keeps for it: less than the size where there are holes."""
    links: int
    """Names of this inode, here and elsewhere."""
    admitted: bytes | None = None
    """Under `--hf-cache`: the blob that this link leads to, `blobs/NAME` in the repository folder of the cache.

    Kind, identity and the rest are then those of the blob."""

    @property
    def size(self) -> int:
        """Logical size in bytes."""
        return self.identity.size

    @property
    def name(self) -> str:
        """The last part of the path as text (may hold surrogates: neutralise before showing)."""
        return path_text(self.path.rpartition(b"/")[2])

    @property
    def folder(self) -> bytes:
        """The path of the folder that holds it; empty for the root."""
        return self.path.rpartition(b"/")[0]

    @property
    def text(self) -> str:
        """The relative path, neutralised."""
        return display_name(path_text(self.path))


class Inventory(Struct, frozen=True, dict=True):
    """One walk of the source. Entries are sorted by path, folders before what they hold."""

    root_is_file: bool
    entries: tuple[Entry, ...]
    blockers: tuple[Blocker, ...]

    @cached_property
    def by_path(self) -> dict[bytes, Entry]:
        """Entries by their path."""
        return {entry.path: entry for entry in self.entries}

    @cached_property
    def by_folder(self) -> dict[bytes, list[Entry]]:
        """Entries by the folder that directly holds them; the root is the empty path."""
        last = b""
        bucket: list[Entry] = []
        folders = {last: bucket}
        directory = Kind.DIRECTORY
        for entry in self.entries:
            folder = entry.path.rpartition(b"/")[0]
            if folder != last:  # neighbours share a folder: 100,000 entries cost 30 ms, not 100
                last = folder
                bucket = folders.setdefault(folder, [])
            bucket.append(entry)
            if entry.kind is directory:
                folders.setdefault(entry.path, [])
        return folders

    @cached_property
    def files(self) -> tuple[Entry, ...]:
        """The regular files."""
        return tuple(entry for entry in self.entries if entry.kind is Kind.FILE)


class Reader(Protocol):
    """A regular file that is open for positioned reads and nothing else."""

    @property
    def size(self) -> int:
        """Bytes of the file when it was opened."""
        ...

    def pread(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes at `offset`; fewer only at the end of the file.

        Raises `Fault` `source.read_failed` where the system refuses, `source.changed` where the file shrank below
        its size.
        """
        ...
