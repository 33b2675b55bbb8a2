"""The search and the order of the Tensors panel in the words of `shardscope tensors`."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import translate
from typing import Final

_OTHER: Final = re.compile(r"[!<>=]|(?:dtype|shape|file|shard|rank):.", re.IGNORECASE)
"""How a word of a search begins that is not about the name, or that negates."""

_ORDERS: Final = {(0, False): "name", (3, True): "bytes"}
"""By column, and whether it descends, what `--sort` calls it."""


def as_order(column: int | None, *, descending: bool) -> str | None:
    """Return the `--sort` of an order of the table, None where it has none."""
    return None if column is None else _ORDERS.get((column, descending))


def as_glob(query: str, shown: Iterable[str]) -> str | None:
    """Return the `--filter` that lists what `query` lists, None where there is none.

    `shown` are the names that the search found. A search does not tell upper from lower case and finds letters that stand apart:
    letters become classes (`[qQ]`) and get stars between them (`*q*p*`) unless a plainer filter finds all of `shown`.
    """
    words = query.split()
    if len(words) != 1 or _OTHER.match(words[0]):
        return None
    names = list(shown)
    for pattern in _patterns(words[0]):
        if all(map(re.compile(translate(pattern)).match, names)):
            return pattern
    return None


def _patterns(word: str) -> Iterator[str]:
    """Yield filters for a word, none of which finds what the search does not: the plainest first, the widest last."""
    if "*" in word or "?" in word:
        yield word.replace("[", "[[]")
        yield "".join(map(_either, word))
        return
    exact = word.startswith("'") and len(word) > 1
    letters = word[1:] if exact or (word.startswith("~") and len(word) > 1) else word
    for each in (_literal, _either):
        yield f"*{''.join(map(each, letters))}*"
    if not exact:
        for each in (_literal, _either):
            yield f"*{'*'.join(map(each, letters))}*"


def _literal(char: str) -> str:
    return "[[]" if char == "[" else char


def _either(char: str) -> str:
    if char == "[":
        return "[[]"
    lower, upper = char.lower(), char.upper()
    return char if lower == upper or len(lower) + len(upper) > 2 else f"[{lower}{upper}]"
