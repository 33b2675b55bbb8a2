"""The text arguments of protocol 0, in the spelling of the picklers of Python 2 and 3."""

import codecs
import math
import re

from shardscope.engine.model.blocker import Fault

WHOLE = re.compile(rb"0|-?[1-9][0-9]*")
REAL = re.compile(rb"-?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?")
NOT_FINITE = (b"nan", b"inf", b"-inf")
QUOTED = re.compile(rb"""(['"])((?:(?!\1)[^\\]|\\[\\'"nrt]|\\x[0-9a-f]{2})*)\1""", re.DOTALL)
"""A string as Python 2's `repr` writes it."""


def whole(raw: bytes, at: int) -> int:
    """Return an integer. Its length is bounded by the caller."""
    if not WHOLE.fullmatch(raw):
        raise Fault("pickle.text_form", position=at)
    try:
        return int(raw)
    except ValueError:  # more digits than the interpreter is set to read
        raise Fault("pickle.text_form", position=at) from None


def real(raw: bytes, at: int) -> float:
    """Return a number with a point."""
    if raw not in NOT_FINITE and not (len(raw) < 400 and REAL.fullmatch(raw)):
        raise Fault("pickle.text_form", position=at)
    found = float(raw)
    if math.isinf(found) and raw not in NOT_FINITE:
        raise Fault("pickle.text_form", position=at)
    return found


def quoted(raw: bytes, at: int) -> bytes:
    """Return what stands between quotes, with the escapes of Python 2's `repr` undone."""
    found = QUOTED.fullmatch(raw)
    if found is None:
        raise Fault("pickle.text_form", position=at)
    return codecs.escape_decode(found[2])[0]


def unescaped(raw: bytes, at: int) -> str:
    """Return the text of UNICODE, whose escapes are those of raw unicode literals."""
    try:
        return raw.decode("raw-unicode-escape")
    except UnicodeDecodeError:
        raise Fault("pickle.text_form", position=at) from None
