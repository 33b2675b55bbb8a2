"""Where a person is in the numbers of a tensor: what is selected, what of it is in sight, and where the cursor stands. Without a screen.

The grid has the last two dimensions of the selection, at one place of those before. A selection of one dimension is folded into lines.
"""

from typing import Final

from msgspec import Struct

from shardscope.engine.looking.slices import Selection
from shardscope.engine.model.window import Window

ROWS: Final = 64
COLUMNS: Final = 96
"""Of a window that is read, at most, as long as a screen has no more."""
FOLDS: Final = (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64, 80, 100)
"""Elements of a folded line: indices that are easy to add up."""


class Ask(Struct, frozen=True):
    """A window that is wanted, in places along the dimensions that are kept."""

    chosen: Selection
    lead: tuple[int, ...]
    rows: range
    columns: range
    bits: int | None = None

    @property
    def part(self) -> Selection:
        """The elements of it."""
        lines: tuple[range, ...] = (self.rows, self.columns)
        return self.chosen.within((*self.lead, *lines[2 - min(2, len(self.chosen.kept)) :]))

    def about_the_same(self, other: "Ask") -> bool:
        """Tell whether another one is of the same numbers, though at another place."""
        return (self.chosen, self.lead, self.bits) == (other.chosen, other.lead, other.bits)


