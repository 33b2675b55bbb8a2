"""Which version of a distribution is installed, by its metadata alone: the distribution itself is never imported."""

import os
import re
import sys
from collections.abc import Collection
from typing import Final, NamedTuple

_VERSION: Final = re.compile(r"[0-9][0-9A-Za-z.!+_-]{0,63}")
_COMMIT: Final = re.compile(r'"commit_id"\s*:\s*"([0-9a-f]{40})"')
UNREADABLE: Final = "an unreadable version"
"""What stands for a version in metadata that is no version: its text is not repeated."""


def installed_version(distribution: str) -> str | None:
    """Return the installed version of `distribution`, made harmless, or null where it is not installed.

    The working folder is not searched, even where Python itself would: it may be the checkpoint, and a metadata folder
    in there says nothing about this installation.
    """
    import importlib.metadata  # wanted only where a capability is named

    found = next(iter(importlib.metadata.distributions(name=distribution, path=_path())), None)
    if found is None:
        return None
    try:
        version = str(found.version)  # "None" where the metadata has no such field
    except (KeyError, OSError, UnicodeError):
        return UNREADABLE
    return version if _VERSION.fullmatch(version) else UNREADABLE


def _path() -> list[str]:
    """Return where Python looks for distributions, without the working folder: it may be the checkpoint."""
    here = os.path.realpath(os.curdir)
    return [entry for entry in sys.path if entry and os.path.realpath(entry) != here]


class Installed(NamedTuple):
    """What the metadata of a distribution say."""

    version: str
    """Harmless; `UNREADABLE` where it is no version."""
    commit: str | None
    """That it was installed from, where that is recorded (PEP 610)."""


def installed(distributions: Collection[str]) -> dict[str, Installed]:
    """Return what is installed of some distributions, from their metadata folders alone.

    `importlib.metadata` says the same and takes longer to import, with mail and network modules, than a report to be made.
    """
    wanted = {_normalised(name): name for name in distributions}
    found: dict[str, Installed] = {}
    for folder in _path():
        try:
            names = os.listdir(folder)
        except OSError:  # a zip, or nothing
            continue
        for name in sorted(names):
            stem, dot, kind = name.rpartition(".")
            plain = _normalised(stem.partition("-")[0])
            if dot and kind in ("dist-info", "egg-info") and plain in wanted:
                found.setdefault(wanted[plain], _read(os.path.join(folder, name)))
    return found


def _normalised(name: str) -> str:
    """Return a name as the packaging specifications compare it (PEP 503)."""
    return re.sub("[-_.]+", "-", name).lower()


def _read(folder: str) -> Installed:
    text = _text(os.path.join(folder, "METADATA")) or _text(os.path.join(folder, "PKG-INFO")) or _text(folder)
    head = text.replace("\r\n", "\n").partition("\n\n")[0]
    version = next((line[8:].strip() for line in head.split("\n") if line.lower().startswith("version:")), "")
    origin = _COMMIT.search(_text(os.path.join(folder, "direct_url.json")))
    return Installed(
        version if _VERSION.fullmatch(version) else UNREADABLE, None if origin is None else origin[1]
    )


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""


def same_version(required: str, observed: str) -> bool:
    """Tell whether `observed` is the version that is required; a local label (`+cu128`) counts only where it is named."""
    return observed == required or ("+" not in required and observed.partition("+")[0] == required)
