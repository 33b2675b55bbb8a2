"""Who and where we are: what a finished report is searched for before it is written.

Read here and nowhere else: the user (name, full name, home folder), the machine, the working folder, the paths of the command and
the environment's values. None of it enters a report; it is only compared with one.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from shardscope.engine.model.secrets import find_secrets
from shardscope.engine.report.vocabulary import is_common, is_commonplace

SHORTEST: Final = 3
"""Characters. What is shorter is found everywhere and tells nothing."""
OWN: Final = ("the user", "this machine")
"""Kinds that a report has no reason at all to name."""
_RUNS: Final = re.compile(r"[^\W_]+")
_NOBODY: Final = frozenset(
    ("root", "localhost", "localdomain", "none", "unknown", "home", "users", "usr", "bin", "sbin", "lib", "lib64", "libexec", "local",
     "opt", "var", "tmp", "etc", "mnt", "srv", "media", "proc", "dev", "share", "data", "work", "workspace")
)  # fmt: skip
"""Words that every machine has."""
_PLAIN: Final = re.compile(r"[0-9.]{1,7}|\d+(?:\.\d+){0,2}")


class Identity(Struct, frozen=True):
    """One text that belongs to this machine or session."""

    kind: str
    """`the user`, `this machine`, `a path`, `the environment`: safe to show, unlike the value."""
    value: str
    """Lower case."""
    anywhere: bool
    """It counts inside a longer word, too."""


def identities(paths: Iterable[str], environment: Mapping[str, str] | None = None) -> tuple[Identity, ...]:
    """Return what tells of this machine and session, given the paths of the command. Longest first, each once.

    A text that is made of common words alone (`/usr/local`, `main`) is left out: finding it again would mean nothing.
    """
    values = os.environ if environment is None else environment
    found: dict[str, Identity] = {}
    for kind, text in (*_user(values), *_machine(), *_paths(paths), *_environment(values)):
        lowered = text.strip().lower()
        own = kind in OWN
        if _tells(lowered, own):
            found.setdefault(lowered, Identity(kind, lowered, anywhere=len(lowered) >= (6 if own else 8)))
    return tuple(sorted(found.values(), key=lambda each: (-len(each.value), each.value)))


def private(found: Iterable[Identity]) -> tuple[str, ...]:
    """Return those that have to be replaced whole, since each word of them is a common one: `gpu-node-03`."""
    return tuple(each.value for each in found if each.kind in OWN and is_commonplace(each.value))


def _tells(text: str, own: bool) -> bool:
    if len(text) < SHORTEST or text in _NOBODY or _PLAIN.fullmatch(text):
        return False
    if own:  # a name of several words may be common in each of them
        return not (text.isalpha() and is_common(text)) and _RUNS.search(text) is not None
    everywhere = all(run in _NOBODY or is_common(run) for run in _RUNS.findall(text))
    return not everywhere or bool(find_secrets(text))


def _user(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    import pwd

    kind = "the user"
    for name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER"):
        yield kind, environment.get(name, "")
    home = environment.get("HOME", "")
    yield kind, os.path.basename(home.rstrip("/"))
    yield from _path(home)
    try:
        entry = pwd.getpwuid(os.getuid())
    except KeyError:  # a user without an entry: the usual case in containers
        return
    full = entry.pw_gecos.partition(",")[0]
    yield kind, entry.pw_name
    yield kind, full
    yield from ((kind, part) for part in _RUNS.findall(full))
    yield from _path(entry.pw_dir)


def _machine() -> Iterator[tuple[str, str]]:
    host = os.uname().nodename
    yield "this machine", host
    yield "this machine", host.partition(".")[0]
    yield "this machine", host.partition(".")[2]


def _paths(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    with contextlib.suppress(OSError):  # the working folder may be gone
        yield from _path(os.getcwd())
    for path in paths:
        whole = os.path.abspath(path)
        yield from _path(os.path.dirname(whole))
        yield from _path(os.path.dirname(os.path.realpath(path)))
        yield "a path", whole
        if os.path.isdir(path):  # the name of a file is in its report, as all names are
            yield from _path(os.path.basename(whole))


def _path(path: str) -> Iterator[tuple[str, str]]:
    """Yield an absolute path and its folders, which may be the name of a person or a project."""
    yield "a path", path
    for part in path.split("/"):
        yield "a path", part
        yield from (("a path", run) for run in _RUNS.findall(part) if len(run) > SHORTEST)


def _environment(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for value in values.values():
        yield "the environment", value
        yield from (("the environment", value[hit.start : hit.end]) for hit in find_secrets(value))
        for part in re.split(r"[\s:;,=/@]+", value):
            yield "the environment", part
        yield from (("the environment", run) for run in _RUNS.findall(value) if len(run) > SHORTEST)
