"""One file as a bar of letters, each for an equal share of its bytes. Nothing here needs a terminal library."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from shardscope.engine.model.file_layout import ByteRange, FileLayout, RangeKind
from shardscope.widgets.safe import Tone

LETTERS: Final[dict[RangeKind, str]] = {
    "header": "H",
    "tensor": "T",
    "storage": "S",
    "pickle": "K",
    "member": "M",
    "local header": "L",
    "directory": "D",
    "end": "E",
    "padding": "p",
    "gap": "G",
    "trailing": "X",
    "unknown": "?",
}
"""Every other tensor or storage has a small letter, so that borders show."""
HOLE: Final = "o"
ODD: Final = frozenset({"gap", "trailing"})
"""Kinds that nobody wants to miss."""
_KEPT: Final = (ODD, frozenset({"header", "pickle", "directory"}))
"""Kinds that take a letter of the bar however small they are, the most important first."""
LOOKED: Final = 64
"""Stretches of one letter that are weighed against each other."""
_TONES: Final[dict[RangeKind, Tone]] = {
    "header": Tone.OK,
    "pickle": Tone.CAUTION,
    "gap": Tone.STOP,
    "trailing": Tone.CAUTION,
    "padding": Tone.MUTED,
    "local header": Tone.MUTED,
    "directory": Tone.MUTED,
    "end": Tone.MUTED,
    "unknown": Tone.MUTED,
}


class Cell(Struct, frozen=True):
    """One letter of the bar."""

    letter: str
    tone: Tone
    place: int
    """The stretch that it shows, or that most of its bytes belong to."""


class LayoutMap:
    """A layout that is drawn at any width. The cost of a bar is that of its letters, not of the stretches."""

    def __init__(self, layout: FileLayout) -> None:
        self.layout = layout
        self.ranges = layout.ranges
        self._begins = [each.begin for each in layout.ranges]
        self._kept = [[at for at, each in enumerate(layout.ranges) if each.kind in kinds] for kinds in _KEPT]
        self._small = _every_other(layout)
        self._holes = [begin for begin, _ in layout.holes]
        self.counts = _counts(layout)

    def cells(self, count: int) -> list[Cell]:
        """Return `count` letters, or as many as there are bytes."""
        size = self.layout.size
        count = min(count, size) if self.ranges else 0
        return [self._cell(number * size // count, (number + 1) * size // count) for number in range(count)]

    def at(self, offset: int) -> int:
        """Return the stretch that holds a byte."""
        return max(0, bisect_right(self._begins, offset) - 1)

    def span(self, place: int, count: int) -> range:
        """Return the letters of a bar of `count` that a stretch has a part in: at least one."""
        size, each = self.layout.size, self.ranges[place]
        count = min(count, size)
        if not count:
            return range(0)
        ends = (each.begin, max(each.begin, each.end - 1))
        first, last = (min(count - 1, ((byte + 1) * count - 1) // size) for byte in ends)
        return range(first, last + 1)

    def letter(self, place: int) -> tuple[str, Tone]:
        """Return the letter of a stretch."""
        each = self.ranges[place]
        letter = LETTERS[each.kind]
        return letter.lower() if self._small[place] else letter, _TONES.get(each.kind, Tone.PLAIN)

    def _cell(self, begin: int, end: int) -> Cell:
        place = self._most(begin, end)
        if 2 * self._hole_bytes(begin, end) > end - begin:
            return Cell(HOLE, Tone.MUTED, place)
        return Cell(*self.letter(place), place)

    def _most(self, begin: int, end: int) -> int:
        """Return the stretch that most of some bytes belong to, unless there is one of a kind that is never left out."""
        first, last = self.at(begin), max(self.at(begin), bisect_left(self._begins, end) - 1)
        for kept in self._kept:
            for place in kept[bisect_left(kept, first) :][:1]:
                if place <= last and self.ranges[place].end > begin:
                    return place
        looked = range(first, min(last, first + LOOKED) + 1)
        return max(looked, key=lambda place: _shared(self.ranges[place], begin, end))

    def _hole_bytes(self, begin: int, end: int) -> int:
        found, at = 0, max(0, bisect_right(self._holes, begin) - 1)
        while at < len(self._holes) and self._holes[at] < end:
            hole_begin, hole_end = self.layout.holes[at]
            found += max(0, min(end, hole_end) - max(begin, hole_begin))
            at += 1
        return found

    def legend(self) -> Iterator[tuple[str, Tone, str]]:
        """Yield each letter that can occur, with its tone and its word."""
        for kind in self.counts:
            letter = LETTERS[kind]
            both = f"{letter}{letter.lower()}" if kind in ("tensor", "storage") else letter
            yield both, _TONES.get(kind, Tone.PLAIN), kind
        if self.layout.holes:
            yield HOLE, Tone.MUTED, "hole"


def _shared(each: ByteRange, begin: int, end: int) -> int:
    return min(end, each.end) - max(begin, each.begin)


def _every_other(layout: FileLayout) -> bytearray:
    """Return which tensors and storages have a small letter: every second one."""
    small, last = bytearray(len(layout.ranges)), 1
    for place, each in enumerate(layout.ranges):
        if each.kind in ("tensor", "storage"):
            last ^= 1
            small[place] = last
    return small


def _counts(layout: FileLayout) -> dict[RangeKind, tuple[int, int]]:
    """Return for each kind that occurs how many stretches it has, and their bytes."""
    found: dict[RangeKind, tuple[int, int]] = {}
    for each in layout.ranges:
        count, size = found.get(each.kind, (0, 0))
        found[each.kind] = (count + 1, size + each.end - each.begin)
    return {kind: found[kind] for kind in LETTERS if kind in found}
