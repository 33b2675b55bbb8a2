"""Where pieces begin and end in a tensor seen as a matrix: the rows and the columns at which something else begins."""

import math
from collections.abc import Iterable, Sequence
from itertools import product

from msgspec import Struct

from shardscope.engine.geometry.describing.regions import Extent, region
from shardscope.engine.model.piece import IndexedPiece, Piece, Side

MOST = 16_384
"""Borders that are looked at in each direction. Beyond it cells are sampled."""


class Borders(Struct, frozen=True):
    """Sorted positions at which something else begins, in both directions."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    known: bool
    """Whether these are all."""


def borders(rows: int, columns: int, pieces: Iterable[tuple[Piece | IndexedPiece, Side, Side]]) -> Borders:
    """Return the borders of pieces in a matrix. Each piece comes with its side there and its other side."""
    at_rows: set[int] = set()
    at_columns: set[int] = set()
    known = True
    for piece, here, there in pieces:
        if isinstance(piece, IndexedPiece) or not math.prod(piece.shape):
            known = known and not isinstance(piece, IndexedPiece)
            continue
        if max(len(at_rows), len(at_columns)) > MOST:
            return Borders(_inner(at_rows, rows), _inner(at_columns, columns), known=False)
        last = here.offset + sum((n - 1) * step for n, step in zip(piece.shape, here.strides, strict=True))
        if last - here.offset + 1 == piece.elements:
            _add_run(here.offset, last, columns, at_rows, at_columns)
        elif not _add_region((rows, columns), piece, here, there, at_rows, at_columns):
            at_rows.update((here.offset // columns, last // columns + 1))
            known = False
    return Borders(_inner(at_rows, rows), _inner(at_columns, columns), known)


def _inner(found: set[int], extent: int) -> tuple[int, ...]:
    return tuple(sorted(one for one in found if 0 < one < extent))


def _add_run(first: int, last: int, columns: int, at_rows: set[int], at_columns: set[int]) -> None:
    """Add the borders of addresses that follow each other: a part of a row, whole rows, a part of a row."""
    top, left = divmod(first, columns)
    bottom, right = divmod(last, columns)
    at_rows.update((top, bottom + 1))
    if left:
        at_columns.add(left)
        at_rows.add(top + 1)
    if right + 1 < columns:
        at_columns.add(right + 1)
        at_rows.add(bottom)


def _add_region(
    shape: tuple[int, int], piece: Piece, here: Side, there: Side, at_rows: set[int], at_columns: set[int]
) -> bool:
    found = region(shape, here, there, piece.shape)
    if found is None:
        return False
    for extent, at in zip(found, (at_rows, at_columns), strict=True):
        starts = _starts(extent)
        if starts is None:
            return False
        at.update(starts)
    return True


def _starts(extent: Extent) -> Sequence[int] | None:
    """Return where the runs of an extent begin and end; null where they are too many."""
    runs = extent.ordered(rising=True)
    length = runs.pop().count if runs and runs[-1].step == 1 else 1
    if math.prod(run.count for run in runs) > MOST:
        return None
    found: list[int] = []
    for numbers in product(*[range(run.count) for run in runs]):
        at = extent.start + sum(n * run.step for n, run in zip(numbers, runs, strict=True))
        found += (at, at + length)
    return found
