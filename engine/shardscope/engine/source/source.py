"""The source: one root, opened once, walked, read and checked again through the same descriptor."""

import os
import threading
from collections.abc import Callable, Sequence
from operator import attrgetter
from types import TracebackType
from typing import Final, Self

from shardscope.engine.model.blocker import Blocker, Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.source import Entry, Identity, Inventory, Kind
from shardscope.engine.model.text import path_text
from shardscope.engine.source.digest import hash_files
from shardscope.engine.source.found import Found
from shardscope.engine.source.hf_cache import Repository, admit, find_repository, report_incomplete
from shardscope.engine.source.identity import difference
from shardscope.engine.source.inodes import judge_inodes
from shardscope.engine.source.links import judge_links
from shardscope.engine.source.read import OpenFile, open_file
from shardscope.engine.source.root import Root, open_root
from shardscope.engine.source.walk import Listing, list_tree

DEFAULTS: Final = Limits()


class Source:
    """A folder or a file under inspection. Use it in a `with` block.

    Entering raises `Fault`: `source.missing`, `source.unreadable`, `source.root_link`, `source.not_regular`,
    `source.changed`. Nothing here ever writes, follows a link, waits for a FIFO or opens a device.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, limits: Limits = DEFAULTS, hf_cache: bool = False
    ) -> None:
        self._path = path
        self._limits = limits
        self._hf_cache = hf_cache
        self._root: Root | None = None
        self._repository: Repository | None = None
        self._walked: Identity | None = None

    def __enter__(self) -> Self:
        self._root = open_root(self._path, links=self._hf_cache)
        try:
            self._find_cache(self._root)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close what is held open. Leaving the `with` block does it."""
        if self._repository is not None:
            self._repository.close()
            self._repository = None
        if self._root is not None:
            os.close(self._root.folder)
            self._root = None

    @property
    def root(self) -> Root:
        """The root, while it is open."""
        if self._root is None:
            raise ValueError("the source is not open: use it in a with block")
        return self._root

    def walk(self, cancel: threading.Event | None = None, progress: OnProgress | None = None) -> Inventory:
        """Return everything beneath the root, with what is wrong with it, from statuses alone: no file is opened.

        A folder that cannot be listed, a limit that is reached and a change on the way become blockers of a partial
        inventory. Raises `Cancelled`.
        """
        found = Found(self._limits.findings)
        listing = self._list(found, cancel, progress)
        if self._repository is not None and self._repository.above > 0:
            report_incomplete(self._repository, self._limits, found)
        if self._hf_cache and self._repository is None:
            found.add(b"", "source.hf_not_cache")
        judge_links(listing, found, suggest_cache=not self._hf_cache, cancel=cancel)
        judge_inodes(listing.entries, found)  # before sorting: memory in order takes a third of the time
        listing.entries.sort(key=attrgetter("path"))
        self._walked = listing.root
        return Inventory(self.root.file is not None, tuple(listing.entries), found.blockers())

    def open(self, entry: Entry) -> OpenFile:
        """Open a regular file of the inventory for positioned reads; close it by leaving its own `with` block.

        Raises `Fault`: `source.changed` where it is no longer what the walk saw, `source.unreadable`,
        `source.not_regular`, `source.escape`.
        """
        base = self.root.folder
        if entry.admitted is not None:
            if self._repository is None:
                raise Fault("source.escape", file=path_text(entry.path))
            base = self._repository.folder
        return open_file(base, entry)

    def recheck(self, inventory: Inventory, cancel: threading.Event | None = None) -> list[Blocker]:
        """List everything again and return a `source.changed` for each entry that differs from `inventory`.

        Folders differ by their times even where nothing in them does any more: something came and went.
        """
        found = Found(self._limits.findings)
        change = self.root.replaced()
        if change is not None:  # what the descriptor still holds is no longer what the path names
            found.add(self.root.file or b"", "source.changed", change=change)
            return list(found.blockers())
        listing = self._list(Found(0), cancel, None)
        after = {entry.path: entry for entry in listing.entries}
        blamed = {path.rpartition(b"/")[0] for path in after.keys() ^ inventory.by_path.keys()}
        for path, entry in after.items():
            before = inventory.by_path.get(path)
            change = "it appeared" if before is None else _change(before, entry)
            if change is not None and not (entry.kind is Kind.DIRECTORY and path in blamed and before):
                found.add(path, "source.changed", change=change)
        for path in inventory.by_path.keys() - after.keys():
            found.add(path, "source.changed", change="it vanished")
        if self.root.file is None and self._walked is not None and b"" not in blamed:
            change = difference(self._walked, listing.root)
            if change is not None:
                found.add(b"", "source.changed", change=change)
        return list(found.blockers())

    def digests(
        self,
        entries: Sequence[Entry],
        *,
        workers: int = 2,
        cancel: threading.Event | None = None,
        progress: OnProgress | None = None,
        on_fault: Callable[[Entry, Fault], None] | None = None,
    ) -> dict[bytes, str]:
        """Return the SHA-256 of regular files in hexadecimal, by path, in memory that no file's size changes.

        A file that cannot be read, or changes meanwhile, goes to `on_fault` and is left out; without it the fault
        is raised. Raises `Cancelled` within 100 ms.
        """
        return hash_files(
            self.open, entries, workers=workers, cancel=cancel, on_progress=progress, on_fault=on_fault
        )

    def _list(self, found: Found, cancel: threading.Event | None, progress: OnProgress | None) -> Listing:
        listing = list_tree(self.root, self._limits, found, cancel, progress)
        if self._repository is not None:
            admit(listing, self._repository, found)
        return listing

    def _find_cache(self, root: Root) -> None:
        """Find the repository folder for `--hf-cache`; a root that is a link must be one of its links."""
        if not self._hf_cache:
            return
        self._repository = find_repository(root.folder)
        if root.file is None:
            return
        try:
            target = os.readlink(root.file, dir_fd=root.folder)
        except OSError:
            return  # a regular file
        if self._repository is None or self._repository.blob(root.file, target) is None:
            raise Fault("source.root_link", file=path_text(root.file))


def _change(before: Entry, after: Entry) -> str | None:
    change = difference(before.identity, after.identity)
    if change is None and (before.kind, before.admitted) != (after.kind, after.admitted):
        return "another one took its place"
    return change
