"""A tensor drawn with letters: what a map explains to a person. Plain rows and a legend, no colour and no terminal."""

from typing import Final

from msgspec import Struct

EVERYWHERE: Final = "*"
"""Held by every rank of the map."""
PADDING: Final = "."
GAP: Final = "!"
"""Held by no rank, or claimed by no piece of the shard."""
CLASH: Final = "#"
"""Claimed by more than one piece of the shard."""
OUTSIDE: Final = " "
"""Behind the last element, where a flat tensor is folded into lines."""


class Line(Struct, frozen=True):
    """One line of a picture."""

    first: int
    """The row of the tensor at its top; for a folded tensor of one dimension the address of its first element."""
    cells: str
    """One letter for each cell."""


class Mark(Struct, frozen=True):
    """A letter of the legend."""

    letter: str
    means: str
    """`rank 3`, `all 8 ranks`, `padding`, `rows 0-31 of the full tensor`."""
    ranks: tuple[int, ...] = ()


class Picture(Struct, frozen=True):
    """A tensor or a shard seen as a matrix and sampled in cells: the letter of a cell is that of its first element."""

    title: str
    rows: int
    columns: int
    """Of the matrix: the last dimension, and all others. One dimension is folded into lines."""
    lines: tuple[Line, ...]
    starts: tuple[int, ...]
    """The column of the tensor at which each cell begins."""
    legend: tuple[Mark, ...]
    sampled: bool
    """A cell stands for more than one element, of which the first is shown."""
    note: str = ""
    """What has to be known to read it, in a clause: letters that stand for several things."""