class Sight:
    """The place of one person in one tensor."""

    def __init__(self, chosen: Selection, bits: int | None = None) -> None:
        self.bits = bits
        self.lines, self.cells = 1, 1
        """What there is room for."""
        self._block: tuple[Ask, Window] | None = None
        self._asked: Ask | None = None
        """The window that is being read."""
        self.choose(chosen)

    def choose(self, chosen: Selection) -> None:
        """Select something else; the cursor goes to its first element."""
        self.chosen = chosen
        self.lead = (0,) * max(0, len(chosen.kept) - 2)
        """Places along the dimensions before the last two."""
        self.active = len(self.lead) - 1
        """Which of them is stepped through."""
        self.row = self.column = self.top = self.left = 0

    # The grid.

    @property
    def folded(self) -> bool:
        """Whether one dimension is folded into lines."""
        return len(self.chosen.kept) == 1

    @property
    def fold(self) -> int:
        """Elements of a folded line."""
        return max(each for each in FOLDS if each <= max(1, self.cells))

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        shape = self.chosen.shape
        if not shape:
            return 1, 1
        if self.folded:
            return -(-shape[0] // self.fold), min(shape[0], self.fold)
        return shape[-2], shape[-1]

    @property
    def empty(self) -> bool:
        """Whether nothing is selected."""
        return not self.chosen.elements

    def width_of(self, row: int) -> int:
        """Return how many columns a row has: the last one of a folded dimension may have fewer."""
        if self.folded:
            return min(self.fold, self.chosen.shape[0] - row * self.fold)
        return self.extent[1]

    def places(self, row: int, column: int) -> tuple[int, ...]:
        """Return the places of an element along the dimensions that are kept."""
        if self.folded:
            return (row * self.fold + column,)
        return (*self.lead, row, column)[: len(self.chosen.kept)]

    @property
    def index(self) -> tuple[int, ...]:
        """The index in the tensor of the element of the cursor."""
        return self.index_at(self.places(self.row, self.column))

    def index_at(self, places: tuple[int, ...]) -> tuple[int, ...]:
        """Return the index in the tensor of some places along the dimensions that are kept."""
        found = [each.start for each in self.chosen.indices]
        for dim, place in zip(self.chosen.kept, places, strict=True):
            found[dim] = self.chosen.indices[dim][place]
        return tuple(found)

    # Moving.

    def fit(self, cells: int, lines: int) -> None:
        """Take note of the room there is; the cursor stays on its element."""
        at = self.row * self.fold + self.column if self.folded else 0
        self.cells, self.lines = max(1, cells), max(1, lines)
        if self.folded:
            self.row, self.column = divmod(at, self.fold)
        self._show()

    def move(self, down: int, right: int) -> None:
        """Move the cursor; in a folded dimension lines go on in the next."""
        if self.empty:
            return
        if self.folded:
            at = self.row * self.fold + self.column + down * self.fold + right
            self._go_flat(at if right else self._kept_in_column(at, down))
        else:
            rows, columns = self.extent
            self.row = max(0, min(self.row + down, rows - 1))
            self.column = max(0, min(self.column + right, columns - 1))
        self._show()

    def _kept_in_column(self, at: int, down: int) -> int:
        """Return where a move down or up ends: in the same column as far as the lines go."""
        if at < 0:
            return self.column
        last = self.chosen.shape[0] - 1
        if at <= last or not down:
            return at
        if self.row == self.extent[0] - 1:
            return self.row * self.fold + self.column
        return min((self.extent[0] - 1) * self.fold + self.column, last)

    def _go_flat(self, at: int) -> None:
        self.row, self.column = divmod(max(0, min(at, self.chosen.shape[0] - 1)), self.fold)

    def page(self, down: int, right: int) -> None:
        """Move by what is in sight."""
        self.move(down * self.lines, right * self.cells if not self.folded else 0)

    def begin(self) -> None:
        """Go to the beginning of the row, and from there to that of everything."""
        if self.column:
            self.column = 0
        else:
            self.row = 0
        self._show()

    def end(self) -> None:
        """Go to the end of the row, and from there to that of everything."""
        if self.empty:
            return
        last = self.width_of(self.row) - 1
        if self.column == last:
            self.row = self.extent[0] - 1
        self.column = self.width_of(self.row) - 1
        self._show()

    def step(self, by: int) -> bool:
        """Go to another place of the dimensions before the last two, over the ends of each into the one before; tell whether there is one."""
        sizes = self.chosen.shape[:-2]
        lead = list(self.lead)
        for dim in range(self.active, -1, -1):
            at = lead[dim] + by
            lead[dim] = at % sizes[dim]
            if 0 <= at < sizes[dim]:
                self.lead = tuple(lead)
                return True
        return False

    def turn(self) -> None:
        """Step through another one of the dimensions before the last two."""
        if self.lead:
            self.active = (self.active - 1) % len(self.lead)

    def go_to(self, index: tuple[int, ...]) -> bool:
        """Put the cursor on an element, by its index in the tensor; tell whether it is selected."""
        places = self.chosen.place(index)
        if places is None:
            return False
        if self.folded:
            self._go_flat(places[0])
        elif places:
            *lead, self.row, self.column = places
            self.lead = tuple(lead)
        self._show()
        return True

    def point(self, line: int, cell: int) -> None:
        """Put the cursor on a cell that is in sight."""
        self.row = min(self.top + line, self.extent[0] - 1)
        self.column = min(self.left + cell, self.width_of(self.row) - 1)

    def _show(self) -> None:
        """Scroll as little as brings the cursor into sight."""
        rows, columns = self.extent
        self.top = _scrolled(self.top, self.row, self.lines, rows)
        self.left = 0 if self.folded else _scrolled(self.left, self.column, self.cells, columns)

    # What is in sight, and what has to be read for it.

    @property
    def rows(self) -> range:
        """Rows in sight."""
        return range(self.top, min(self.top + self.lines, self.extent[0]))

    @property
    def columns(self) -> range:
        """Columns in sight."""
        return range(self.left, min(self.left + self.cells, self.extent[1]))

    @property
    def seen(self) -> Selection:
        """What is in sight, as a selection."""
        if self.folded:
            low = self.top * self.fold
            return self.chosen.within((range(low, min(self.rows.stop * self.fold, self.chosen.shape[0])),))
        lines = (self.rows, self.columns)[2 - min(2, len(self.chosen.kept)) :]
        return self.chosen.within((*self.lead, *lines))

    def wanted(self) -> Ask | None:
        """Return the window to read: what is in sight and as much around it; None where what is needed is there.

        A new one is wanted as soon as half of what is around is in sight, so that a person who moves on waits for none.
        """
        if self.empty:
            return None
        need, ask = self._around(2), self._around(1)
        block = None if self._block is None else self._block[0]
        if block is not None and block.about_the_same(need) and _covers(block, need):
            return None
        return ask

    def _around(self, share: int) -> Ask:
        """Return what is in sight with as much around it, or with a part of that."""
        rows, columns = self.extent
        down = max(0, min(self.lines, (ROWS - self.lines) // 2)) // share
        if self.folded:
            size = self.chosen.shape[0]
            low, high = (self.top - down) * self.fold, (self.rows.stop + down) * self.fold
            lines, cells = range(1), range(max(0, low), min(high, size))
        else:
            right = max(0, min(self.cells, (COLUMNS - self.cells) // 2)) // share
            lines = range(max(0, self.top - down), min(self.rows.stop + down, rows))
            cells = range(max(0, self.left - right), min(self.columns.stop + right, columns))
        return Ask(self.chosen, self.lead, lines, cells, self.bits)

    def next_ask(self) -> Ask | None:
        """Return the window to begin to read now; None where there is none, or where it is being read already."""
        ask = self.wanted()
        if ask is None or ask == self._asked:
            return None
        self._asked = ask
        return ask

    def ask_again(self) -> None:
        """Take note that the window that was being read will not come."""
        self._asked = None

    def is_of(self, ask: Ask) -> bool:
        """Tell whether a window is of what is looked at."""
        return not self.empty and ask.about_the_same(self._around(1))

    def read(self, ask: Ask, window: Window) -> bool:
        """Take in a window that was read; tell whether it is of what is looked at."""
        if not self.is_of(ask):
            return False
        self._block = (ask, window)
        return True

    def number(self, row: int, column: int) -> tuple[str, str] | None:
        """Return an element in decimal, and its bits; None where it was not read yet."""
        if self._block is None:
            return None
        ask, window = self._block
        if (ask.chosen, ask.lead, ask.bits) != (self.chosen, self.lead, self.bits):
            return None
        down, right = (0, row * self.fold + column) if self.folded else (row, column)
        if down not in ask.rows or right not in ask.columns:
            return None
        line, cell = down - ask.rows.start, right - ask.columns.start
        return window.words[line][cell], window.codes[line][cell]


def _scrolled(top: int, at: int, room: int, extent: int) -> int:
    """Return where what is in sight begins, so that `at` is in it and nothing beyond the end."""
    if at < top:
        top = at
    elif at >= top + room:
        top = at - room + 1
    return max(0, min(top, extent - room))


def _covers(block: Ask, need: Ask) -> bool:
    return all(
        has.start <= needs.start and needs.stop <= has.stop
        for has, needs in ((block.rows, need.rows), (block.columns, need.columns))
    )
