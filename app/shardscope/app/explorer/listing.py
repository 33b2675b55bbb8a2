"""The search and the order of the Tensors panel in the words of `shardscope tensors`."""

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import Final

_OTHER: Final = re.compile(r"[!~<>=]|(?:dtype|shape|file|shard|rank):.", re.IGNORECASE)
"""How a word of a search begins that is not about the name, or that negates or is fuzzy."""

_ORDERS: Final = {(0, False): "name", (3, True): "bytes"}
"""By column, and whether it descends, what `--sort` calls it."""


def as_order(column: int | None, *, descending: bool) -> str | None:
    """Return the `--sort` of an order of the table, None where it has none."""
    return None if column is None else _ORDERS.get((column, descending))


def as_glob(query: str, shown: Iterable[str]) -> str | None:
    """Return the `--filter` that lists what `query` lists, None where there is none.

    `shown` are the names that the search found. A search does not tell upper from lower case and a filter does, so that
    letters become classes (`[qQ]`) unless the filter as typed finds all of `shown`.
    """
    words = query.split()
    if len(words) != 1 or _OTHER.match(words[0]):
        return None
    word = words[0]
    whole = "*" in word or "?" in word
    literal = word.replace("[", "[[]")
    pattern = literal if whole else f"*{literal}*"
    matches = re.compile(translate(pattern)).match
    if all(matches(name) for name in shown):
        return pattern
    either = "".join(_either(char) for char in word)
    return either if whole else f"*{either}*"


def _either(char: str) -> str:
    if char == "[":
        return "[[]"
    lower, upper = char.lower(), char.upper()
    return char if lower == upper or len(lower) + len(upper) > 2 else f"[{lower}{upper}]"
