"""One folder of the inventory as recognisers see it."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from shardscope.engine.model.source import Entry, Inventory, Kind
from shardscope.engine.model.text import path_text

_NONE: Final[Mapping[str, Entry]] = {}


class Folder:
    """The regular files of one folder, by name and by suffix, and the names of its folders."""

    __slots__ = ("_by_suffix", "files", "folders", "path")

    def __init__(self, path: bytes, files: dict[str, Entry], folders: Iterable[str] = ()) -> None:
        self.path = path
        """Relative path; empty for the root."""
        self.files = files
        """By name, in the order of the inventory: by path."""
        self.folders = frozenset(folders)
        self._by_suffix: dict[str, dict[str, Entry]] | None = None

    @property
    def suffixes(self) -> Iterable[str]:
        """The suffixes there are, lower case and without the dot; the whole name where it has no dot."""
        return self._sorted().keys()

    def named(self, *suffixes: str) -> Mapping[str, Entry]:
        """Return the files whose name ends in one of `suffixes` (lower case, without the dot), by name and sorted."""
        by_suffix = self._sorted()
        if len(suffixes) == 1:
            return by_suffix.get(suffixes[0], _NONE)
        found = [by_suffix[suffix] for suffix in suffixes if suffix in by_suffix]
        if len(found) <= 1:
            return found[0] if found else _NONE
        merged = {name: entry for files in found for name, entry in files.items()}
        return dict(sorted(merged.items(), key=lambda item: item[1].path))

    def _sorted(self) -> dict[str, dict[str, Entry]]:
        if self._by_suffix is None:
            self._by_suffix = _sorted_by_suffix(self.files)
        return self._by_suffix

    def with_suffix(self, *suffixes: str) -> list[Entry]:
        """Return the files whose name ends in one of `suffixes` (lower case, without the dot), by path."""
        return list(self.named(*suffixes).values())

    def starting(self, prefix: str, *suffixes: str) -> list[Entry]:
        """Return the files of some suffixes whose name starts with `prefix`, by path."""
        return [entry for name, entry in self.named(*suffixes).items() if name.startswith(prefix)]

    def matching(
        self, pattern: re.Pattern[str], *suffixes: str, holding: str = ""
    ) -> list[tuple[Entry, re.Match[str]]]:
        """Return the files whose whole name matches, with the match.

        `suffixes` narrows what is looked at, and so does `holding`, a text that every match holds: asking for it costs a
        fifth of the pattern.
        """
        files = self.named(*suffixes) if suffixes else self.files
        return [
            (entry, match)
            for name, entry in files.items()
            if holding in name and (match := pattern.fullmatch(name))
        ]

    def only(self, entries: Iterable[Entry]) -> "Folder":
        """Return this folder with nothing but some of its files."""
        kept = {entry.path for entry in entries}
        files = {name: entry for name, entry in self.files.items() if entry.path in kept}
        return Folder(self.path, files, self.folders)

    def without(self, entries: Iterable[Entry]) -> "Folder":
        """Return this folder less some of its files."""
        gone = {entry.path for entry in entries}
        if not gone:
            return self
        files = {name: entry for name, entry in self.files.items() if entry.path not in gone}
        return Folder(self.path, files, self.folders)


def _sorted_by_suffix(files: Mapping[str, Entry]) -> dict[str, dict[str, Entry]]:
    by_suffix: dict[str, dict[str, Entry]] = {}
    seen: dict[str, dict[str, Entry]] = {}
    for name, entry in files.items():
        suffix = name[name.rfind(".") + 1 :]
        bucket = seen.get(suffix)
        if bucket is None:  # lower case once for each spelling, not for each file
            bucket = seen[suffix] = by_suffix.setdefault(suffix.casefold(), {})
        bucket[name] = entry
    return by_suffix


def folder_of(inventory: Inventory, path: bytes) -> Folder:
    """Return the folder at `path` (empty: the root)."""
    start = len(path) + 1 if path else 0
    files: dict[str, Entry] = {}
    folders: list[str] = []
    file, directory = Kind.FILE, Kind.DIRECTORY
    for entry in inventory.by_folder.get(path, ()):
        kind = entry.kind
        if kind is file:
            files[path_text(entry.path[start:])] = entry
        elif kind is directory:
            folders.append(path_text(entry.path[start:]))
    return Folder(path, files, folders)


def files_below(inventory: Inventory, path: bytes) -> list[Entry]:
    """Return the regular files at any depth below a folder. The work follows what is below, not the inventory."""
    files: list[Entry] = []
    waiting = [path]
    file, directory = Kind.FILE, Kind.DIRECTORY
    while waiting:
        for entry in inventory.by_folder.get(waiting.pop(), ()):
            kind = entry.kind
            if kind is file:
                files.append(entry)
            elif kind is directory:
                waiting.append(entry.path)
    return files
