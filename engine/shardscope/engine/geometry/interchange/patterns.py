"""The patterns of a checkpoint, matched in time proportional to their length.

DeepSpeed's lists of patterns are matched with `re.match`, at the start of a parameter's name. They come from a file, and
the engine of the standard library backtracks: `(a+)+$` on a name of 40 characters keeps it busy for hours. So a pattern is
taken apart here into a tree of plain characters, classes, groups, alternatives and repeats, and run as a set of states,
each character once. The answer is the one of `re.match`; what has no place in such a run (look-around, back references,
flags, possessive repeats) is refused by name.
"""

from collections.abc import Iterable
from typing import Final

from shardscope.engine.geometry.interchange.deepspeed import exact_name
from shardscope.engine.geometry.interchange.pattern_syntax import (
    CLASSES,
    AnyOf,
    CharacterSet,
    InTurn,
    Item,
    Place,
    Reader,
    Repeat,
)
from shardscope.engine.model.blocker import Fault

STATES: Final = 4_096
"""States of one pattern, repeats written out."""
STEPS: Final = 5_000_000
"""States visited by one set of patterns over all names, those remembered from before not counted."""
REMEMBERED: Final = 4_096
"""Moves from one set of states to the next that a pattern keeps."""


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
        self._reads: list[CharacterSet | None] = []
        self._checks: list[Place | None] = []
        self._next: list[tuple[int, ...]] = []
        self._end = self._state(None, None, ())
        self._start = self._built(Reader(text).whole(), self._end)
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

    def _state(self, read: CharacterSet | None, check: Place | None, after: tuple[int, ...]) -> int:
        if len(self._next) >= STATES:
            raise Fault("universal.pattern", pattern=self._text, reason="its repeats are too many")
        self._reads.append(read)
        self._checks.append(check)
        self._next.append(after)
        return len(self._next) - 1

    def _built(self, item: Item, after: int) -> int:
        """Return the first state of an item whose last ones lead to `after`."""
        match item:
            case CharacterSet():
                return self._state(item, None, (after,))
            case Place():
                return self._state(None, item, (after,))
            case InTurn(items):
                for part in reversed(items):
                    after = self._built(part, after)
                return after
            case AnyOf(items):
                return self._state(None, None, tuple([self._built(part, after) for part in items]))
            case Repeat(inner, least, most):
                return self._repeated(inner, least, most, after)

    def _repeated(self, inner: Item, least: int, most: int | None, after: int) -> int:
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
    word = CLASSES["w"]
    before = position > 0 and word(name[position - 1])
    behind = position < len(name) and word(name[position])
    # The standard library finds neither an edge nor an inside in an empty text.
    return bool(name) and (before != behind) == (kind == "edge")
