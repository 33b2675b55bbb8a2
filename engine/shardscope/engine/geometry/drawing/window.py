"""Moving about in a drawing: from cell to cell, with the window behind the cursor, closer to what lies there, and back."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from shardscope.engine.geometry.drawing.borders import Borders
from shardscope.engine.model.shardview import Drawing, Window

CLOSER = 4
"""By how much a window without borders shrinks in each direction."""

Place = tuple[int, int]
"""A row and a column of a matrix."""


def moved(drawing: Drawing, at: Place, down: int, right: int) -> Place:
    """Return the place `down` lines and `right` cells from another; the nearest there is, at an edge of the whole.

    It may lie out of sight: see `following`. In lines of rows side by side, left and right go through the rows.
    """
    row, column = at
    for _ in range(abs(down)):
        row, column = _step_down(drawing, row, column, 1 if down > 0 else -1)
    for _ in range(abs(right)):
        row, column = _step_right(drawing, row, column, 1 if right > 0 else -1)
    return row, column


def _step_down(drawing: Drawing, row: int, column: int, way: int) -> Place:
    line, cell = drawing.cell(row, column)
    first, stop = drawing.rows.span(line)
    wanted = stop if way > 0 else first - 1
    if not 0 <= wanted < drawing.extent[0]:
        return row, column
    if not drawing.window.holds(wanted, drawing.window.column):
        return wanted, column
    other = drawing.rows.cell(wanted)
    if drawing.folds[other] is None:
        return drawing.rows.starts[other], column
    return drawing.at(other, cell)


def _step_right(drawing: Drawing, row: int, column: int, way: int) -> Place:
    line, cell = drawing.cell(row, column)
    span = drawing.span(line, cell)
    if drawing.folds[line] is not None:
        wanted = span.row + span.rows if way > 0 else span.row - 1
        if not 0 <= wanted < drawing.extent[0]:
            return row, column
        if not drawing.window.holds(wanted, drawing.window.column):
            return wanted, column
        return drawing.at(*drawing.cell(wanted, column))
    wanted = span.column + span.columns if way > 0 else span.column - 1
    if not 0 <= wanted < drawing.extent[1]:
        return row, column
    if not drawing.window.holds(drawing.window.row, wanted):
        return row, wanted
    return row, drawing.columns.span(drawing.columns.cell(wanted))[0]


def following(window: Window, extent: tuple[int, int], at: Place) -> Window:
    """Return a window of the same size that holds a place, moved no further than needed."""
    row, column = (
        _shifted(first, count, whole, wanted)
        for first, count, whole, wanted in (
            (window.row, window.rows, extent[0], at[0]),
            (window.column, window.columns, extent[1], at[1]),
        )
    )
    return Window(row, window.rows, column, window.columns)


def _shifted(first: int, count: int, whole: int, wanted: int) -> int:
    if wanted < first:
        first = wanted
    elif wanted >= first + count:
        first = wanted - count + 1
    return max(0, min(first, whole - count))


def closer(
    window: Window, extent: tuple[int, int], found: Borders, at: Place, cells: tuple[int, int]
) -> Window:
    """Return a smaller window around a place: the stretch without a border that it lies in, or a part of that.

    `cells` are the lines and the cells of a line that there is room for. What has a cell for each position does not shrink.
    """
    rows = _between(found.rows, extent[0], at[0])
    columns = _between(found.columns, extent[1], at[1])
    region = Window(
        max(rows[0], window.row),
        min(rows[1], window.row + window.rows) - max(rows[0], window.row),
        max(columns[0], window.column),
        min(columns[1], window.column + window.columns) - max(columns[0], window.column),
    )
    if region != window and region.holds(*at):
        return region
    room = cells[0] * cells[1] if extent[1] == 1 else cells[0]
    row, height = _shrunk(window.row, window.rows, at[0], room)
    column, width = _shrunk(window.column, window.columns, at[1], cells[1])
    return Window(row, height, column, width)


def _between(borders: Sequence[int], extent: int, position: int) -> tuple[int, int]:
    number = bisect_right(borders, position)
    low = borders[number - 1] if number else 0
    end = bisect_left(borders, position + 1)
    return low, borders[end] if end < len(borders) else extent


def _shrunk(first: int, count: int, position: int, cells: int) -> tuple[int, int]:
    if count <= cells:
        return first, count
    size = max(cells, -(-count // CLOSER))
    return max(first, min(position - size // 2, first + count - size)), size
