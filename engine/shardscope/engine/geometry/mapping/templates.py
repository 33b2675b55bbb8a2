"""Templates of tensor names: text with numbers in it, found in one look whatever the number of templates.

`{layer}` stands for a number, `(a|b)` for one of several texts, `[.{layer}]` for a number that may be left out. A template is
written out into the few names that it can mean, with `#` for each run of digits; a name is looked up by the same key, and its
digits are compared then. So no name is ever searched, and nothing backtracks.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")

VARIANTS: Final = 256
"""Names that one template may be written out into."""
_DIGITS: Final = re.compile(r"\d+", re.ASCII)
_PIECES: Final = re.compile(
    r"\{(?P<number>[a-z_]+)\}|\((?P<either>[^(){}\[\]]*)\)|(?P<open>\[)|(?P<close>\])|(?P<text>[^(){}\[\]|]+)"
)
_MOST_DIGITS: Final = 9


class Numbered(Struct, frozen=True):
    """A name found in a table."""

    numbers: dict[str, int]
    """What stands for `{layer}` and its like."""
    stacked: tuple[str, ...]
    """Numbers that were left out: leading axes of the tensor, in order."""


class Variant(Struct, frozen=True):
    """One way in which a template can be written."""

    pieces: tuple[tuple[bool, str], ...]
    """Text (false), and the names of numbers (true)."""
    stacked: tuple[str, ...]

    @property
    def captures(self) -> tuple[str, ...]:
        """The names of its numbers."""
        return tuple(text for number, text in self.pieces if number)

    def written(self, numbers: Mapping[str, int]) -> str:
        """Return the name with these numbers. Raises `KeyError` where one is not given."""
        return "".join(str(numbers[text]) if number else text for number, text in self.pieces)

    @property
    def key(self) -> str:
        """The name with `#` for each run of digits."""
        return "".join("#" if number else _DIGITS.sub("#", text) for number, text in self.pieces)

    @property
    def runs(self) -> tuple[tuple[bool, str], ...]:
        """Every run of digits of the name: a number by its name (true), or the digits themselves (false)."""
        found: list[tuple[bool, str]] = []
        for number, text in self.pieces:
            found += [(True, text)] if number else [(False, digits) for digits in _DIGITS.findall(text)]
        return tuple(found)


def variants(template: str) -> tuple[Variant, ...]:
    """Return the ways in which a template can be written, the ones with all their numbers first.

    Raises `ValueError` with a clause that says what is wrong with it.
    """
    found = [Variant((), ())]
    optional: list[Variant] | None = None
    at = 0
    while at < len(template):
        match = _PIECES.match(template, at)
        if match is None:
            raise ValueError(f"it cannot be read from character {at + 1} on")
        at = match.end()
        if match["open"]:
            if optional is not None:
                raise ValueError("a bracket opens within another")
            optional = found
            continue
        if match["close"]:
            if optional is None:
                raise ValueError("a bracket is closed that was not opened")
            found, optional = _left_out(found, optional), None
            continue
        texts = match["either"].split("|") if match["either"] is not None else [match["text"]]
        number = match["number"]
        pieces = [(True, number)] if number else [(False, text) for text in texts]
        found = [Variant((*one.pieces, piece), one.stacked) for one in found for piece in pieces]
        if len(found) > VARIANTS:
            raise ValueError(f"it stands for more than {VARIANTS} names")
    if optional is not None:
        raise ValueError("a bracket is not closed")
    for one in found:
        if len(set(one.captures)) != len(one.captures) or _touching(one):
            raise ValueError("a number is there twice, or stands beside other digits")
    return tuple(found)


def written(template: str, numbers: Mapping[str, int]) -> str:
    """Return the name that a template without choices stands for. Raises `ValueError` and `KeyError`."""
    return variants(template)[0].written(numbers)


class Names(Generic[T]):
    """Templates, and what each stands for."""

    def __init__(self) -> None:
        self._by_key: dict[str, list[tuple[Variant, tuple[tuple[bool, str], ...], T]]] = {}

    def add(self, template: str, value: T) -> None:
        """Add a template. Raises `ValueError`."""
        for one in variants(template):
            self._by_key.setdefault(one.key, []).append((one, one.runs, value))

    def find(self, name: str) -> Iterator[tuple[Variant, Numbered, T]]:
        """Yield what a name can stand for, in the order in which it was added."""
        digits = _DIGITS.findall(name)
        if "#" in name or any(len(run) > _MOST_DIGITS for run in digits):
            return
        for one, runs, value in self._by_key.get(_DIGITS.sub("#", name), ()):
            numbers = _numbers(runs, digits)
            if numbers is not None:
                yield one, Numbered(numbers, one.stacked), value


def _numbers(runs: tuple[tuple[bool, str], ...], digits: list[str]) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for (number, text), run in zip(runs, digits, strict=True):
        if number:
            if len(run) > 1 and run[0] == "0":
                return None
            found[text] = int(run)
        elif run != text:
            return None
    return found


def _left_out(inside: list[Variant], before: list[Variant]) -> list[Variant]:
    """Return the variants with what stands in brackets, and after them those without it."""
    known = len(before[0].pieces)
    left: tuple[str, ...] = tuple(
        dict.fromkeys(text for one in inside for number, text in one.pieces[known:] if number)
    )
    if not left:
        raise ValueError("brackets without a number")
    return [*inside, *(Variant(one.pieces, (*one.stacked, *left)) for one in before)]


def _touching(one: Variant) -> bool:
    """Tell whether a number stands directly beside another or beside digits: nobody could tell them apart."""
    text = "".join("\0" if number else piece for number, piece in one.pieces)
    return re.search("\0[\0\\d]|\\d\0", text, re.ASCII) is not None
