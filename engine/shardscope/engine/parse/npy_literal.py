"""The Python literal in the header of an `.npy` file, read by a grammar of its own: strings, whole numbers, truth values, brackets.

NumPy reads it with `ast.literal_eval`. That builds whatever a literal can say before anything is checked; here a text of bounded
length is cut into words, and a word that is none of these ends it. Nothing is evaluated.
"""

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

Value: TypeAlias = "str | int | bool | tuple[Value, ...] | list[Value] | dict[str, Value] | None"

DEEPEST: Final = 16
_WORD: Final = re.compile(
    r"\s*(?:(?P<text>'[^'\\\n]*'|\"[^\"\\\n]*\")|(?P<number>-?[0-9]{1,19})L?|(?P<name>True|False|None)|(?P<mark>[{}()\[\],:]))"
)
_NAMES: Final[dict[str, bool | None]] = {"True": True, "False": False, "None": None}
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


def read_literal(text: str) -> Value:
    """Return what a literal says. Raises `ValueError` with a clause that says why it is none."""
    words = _words(text)
    value = _value(words, next(words, ""), 0)
    if next(words, None) is not None:
        raise ValueError("something follows its literal")
    return value


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text: strings with their quotation marks, numbers, names and brackets."""
    at, end = 0, len(text.rstrip())
    while at < end:
        word = _WORD.match(text, at)
        if word is None:
            raise ValueError("its header holds something else than strings, numbers and brackets")
        at = word.end()
        yield word["text"] or word["number"] or word["name"] or word["mark"]


def _value(words: Iterator[str], word: str, depth: int) -> Value:
    if depth > DEEPEST:
        raise ValueError(f"its header is nested more than {DEEPEST} deep")
    match word[:1]:
        case "'" | '"':
            return word[1:-1]
        case "{":
            return _mapping(words, depth)
        case "(" | "[":
            items, comma = _items(words, _CLOSING[word], depth)
            if word == "[":
                return items
            return items[0] if len(items) == 1 and not comma else tuple(items)
    if word in _NAMES:
        return _NAMES[word]
    if word.lstrip("-").isdigit():
        return int(word)
    raise ValueError("its header ends early" if not word else "its header has a bracket or a comma too many")


def _items(words: Iterator[str], closing: str, depth: int) -> tuple[list[Value], bool]:
    """Return the items up to a bracket, and whether a comma stood before it."""
    items: list[Value] = []
    word = next(words, "")
    while word != closing:
        items.append(_value(words, word, depth + 1))
        word = next(words, "")
        if word == closing:
            return items, False
        if word != ",":
            raise ValueError("its header lacks a comma or a bracket")
        word = next(words, "")
    return items, bool(items)


def _mapping(words: Iterator[str], depth: int) -> dict[str, Value]:
    found: dict[str, Value] = {}
    word = next(words, "")
    while word != "}":
        key = _value(words, word, depth + 1)
        if not isinstance(key, str) or next(words, "") != ":":
            raise ValueError("its header is no mapping of names")
        if key in found:
            raise ValueError("a key stands twice in its header")
        found[key] = _value(words, next(words, ""), depth + 1)
        word = next(words, "")
        if word == ",":
            word = next(words, "")
        elif word != "}":
            raise ValueError("its header lacks a comma or a bracket")
    return found
