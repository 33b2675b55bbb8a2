"""The walk: one pass over the folders, by descriptor, that looks at every entry and opens no file.

Two descriptors are open at any time, whatever the depth: the root's and the one of the folder being listed. A folder is opened
from the root anew, and must be the inode that its own listing showed.
"""

import errno
import os
import sys
import threading
from operator import attrgetter

from msgspec import Struct

from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import OnProgress, Pace, Progress, check
from shardscope.engine.model.source import Entry, Identity, Kind
from shardscope.engine.model.text import display_name, path_text
from shardscope.engine.source.beneath import open_folder
from shardscope.engine.source.found import Found
from shardscope.engine.source.identity import NOWHERE, difference, entry_of, identity_of
from shardscope.engine.source.names import judge_names
from shardscope.engine.source.root import Root

_ENCODING = sys.getfilesystemencoding()
_TARGET_BYTES = 64 << 20
"""Bytes of link targets kept in one walk. A target can have 4,095 bytes; beyond this, links are only listed."""


class Listing(Struct):
    """What one walk saw, before it is judged as a whole."""

    root: Identity
    """The root folder (or single file) when it was listed."""
    entries: list[Entry]
    """In the order of the walk."""
    targets: dict[bytes, bytes | None]
    """What each link says; nothing where it was not read."""
    unlisted: set[bytes]
    """Folders of which some content may be missing here."""


def list_tree(
    root: Root,
    limits: Limits,
    found: Found,
    cancel: threading.Event | None = None,
    on_progress: OnProgress | None = None,
) -> Listing:
    """Return what stands beneath `root`, and add to `found` what could not be seen or is not as it should be."""
    walk = _Walk(root, limits, found, cancel, on_progress)
    if root.file is None:
        walk.folders()
    else:
        walk.single(root.file)
    walk.report(b"")
    return walk.listing


class _Walk:
    def __init__(
        self,
        root: Root,
        limits: Limits,
        found: Found,
        cancel: threading.Event | None,
        on_progress: OnProgress | None,
    ) -> None:
        self.listing = Listing(root.identity, [], {}, set())
        self._base = root.folder
        self._limits = limits
        self._found = found
        self._cancel = cancel
        self._pace = Pace(on_progress)
        self._target_bytes = 0
        self._pending: list[Entry] = []
        self._full = False

    def report(self, path: bytes) -> None:
        """Say how many entries there are so far."""
        self._pace.report(
            Progress(
                "walk", len(self.listing.entries), None, "entries", display_name(path_text(path)) or None
            )
        )

    def single(self, name: bytes) -> None:
        """Look at the one file that is the root."""
        try:
            entry = entry_of(name, os.stat(name, dir_fd=self._base, follow_symlinks=False))
        except OSError as error:
            self._not_seen(name, error)
            return
        if entry.kind is Kind.LINK:
            self._read_link(name, name, self._base)
        self.listing.entries.append(entry)
        self.listing.root = entry.identity
        judge_names(b"", [name], self._found, inside_hidden=False)

    def folders(self) -> None:
        """List the root and every folder below it, parents first, in the order of their names."""
        self._list(b"", None)
        while self._pending and not self._full:
            check(self._cancel)
            folder = self._pending.pop()
            self._list(folder.path, folder.identity)
        self.listing.unlisted.update(folder.path for folder in self._pending)

    def _list(self, path: bytes, expected: Identity | None) -> None:
        try:
            descriptor = open_folder(self._base, path)
        except OSError as error:
            self._lost(path, error)
            return
        try:
            before = identity_of(os.fstat(descriptor))
            if expected is None:
                self.listing.root = before
            elif change := difference(expected, before):
                self._change(path, change)
                if (expected.device, expected.inode) != (before.device, before.inode):
                    return
            self._scan(path, descriptor)
            if change := difference(before, identity_of(os.fstat(descriptor))):
                self._change(path, change)
        except OSError as error:
            self._lost(path, error)
        finally:
            os.close(descriptor)

    def _scan(self, path: bytes, descriptor: int) -> None:
        entries = self.listing.entries
        start = len(entries)
        room = self._limits.files - start
        longest = self._limits.path_bytes
        prefix = path + b"/" if path else b""
        names = []
        with os.scandir(descriptor) as listing:
            for count, item in enumerate(listing):
                if not count & 15:  # 16 statuses of a slow network disk take less than 100 ms
                    self._breathe(path)
                if count >= room:
                    self._full = True
                    self._cut(path, "files", self._limits.files + 1)
                    break
                name = item.name.encode(_ENCODING, "surrogateescape")
                entry_path = prefix + name
                try:
                    entry = entry_of(entry_path, item.stat(follow_symlinks=False))
                except OSError as error:
                    self._not_seen(entry_path, error)
                    continue
                if len(entry_path) > longest:
                    self._cut(path, "path_bytes", len(entry_path))
                    continue
                names.append(name)
                entries.append(entry)
        hidden = path.startswith(b".") or b"/." in path
        judge_names(path, names, self._found, inside_hidden=hidden)
        folders = []
        for entry in entries[start:]:
            if entry.kind is Kind.LINK:
                self._read_link(entry.path, entry.path[len(prefix) :], descriptor)
            elif entry.kind is Kind.DIRECTORY:
                folders.append(entry)
        if folders and len(prefix.split(b"/")) > self._limits.path_depth:
            for entry in folders:
                self._cut(entry.path, "path_depth", entry.path.count(b"/") + 1)
        else:
            self._pending += sorted(folders, key=attrgetter("path"), reverse=True)

    def _breathe(self, path: bytes) -> None:
        check(self._cancel)
        if self._pace.due():
            self.report(path)

    def _not_seen(self, path: bytes, error: OSError) -> None:
        """Record a name whose status could not be read."""
        if error.errno == errno.ENOENT:
            self._change(path, "it vanished")
        else:
            self._unreadable(path, error)
            self.listing.entries.append(Entry(path, Kind.UNKNOWN, NOWHERE, 0, 0))

    def _read_link(self, path: bytes, name: bytes, descriptor: int) -> None:
        target: bytes | None = None
        if self._target_bytes < _TARGET_BYTES:
            try:
                target = os.readlink(name, dir_fd=descriptor)
            except OSError as error:
                self._lost(path, error)
                return
            self._target_bytes += len(target)
        self.listing.targets[path] = target

    def _cut(self, path: bytes, limit: str, needed: int) -> None:
        self._found.add(path, f"limit.{limit}", limit=getattr(self._limits, limit), found=needed)
        self.listing.unlisted.add(path)

    def _change(self, path: bytes, change: str) -> None:
        self._found.add(path, "source.changed", change=change)

    def _unreadable(self, path: bytes, error: OSError) -> None:
        self._found.add(path, "source.unreadable", reason=os.strerror(error.errno or errno.EIO))
        self.listing.unlisted.add(path)

    def _lost(self, path: bytes, error: OSError) -> None:
        """Note why something that was listed a moment ago could not be opened."""
        if error.errno in {errno.ENOENT, errno.ESTALE}:
            self._change(path, "it vanished")
        elif error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EINVAL}:
            self._change(path, "it was replaced by something else")
        else:
            self._unreadable(path, error)
        self.listing.unlisted.add(path)
