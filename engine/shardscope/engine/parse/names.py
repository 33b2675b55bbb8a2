"""What deserves a word about tensor names: none of it makes a file invalid, all of it trips somebody.

Findings carry counts and never a name, so that a message repeats nothing of the checkpoint.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.text import UNSAFE

LONG: Final = 512
"""Characters beyond which a name is called long; names in real checkpoints stay below 200."""

_PLAIN: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:-\n"
_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_ODD: Final = (
    *(b"..", b"./", b"/.", b"//", b":/", b"__", b"0" * 10),
    *(b"\n\n", b".\n", b"\n.", b"/\n", b"\n/", b"\n-"),
)
"""What no ordinary name holds, in plain names with every digit a 0 and a line break on either side."""

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNASSIGNED: Final = re.compile("[\ue000-\uf8ff\ufffd-\uffff\U000f0000-\U0010ffff]")
"""Private use, the replacement character and noncharacters: every font shows them alike."""
_MIXED: Final = re.compile("[A-Za-z][\u0370-\u052f]|[\u0370-\u052f][A-Za-z]")
"""A Latin letter beside a Greek or Cyrillic one."""
_SPECIAL: Final = re.compile(r"""[\[\]{}<>&|*`$()%"'#;!?=@^+,\\~]|^[/-]|^[A-Za-z]:[\\/]|^__\w+__\s*$""")
_PART: Final = re.compile(r"[./]")
_LONG_NUMBER: Final = re.compile(r"[0-9]{10}")
_RESERVED: Final = frozenset(
    ("None", "null", "nan", "true", "false", "undefined", "constructor", "prototype")
)
_RESERVED_BYTES: Final = frozenset(word.encode() for word in _RESERVED)
_LEVELS: Final = 64
_FEW: Final = 256


def note_names(names: list[str]) -> list[Finding]:
    """Return one finding for each kind of odd name, with its count.

    `header.name_confusable`, `name_control`, `name_empty`, `name_invisible`, `name_long` and `name_structure`. Layers repeat, so
    that with every digit a 0 few names are left: a file where those are short, plain ASCII paths, as nearly always, is
    cleared by them, and only others are looked at name by name.
    """
    joined = "\n".join(names)
    lines = joined.encode().translate(_DIGITS).split(b"\n")
    patterns = frozenset(lines)
    ordinary = _few_are_ordinary if len(patterns) <= _FEW else _are_ordinary
    if len(lines) == max(len(names), 1) and ordinary(patterns):
        return []
    counts = {
        "confusable": _confusable(names),
        "control": sum(_CONTROL.search(name) is not None for name in names),
        "empty": sum(not name for name in names),
        "invisible": sum(_is_invisible(name) for name in names),
        "long": sum(len(name) > LONG for name in names),
        "structure": sum(bool(name) and _is_odd_path(name) for name in names),
    }
    return [_note(kind, count) for kind, count in counts.items() if count]


def _note(kind: str, count: int) -> Finding:
    return Finding(
        f"header.name_{kind}", {"count": count} if kind != "long" else {"count": count, "bound": LONG}
    )


def _are_ordinary(patterns: frozenset[bytes]) -> bool:
    text = b"\n".join(patterns)
    framed = b"\n%b\n" % text
    return (
        not text.translate(None, _PLAIN)
        and not any(odd in framed for odd in _ODD)
        and max(map(len, patterns)) <= 2 * _LEVELS  # hence no name is long or has too many levels
        and patterns.isdisjoint(_RESERVED_BYTES)
        and len(set(text.lower().split(b"\n"))) == len(patterns)
    )


_few_are_ordinary: Final = lru_cache(64)(_are_ordinary)
"""The files of a checkpoint have the same few patterns."""


def _confusable(names: list[str]) -> int:
    """Names that look like another one, and names that mix alphabets."""
    alike = len(names) - len({_skeleton(name) for name in names})
    return alike + sum(_MIXED.search(name) is not None for name in names if not name.isascii())


def _skeleton(name: str) -> str:
    """The name as a careless eye or a case-insensitive file system sees it."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _is_invisible(name: str) -> bool:
    if name.isascii():
        return False
    return _UNASSIGNED.search(name) is not None or UNSAFE.search(_CONTROL.sub("", name)) is not None


def _is_odd_path(name: str) -> bool:
    if _SPECIAL.search(name) or name in _RESERVED:
        return True
    parts = _PART.split(name)
    if len(parts) > _LEVELS or not all(parts) or _LONG_NUMBER.search(name):
        return True
    return not name.isascii() and any(char.isnumeric() and not char.isascii() for char in name)
