"""What an inode is, and whether it is still the same one."""

import os
import stat

from shardscope.engine.model.source import Entry, Identity, Kind

_KINDS = {
    stat.S_IFREG: Kind.FILE,
    stat.S_IFDIR: Kind.DIRECTORY,
    stat.S_IFLNK: Kind.LINK,
    stat.S_IFIFO: Kind.FIFO,
    stat.S_IFSOCK: Kind.SOCKET,
    stat.S_IFCHR: Kind.DEVICE,
    stat.S_IFBLK: Kind.DEVICE,
}
_TYPE_BITS = 0o170000

WORDS = {
    Kind.FILE: "a regular file",
    Kind.DIRECTORY: "a folder",
    Kind.LINK: "a symbolic link",
    Kind.FIFO: "a FIFO",
    Kind.SOCKET: "a socket",
    Kind.DEVICE: "a device",
    Kind.UNKNOWN: "of unknown type",
}
"""Each kind with its article, as sentences want it."""

NOWHERE = Identity(0, 0, 0, 0, 0)
"""The identity of an entry whose status could not be read."""


def kind_of(mode: int) -> Kind:
    """Return the kind that the file type bits of `mode` say."""
    return _KINDS.get(mode & _TYPE_BITS, Kind.UNKNOWN)


def identity_of(status: os.stat_result) -> Identity:
    """Return the parts of a status that must not change while an entry is being examined."""
    return Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def entry_of(path: bytes, status: os.stat_result, admitted: bytes | None = None) -> Entry:
    """Return the entry at `path` with the facts of `status`. Blocks count 512 bytes each, whatever the disk.

    The walk spends a fifth of its time here, so that the two functions above are written out.
    """
    return Entry(
        path,
        _KINDS.get(status.st_mode & _TYPE_BITS, Kind.UNKNOWN),
        Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns),
        status.st_blocks * 512,
        status.st_nlink,
        admitted,
    )


def difference(before: Identity, after: Identity) -> str | None:
    """Return in words what changed, or nothing."""
    if before == after:
        return None
    if (before.device, before.inode) != (after.device, after.inode):
        return "another one took its place"
    if after.size > before.size:
        return f"it grew from {before.size:,} to {after.size:,} bytes"
    if after.size < before.size:
        return f"it shrank from {before.size:,} to {after.size:,} bytes"
    if after.mtime_ns != before.mtime_ns:
        return "it was written to"
    return "its status changed (a new name, a lost name or new permissions)"
