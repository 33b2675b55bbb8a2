"""What a folder offers to look at: a bounded glance at names and sizes that opens nothing."""

import os
import re
import stat
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

WEIGHTS: Final = (
    ".safetensors",
    ".bin",
    ".pt",
    ".pth",
    ".ckpt",
    ".distcp",
    ".gguf",
    ".nemo",
    ".npz",
    ".h5",
    ".keras",
    ".onnx",
)
"""Endings of names that make a file or a folder worth offering. Looking decides what it is, not this list."""

ENTRIES: Final = 2_000
"""How many entries of one folder are looked at."""

FOLDERS: Final = 200
"""How many folders are glanced into."""

_STEP: Final = re.compile(
    r"(?:.*[^a-z])?(?:global_?step|step|iter|checkpoint|ckpt|epoch)[-_]?\d+", re.IGNORECASE
)
_CACHED: Final = ("models--", "datasets--", "spaces--")


class Candidate(Struct, frozen=True):
    """Something to look at, with what its directory entries tell."""

    path: str
    """As the person would type it; bytes that are not UTF-8 stand as surrogates."""
    weights: int
    """Files with a weight-like name; 1 for a file."""
    bytes: int
    """Their sizes."""
    is_folder: bool
    steps: int = 0
    """Folders in it that are named as the saves of steps are."""
    is_cache: bool = False
    """Whether it is a Hugging Face cache by the names in it."""


class Offer(Struct, frozen=True):
    """What one folder offers."""

    folder: str
    found: tuple[Candidate, ...]
    """The folder itself first."""
    whole: bool
    """Whether all of it was looked at."""


class _Glance:
    """One look at a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.whole = True

    def __iter__(self) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
        try:
            with os.scandir(self._folder) as entries:
                for seen, entry in enumerate(entries):
                    if seen >= ENTRIES:
                        self.whole = False
                        return
                    try:
                        yield entry, entry.stat(follow_symlinks=False)
                    except OSError:  # gone since, or unreadable: looking at it will say so
                        continue
        except OSError:
            return


def _folder(path: str, shown: str) -> Candidate:
    sizes: list[int] = []
    steps, cached = 0, False
    for entry, status in _Glance(path):
        if stat.S_ISREG(status.st_mode):
            if entry.name.endswith(WEIGHTS):
                sizes.append(status.st_size)
        elif stat.S_ISDIR(status.st_mode):
            steps += _STEP.fullmatch(entry.name) is not None
            cached |= entry.name.startswith(_CACHED)
    return Candidate(shown, len(sizes), sum(sizes), is_folder=True, steps=steps, is_cache=cached)


def candidates(folder: str = ".") -> Offer:
    """Return what `folder` offers: itself, its sub-folders and its weight files, those with weights first.

    Links are not followed. Reads directory entries only, at most `ENTRIES` of each of at most `FOLDERS` folders.
    """
    found: list[Candidate] = []
    folders = 0
    glance = _Glance(folder)
    for entry, status in glance:
        path = entry.name if folder == "." else os.path.join(folder, entry.name)
        if stat.S_ISDIR(status.st_mode) and not entry.name.startswith("."):
            folders += 1
            if folders <= FOLDERS:
                found.append(_folder(path, path))
            else:
                glance.whole = False
        elif stat.S_ISREG(status.st_mode) and entry.name.endswith(WEIGHTS):
            found.append(Candidate(path, 1, status.st_size, is_folder=False))
    found.sort(
        key=lambda each: (
            not (each.weights or each.steps or each.is_cache),
            not each.is_folder,
            _natural(each.path),
        )
    )
    return Offer(folder, (_folder(folder, folder), *found), glance.whole)


def _natural(name: str) -> str:
    return re.sub(r"\d+", lambda digits: digits.group().zfill(12), name)
