"""The patterns of a checkpoint, matched in time proportional to their length.

DeepSpeed's lists of patterns are matched with `re.match`, at the start of a parameter's name. They come from a file, and
the engine of the standard library backtracks: `(a+)+$` on a name of 40 characters keeps it busy for hours. So a pattern is
taken apart here into a tree of plain characters, classes, groups, alternatives and repeats, and run as a set of states,
each character once. The answer is the one of `re.match`; what has no place in such a run (look-around, back references,
flags, possessive repeats) is refused by name.
"""

from collections.abc import Callable, Iterable
from typing import Final, NoReturn

from msgspec import Struct

from shardscope.engine.geometry.deepspeed import exact_name
from shardscope.engine.model.blocker import Fault

LENGTH: Final = 4_096
"""Characters of one pattern."""
DEPTH: Final = 32
"""Groups within groups."""
STATES: Final = 4_096
"""States of one pattern, repeats written out."""
STEPS: Final = 5_000_000
"""States visited by one set of patterns over all names, those remembered from before not counted."""
REMEMBERED: Final = 4_096
"""Moves from one set of states to the next that a pattern keeps."""

_CLASSES: Final[dict[str, Callable[[str], bool]]] = {
    "d": str.isdecimal,
    "D": lambda c: not c.isdecimal(),
    "s": str.isspace,
    "S": lambda c: not c.isspace(),
    "w": lambda c: c.isalnum() or c == "_",
    "W": lambda c: not (c.isalnum() or c == "_"),
}
_CONTROL: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLACES: Final = {"A": "start", "Z": "end", "b": "edge", "B": "inside"}


class _Set(Struct, frozen=True):
    """One character out of a set."""

    ranges: tuple[tuple[str, str], ...] = ()
    classes: str = ""
    negated: bool = False

    def has(self, c: str) -> bool:
        found = any(low <= c <= high for low, high in self.ranges)
        return (found or any(_CLASSES[name](c) for name in self.classes)) != self.negated


class _Place(Struct, frozen=True):
    """A condition on a place between characters: `start`, `end`, `last` (`$`), `edge` or `inside`."""

    kind: str


class _All(Struct, frozen=True):
    items: tuple["_Item", ...]


class _Any(Struct, frozen=True):
    items: tuple["_Item", ...]


class _Repeat(Struct, frozen=True):
    item: "_Item"
    least: int
    most: int | None


_Item = _Set | _Place | _All | _Any | _Repeat

_DOT: Final = _Set((("\n", "\n"),), negated=True)


class Patterns:
    """A list of patterns that names are matched with, one after the other."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Raises `Fault` `universal.pattern`."""
        self.texts = tuple(dict.fromkeys(texts))
        self._exact: dict[str, list[str]] = {}
        self._others: list[tuple[str, _Machine]] = []
        for text in self.texts:
            name = exact_name(text)
            # `$` also stands before a line feed at the very end, so a name with one takes the long way.
            if name is not None and not name.endswith("\n"):
                self._exact.setdefault(name, []).append(text)
            else:
                self._others.append((text, _Machine(text)))
        self._steps = 0

    def matching(self, name: str) -> tuple[str, ...]:
        """Return the patterns that match at the start of `name`, in their order.

        Raises `Fault` `universal.pattern` where matching takes too many steps.
        """
        found = {*self._exact.get(name, ())}
        if name.endswith("\n"):
            found.update(self._exact.get(name[:-1], ()))
        for text, machine in self._others:
            matched, steps = machine.run(name, STEPS - self._steps)
            self._steps += steps
            if self._steps >= STEPS:
                raise Fault("universal.pattern", pattern=text, reason="matching it takes too many steps")
            if matched:
                found.add(text)
        return tuple(text for text in self.texts if text in found)


