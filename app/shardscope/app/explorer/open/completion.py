"""Completing a path as shells do, from names alone."""

import os
import stat
from itertools import takewhile
from typing import Final

from shardscope.engine.model.text import is_altered

ENTRIES: Final = 2_000
"""How many entries of a folder are looked at."""


def split(typed: str) -> tuple[str, str]:
    """Return the folder that `typed` names so far (`.` where it names none), and the beginning of a name in it."""
    folder, begun = os.path.split(os.path.expanduser(typed))
    return folder or ".", begun


def completed(typed: str) -> str:
    """Return `typed` with as much more as all names agree on that begin like it; a folder gets its slash.

    Names with characters that no terminal should be shown are passed over: they are picked from the list.
    """
    folder, begun = split(typed)
    names = []
    try:
        with os.scandir(folder) as entries:
            for seen, entry in enumerate(entries):
                if seen >= ENTRIES:
                    break
                shown = begun.startswith(".") or not entry.name.startswith(".")
                if entry.name.startswith(begun) and shown and not is_altered(entry.name):
                    names.append(entry.name)
    except OSError:
        return typed
    if not names:
        return typed
    least, most = min(names), max(names)
    agreed = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(least, most, strict=False)))
    common = least[:agreed]
    more = common[len(begun) :]
    if len(names) == 1 and _is_folder(os.path.join(folder, common)):
        more += "/"
    return typed + more


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return False
