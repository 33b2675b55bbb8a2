"""A table of any number of rows: only those on the screen are asked for and drawn."""

from array import array
from collections.abc import Sequence
from typing import ClassVar, Protocol

from msgspec import Struct
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message

from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone

GAP = 2
"""Cells between two columns."""


class Column(Struct, frozen=True):
    """One column. Its width is `width` cells, and a share of what is left over where it grows."""

    title: str
    width: int
    grow: int = 0
    """Parts of the room left over that it takes."""
    right: bool = False
    """Numbers stand at the right."""
    tail: float = 0.5
    """The share of its room that the end of a long text keeps."""
    from_room: int = 0
    """It is left out where the table has fewer cells than this."""


class RowSource(Protocol):
    """Where rows come from. Texts may be raw: the table neutralises what it draws."""

    @property
    def row_count(self) -> int:
        """How many rows there are, hidden ones included."""
        ...

    def cell(self, row: int, column: int) -> Part:
        """Return what stands in a column of a row. Called for rows on the screen only."""
        ...


class VirtualTable(VirtualRows):
    """A table over a `RowSource`, in the order of `order`.

    `VirtualTable(columns, source, order=None, *, empty="...", glyphs=None, id=None, classes=None)`

    Messages: `RowHighlighted` and `RowSelected` (their `row` is the row of the source), `SortRequested`.
    """

    PINNED = 1
    PINNED_SIDEWAYS = True
    BINDING_GROUP_TITLE = "Table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "Sort", tooltip="Sort by the next column", id="table.sort"),
        Binding("S", "reverse", "Reverse", tooltip="Reverse the order", show=False, id="table.reverse"),
    ]

    class SortRequested(Message):
        """The person wants another order. Whoever fills the table sorts and calls `show_sorted`."""

        def __init__(self, table: "VirtualTable", column: int | None, *, descending: bool) -> None:
            super().__init__()
            self.table = table
            self.column = column
            """None for the order of the source."""
            self.descending = descending

        @property
        def control(self) -> "VirtualTable":
            """The table it happened in."""
            return self.table

    def __init__(
        self,
        columns: Sequence[Column],
        source: RowSource,
        order: Sequence[int] | None = None,
        *,
        empty: str = "No rows",
        glyphs: Glyphs | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`order` holds the rows to show, in order (`range` or `array('L')`); all of them when left out."""
        super().__init__(empty=empty, glyphs=glyphs, name=name, id=id, classes=classes)
        self.columns = tuple(columns)
        self.source = source
        self.order: Sequence[int] = range(self.source.row_count) if order is None else order
        self.sort_column: int | None = None
        self.descending = False
        self._drawn: list[int] = []
        self._widths: list[int] = []

    def row_count(self) -> int:
        """Return how many rows are shown."""
        return len(self.order)

    def source_row(self, line: int) -> int:
        """Return which row of the source stands at `line`."""
        return self.order[line]

    @property
    def row(self) -> int | None:
        """The row of the source under the cursor; None without rows."""
        return self.order[self.cursor] if self.order else None

    def show(
        self,
        source: RowSource,
        order: Sequence[int] | None = None,
        *,
        cursor: int = 0,
        columns: Sequence[Column] | None = None,
    ) -> None:
        """Show other rows, in other columns if need be."""
        self.source = source
        self.columns = self.columns if columns is None else tuple(columns)
        self.order = range(source.row_count) if order is None else order
        self.rows_changed(cursor)

    def show_rows(self, order: Sequence[int]) -> None:
        """Show other rows of the same source, or in another order; the cursor stays on its row if that is there."""
        row = self.row
        self.order = order
        self.rows_changed(self.line_of(row))

    def show_sorted(self, order: Sequence[int], column: int | None, *, descending: bool) -> None:
        """Show the rows in the order of `column`, and say so in its title."""
        self.sort_column, self.descending = column, descending
        self.show_rows(order)

    def line_of(self, row: int | None) -> int:
        """Return where a row of the source stands, 0 where it is not shown."""
        if row is None:
            return 0
        if isinstance(self.order, range | array):  # both search in C
            try:
                return self.order.index(row)
            except ValueError:
                return 0
        return next((line for line, shown in enumerate(self.order) if shown == row), 0)

    def move_to_row(self, row: int) -> None:
        """Put the cursor on a row of the source, where it is shown."""
        self.move_to(self.line_of(row))

    def fit_rows(self, room: int) -> None:
        """Share the room among the columns that are drawn in it."""
        self._drawn = [i for i, column in enumerate(self.columns) if column.from_room <= room]
        columns = [self.columns[i] for i in self._drawn]
        widths = [column.width for column in columns]
        left = room - sum(widths) - GAP * (len(widths) - 1)
        parts = sum(column.grow for column in columns)
        if left > 0 and parts:
            taken = [left * column.grow // parts for column in columns]
            growing = next(i for i, column in enumerate(columns) if column.grow)
            taken[growing] += left - sum(taken)
            widths = [width + more for width, more in zip(widths, taken, strict=True)]
        self._widths = widths

    def least_width(self) -> int:
        """Return the cells that a row cannot do without."""
        widths = [column.width for column in self.columns if column.from_room <= self.room]
        return sum(widths) + GAP * (len(widths) - 1)

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return row `line` in segments."""
        row = self.order[line]
        return self._cells([self.source.cell(row, i) for i in self._drawn], style)

    def draw_pinned(self, y: int) -> list[Segment]:  # noqa: ARG002 - there is one such line
        """Return the titles of the columns, with a sign at the one that the rows are sorted by."""
        sign = self.glyphs.descending if self.descending else self.glyphs.ascending
        titles = [
            f"{self.columns[i].title} {sign}" if i == self.sort_column else self.columns[i].title
            for i in self._drawn
        ]
        return self._cells(titles, self.get_component_rich_style("rows--header"))

    def _cells(self, parts: Sequence[Part], style: Style | None) -> list[Segment]:
        gap = Segment(" " * GAP, style or self.tone_style(Tone.PLAIN))
        segments: list[Segment] = []
        for part, i, width in zip(parts, self._drawn, self._widths, strict=True):
            column = self.columns[i]
            if segments:
                segments.append(gap)
            segments.append(self.segment(part, width, style, right=column.right, tail=column.tail))
        return segments

    def action_sort(self) -> None:
        """Ask for the order of the next column; after the last one for that of the source."""
        column = 0 if self.sort_column is None else self.sort_column + 1
        self.post_message(
            self.SortRequested(self, column if column < len(self.columns) else None, descending=False)
        )

    def action_reverse(self) -> None:
        """Ask for the reverse of the present order."""
        if self.sort_column is not None:
            self.post_message(self.SortRequested(self, self.sort_column, descending=not self.descending))

    def pinned_clicked(self, x: int) -> None:
        """Ask for the order of the column whose title was clicked, reversed at the second click."""
        end = 0
        for i, width in zip(self._drawn, self._widths, strict=True):
            end += width + GAP
            if x < end:
                again = i == self.sort_column
                self.post_message(self.SortRequested(self, i, descending=again and not self.descending))
                return
