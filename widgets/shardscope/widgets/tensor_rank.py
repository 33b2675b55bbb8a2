"""Results of a search by how well they answer it: whole parts of names first, then what holds the words, then looser ones."""

import threading
from array import array
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.model.progress import check
from shardscope.engine.model.tensors import TensorTable
from shardscope.engine.model.text import display_name

CHUNK: Final = 4_096
"""Rows between two looks at `cancel`."""
LOOSE: Final = 3
"""From this score on a word is not in the name as it was typed."""
WORST: Final = 63
FAR: Final = 8
"""Characters over which those of a word are spread, to be worse by one."""
_BORDERS: Final = "./_-"


class Ranked(Struct, frozen=True):
    """Rows in the order of relevance."""

    rows: "array[int]"
    typed: int
    """How many of them, the first ones, hold every word as it was typed."""


def ranked_rows(
    table: TensorTable, rows: Sequence[int], words: Sequence[str], cancel: threading.Event | None = None
) -> Ranked:
    """Return `rows`, which match `words`, the best first; those that are as good keep their order. Raises `Cancelled`."""
    wanted = [word.lower() for word in words]
    plain = all(word.isascii() and "\\" not in word for word in wanted)
    names = table.names
    buckets = [array("L") for _ in range(WORST + 1)]
    loose = array("L")
    for begin in range(0, len(rows), CHUNK):
        check(cancel)
        for row in rows[begin : begin + CHUNK]:
            name = names[row] if plain else display_name(names[row])
            text = name.lower()
            total, typed = 0, True
            for word in wanted:
                own = score(text, word)
                total += own
                typed &= own < LOOSE
            if typed:
                buckets[min(total, WORST)].append(row)
            else:
                loose.append(row)
                loose.append(min(total, WORST))
    found = array("L")
    for bucket in buckets:
        found.extend(bucket)
    exact = len(found)
    for total in range(WORST + 1) if loose else ():
        check(cancel)
        found.extend(row for row, own in zip(loose[::2], loose[1::2], strict=True) if own == total)
    return Ranked(found, exact)


def score(text: str, word: str) -> int:
    """Return how well `text` answers `word`, both in lower case: 0 for a whole part of it, up to `WORST`.

    1 where a part begins with it, 2 where it is anywhere as typed. From 3 on only its characters are there in order: the fewer
    stretches they come in and the nearer these are, the better.
    """
    at = text.find(word)
    if at >= 0:
        return _held(text, word, at)
    stretches, begin, end = _stretches(text, word)
    inside = begin > 0 and text[begin - 1] not in _BORDERS
    return min(WORST, LOOSE + 2 * (stretches - 1) + inside + (end - begin) // FAR)


def _held(text: str, word: str, at: int) -> int:
    best = 2
    while at >= 0:
        if at == 0 or text[at - 1] in "./":
            end = at + len(word)
            if end == len(text) or text[end] in "./":
                return 0
            best = 1
        at = text.find(word, at + 1)
    return best


def _stretches(text: str, word: str) -> tuple[int, int, int]:
    """Return in how many stretches the characters of `word` stand where they end first, and from where to where."""
    end = -1
    for character in word:
        end = text.find(character, end + 1)
        if end < 0:
            return WORST, 0, 0
    stretches, at = 1, end
    for character in reversed(word[:-1]):
        before = text.rfind(character, 0, at)
        stretches += before != at - 1
        at = before
    return stretches, at, end
