"""What is wrong with names: bytes that are no text, characters that deceive, names that look alike."""

import re
from collections.abc import Sequence
from typing import Final

from shardscope.engine.model.text import UNSAFE, display_name, path_text
from shardscope.engine.source.found import Found

_PLAIN: Final = re.compile(rb"[!-~](?:[ -~]*[!-~])?")
"""Printable ASCII that neither starts nor ends with a space: nothing to say about it."""
_PRINTABLE: Final = bytes(range(0x20, 0x7F))
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_DIRECTION: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SMUGGLED: Final = re.compile("[\udc80-\udcff]")
_STACKED: Final = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]{4}")
"""Combining marks: three on one letter occur in real spelling, four paint over other lines."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_LATIN: Final = re.compile("[A-Za-z]")
_LOOKALIKE: Final = re.compile("[\u0370-\u03ff\u0400-\u052f\u0531-\u0587\u13a0-\u13ff]")
"""Greek, Cyrillic, Armenian and Cherokee: the alphabets with letters drawn like Latin ones."""

_ORDINARY_HIDDEN: Final = frozenset(
    {b".metadata", b".gitattributes", b".gitignore", b".zarray", b".zattrs", b".zgroup", b".zmetadata"}
)
"""Names that checkpoint formats and repositories give on purpose."""


def judge_names(folder: bytes, names: Sequence[bytes], found: Found, *, inside_hidden: bool) -> None:
    """Add to `found` what is to say about the names that `folder` holds."""
    if _unremarkable(names):
        return
    prefix = folder + b"/" if folder else b""
    for name in names:
        if name.startswith(b".") and not inside_hidden and name not in _ORDINARY_HIDDEN:
            found.add(prefix + name, "source.hidden")
        if not _PLAIN.fullmatch(name):
            _judge_name(prefix + name, path_text(name), found)
    first: dict[str, bytes] = {}
    for name in sorted(names):
        other = first.setdefault(_look(name), name)
        if other != name:
            found.add(prefix + name, "source.name_collision", other=path_text(prefix + other))


def _unremarkable(names: Sequence[bytes]) -> bool:
    """Tell whether there is nothing to say about any of `names`: all of them at once, which takes a tenth of the time."""
    joined = b"/%b/" % b"/".join(names)
    if joined.translate(None, _PRINTABLE) or b"/." in joined or b"/ " in joined or b" /" in joined:
        return False
    return len(set(joined.lower().split(b"/"))) == len(names) + 1


def _judge_name(path: bytes, name: str, found: Found) -> None:
    text = _SMUGGLED.sub("", name)
    if text != name:
        found.add(path, "source.name_not_utf8")
    what = _oddity(text)
    if what:
        found.add(path, "source.name_odd", what=what)


def _oddity(text: str) -> str | None:
    if _CONTROL.search(text):
        return "control characters"
    if _DIRECTION.search(text):
        return "characters that reverse the direction of writing"
    if UNSAFE.search(text):
        return "invisible characters"
    if _STACKED.search(text):
        return "stacked combining marks"
    if text != text.strip():
        return "spaces at its start or end"
    if any(_LATIN.search(word) and _LOOKALIKE.search(word) for word in _WORD.findall(text)):
        return "letters of different alphabets in one word"
    return None


def _look(name: bytes) -> str:
    """Return the name as a careless reader, or a file system that folds names, sees it."""
    if name.isascii() and _PLAIN.fullmatch(name):
        return name.decode().lower()
    import unicodedata  # its tables have a megabyte, and few checkpoints need them

    shown = unicodedata.normalize("NFC", display_name(path_text(name)))
    return unicodedata.normalize("NFC", shown.casefold())
