"""One folder of the inventory as recognisers see it."""

import re
from collections.abc import Iterable

from shardscope.engine.model.source import Entry, Inventory, Kind


class Folder:
    """The regular files of one folder, by name and by suffix, and the names of its folders."""

    __slots__ = ("_by_suffix", "files", "folders", "path")

    def __init__(self, path: bytes, files: Iterable[Entry], folders: Iterable[str] = ()) -> None:
        self.path = path
        """Relative path; empty for the root."""
        self.files = {entry.name: entry for entry in files}
        self.folders = frozenset(folders)
        self._by_suffix: dict[str, list[Entry]] = {}
        for name, entry in self.files.items():
            self._by_suffix.setdefault(name.rpartition(".")[2].casefold(), []).append(entry)

    def with_suffix(self, *suffixes: str) -> list[Entry]:
        """Return the files whose name ends in one of `suffixes` (without the dot, any case), by path."""
        found = [entry for suffix in suffixes for entry in self._by_suffix.get(suffix, ())]
        return sorted(found, key=lambda entry: entry.path)

    def matching(self, pattern: re.Pattern[str], *suffixes: str) -> list[tuple[Entry, re.Match[str]]]:
        """Return the files whose whole name matches, with the match; `suffixes` narrows what is looked at."""
        entries = self.with_suffix(*suffixes) if suffixes else self.files.values()
        return [(entry, match) for entry in entries if (match := pattern.fullmatch(entry.name))]

    def only(self, entries: Iterable[Entry]) -> "Folder":
        """Return this folder with nothing but some of its files."""
        return Folder(self.path, entries, self.folders)

    def without(self, entries: Iterable[Entry]) -> "Folder":
        """Return this folder less some of its files."""
        gone = {entry.path for entry in entries}
        if not gone:
            return self
        return Folder(self.path, (e for e in self.files.values() if e.path not in gone), self.folders)


def folder_of(inventory: Inventory, path: bytes) -> Folder:
    """Return the folder at `path` (empty: the root)."""
    entries = inventory.by_folder.get(path, [])
    return Folder(
        path,
        (entry for entry in entries if entry.kind is Kind.FILE),
        (entry.name for entry in entries if entry.kind is Kind.DIRECTORY),
    )
