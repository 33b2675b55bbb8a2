"""A mesh of ranks as lines of letters: the last axis runs to the right, the others downwards, with coordinates on the edges.

Where the last axis is wider than the room its rows are folded, and where there are many short rows they stand in columns as in a
newspaper, so that 1,024 ranks take some twenty lines of a small terminal.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil, prod
from typing import Final

from msgspec import Struct
from rich.cells import cell_len

from shardscope.engine.model.topology import Mesh
from shardscope.widgets.safe import Tone, visible

DRAWN: Final = 16_384
"""Ranks of one mesh that are drawn; of more, only those that are missing or there twice are listed."""
GROUP: Final = 8
"""Ranks that stand together in a dense row."""
ROWS: Final = 16
"""Rows in one column before there is a second one."""
GUTTER: Final = 4
"""Cells between two pictures, and between two columns of rows."""

PRESENT, MISSING, TWICE, UNSEEN = "p", "M", "D", "."
TONES: Final = {PRESENT: Tone.OK, MISSING: Tone.STOP, TWICE: Tone.CAUTION, UNSEEN: Tone.MUTED}
WORDS: Final = {PRESENT: "present", MISSING: "missing", TWICE: "there twice", UNSEEN: "not named"}

Coordinate = tuple[int, ...]
Piece = tuple[str, Tone]


class Place(Struct, frozen=True):
    """Where a rank is drawn."""

    x: int
    """Cells from the beginning of its line."""
    mesh: int
    coordinate: Coordinate
    letter: str


class Line(Struct, frozen=True):
    """One line: its text in pieces, and the ranks in it from left to right."""

    pieces: tuple[Piece, ...] = ()
    places: tuple[Place, ...] = ()

    @property
    def width(self) -> int:
        """Cells."""
        return sum(cell_len(text) for text, _ in self.pieces)


Picture = tuple[Line, ...]


def letters(mesh: Mesh) -> dict[Coordinate, str]:
    """Return the letter of every rank that is named; a rank that is both is missing."""
    found = dict.fromkeys(mesh.ranks_seen, PRESENT)
    found |= dict.fromkeys(mesh.ranks_duplicate, TWICE)
    return found | dict.fromkeys(mesh.ranks_missing, MISSING)


def is_drawable(mesh: Mesh) -> bool:
    """Tell whether the ranks of a mesh fill a rectangle of a size that can be drawn."""
    extents = mesh.extents
    return 0 < prod(extents) <= DRAWN and all(
        len(at) == len(extents)
        and all(0 <= place < extent for place, extent in zip(at, extents, strict=True))
        for ranks in (mesh.ranks_seen, mesh.ranks_missing, mesh.ranks_duplicate)
        for at in ranks
    )


def picture(mesh: Mesh, number: int, width: int) -> Picture:
    """Return the ranks of a drawable mesh in lines of at most `width` cells. `number` is what its places call the mesh."""
    named = letters(mesh)
    # The list of missing ranks may be cut short: then every rank that was not seen is one of them.
    other = MISSING if mesh.missing_count > len(mesh.ranks_missing) else UNSEEN
    axes = [visible(axis.name.replace("_", " ")) for axis in mesh.coordinate_axes]
    extents = mesh.extents
    # An axis of one rank is told by the list of axes.
    outer = [at for at, extent in enumerate(extents) if extent > 1]
    inner = outer.pop() if outer else len(extents) - 1
    columns = extents[inner]
    labels = [f"{axes[at]} {extents[at] - 1}" for at in outer]
    if folded := _per_row(columns, width - cell_len(" ".join(labels)) - 2) < columns:
        labels.append(f"{axes[inner]} {columns - 1}")
    margin = max(cell_len(" ".join(labels)), 0 if folded else cell_len(axes[inner])) + 2
    per_row = _per_row(columns, width - margin)
    rows = prod(extents[at] for at in outer) * ceil(columns / per_row)
    step = 2 if 2 * per_row <= width - margin and rows <= ROWS else 1
    row_width = margin + _x(per_row - 1, step) + 1
    lines = []
    for outside in product(*(range(extents[at]) for at in outer)):
        for begin in range(0, columns, per_row):
            label = " ".join(f"{axes[at]} {place}" for at, place in zip(outer, outside, strict=True))
            if folded:
                label = f"{label} {axes[inner]} {begin}".lstrip()
            coordinate = [0] * len(extents)
            for at, place in zip(outer, outside, strict=True):
                coordinate[at] = place
            places = []
            for column in range(begin, min(columns, begin + per_row)):
                coordinate[inner] = column
                here = tuple(coordinate)
                x = margin + _x(column - begin, step)
                places.append(Place(x, number, here, named.get(here, other)))
            lines.append(Line(((label.ljust(margin), Tone.MUTED), *_drawn(places, margin)), tuple(places)))
    head = Line(((_head("" if folded else axes[inner], margin, per_row, step), Tone.MUTED),))
    across = max(1, min((width + GUTTER) // (row_width + GUTTER), ceil(rows / ROWS)))
    tall = ceil(rows / across)
    blocks = [(head, *lines[begin : begin + tall]) for begin in range(0, rows, tall)]
    drawn: Picture = blocks[0]
    for block in blocks[1:]:
        drawn = beside(drawn, block)
    return drawn


def _per_row(columns: int, room: int) -> int:
    """Return how many ranks stand in a row: all of them, or else groups, about as many in the last row as in the first."""
    if _x(columns - 1, 1) < room:
        return columns
    most = GROUP * max(1, (room + 1) // (GROUP + 1))
    return GROUP * ceil(columns / ceil(columns / most) / GROUP)


def _x(column: int, step: int) -> int:
    """Return where a column stands: apart where there is room, otherwise in groups."""
    return 2 * column if step == 2 else column + column // GROUP


def _drawn(places: Sequence[Place], begin: int) -> Iterator[Piece]:
    """Yield the letters of a row, those that are alike in one piece."""
    text, tone, end = "", Tone.PLAIN, begin
    for place in places:
        gap = " " * (place.x - end)
        if TONES[place.letter] is tone:
            text += gap + place.letter
        else:
            if text:
                yield text, tone
            text, tone = gap + place.letter, TONES[place.letter]
        end = place.x + 1
    yield text, tone


def _head(axis: str, margin: int, columns: int, step: int) -> str:
    """Return the line over the rows: the name of the axis that runs to the right, and its numbers where they have room."""
    line = axis.ljust(margin)
    every = 1 if step == 2 and columns <= 10 else GROUP if step == 1 else GROUP // 2
    for column in range(0, columns, every):
        x = margin + _x(column, step)
        if len(line) < x or column == 0:
            line = line.ljust(x) + str(column)
    return line


def beside(left: Picture, right: Picture) -> Picture:
    """Return two pictures side by side, the upper edges at one height."""
    begin = max(line.width for line in left) + GUTTER
    lines = []
    for number in range(max(len(left), len(right))):
        here = left[number] if number < len(left) else Line()
        there = right[number] if number < len(right) else Line()
        gap = " " * (begin - here.width)
        moved = tuple(
            Place(place.x + begin, place.mesh, place.coordinate, place.letter) for place in there.places
        )
        pieces = (*here.pieces, (gap, Tone.PLAIN), *there.pieces) if there.pieces else here.pieces
        lines.append(Line(pieces, (*here.places, *moved)))
    return tuple(lines)
