"""The text of a pattern, taken apart into a tree: what `patterns` runs as states.

The syntax is that of the standard library's `re`, without what looks around, refers back, sets flags or must not be given back.
"""

from collections.abc import Callable
from typing import Final, NoReturn

from msgspec import Struct

from shardscope.engine.model.blocker import Fault

LENGTH: Final = 4_096
"""Characters of one pattern."""
DEPTH: Final = 32
"""Groups within groups."""
MOST: Final = 4_096
"""Times of one repeat."""

CLASSES: Final[dict[str, Callable[[str], bool]]] = {
    "d": str.isdecimal,
    "D": lambda c: not c.isdecimal(),
    "s": str.isspace,
    "S": lambda c: not c.isspace(),
    "w": lambda c: c.isalnum() or c == "_",
    "W": lambda c: not (c.isalnum() or c == "_"),
}
_CONTROL: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLACES: Final = {"A": "start", "Z": "end", "b": "edge", "B": "inside"}


class CharacterSet(Struct, frozen=True):
    """One character out of a set."""

    ranges: tuple[tuple[str, str], ...] = ()
    classes: str = ""
    negated: bool = False

    def has(self, c: str) -> bool:
        """Tell whether a character is in the set."""
        found = any(low <= c <= high for low, high in self.ranges)
        return (found or any(CLASSES[name](c) for name in self.classes)) != self.negated


class Place(Struct, frozen=True):
    """A condition on a place between characters: `start`, `end`, `last` (`$`), `edge` or `inside`."""

    kind: str


class InTurn(Struct, frozen=True):
    """Items one after the other; nothing where there are none."""

    items: tuple["Item", ...]


class AnyOf(Struct, frozen=True):
    """One of several items."""

    items: tuple["Item", ...]


class Repeat(Struct, frozen=True):
    """An item `least` to `most` times; null is without end."""

    item: "Item"
    least: int
    most: int | None


Item = CharacterSet | Place | InTurn | AnyOf | Repeat

_DOT: Final = CharacterSet((("\n", "\n"),), negated=True)


class Reader:
    """Takes a pattern apart."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Item:
        """Return the tree of the pattern. Raises `Fault` `universal.pattern`."""
        if len(self._text) > LENGTH:
            self._refuse(f"it is longer than {LENGTH:,} characters")
        item = self._alternatives()
        if self._at < len(self._text):
            self._refuse("a parenthesis is closed that was not opened")
        return item

    def _refuse(self, reason: str) -> NoReturn:
        raise Fault("universal.pattern", pattern=self._text, reason=reason)

    def _peek(self, what: str) -> bool:
        return self._text.startswith(what, self._at)

    def _take(self) -> str:
        if self._at >= len(self._text):
            self._refuse("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _took(self, what: str) -> bool:
        if self._peek(what):
            self._at += len(what)
            return True
        return False

    def _alternatives(self) -> Item:
        branches = [self._sequence()]
        while self._took("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else AnyOf(tuple(branches))

    def _sequence(self) -> Item:
        items: list[Item] = []
        while self._at < len(self._text) and not self._peek("|") and not self._peek(")"):
            items.append(self._repeat(self._atom()))
        return InTurn(tuple(items))

    def _atom(self) -> Item:
        c = self._take()
        match c:
            case "(":
                return self._group()
            case "[":
                return self._set()
            case ".":
                return _DOT
            case "^":
                return Place("start")
            case "$":
                return Place("last")
            case "*" | "+" | "?":
                self._refuse("there is nothing to repeat")
            case "\\":
                return self._escape()
        return CharacterSet(((c, c),))

    def _group(self) -> Item:
        if self._took("?P<"):
            while self._take() != ">":
                pass
        elif not self._took("?:") and self._peek("?"):
            self._refuse("it looks around, sets flags or refers back")
        self._depth += 1
        if self._depth > DEPTH:
            self._refuse(f"its groups are nested deeper than {DEPTH}")
        item = self._alternatives()
        self._depth -= 1
        if self._take() != ")":
            self._refuse("a parenthesis is not closed")
        return item

    def _escape(self) -> Item:
        c = self._take()
        if c in _PLACES:
            return Place(_PLACES[c])
        if c in CLASSES:
            return CharacterSet(classes=c)
        return CharacterSet(((plain := self._plain(c), plain),))

    def _plain(self, c: str) -> str:
        if c in _CONTROL:
            return _CONTROL[c]
        if c.isascii() and c.isalnum():
            self._refuse("it refers back or names a character by number")
        return c

    def _set(self) -> Item:
        negated = self._took("^")
        ranges: list[tuple[str, str]] = []
        classes = ""
        first = True
        while first or not self._peek("]"):
            first = False
            low = self._member()
            if len(low) == 2:
                classes += low[1]
                continue
            high = low
            if self._peek("-") and not self._text.startswith("-]", self._at):
                self._take()
                high = self._member()
                if len(high) == 2 or high < low:
                    self._refuse("a range of characters runs back")
            ranges.append((low, high))
        self._take()
        return CharacterSet(tuple(ranges), classes, negated)

    def _member(self) -> str:
        """Return a character of a set, or a backslash with the letter of a class."""
        c = self._take()
        if c != "\\":
            return c
        c = self._take()
        if c in CLASSES:
            return "\\" + c
        return "\b" if c == "b" else self._plain(c)

    def _repeat(self, item: Item) -> Item:
        found = self._times()
        if found is None:
            return item
        if isinstance(item, Place):
            self._refuse("there is nothing to repeat")
        least, most = found
        if most is not None and (most < least or max(least, most) > MOST):
            self._refuse("a repeat runs back or is too long")
        if self._took("+"):
            self._refuse("a repeat is possessive")
        if not self._took("?") and self._times() is not None:
            self._refuse("a repeat is repeated")
        return Repeat(item, least, most)

    def _times(self) -> tuple[int, int | None] | None:
        for sign, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._took(sign):
                return least, most
        if not self._peek("{"):
            return None
        end = self._text.find("}", self._at)
        inner = self._text[self._at + 1 : end] if end > 0 else ""
        low, comma, high = inner.partition(",")
        if not _counts(low, high) or not (low or comma):
            return None  # a brace like any other character
        self._at = end + 1
        least = int(low or 0)
        if not comma:
            return least, least
        return least, int(high) if high else None


def _counts(*texts: str) -> bool:
    """Tell whether the texts are empty or short decimal numbers."""
    return all(not text or (len(text) <= 6 and text.isascii() and text.isdigit()) for text in texts)
