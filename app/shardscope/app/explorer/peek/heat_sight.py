"""Where a person is in a heat map: boxes of rows and columns, or one sign for each channel of a dimension. Without a screen."""

from collections.abc import Sequence
from statistics import median

from shardscope.app.explorer.peek.sight import FOLDS
from shardscope.engine.looking.slices import Selection
from shardscope.engine.model.gathered import Gathered
from shardscope.widgets.heat_map import GAP, HeatSheet, signs

FACTOR = 10
"""A channel of so many times the median is worth a word."""


class HeatSight:
    """One map of a reading, with a cursor."""

    def __init__(self, chosen: Selection) -> None:
        self.chosen = chosen
        self.axis: int | None = None
        """Which of the dimensions that are kept has a sign for each channel; None for boxes."""
        self.known: Gathered | None = None
        self.line = self.box = self.top = 0
        self._fold = 1
        self._width, self._lines = 1, 1
        self._signs = ""

    def take(self, known: Gathered | None) -> None:
        """Take in what is known by now."""
        self.known = known
        self._draw()

    def fit(self, width: int, lines: int) -> None:
        """Take note of the room there is."""
        if (self._width, self._lines) != (max(8, width), max(1, lines)):
            self._width, self._lines = max(8, width), max(1, lines)
            self._fold_lines()

    def turn(self) -> None:
        """Show the channels of the next dimension, after the last one boxes again. Of one dimension there is no other."""
        at = 0 if self.axis is None else self.axis + 1
        self.axis = at if at < len(self.chosen.kept) else None
        self.line = self.box = self.top = 0
        self._draw()

    @property
    def there(self) -> bool:
        """Whether there is something to draw."""
        known = self.known
        return known is not None and bool(known.done) and known.heat is not None

    # What is drawn.

    def _rms(self) -> Sequence[float | None]:
        known = self.known
        if known is None or known.heat is None:
            return ()
        if self.axis is None:
            return [value for row in known.heat.rms for value in row]
        return () if known.profiles is None else known.profiles[self.axis].rms

    def _draw(self) -> None:
        rms = self._rms()
        known = self.known
        self._signs = signs(rms, partial=known is not None and not known.complete)
        self._fold_lines()

    def _fold_lines(self) -> None:
        """Find out how many signs a line has; the cursor stays as near as there are lines."""
        known = self.known
        if self.axis is None:
            self._fold = 1 if known is None or known.heat is None else len(known.heat.column_edges) - 1
        else:
            room = self._width - GAP - max((len(label) for label in self._ends()), default=1)
            self._fold = max(each for each in FOLDS if each <= max(1, room))
        self.move(0, 0)

    def _ends(self) -> tuple[str, ...]:
        edges = self._edges()
        return ("0",) if len(edges) < 2 else (self._label(edges[0]), self._label(edges[-2]))

    def _edges(self) -> tuple[int, ...]:
        known = self.known
        if self.axis is None or known is None or known.profiles is None:
            return ()
        return known.profiles[self.axis].edges

    def _label(self, place: int) -> str:
        """Return the index in the tensor of a place along the dimension whose channels are shown."""
        return str(self.chosen.indices[self.chosen.kept[self.axis or 0]][place])

    @property
    def lines(self) -> int:
        """Lines of the whole picture."""
        return -(-len(self._signs) // self._fold)

    def sheet(self) -> HeatSheet:
        """Return what is in sight."""
        low, high = self.top, min(self.top + self._lines, self.lines)
        lines = tuple(self._signs[at * self._fold : (at + 1) * self._fold] for at in range(low, high))
        return HeatSheet(tuple(map(self._beside, range(low, high))), lines, (self.line - low, self.box))

    def _beside(self, line: int) -> str:
        if self.axis is not None:
            return self._label(self._edges()[line * self._fold])
        return self._row_words(line)

    def _row_words(self, line: int) -> str:
        known = self.known
        if known is None or known.heat is None or len(self.chosen.kept) < 2:
            return ""
        return ",".join(map(str, self._row_index(known.heat.row_edges[line])))

    def _row_index(self, row: int) -> tuple[int, ...]:
        """Return the indices of a row in the dimensions that are kept, but the last one."""
        index = self.chosen.index(row * self.chosen.shape[-1])
        return tuple(index[dim] for dim in self.chosen.kept[:-1])

    # Moving.

    def move(self, down: int, right: int) -> None:
        """Move the cursor."""
        last = max(0, len(self._signs) - 1)
        self.line = max(0, min(self.line + down, last // self._fold))
        end = min(self._fold, len(self._signs) - self.line * self._fold) - 1
        self.box = max(0, min(self.box + right, end))
        if self.line < self.top:
            self.top = self.line
        elif self.line >= self.top + self._lines:
            self.top = self.line - self._lines + 1

    def page(self, down: int) -> None:
        """Move by what is in sight."""
        self.move(down * self._lines, 0)

    def ends(self, *, last: bool) -> None:
        """Go to the first or the last box."""
        self.line, self.box = (self.lines, self._fold) if last else (0, 0)
        self.move(0, 0)

    def loudest(self) -> None:
        """Go to the box of the largest root mean square."""
        rms = self._rms()
        known = [value for value in rms if value is not None]
        if known:
            self.line, self.box = divmod(rms.index(max(known)), self._fold)
            self.move(0, 0)

    def point(self, line: int, box: int) -> None:
        """Put the cursor on a box that is in sight."""
        self.line, self.box = self.top + line, box
        self.move(0, 0)

    # What is under the cursor.

    @property
    def at(self) -> tuple[int, ...] | None:
        """The index in the tensor of the first element of the box; None where there is none."""
        known, chosen = self.known, self.chosen
        if known is None or known.heat is None or not chosen.elements:
            return None
        if self.axis is None:
            row, column = known.heat.row_edges[self.line], known.heat.column_edges[self.box]
            width = chosen.shape[-1] if chosen.shape else 1
            return chosen.index(row * width + column)
        found = list(chosen.index(0))
        dim = chosen.kept[self.axis]
        found[dim] = chosen.indices[dim][self._edges()[self.line * self._fold + self.box]]
        return tuple(found)

    def words(self) -> str:
        """Return what is under the cursor, and its figure."""
        number = self.line * self._fold + self.box
        rms = self._rms()
        if number >= len(rms):
            return ""
        value = rms[number]
        whole = self.known is not None and self.known.complete
        none = "nothing finite" if whole else "not read, or nothing finite"
        figure = none if value is None else f"rms {value:.4g}"
        return f"{self._what(number)}: {figure}{self._beside_others(value, rms)}"

    def _what(self, number: int) -> str:
        known, chosen = self.known, self.chosen
        if self.axis is not None:
            edges, dim = self._edges(), chosen.kept[self.axis]
            return f"dimension {dim}, {_indices(chosen.indices[dim], edges[number], edges[number + 1])}"
        if known is None or known.heat is None or not chosen.kept:
            return "the number"
        columns = known.heat.column_edges
        across = _indices(chosen.indices[chosen.kept[-1]], columns[self.box], columns[self.box + 1])
        if len(chosen.kept) < 2:
            return across
        first, last = (self._row_index(known.heat.row_edges[self.line + side] - side) for side in (0, 1))
        rows = ",".join(map(str, first))
        if last != first:
            rows = f"{rows} to {','.join(map(str, last))}"
        return f"rows {rows}, {across.replace('index', 'column').replace('indices', 'columns')}"

    def _beside_others(self, value: float | None, rms: Sequence[float | None]) -> str:
        """Say how a channel compares with the others, where it stands out."""
        known = [each for each in rms if each]
        if not value or len(known) < 3:
            return ""
        factor = value / median(known)
        if 1 / FACTOR < factor < FACTOR:
            return ""
        return f", {factor:.3g} times the median"

    def ends_words(self) -> str:
        """Return what the signs mean."""
        rms = self._rms()
        known = [each for each in rms if each]
        if not known:
            return "no number other than zero"
        where = ""
        if self.axis is not None:
            number = rms.index(max(known))
            edges, dim = self._edges(), self.chosen.kept[self.axis]
            where = f" at {_indices(self.chosen.indices[dim], edges[number], edges[number + 1])}"
        whole = self.known is not None and self.known.complete
        none = "! nothing finite" if whole else "blank: not read"
        return f". {min(known):.3g} to @ {max(known):.3g}{where}, in equal factors; 0 zero, {none}"


def _indices(indices: range, low: int, high: int) -> str:
    """Return places along a dimension as indices of the tensor."""
    if high - low == 1:
        return f"index {indices[low]}"
    return f"indices {indices[low]} to {indices[high - 1]}"
