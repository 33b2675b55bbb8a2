"""The preview of a report: what is in the checkpoint beside what will be written, line by line.

Where there is room both stand in columns; where there is none, a line that differs takes two, the original first. What was
removed is a block on both sides, and a word at the end of the line says why.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import ClassVar, Final, Protocol

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType

from shardscope.engine.model.report_lines import ReportLine, Span
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Tone, visible

COLUMNS_FROM: Final = 100
"""Cells from which on there is room for two columns."""
WHY: Final = 15
"""Cells of the column of reasons."""
AHEAD: Final = 12
"""Cells of a block that are in sight at least."""
LONGEST: Final = 4_096
"""Characters of a line that are looked at: what is further right is out of any terminal."""


class Lines(Protocol):
    """Where the lines come from."""

    @property
    def row_count(self) -> int:
        """How many rows there are, titles of files included."""
        ...

    @property
    def titles(self) -> Sequence[int]:
        """Rows that are titles, ascending."""
        ...

    @property
    def changed(self) -> Sequence[int]:
        """Rows that differ, ascending."""
        ...

    @property
    def doubled(self) -> Sequence[int]:
        """Rows that differ and have both sides, ascending."""
        ...

    def line(self, row: int) -> ReportLine:
        """Return one row."""
        ...


class Laid(Struct, frozen=True):
    """Which rows are shown, and where those are that take two lines."""

    rows: Sequence[int]
    starts: Sequence[int]
    """The lines on which the rows of two lines begin, ascending."""

    @property
    def count(self) -> int:
        """How many lines there are."""
        return len(self.rows) + len(self.starts)

    def at(self, line: int) -> tuple[int, int]:
        """Return the row that a line shows, and which of its lines it is: 0 or 1."""
        before = bisect_right(self.starts, line)
        if before and self.starts[before - 1] == line - 1:
            return self.rows[line - before], 1
        number = bisect_left(self.starts, line)
        return self.rows[line - number], 0

    def line_of(self, row: int) -> int:
        """Return the first line of a row, or of the next one that is shown."""
        place = min(bisect_left(self.rows, row), len(self.rows) - 1)
        low, high = 0, len(self.starts)
        while low < high:  # rows of two lines before this one: starts[n] - n is the place of the n-th
            middle = (low + high) // 2
            if self.starts[middle] - middle < place:
                low = middle + 1
            else:
                high = middle
        return place + low


def laid(lines: Lines, *, stacked: bool, changes: bool) -> Laid:
    """Return the layout: one line a row, or two where it differs if `stacked`; only what differs if `changes`."""
    if not changes:
        doubled = lines.doubled if stacked else ()
        return Laid(range(lines.row_count), [row + number for number, row in enumerate(doubled)])
    rows = sorted((*lines.titles, *lines.changed))
    twice = frozenset(lines.doubled) if stacked else frozenset()
    places = (place for place, row in enumerate(rows) if row in twice)
    return Laid(rows, [place + number for number, place in enumerate(places)])


Pieces = list[tuple[str, bool]]
"""Pieces of a text, harmless, with whether they are a block."""


def clipped(text: str, spans: Sequence[Span], width: int, ellipsis: str) -> Pieces:
    """Return `text` in exactly `width` cells with its blocks; where it is too long, from a little before the first of them."""
    text = text[:LONGEST]
    start = 0
    if spans and cell_len(text) > width and spans[0][0] > width - AHEAD:
        start = max(0, min(spans[0][0] - width // 4, len(text) - width + 1))
    pieces = [(ellipsis, False)] if start else []
    end = start
    for begin, stop in spans:
        if begin >= end:
            pieces += [(visible(text[end:begin]), False), (visible(text[begin:stop]), True)]
            end = stop
    pieces.append((visible(text[end:]), False))
    return _fitted([piece for piece in pieces if piece[0]], width, ellipsis)


def _fitted(pieces: Pieces, width: int, ellipsis: str) -> Pieces:
    total = sum(cell_len(text) for text, _ in pieces)
    if total <= width:
        return [*pieces, (" " * (width - total), False)]
    fitted: Pieces = []
    room = max(0, width - 1)
    for text, block in pieces:
        if room == 0:
            break
        cells = min(cell_len(text), room)
        fitted.append((set_cell_size(text, cells), block))
        room -= cells
    return [*fitted, (ellipsis, False)][: max(1, len(fitted) + 1)]


class ReportRows(VirtualRows):
    """The preview as lines.

    `ReportRows(lines, *, glyphs=None, id=None)`; `only_changes` and `columns` say how it is shown. `RowHighlighted` and `RowSelected`
    carry the row of the source.
    """

    BINDING_GROUP_TITLE = "Preview"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "change(1)", "Next change", id="lines.next", tooltip="Go to the next line that differs"),
        Binding(
            "N,p",
            "change(-1)",
            "Change before",
            show=False,
            id="lines.previous",
            tooltip="Go to the line before that differs",
        ),
        Binding("tab", "file(1)", "Next file", id="lines.next_file", tooltip="Go to the next file"),
        Binding(
            "shift+tab",
            "file(-1)",
            "File before",
            show=False,
            id="lines.previous_file",
            tooltip="Go to the file before",
        ),
        Binding(
            "c",
            "only_changes",
            "Changes only",
            id="lines.changes",
            tooltip="Show only the lines that differ, or all of them",
        ),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = VirtualRows.COMPONENT_CLASSES | {"report--block"}
    PINNED = 1

    def __init__(
        self,
        lines: Lines,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
    ) -> None:
        """Show all of `lines`."""
        self.lines = lines
        self.only_changes = False
        self._laid = laid(lines, stacked=False, changes=False)
        self._stacked = False
        super().__init__(glyphs=glyphs, id=id)

    @property
    def stacked(self) -> bool:
        """Whether lines that differ take two lines, for want of room."""
        return self._stacked

    @property
    def row(self) -> int:
        """The row of the source under the cursor."""
        return self._laid.at(self.cursor)[0]

    # What the list draws

    def row_count(self) -> int:
        """Return how many lines there are."""
        return self._laid.count

    def source_row(self, line: int) -> int:
        """Return which row of the source stands at `line`."""
        return self._laid.at(line)[0]

    def is_here(self, line: int) -> bool:
        """Tell whether a line belongs to the row of the cursor."""
        return self._laid.at(line)[0] == self.row

    def fit_rows(self, room: int) -> None:
        """Choose columns or two lines by the room there is; the row under the cursor stays."""
        stacked = room < COLUMNS_FROM
        if stacked != self._stacked:
            self._lay(stacked)

    def _lay(self, stacked: bool) -> None:
        row = self.row
        self._stacked = stacked
        self._laid = laid(self.lines, stacked=stacked, changes=self.only_changes)
        self.set_reactive(VirtualRows.cursor, self._laid.line_of(row))

    @property
    def _half(self) -> int:
        return (self.room - WHY - 6) // 2

    def draw_pinned(self, y: int) -> list[Segment]:  # noqa: ARG002 - there is one
        """Return the heads of the columns."""
        if self._stacked:
            other = "changes only" if self.only_changes else "no sign: written as it is"
            text = f"- as it is   + what is written   {other}"
            return [self.segment((f" {text}", Tone.MUTED), self.room)]
        half = self._half
        return [
            self.segment((f"  as it is{', changes only' * self.only_changes}", Tone.MUTED), half + 2),
            self.segment(("  what is written", Tone.MUTED), half + 3),
            self.segment(("why", Tone.MUTED), self.room - 2 * half - 5),
        ]

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return one line."""
        row, part = self._laid.at(line)
        found = self.lines.line(row)
        if found.kind == "file":
            return self._title(row, found.after or "", style)
        if self._stacked:
            return self._one(found, part, style)
        half = self._half
        here = self.glyphs.here if style is not None else " "
        wall = "│" if self.glyphs.dot == "·" else "|"
        return [
            self.segment((here, Tone.HERE), 2),
            *self._side(found.before, found.removed, half, style),
            self.segment((f" {wall} ", Tone.MUTED), 3),
            *self._side(found.after, found.put, half, style),
            self._why(found, self.room - 2 * half - 5, style),
        ]

    def _one(self, found: ReportLine, part: int, style: Style | None) -> list[Segment]:
        room = self.room
        if not found.why:
            return [self.segment("  ", 2, style), *self._side(found.after, (), room - 2, style)]
        if found.after is None or (part == 0 and found.before is not None):
            mark, text, spans = "-", found.before, found.removed
        else:
            mark, text, spans = "+", found.after, found.put
        second = found.after is None or mark == "+"
        why = WHY if second else 0
        tone = Tone.STOP if mark == "-" else Tone.OK
        return [
            self.segment((mark, tone), 2, style),
            *self._side(text, spans, room - 2 - why, style),
            *([self._why(found, why, style)] if why else ()),
        ]

    def _side(
        self, text: str | None, spans: Sequence[Span], width: int, style: Style | None
    ) -> list[Segment]:
        if text is None:
            absent = self.glyphs.empty * min(width, 12)
            return [self.segment((absent, Tone.MUTED), width, style)]
        plain, block = style or self.tone_style(Tone.PLAIN), style or self._block
        return [
            Segment(piece, block if is_block else plain)
            for piece, is_block in clipped(text, spans, width, self.glyphs.ellipsis)
        ]

    @property
    def _block(self) -> Style:
        return self.get_component_rich_style("report--block")

    def _why(self, found: ReportLine, width: int, style: Style | None) -> Segment:
        return self.segment((f" {', '.join(found.why)}", Tone.CAUTION), width, style)

    def _title(self, row: int, name: str, style: Style | None) -> list[Segment]:
        titles, changed = self.lines.titles, self.lines.changed
        place = bisect_right(titles, row)
        end = titles[place] if place < len(titles) else self.lines.row_count
        differ = bisect_left(changed, end) - bisect_left(changed, row)
        says = f"{end - row - 1:,} lines, {differ:,} of them differ" if differ else "written as it is"
        rule = ("─" if self.glyphs.dot == "·" else "-") * 2
        head = f"{rule} {name}  "
        return [
            self.segment((head, Tone.STRONG), min(self.room, cell_len(head)), style),
            self.segment((says, Tone.MUTED), max(0, self.room - cell_len(head)), style),
        ]

    # Going about

    def action_change(self, by: int) -> None:
        """Go to the next line that differs, or to the one before."""
        changed = self.lines.changed
        place = bisect_right(changed, self.row) if by > 0 else bisect_left(changed, self.row) - 1
        if 0 <= place < len(changed):
            self._go_to(self._laid.line_of(changed[place]))

    def _go_to(self, line: int) -> None:
        """Put the cursor on a line; one out of sight comes to the upper third, so that what follows is seen as well."""
        top, page = self.scroll_offset.y, self.page
        if not top <= line < top + page - 1:
            self.scroll_to(y=max(0, line - page // 3), animate=False, force=True)
        self.move_to(line)

    def action_file(self, by: int) -> None:
        """Go to the next file, or to the beginning of this one or of the one before."""
        titles = self.lines.titles
        place = bisect_right(titles, self.row) if by > 0 else bisect_left(titles, self.row) - 1
        if 0 <= place < len(titles):
            self.move_to(self._laid.line_of(titles[place]))
            self.scroll_to(y=self.cursor, animate=False, force=True)

    def action_only_changes(self) -> None:
        """Show only what differs, or everything."""
        self.only_changes = not self.only_changes
        self._lay(self._stacked)
        self.rows_changed(self.cursor)

    def action_cursor(self, rows: int) -> None:
        """Go some rows further: both lines of one that differs are one row."""
        here = self.row
        line = self.cursor
        step = 1 if rows > 0 else -1
        while 0 <= line < self.row_count() and self._laid.at(line)[0] == here:
            line += step
        if 0 <= line < self.row_count():
            self.move_to(self._laid.line_of(self._laid.at(line)[0]))

    def watch_cursor(self, before: int, after: int) -> None:
        """Draw both lines of the rows that the cursor left and came to."""
        super().watch_cursor(before, after)
        self._refresh_row(before + 1)
        self._refresh_row(after + 1)
        if self._stacked and after + 1 < self.row_count() and self.is_here(after + 1):
            bottom = self.scroll_offset.y + self.page
            if after + 1 >= bottom:
                self.scroll_to(y=after + 2 - self.page, animate=False, force=True)
