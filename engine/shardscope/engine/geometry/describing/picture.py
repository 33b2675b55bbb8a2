"""Small pictures of maps: a letter for who holds a cell of the full tensor, or for where a cell of a shard comes from.

Cells are sampled at their first element, and the samples meet the pieces as boxes of one element among boxes: the cost is
that of a few thousand points among the pieces, whatever the size of the tensor.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import TypeVar

from msgspec import Struct

from shardscope.engine.geometry.describing.regions import region
from shardscope.engine.geometry.pieces.blocks import Block
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.digits import DigitBox, digit_ranges
from shardscope.engine.geometry.pieces.explicit import boxed, runs_of
from shardscope.engine.geometry.pieces.sweep import overlapping
from shardscope.engine.geometry.pieces.wellformed import named
from shardscope.engine.model.picture import CLASH, EVERYWHERE, GAP, OUTSIDE, PADDING, Line, Mark, Picture
from shardscope.engine.model.piece import IndexedPiece, Lowered, Piece, RankShard
from shardscope.engine.model.text import counted

T = TypeVar("T", bound=Hashable)

HOLDERS = ascii_uppercase + ascii_lowercase
BANDS = ascii_lowercase + ascii_uppercase
LEGEND = 24
"""Marks that a legend has at the most; the rest is counted."""
FEW = 4
"""Bands that get a line each."""


def picture(lowered: Lowered, width: int = 64, height: int = 16, budget: Budget | None = None) -> Picture:
    """Return the full tensor, lettered by the ranks that hold it, in at most `width` x `height` cells.

    `*` is held by every rank, `!` by none. Maps that `lower` did not make have to pass `check` first, holes and collisions
    aside. Raises `Fault`: `map.unproven`, `map.budget`.
    """
    budget = budget or Budget()
    grid = _grid(lowered.shape, width, height)
    every = tuple(shard.rank for shard in lowered.ranks)
    groups = _alike(lowered.ranks)
    blocks = [block for n, (shard, _) in enumerate(groups) for block in _blocks(shard, n, budget)]
    held: list[set[int]] = [set() for _ in grid.samples]
    for point, box in _meetings(grid, blocks, lowered.elements, budget, side="a", walk=lowered.explicit):
        held[point.tag].add(box.tag)
    sets: dict[tuple[int, ...], tuple[int, ...]] = {}
    for numbers in held:
        key = tuple(sorted(numbers))
        if key not in sets:
            sets[key] = tuple(sorted(rank for n in key for rank in groups[n][1]))
    stated = {piece.holders for shard, _ in groups for piece in shard.held}
    order = sorted({*stated, *sets.values()} - {()})
    letters = _lettered([each for each in order if each != every or len(every) == 1], HOLDERS)
    if len(every) > 1:
        letters[every] = EVERYWHERE
    cells = [letters[sets[tuple(sorted(numbers))]] if numbers else GAP for numbers in held]
    order.sort(key=lambda each: letters[each] == EVERYWHERE)
    marks = [Mark(letters[each], _who(each, len(every)), each) for each in order]
    if GAP in cells:
        marks.append(Mark(GAP, "held by no rank"))
    return grid.drawn("the full tensor", cells, marks, len(HOLDERS))


def shard_picture(
    lowered: Lowered, rank: int, width: int = 64, height: int = 16, budget: Budget | None = None
) -> Picture:
    """Return the shard of a rank in at most `width` x `height` cells, lettered by where its elements come from.

    The rows of the full tensor (the columns, where a shard has all rows) are divided into bands `a`, `b`, `c`, ..., so that
    the order of the letters is the order of the shard. `.` is padding. Maps that `lower` did not make have to pass
    `check` first, holes and collisions aside. Raises `Fault`: `map.unproven`, `map.budget`; `KeyError` for a rank that the
    map does not have.
    """
    budget = budget or Budget()
    shard = next((shard for shard in lowered.ranks if shard.rank == rank), None)
    if shard is None:
        raise KeyError(rank)
    grid = _grid(shard.shape, width, height)
    blocks = [block for n, piece in enumerate(shard.held) for block in _of_piece(piece, n, budget)]
    bands = _bands(lowered.shape, shard)
    empty = PADDING if shard.padding else GAP
    cells = [empty] * len(grid.samples)
    seen: set[int] = set()
    for sample, address in _sources(grid, blocks, shard.elements, budget, walk=lowered.explicit):
        band = bands.of(address)
        seen.add(band)
        cells[sample] = bands.letter(band) if cells[sample] == empty else CLASH
    marks = bands.marks(sorted(seen))
    for mark, means in ((PADDING, "padding"), (GAP, "in no piece"), (CLASH, "in several pieces")):
        if mark in cells or (mark == PADDING and shard.padding):
            marks.append(Mark(mark, means))
    return grid.drawn(f"the shard of rank {rank}", cells, marks, len(BANDS))


class _Bands(Struct, frozen=True):
    """Equal stretches of the rows or columns of the full tensor seen as a matrix."""

    name: str
    extent: int
    number: int
    inner: int
    """Elements between one row (or column) and the next."""

    def of(self, address: int) -> int:
        """Return the band in which an element lies."""
        return address // self.inner % self.extent * self.number // self.extent

    def letter(self, band: int) -> str:
        """Return the letter of a band."""
        return BANDS[band]

    def marks(self, seen: Sequence[int]) -> list[Mark]:
        """Return the legend for the bands that were seen."""
        if len(seen) > FEW and self.extent % self.number == 0:
            each = counted(self.extent // self.number, self.name)
            span = f"{self.letter(0)}-{self.letter(self.number - 1)}"
            return [Mark(span, f"{self._words(0, self.number - 1)}, {each} a letter")]
        return [Mark(self.letter(band), self._words(band, band)) for band in seen]

    def _words(self, first: int, last: int) -> str:
        low, high = (-(-n * self.extent // self.number) for n in (first, last + 1))
        span = f"{self.name}s {low:,}-{high - 1:,}" if high > low + 1 else f"{self.name} {low:,}"
        return f"{span} of the full tensor"


def _bands(shape: tuple[int, ...], shard: RankShard) -> _Bands:
    columns = shape[-1] if shape else 1
    rows = math.prod(shape[:-1])
    if len(shape) < 2:
        return _Bands("element", columns, _even(columns, len(BANDS)), 1)
    by_rows = any(_has_rows(shape, piece) for piece in shard.held)
    if by_rows or all(_whole(shape, piece) for piece in shard.held):
        return _Bands("row", rows, _even(rows, len(BANDS)), columns)
    return _Bands("column", columns, _even(columns, len(BANDS)), 1)


def _has_rows(shape: tuple[int, ...], piece: Piece | IndexedPiece) -> bool:
    """Tell whether a piece has some of the rows only, or has them in another order."""
    if isinstance(piece, IndexedPiece):
        return True
    found = region(shape, piece.source, piece.dest, piece.shape)
    return found is None or not all(extent.whole for extent in found[:-1])


def _whole(shape: tuple[int, ...], piece: Piece | IndexedPiece) -> bool:
    if isinstance(piece, IndexedPiece):
        return False
    found = region(shape, piece.source, piece.dest, piece.shape)
    return found is not None and all(extent.whole for extent in found)


def _sources(
    grid: "_Grid", blocks: Sequence[Block], total: int, budget: Budget, *, walk: bool
) -> Iterable[tuple[int, int]]:
    """Yield each sample of a shard (its number) with the address in the full tensor of every piece that has it."""
    for point, box in _meetings(grid, blocks, total, budget, side="b", walk=walk):
        yield point.tag, box.at(point.low)


class _Grid(Struct, frozen=True):
    """A matrix of elements, cut into cells, and the address of the first element of each."""

    rows: int
    columns: int
    firsts: tuple[int, ...]
    """The row at which each line of cells begins."""
    starts: tuple[int, ...]
    """The column at which each cell begins."""
    samples: tuple[int, ...]
    """Addresses, rising; line by line."""
    flat: bool
    elements: int

    def drawn(self, title: str, cells: Sequence[str], marks: list[Mark], letters: int) -> Picture:
        """Return the picture of its cells."""
        width = len(self.starts)
        lines = [
            Line(
                first * self.columns if self.flat else first,
                "".join(cells[n * width : (n + 1) * width]).ljust(width, OUTSIDE),
            )
            for n, first in enumerate(self.firsts)
        ]
        lettered = sum(mark.letter not in {EVERYWHERE, PADDING, GAP, CLASH} for mark in marks)
        note = f"letters repeat every {letters}" if lettered > letters else ""
        if len(marks) > LEGEND:
            shown = [mark for mark in marks[LEGEND - 1 :] if not mark.letter.isalpha()]
            more = len(marks) - (LEGEND - 1) - len(shown)
            marks = [*marks[: LEGEND - 1], Mark("", f"and {more:,} more"), *shown]
        return Picture(
            title,
            self.rows,
            self.columns,
            tuple(lines),
            self.starts,
            tuple(marks),
            len(self.samples) < self.elements,
            note,
        )


def _grid(shape: tuple[int, ...], width: int, height: int) -> _Grid:
    elements = math.prod(shape)
    width, height = max(1, width), max(1, height)
    flat = len(shape) == 1
    if flat:
        columns = min(elements, max(width, -(-elements // height)))
        rows = -(-elements // columns) if columns else 0
    else:
        columns = shape[-1] if shape else 1
        rows = math.prod(shape[:-1])
    if not elements:
        return _Grid(rows, columns, (), (), (), flat, 0)
    firsts, starts = _cuts(rows, height), _cuts(columns, width)
    samples = tuple(at for first in firsts for start in starts if (at := first * columns + start) < elements)
    return _Grid(rows, columns, firsts, starts, samples, flat, elements)


def _even(extent: int, most: int) -> int:
    """Return how many cells of equal size an extent is cut into: up to a third fewer than allowed for their sake."""
    if extent <= most:
        return extent
    return next((n for n in range(most, most * 2 // 3, -1) if extent % n == 0), most)


def _cuts(extent: int, cells: int) -> tuple[int, ...]:
    """Return where cells begin."""
    number = _even(extent, cells)
    return tuple(n * extent // number for n in range(number))


def _meetings(
    grid: _Grid, blocks: Sequence[Block], total: int, budget: Budget, *, side: str, walk: bool
) -> Iterable[tuple[DigitBox, DigitBox]]:
    """Yield each sample, its number as tag, with each block that it lies in, both as boxes."""
    places, found = boxed(blocks, total, budget, side=side, walk=walk)
    ranges = digit_ranges(places, max(total, 1))
    still = (0,) * len(places)
    points = []
    for number, address in enumerate(grid.samples):
        digits = tuple(address // place % size for place, size in zip(places, ranges, strict=True))
        points.append(DigitBox(digits, tuple(digit + 1 for digit in digits), 0, still, number))
    return overlapping(points, found, budget)


def _alike(shards: Iterable[RankShard]) -> list[tuple[RankShard, tuple[int, ...]]]:
    """Return shards, equal ones once, with their ranks."""
    found: dict[object, list[RankShard]] = {}
    for shard in shards:
        found.setdefault((shard.pieces, shard.indexed), []).append(shard)
    return [(same[0], tuple(shard.rank for shard in same)) for same in found.values()]


def _blocks(shard: RankShard, tag: int, budget: Budget) -> list[Block]:
    return [block for piece in shard.held for block in _of_piece(piece, tag, budget)]


def _of_piece(piece: Piece | IndexedPiece, tag: int, budget: Budget) -> list[Block]:
    """Return a piece as blocks from logical (a) to shard (b) addresses."""
    if isinstance(piece, IndexedPiece):
        budget.walk(piece.elements)
        return runs_of(piece, tag)
    return [Block(piece.shape, piece.source, piece.dest, tag)]


def _lettered(things: Iterable[T], letters: str) -> dict[T, str]:
    return {thing: letters[n % len(letters)] for n, thing in enumerate(things)}


def _who(ranks: tuple[int, ...], every: int) -> str:
    return f"all {every:,} ranks" if len(ranks) == every and every > 1 else named(ranks)
