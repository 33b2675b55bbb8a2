"""What the current folder offers to look at: a bounded glance at names and sizes that opens nothing."""

import os
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


class Candidate(Struct, frozen=True):
    """Something to look at, with what its directory entries tell."""

    path: str
    """As the person would type it; bytes that are not UTF-8 stand as surrogates."""
    weights: int
    """Files with a weight-like name; 1 for a file."""
    bytes: int
    """Their sizes."""
    is_folder: bool


def _glance(folder: str) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
    try:
        with os.scandir(folder) as entries:
            for seen, entry in enumerate(entries):
                if seen >= ENTRIES:
                    return
                try:
                    yield entry, entry.stat(follow_symlinks=False)
                except OSError:  # gone since, or unreadable: looking at it will say so
                    continue
    except OSError:
        return


def _weights(folder: str) -> tuple[int, int]:
    sizes = [
        status.st_size
        for entry, status in _glance(folder)
        if entry.name.endswith(WEIGHTS) and stat.S_ISREG(status.st_mode)
    ]
    return len(sizes), sum(sizes)


def candidates(folder: str = ".") -> tuple[Candidate, ...]:
    """Return what `folder` offers: itself, its sub-folders and its weight files, those with weights first.

    Links are not followed. Reads directory entries only, at most `ENTRIES` of each of at most `FOLDERS` folders.
    """
    found: list[Candidate] = []
    folders = 0
    for entry, status in _glance(folder):
        path = entry.name if folder == "." else os.path.join(folder, entry.name)
        if stat.S_ISDIR(status.st_mode) and not entry.name.startswith(".") and folders < FOLDERS:
            folders += 1
            found.append(Candidate(path, *_weights(path), is_folder=True))
        elif stat.S_ISREG(status.st_mode) and entry.name.endswith(WEIGHTS):
            found.append(Candidate(path, 1, status.st_size, is_folder=False))
    found.sort(key=lambda each: (not each.weights, not each.is_folder, each.path))
    return (Candidate(folder, *_weights(folder), is_folder=True), *found)
