"""The closed vocabulary: words that say nothing about anybody, because every copy of shardscope has them.

A secret, a person or a machine is told by an uncommon word. So a word of a checkpoint is repeated only where it is one of ours:
of our own sentences and naming schemes (`words`, made by `docs/generate.py`), or of the names of public models and their
classes (`public`, kept by hand).
"""

import re
from functools import cache
from typing import Final

from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.report.public import PUBLIC
from shardscope.engine.report.words import WORDS

_HUMP: Final = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MIXED: Final = re.compile(r"([A-Za-z]*)(\d+)([A-Za-z]*)")
_TYPES: Final = frozenset(part.lower() for name in DTYPES for part in name.split("_"))
DIGITS: Final = 7
"""A longer number may be a date, a telephone number or the number of a job."""


@cache
def words() -> frozenset[str]:
    """Return the vocabulary, in lower case."""
    return frozenset(WORDS.split()) | public()


@cache
def public() -> frozenset[str]:
    """Return the words that names of classes may be made of, in lower case."""
    return frozenset(PUBLIC.split())


def is_number(run: str) -> bool:
    """Tell whether `run` is a number that counts or numbers something."""
    return run.isascii() and run.isdecimal() and len(run) <= DIGITS


def is_common(run: str) -> bool:
    """Tell whether `run`, which holds no separator, is made of words and numbers that say nothing about anybody.

    A word (`weight`), the name of a class made of public words (`LlamaForCausalLM`), a number, or a word with a number before or after it (`70b`,
    `step1000`). Anything that alternates more often looks like a key and is none of these.
    """
    if not run.isascii() or len(run) > 64:
        return False
    if is_number(run) or len(run) == 1 or run.lower() in words() or run.lower() in _TYPES:
        return True
    if run.isalpha():
        return _is_spelt(run)
    mixed = _MIXED.fullmatch(run)
    if mixed is None:
        return False
    before, digits, after = mixed.groups()
    known = all(not part or len(part) == 1 or _is_spelt(part) for part in (before, after))
    return known and is_number(digits) and not (before and after and len(digits) > 2)


def _is_spelt(run: str) -> bool:
    if run.lower() in words():
        return True
    parts = _HUMP.findall(run)
    return "".join(parts) == run and all(part.lower() in public() for part in parts)


def is_commonplace(text: str) -> bool:
    """Tell whether a text is made of nothing but common runs, so that finding it again means nothing."""
    return all(is_common(run) for run in re.findall(r"[^\W_]+", text))
