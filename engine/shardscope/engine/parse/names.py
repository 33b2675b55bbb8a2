"""What deserves a word about tensor names: none of it makes a file invalid, all of it trips somebody.

Findings carry counts and never a name, so that a message repeats nothing of the checkpoint.
"""

import re
import unicodedata
from typing import Final

from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.text import UNSAFE

LONG: Final = 512
"""Characters beyond which a name is called long; names in real checkpoints stay below 200."""

_PLAIN: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:-\n"
_SHAPE: Final = bytes(48 if 48 <= byte <= 57 else byte if byte in b"./:-\n" else 97 for byte in range(256))
"""Digits become 0 and all but the separators an a, so that odd patterns are plain substrings."""
_ODD_SHAPES: Final = (
    *(b"..", b"./", b"/.", b"//", b":/", b"0" * 10),
    *(b"\n\n", b".\n", b"\n.", b"/\n", b"\n/", b"\n-"),
)

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
_LEVELS: Final = 64


def note_names(names: list[str]) -> list[Finding]:
    """Return one finding for each kind of odd name, with its count.

    `header.name_confusable`, `name_control`, `name_empty`, `name_invisible`, `name_long` and `name_structure`. A file whose
    names are all short, plain ASCII paths, as nearly all are, is cleared in a few passes over one joined string;
    only others are looked at name by name.
    """
    joined = "\n".join(names)
    encoded = joined.encode()
    plain = not encoded.translate(None, _PLAIN) and joined.count("\n") == len(names) - 1
    if plain:
        counts = {"confusable": len(names) - len(set(joined.casefold().split("\n")))}
    else:
        skeletons = {_skeleton(name) for name in names}
        mixed = sum(_MIXED.search(name) is not None for name in names)
        counts = {"confusable": len(names) - len(skeletons) + mixed}
        counts["control"] = sum(_CONTROL.search(name) is not None for name in names)
        counts["invisible"] = sum(_is_invisible(name) for name in names)
    framed = b"\n%b\n" % encoded.translate(_SHAPE)
    longest = max(map(len, names), default=0)
    if (
        not plain
        or any(shape in framed for shape in _ODD_SHAPES)
        or b"__" in encoded
        or longest > 2 * _LEVELS
        or not _RESERVED.isdisjoint(names)
    ):
        counts["empty"] = sum(not name for name in names)
        counts["structure"] = sum(bool(name) and _is_odd_path(name) for name in names)
    if longest > LONG:
        counts["long"] = sum(len(name) > LONG for name in names)
    notes = []
    for kind, count in sorted(counts.items()):
        bound = {"bound": LONG} if kind == "long" else {}
        if count:
            notes.append(Finding(f"header.name_{kind}", {"count": count, **bound}))
    return notes


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
