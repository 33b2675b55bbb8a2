"""Which version of a distribution is installed, by its metadata alone: the distribution itself is never imported."""

import os
import re
import sys
from collections.abc import Iterable
from typing import Final

_VERSION: Final = re.compile(r"[0-9][0-9A-Za-z.!+_-]{0,63}")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
UNREADABLE: Final = "an unreadable version"
"""What stands for a version in metadata that is no version: its text is not repeated."""


def installed_version(distribution: str) -> str | None:
    """Return the installed version of `distribution`, made harmless, or null where it is not installed.

    The working folder is not searched, even where Python itself would: it may be the checkpoint, and a metadata folder
    in there says nothing about this installation.
    """
    return installed_versions((distribution,))[distribution]


def installed_versions(distributions: Iterable[str]) -> dict[str, str | None]:
    """Return the installed version of each distribution, as `installed_version` does of one."""
    here = os.path.realpath(os.curdir)
    path = [entry for entry in sys.path if entry and os.path.realpath(entry) != here]
    return {distribution: _version(distribution, path) for distribution in distributions}


def _version(distribution: str, path: list[str]) -> str | None:
    import importlib.metadata  # wanted only where a capability is named, or a report is made

    found = next(iter(importlib.metadata.distributions(name=distribution, path=path)), None)
    if found is None:
        return None
    try:
        version = str(found.version)  # "None" where the metadata has no such field
    except (KeyError, OSError, UnicodeError):
        return UNREADABLE
    return version if _VERSION.fullmatch(version) else UNREADABLE


def source_commit(distribution: str) -> str | None:
    """Return the commit that a distribution was installed from, where its metadata record one (PEP 610), or null."""
    import importlib.metadata
    import json

    found = next(iter(importlib.metadata.distributions(name=distribution)), None)
    try:
        text = None if found is None else found.read_text("direct_url.json")
        commit = json.loads(text or "{}").get("vcs_info", {}).get("commit_id")
    except (AttributeError, OSError, ValueError):
        return None
    return commit if isinstance(commit, str) and _COMMIT.fullmatch(commit) else None


def same_version(required: str, observed: str) -> bool:
    """Tell whether `observed` is the version that is required; a local label (`+cu128`) counts only where it is named."""
    return observed == required or ("+" not in required and observed.partition("+")[0] == required)