class _Machine:
    """A pattern as states: a state reads one character of a set, checks a place, or splits."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._reads: list[_Set | None] = []
        self._checks: list[_Place | None] = []
        self._next: list[tuple[int, ...]] = []
        self._end = self._state(None, None, ())
        self._start = self._built(_Reader(text).whole(), self._end)
        self._moves: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        kinds = {check.kind for check in self._checks if check is not None}
        # Where only places at the ends are asked for, what happens between them depends on nothing but the states.
        self._at_ends = bool(kinds)
        self._contextual = bool(kinds & {"edge", "inside"})

    def run(self, name: str, steps: int) -> tuple[bool, int]:
        """Tell whether the pattern matches at the start of `name`, and how many steps it took (at most about `steps`)."""
        taken = 0
        states = frozenset((self._start,))
        for position in range(len(name) + 1):
            c = name[position] if position < len(name) else ""
            steady = not self._contextual and (not self._at_ends or 0 < position < len(name) - 1)
            if steady and (states, c) in self._moves:
                states = self._moves[states, c]
                continue
            here = self._closed(states, name, position)
            taken += len(here) + 1
            if self._end in here:
                return True, taken
            if not c or not here or taken >= steps:
                return False, taken
            after = frozenset(
                target
                for state in here
                if (read := self._reads[state]) is not None and read.has(c)
                for target in self._next[state]
            )
            if steady and len(self._moves) < REMEMBERED:
                self._moves[states, c] = after
            states = after
        return False, taken

    def _closed(self, states: frozenset[int], name: str, position: int) -> set[int]:
        """Return the states reached from `states` without reading, at a place of the name."""
        found: set[int] = set()
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            if state in found:
                continue
            found.add(state)
            check = self._checks[state]
            if self._reads[state] is None and (check is None or _holds(check.kind, name, position)):
                waiting += self._next[state]
        return found

    def _state(self, read: _Set | None, check: _Place | None, after: tuple[int, ...]) -> int:
        if len(self._next) >= STATES:
            raise Fault("universal.pattern", pattern=self._text, reason="its repeats are too many")
        self._reads.append(read)
        self._checks.append(check)
        self._next.append(after)
        return len(self._next) - 1

    def _built(self, item: _Item, after: int) -> int:
        """Return the first state of an item whose last ones lead to `after`."""
        match item:
            case _Set():
                return self._state(item, None, (after,))
            case _Place():
                return self._state(None, item, (after,))
            case _All(items):
                for part in reversed(items):
                    after = self._built(part, after)
                return after
            case _Any(items):
                return self._state(None, None, tuple([self._built(part, after) for part in items]))
            case _Repeat(inner, least, most):
                return self._repeated(inner, least, most, after)

    def _repeated(self, inner: _Item, least: int, most: int | None, after: int) -> int:
        if most is None:
            loop = self._state(None, None, ())
            self._next[loop] = (self._built(inner, loop), after)
            after = loop
        else:
            end = after
            for _ in range(most - least):
                after = self._state(None, None, (self._built(inner, after), end))
        for _ in range(least):
            before, after = after, self._built(inner, after)
            if after == before:  # it reads nothing: once is as good as a million times
                break
        return after


def _holds(kind: str, name: str, position: int) -> bool:
    match kind:
        case "start":
            return position == 0
        case "end":
            return position == len(name)
        case "last":
            return position == len(name) or (position == len(name) - 1 and name[-1] == "\n")
    word = _CLASSES["w"]
    before = position > 0 and word(name[position - 1])
    behind = position < len(name) and word(name[position])
    # The standard library finds neither an edge nor an inside in an empty text.
    return bool(name) and (before != behind) == (kind == "edge")


class _Reader:
    """Takes a pattern apart."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> _Item:
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

    def _alternatives(self) -> _Item:
        branches = [self._sequence()]
        while self._took("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else _Any(tuple(branches))

    def _sequence(self) -> _Item:
        items: list[_Item] = []
        while self._at < len(self._text) and not self._peek("|") and not self._peek(")"):
            items.append(self._repeat(self._atom()))
        return _All(tuple(items))

    def _atom(self) -> _Item:
        c = self._take()
        match c:
            case "(":
                return self._group()
            case "[":
                return self._set()
            case ".":
                return _DOT
            case "^":
                return _Place("start")
            case "$":
                return _Place("last")
            case "*" | "+" | "?":
                self._refuse("there is nothing to repeat")
            case "\\":
                return self._escape()
        return _Set(((c, c),))

    def _group(self) -> _Item:
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

    def _escape(self) -> _Item:
        c = self._take()
        if c in _PLACES:
            return _Place(_PLACES[c])
        if c in _CLASSES:
            return _Set(classes=c)
        return _Set(((plain := self._plain(c), plain),))

    def _plain(self, c: str) -> str:
        if c in _CONTROL:
            return _CONTROL[c]
        if c.isascii() and c.isalnum():
            self._refuse("it refers back or names a character by number")
        return c

    def _set(self) -> _Item:
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
        return _Set(tuple(ranges), classes, negated)

    def _member(self) -> str:
        """Return a character of a set, or a backslash with the letter of a class."""
        c = self._take()
        if c != "\\":
            return c
        c = self._take()
        if c in _CLASSES:
            return "\\" + c
        return "\b" if c == "b" else self._plain(c)

    def _repeat(self, item: _Item) -> _Item:
        found = self._times()
        if found is None:
            return item
        if isinstance(item, _Place):
            self._refuse("there is nothing to repeat")
        least, most = found
        if most is not None and (most < least or max(least, most) > STATES):
            self._refuse("a repeat runs back or is too long")
        if self._took("+"):
            self._refuse("a repeat is possessive")
        if not self._took("?") and self._times() is not None:
            self._refuse("a repeat is repeated")
        return _Repeat(item, least, most)

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
