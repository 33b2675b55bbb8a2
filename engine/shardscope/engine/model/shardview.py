"""What a person looks at of a shard map: a window of it in lettered cells, and what lies under the cursor. No colour, no terminal."""

from bisect import bisect_left, bisect_right
from typing import Literal

from msgspec import Struct

from shardscope.engine.model.picture import Mark

View = Literal["logical", "shard", "files"]
"""The full tensor by who holds it, one shard by where it comes from, or the stretches of files in which shards lie."""


class Window(Struct, frozen=True):
    """What is in sight of a matrix: rows and columns, in elements (in the view of files: shards and bytes)."""

    row: int
    rows: int
    column: int
    columns: int

    def holds(self, row: int, column: int) -> bool:
        """Tell whether a place is in it."""
        return 0 <= row - self.row < self.rows and 0 <= column - self.column < self.columns


class Axis(Struct, frozen=True):
    """One side of a drawing, cut into cells."""

    starts: tuple[int, ...]
    """The first position of each cell; several cells in a row have the same, where there is much room."""
    stop: int
    """One past the last position in sight."""
    edges: tuple[int, ...] = ()
    """Cells at which something else begins."""
    exact: bool = True
    """Whether all of a cell is alike: no border of a piece runs through it."""

    def cell(self, position: int) -> int:
        """Return the first cell of a position, the nearest for one out of sight."""
        last = max(0, bisect_right(self.starts, position) - 1)
        return bisect_left(self.starts, self.starts[last]) if self.starts else 0

    def span(self, cell: int) -> tuple[int, int]:
        """Return the first position of a cell and one past its last."""
        end = bisect_right(self.starts, self.starts[cell])
        return self.starts[cell], self.starts[end] if end < len(self.starts) else self.stop


class Label(Struct, frozen=True):
    """A name beside a line of a drawing."""

    line: int
    text: str
    """Raw: a part's name, a rank's place."""


class Drawing(Struct, frozen=True):
    """A window of a matrix in cells, a letter each."""

    view: View
    extent: tuple[int, int]
    """Rows and columns of the whole matrix."""
    window: Window
    rows: Axis
    """A cell is a line."""
    columns: Axis
    folds: tuple[Axis | None, ...]
    """For each line: the rows of it, one after the other, where they are drawn so and not as one; whole rows are alike then."""
    cells: tuple[str, ...]
    """The letters of each line. They mean what those of `Picture` mean."""
    marks: tuple[Mark, ...]
    """Of the letters in sight."""
    labels: tuple[Label, ...] = ()
    note: str = ""
    """What has to be known to read it, in a clause."""

    def at(self, line: int, cell: int) -> tuple[int, int]:
        """Return the row and the column at which a cell begins."""
        fold = self.folds[line]
        if fold is not None:
            return fold.starts[min(cell, len(fold.starts) - 1)], self.window.column
        return self.rows.starts[line], self.columns.starts[min(cell, len(self.columns.starts) - 1)]

    def cell(self, row: int, column: int) -> tuple[int, int]:
        """Return the line and the cell of a place, the nearest for one out of sight."""
        line = self.rows.cell(row)
        fold = self.folds[line]
        return line, self.columns.cell(column) if fold is None else fold.cell(row)

    def span(self, line: int, cell: int) -> Window:
        """Return what a cell stands for."""
        fold = self.folds[line]
        if fold is not None:
            low, high = fold.span(min(cell, len(fold.starts) - 1))
            return Window(low, high - low, self.window.column, self.window.columns)
        top, bottom = self.rows.span(line)
        left, right = self.columns.span(min(cell, len(self.columns.starts) - 1))
        return Window(top, bottom - top, left, right - left)


class Stored(Struct, frozen=True):
    """Where bytes lie."""

    file: str
    """Neutralised."""
    begin: int
    end: int
    """One past the last; gaps between them are possible."""
    inside: str | None = None
    """The coding of the record whose decoded bytes these are; null for bytes of the file."""


class Holding(Struct, frozen=True):
    """How ranks with equal shards hold one element."""

    ranks: tuple[int, ...]
    place: str
    """What their places on the mesh share: `tp 1`. Empty without a mesh."""
    piece: int
    """Number of the piece in the shard, from 0."""
    pieces: int
    index: tuple[int, ...]
    """Of the element in the shard."""
    shape: tuple[int, ...]
    """Of the shard."""
    full: str
    """Where the piece lies in the full tensor: `rows 0-7, columns 4-7`."""
    shard: str
    """Where it lies in the shard."""
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    """Of the piece in the shard, in elements."""
    scale: str | None
    """`1/4`; null where values are as they are."""
    element: Stored | None
    """The bytes of the element; null where no fragment has them."""
    stored: Stored | None
    """The bytes of the piece."""
    copies: tuple[str, ...] = ()
    """Files, neutralised, with further copies of these shards."""


class Spot(Struct, frozen=True):
    """What lies under the cursor."""

    letter: str
    index: tuple[int, ...] | None
    """Of the element in the full tensor; null for padding, for a gap of a shard and outside."""
    holdings: tuple[Holding, ...] = ()
    """Nobody, where there are none."""
    path: tuple[str, ...] = ()
    """The nodes of the map that lead to it, the first applied first; empty for a map in normal form."""
    says: str = ""
    """What it is, where it is no element: a neighbour in a file, padding."""


class PieceRow(Struct, frozen=True):
    """One piece of a shard, as a list has it."""

    number: int
    shape: tuple[int, ...]
    full: str
    shard: str
    bytes: int | None
    holders: tuple[int, ...]
    first: int
    """Address in the full tensor of its first element."""
