"""A window of a matrix in lines of cells: which elements are asked for, and what is drawn of the answers."""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from msgspec import Struct

from shardscope.engine.geometry.describing.picture import LEGEND
from shardscope.engine.geometry.drawing.axis import cut
from shardscope.engine.geometry.drawing.borders import Borders
from shardscope.engine.model.picture import OUTSIDE, Mark
from shardscope.engine.model.shardview import Axis, Drawing, View, Window

WIDEST, TALLEST = 6, 3
"""Cells that one column and one row get at the most, where a tensor is small."""


class Matrix(Struct, frozen=True):
    """A shape seen as rows and columns."""

    rows: int
    columns: int

    @property
    def window(self) -> Window:
        """All of it."""
        return Window(0, self.rows, 0, self.columns)


def matrix(shape: tuple[int, ...]) -> Matrix:
    """Return a shape as a matrix: the last dimension across, all others down. What has one dimension is one column of rows."""
    if len(shape) < 2:
        return Matrix(math.prod(shape), 1)
    return Matrix(math.prod(shape[:-1]), shape[-1])


class Cells:
    """The cells of a window, before their letters are known."""

    def __init__(
        self,
        plane: Matrix,
        window: Window,
        width: int,
        height: int,
        found: Borders,
        parts: Sequence[int] = (),
    ) -> None:
        self._plane = plane
        self._window = window
        edges = tuple(sorted({*found.rows, *parts})) if parts else found.rows
        self._columns = cut(
            window.column, window.columns, width, found.columns, known=found.known, repeat=WIDEST
        )
        self._rows = _lines(window, width, height, edges, parts, flat=plane.columns == 1, known=found.known)
        self._folds = self._folded(width, edges, known=found.known)
        self.samples: list[int] = []
        """Addresses to be asked for."""
        self._places: list[tuple[int, int, int, int]] = []
        """For each of them the first line, lines, the first cell and cells that it stands for."""
        self._sample()

    def _folded(self, width: int, edges: Sequence[int], *, known: bool) -> list[Axis | None]:
        if self._columns.edges or not self._columns.exact:
            return [None] * len(self._rows.starts)
        found: list[Axis | None] = []
        for line in range(len(self._rows.starts)):
            low, high = self._rows.span(line)
            several = bisect_left(edges, high) > bisect_right(edges, low)
            fold = several or self._plane.columns == 1
            found.append(self._fold(low, high - low, width, edges, known=known) if fold else None)
        return found

    def _fold(self, low: int, count: int, width: int, edges: Sequence[int], *, known: bool) -> Axis:
        """Return some rows of a line side by side, about as long as a line of columns where they are few."""
        repeat = WIDEST if self._plane.columns == 1 else max(1, len(self._columns.starts) // count)
        return cut(low, count, width, edges, known=known, repeat=repeat)

    def _sample(self) -> None:
        across = [(self._columns.starts[cell], cell, cells) for cell, cells in _runs(self._columns)]
        begins = {line for line, _ in _runs(self._rows)}
        ends = sorted({*begins, *(n for n, fold in enumerate(self._folds) if fold is not None)})
        ends += [n + 1 for n, fold in enumerate(self._folds) if fold is not None]
        ends = sorted({*ends, len(self._rows.starts)})
        for line, end in itertools.pairwise(ends):
            fold = self._folds[line]
            if fold is None:
                base = self._rows.starts[line] * self._plane.columns
                for start, cell, cells in across:
                    self.samples.append(base + start)
                    self._places.append((line, end - line, cell, cells))
                continue
            for cell, cells in _runs(fold):
                self.samples.append(fold.starts[cell] * self._plane.columns + self._window.column)
                self._places.append((line, 1, cell, cells))

    @property
    def is_exact(self) -> bool:
        """Whether no border runs through a cell."""
        lines = all(fold.exact for fold in self._folds if fold is not None)
        plain = any(fold is None for fold in self._folds)
        return lines and (not plain or (self._rows.exact and self._columns.exact))

    def drawn(self, view: View, letters: Sequence[str], marks: Sequence[Mark], repeats: int = 0) -> Drawing:
        """Return the drawing, with a letter for each sample. `repeats`: there are more meanings than so many letters."""
        width = len(self._columns.starts)
        lines = [
            [OUTSIDE] * (width if fold is None else len(fold.starts))
            for _, fold in zip(self._rows.starts, self._folds, strict=True)
        ]
        for letter, (line, count, cell, cells) in zip(letters, self._places, strict=True):
            for number in range(line, line + count):
                lines[number][cell : cell + cells] = [letter] * cells
        notes = [] if self.is_exact else ["a cell shows its first element"]
        if repeats:
            notes.append(f"letters repeat every {repeats}")
        return Drawing(
            view=view,
            extent=(self._plane.rows, self._plane.columns),
            window=self._window,
            rows=self._rows,
            columns=self._columns,
            folds=tuple(self._folds),
            cells=tuple("".join(line) for line in lines),
            marks=tuple(marks[:LEGEND]),
            note=", ".join(notes),
        )


def _lines(
    window: Window,
    width: int,
    height: int,
    edges: Sequence[int],
    parts: Sequence[int],
    *,
    flat: bool,
    known: bool,
) -> Axis:
    """Return the rows of a window in lines: each begins at a border where that is possible."""
    if flat:
        height = min(height, -(-window.rows // max(1, width)))
        return cut(window.row, window.rows, height, (), known=known)
    found = cut(window.row, window.rows, height, edges, known=known, repeat=TALLEST)
    if found.exact or not parts:
        return found
    rough = cut(window.row, window.rows, height, parts, known=False)
    return rough if rough.edges else found


def _runs(axis: Axis) -> list[tuple[int, int]]:
    """Return the cells of an axis in stretches that are alike: first cell and number."""
    if not axis.exact:
        return [(cell, 1) for cell in range(len(axis.starts))]
    begins = [0, *axis.edges, len(axis.starts)]
    return [(low, high - low) for low, high in itertools.pairwise(begins) if high > low]
