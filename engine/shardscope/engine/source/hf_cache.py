"""The one exception to refusing links: snapshots of the Hugging Face cache, on request (`--hf-cache`).

The cache keeps `REPOSITORY/blobs/NAME` and, for each revision, `REPOSITORY/snapshots/REVISION/FILE`, a link whose text
is `../../blobs/NAME` with one more `../` for each sub-folder (huggingface_hub, `file_download.py`). A link is admitted
only with exactly this text, and only where `NAME` is a regular file; its text is all that is ever used of it.

The root may be a snapshot, a folder in one, a single link in one, `snapshots` or the repository folder itself. In the
last case a blob that an admitted link leads to is listed under the link's path only, so that nothing counts twice.
"""

import os
import re
from typing import Final

from msgspec import Struct

from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Kind
from shardscope.engine.model.text import path_text
from shardscope.engine.source.beneath import FOLDER, PASSAGE
from shardscope.engine.source.found import Found
from shardscope.engine.source.identity import WORDS, entry_of, kind_of
from shardscope.engine.source.walk import Listing

_INTO_BLOBS: Final = re.compile(rb"((?:\.\./){2,})blobs/([^/]+)")
_CLIMBS: Final = 64
"""Folders to climb at most in search of the repository folder."""


class Repository(Struct, frozen=True):
    """A repository folder of the cache, held by descriptor."""

    folder: int
    blobs: int
    above: int
    """How many folders it stands above the root; 0 where it is the root."""

    def close(self) -> None:
        """Close both descriptors."""
        os.close(self.folder)
        os.close(self.blobs)

    def blob(self, link: bytes, target: bytes) -> bytes | None:
        """Return the name of the blob that `link` (relative to the root) names directly, or nothing."""
        match = _INTO_BLOBS.fullmatch(target)
        if match is None or match[2] in {b".", b".."}:
            return None
        climbs = len(match[1]) // 3
        if climbs != self.above + link.count(b"/"):
            return None
        if self.above == 0 and not link.startswith(b"snapshots/"):
            return None
        return match[2]


def looks_like_cache(link: bytes, target: bytes) -> bool:
    """Tell whether a link at `link` reads like one of a snapshot that is the root, holds it, or is below it."""
    match = _INTO_BLOBS.fullmatch(target)
    if match is None:
        return False
    beyond = len(match[1]) // 3 - link.count(b"/")
    return beyond >= 1 or (beyond == 0 and link.startswith(b"snapshots/"))


def repository_below(link: bytes, target: bytes) -> bytes | None:
    """Return the repository folder below the root that a link of one of its snapshots stands in, or nothing."""
    match = _INTO_BLOBS.fullmatch(target)
    if match is None:
        return None
    parts = link.split(b"/")[:-1]
    above = len(parts) - len(match[1]) // 3
    return b"/".join(parts[:above]) if above > 0 and parts[above] == b"snapshots" else None


def find_repository(root: int) -> Repository | None:
    """Return the repository folder that `root` is, or stands in, or nothing.

    It is the nearest folder that holds real folders `snapshots` and `blobs`, reached through `snapshots`. It is found
    by climbing from the descriptor, so that links on the way to the root play no part. The caller closes it.
    """
    here = os.open(b".", PASSAGE, dir_fd=root)
    child: os.stat_result | None = None
    for above in range(_CLIMBS):
        repository = _repository(here, child, above)
        if repository is not None:
            return repository
        child = os.fstat(here)
        try:
            parent = os.open(b"..", PASSAGE, dir_fd=here)
        except OSError:
            break
        finally:
            os.close(here)
        here = parent
        if os.path.samestat(child, os.fstat(here)):  # the top of the file system
            os.close(here)
            break
    else:
        os.close(here)
    return None


def _repository(here: int, child: os.stat_result | None, above: int) -> Repository | None:
    try:
        snapshots = os.stat(b"snapshots", dir_fd=here, follow_symlinks=False)
        if kind_of(snapshots.st_mode) is not Kind.DIRECTORY:
            return None
        if child is not None and not os.path.samestat(child, snapshots):
            return None
        blobs = os.open(b"blobs", FOLDER, dir_fd=here)
    except OSError:
        return None
    return Repository(here, blobs, above)


def admit(listing: Listing, repository: Repository, found: Found) -> None:
    """Turn each link of `listing` that leads directly to a blob into the file that it stands for.

    What is admitted leaves `listing.targets`; what is left there is judged like any other link.
    """
    reached: set[bytes] = set()
    for index, entry in enumerate(listing.entries):
        target = listing.targets.get(entry.path)
        name = None if target is None else repository.blob(entry.path, target)
        if name is None:
            continue
        del listing.targets[entry.path]
        blob = b"blobs/" + name
        try:
            status = os.stat(name, dir_fd=repository.blobs, follow_symlinks=False)
        except OSError:
            found.add(entry.path, "source.link_broken", target=path_text(blob))
            continue
        kind = kind_of(status.st_mode)
        if kind is Kind.FILE:
            reached.add(blob)
            listing.entries[index] = entry_of(entry.path, status, blob)
        else:
            found.add(entry.path, "source.link_hf_refused", target=path_text(blob), what=WORDS[kind])
    if repository.above == 0:
        listing.entries[:] = [entry for entry in listing.entries if entry.path not in reached]


def report_incomplete(repository: Repository, limits: Limits, found: Found) -> None:
    """Note the downloads of this repository that did not finish (they stand outside of a snapshot's own folder)."""
    with os.scandir(repository.blobs) as listing:
        for count, item in enumerate(listing):
            if count >= limits.files:
                found.add(b"blobs", "limit.files", limit=limits.files, found=count + 1)
                break
            name = os.fsencode(item.name)
            if not name.endswith(b".incomplete"):
                continue
            try:
                status = item.stat(follow_symlinks=False)
            except OSError:
                continue  # finished, and renamed, this very moment
            found.add(b"blobs/" + name, "source.hf_incomplete", size=status.st_size)
