"""What lies in a cache of the Hugging Face hub: names, links and sizes. Nothing is opened but the small files of `refs`.

    models--ORG--NAME/blobs/DIGEST                what was downloaded, `DIGEST.incomplete` while it was not
    models--ORG--NAME/snapshots/COMMIT/FILE       links into `blobs`
    models--ORG--NAME/refs/main                   which commit a branch was at

No link is followed. A link counts with the blob of its own repository that it names; any other link counts as foreign.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from threading import Event
from typing import Final, NamedTuple

from msgspec import Struct

from shardscope.engine.model.progress import Cancelled

INCOMPLETE: Final = ".incomplete"
REPOS: Final = 2_000
REVISIONS: Final = 200
"""Of one repository."""
ENTRIES: Final = 200_000
"""Of the whole cache: where there are more, the rest is not told, and that is."""
DEEPEST: Final = 12
"""Folders below a snapshot."""
_REPO: Final = re.compile(r"(model|dataset|space)s--(.+)", re.DOTALL)
_BLOB: Final = re.compile(r"(?:\.\./)+blobs/([^/]+)", re.DOTALL)
_REF_BYTES: Final = 128


class Revision(Struct, frozen=True):
    """One snapshot of a repository."""

    commit: str
    path: str
    refs: tuple[str, ...]
    """Branches and tags that were at it."""
    files: int
    bytes: int
    """Of its files, the blobs behind links."""
    missing: int
    """Links whose blob is not there."""
    foreign: int
    """Links that lead anywhere else."""


class Repo(Struct, frozen=True):
    """One repository of the cache."""

    kind: str
    """`model`, `dataset` or `space`."""
    name: str
    """As the hub spells it: `org/name`."""
    path: str
    revisions: tuple[Revision, ...]
    bytes: int
    """Of its blobs, which revisions share, and of files that stand in a revision themselves."""
    incomplete: int
    """Blobs that were not downloaded to their end."""
    incomplete_bytes: int
    """What there is of them."""


class HubCache(Struct, frozen=True):
    """What was found."""

    path: str
    repos: tuple[Repo, ...]
    whole: bool
    """Whether all of it was looked at."""


def default_cache(environ: Mapping[str, str]) -> str:
    """Return where the cache is by the variables that huggingface_hub reads, whether it exists or not."""
    home = environ.get("HOME") or os.path.expanduser("~")
    if named := environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE"):
        return os.path.expanduser(named)
    if named := environ.get("HF_HOME"):
        return os.path.join(os.path.expanduser(named), "hub")
    base = environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "huggingface", "hub")


def is_cache(folder: str) -> bool:
    """Tell whether `folder` holds repositories of a cache, from the first entries of it."""
    return any(_REPO.match(entry.name) for entry in _Walk(Event(), REPOS).entries(folder, link=True))


def read_cache(folder: str, cancel: Event) -> HubCache:
    """Return what lies in the cache `folder`, repositories by name. What cannot be read counts nothing.

    Raises `Cancelled`.
    """
    walk = _Walk(cancel, ENTRIES)
    repos: list[Repo] = []
    for entry in walk.entries(folder, link=True):
        parts = _REPO.fullmatch(entry.name)
        if parts is None or not entry.is_folder:
            continue
        if len(repos) == REPOS:
            walk.whole = False
            break
        repos.append(_repo(walk, entry.path, parts[1], parts[2].replace("--", "/")))
    repos.sort(key=lambda repo: (repo.name.lower(), repo.kind))
    return HubCache(folder, tuple(repos), walk.whole)


class _Entry(NamedTuple):
    name: str
    path: str
    status: os.stat_result
    """Of itself, a link not followed."""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode)


class _Walk:
    """Looks at entries until there were enough of them."""

    def __init__(self, cancel: Event, most: int) -> None:
        self._cancel = cancel
        self._left = most
        self.whole = True

    def entries(self, folder: str, *, link: bool = False) -> Iterator["_Entry"]:
        """Yield what stands in a folder; the folder is no link, unless it may be one."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if link else os.O_NOFOLLOW)
        try:
            descriptor = os.open(folder, flags)
        except OSError:
            return
        try:
            with os.scandir(descriptor) as listed:
                for entry in listed:
                    if self._cancel.is_set():
                        raise Cancelled
                    if self._left == 0:
                        self.whole = False
                        return
                    self._left -= 1
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:  # gone since
                        continue
                    yield _Entry(entry.name, os.path.join(folder, entry.name), status)
        except OSError:
            return
        finally:
            os.close(descriptor)

    def below(self, folder: str, depth: int = 0) -> Iterator["_Entry"]:
        """Yield what is no folder, in `folder` and below it."""
        for entry in self.entries(folder):
            if not entry.is_folder:
                yield entry
            elif depth < DEEPEST:
                yield from self.below(entry.path, depth + 1)
            else:
                self.whole = False


def _repo(walk: _Walk, path: str, kind: str, name: str) -> Repo:
    blobs: dict[str, int] = {}
    incomplete = []
    for entry in walk.entries(os.path.join(path, "blobs")):
        if not entry.is_file:
            continue
        if entry.name.endswith(INCOMPLETE):
            incomplete.append(entry.status.st_size)
        else:
            blobs[entry.name] = entry.status.st_size
    refs = _refs(walk, os.path.join(path, "refs"))
    revisions: list[Revision] = []
    copied = 0
    for entry in walk.entries(os.path.join(path, "snapshots")):
        if not entry.is_folder:
            continue
        if len(revisions) == REVISIONS:
            walk.whole = False
            break
        revision, its = _revision(walk, entry.path, entry.name, refs, blobs)
        revisions.append(revision)
        copied += its
    revisions.sort(key=lambda each: (not each.refs, each.commit))
    stored = sum(blobs.values()) + copied
    return Repo(kind, name, path, tuple(revisions), stored, len(incomplete), sum(incomplete))


def _revision(
    walk: _Walk, path: str, commit: str, refs: Mapping[str, list[str]], blobs: Mapping[str, int]
) -> tuple[Revision, int]:
    """Return a revision, and the bytes of files that are no links."""
    files = size = missing = foreign = copied = 0
    for entry in walk.below(path):
        files += 1
        if entry.is_file:  # a cache without links, or one that was copied
            size += entry.status.st_size
            copied += entry.status.st_size
            continue
        blob = _blob_of(entry.path) if stat.S_ISLNK(entry.status.st_mode) else None
        if blob is None:
            foreign += 1
        elif blob in blobs:
            size += blobs[blob]
        else:
            missing += 1
    names = tuple(sorted(refs.get(commit, ())))
    return Revision(commit, path, names, files, size, missing, foreign), copied


def _blob_of(link: str) -> str | None:
    try:
        found = _BLOB.fullmatch(os.readlink(link))
    except OSError:
        return None
    return None if found is None else found[1]


def _refs(walk: _Walk, folder: str) -> dict[str, list[str]]:
    """Return the names of `refs` by the commit that they hold."""
    found: dict[str, list[str]] = {}
    for entry in walk.below(folder):
        if not entry.is_file or entry.status.st_size > _REF_BYTES:
            continue
        try:
            descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                commit = os.fsdecode(file.read(_REF_BYTES).strip())
        except OSError:
            continue
        found.setdefault(commit, []).append(os.path.relpath(entry.path, folder))
    return found
