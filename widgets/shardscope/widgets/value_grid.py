"""A window into a tensor: numbers in rows and columns with their indices, and the cell of the cursor.

It only draws. Which window it is, and where the cursor stands, the screen decides.
"""

from typing import ClassVar

from msgspec import Struct
from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from shardscope.widgets.cell_picture import CellPicture
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.safe import Tone, fit

GAP = 2
"""Cells between two columns."""
RULER = 1
"""Lines over the numbers."""


class Sheet(Struct, frozen=True):
    """What the grid draws. All texts are ours, or digits."""

    rows: tuple[str, ...]
    """Indices beside the lines."""
    columns: tuple[str, ...]
    """Indices over the columns."""
    cells: tuple[tuple[tuple[str, Tone] | None, ...], ...]
    """Null: not read yet. A line may be shorter than there are columns."""
    width: int
    """Of a column."""
    label: int
    """Cells of the indices beside the lines."""
    here: tuple[int, int]
    """The line and the cell of the cursor."""


class ValueGrid(CellPicture):
    """The grid. `show(sheet)`; `room(label, width)` says how many columns and lines there is room for."""

    STYLES = "grid"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "grid--cursor",
        "grid--index",
        *(f"grid--{tone}" for tone in Tone if tone),
    }
    DEFAULT_CSS = "ValueGrid { width: 1fr; height: 1fr; }"

    class Pointed(CellPicture.Pointed):
        """A cell was clicked."""

    class Turned(Message):
        """The wheel of the mouse was turned by some lines."""

        def __init__(self, lines: int) -> None:
            super().__init__()
            self.lines = lines

    class Resized(CellPicture.Resized):
        """There is another number of cells."""

    def __init__(
        self,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        super().__init__(glyphs=glyphs, id=id, classes=classes)
        self.sheet: Sheet | None = None
        self._said: tuple[str, Tone] = ("", Tone.MUTED)

    def show(self, sheet: Sheet) -> None:
        """Draw this."""
        self.sheet = sheet
        self.refresh()

    def say(self, sentence: str, tone: Tone = Tone.MUTED) -> None:
        """Draw a sentence of ours in the place of numbers."""
        self.sheet, self._said = None, (sentence, tone)
        self.refresh()

    def room(self, label: int, width: int) -> tuple[int, int]:
        """Return how many columns of some width fit beside the indices, and how many lines."""
        columns = (self.size.width - label) // (width + GAP)
        return max(1, columns), max(1, self.size.height - RULER)

    # Drawing.

    def render_line(self, y: int) -> Strip:
        """Return a line: the indices of columns, or an index and numbers."""
        sheet, width = self.sheet, self.size.width
        if sheet is None:
            text, tone = self._said
            shown = fit(text if y == 0 else "", width, ellipsis=self.glyphs.ellipsis)
            return Strip([Segment(shown, self.style_of(tone))], width)
        if y < RULER:
            segments = self._ruler(sheet)
        elif y - RULER < len(sheet.cells):
            segments = self._line(sheet, y - RULER)
        else:
            segments = []
        return Strip(segments).crop_extend(0, width, self.rich_style)

    def _ruler(self, sheet: Sheet) -> list[Segment]:
        segments = [Segment(" " * sheet.label, self.rich_style)]
        for cell, name in enumerate(sheet.columns):
            style = self.style_of(Tone.HERE if cell == sheet.here[1] else "index")
            segments.append(Segment(f"{name:>{sheet.width + GAP}}", style))
        return segments

    def _line(self, sheet: Sheet, line: int) -> list[Segment]:
        name = self.style_of(Tone.HERE if line == sheet.here[0] else "index")
        segments = [Segment(f"{sheet.rows[line]:>{sheet.label}}", name)]
        for cell, part in enumerate(sheet.cells[line]):
            text, tone = (self.glyphs.dot, Tone.MUTED) if part is None else part
            style = self.style_of("cursor" if (line, cell) == sheet.here else tone)
            shown = fit(text, sheet.width, right=True, ellipsis=self.glyphs.ellipsis)
            segments += [Segment(" " * GAP, self.rich_style), Segment(shown, style)]
        return segments

    # The mouse.

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Go down."""
        event.stop()
        self.post_message(self.Turned(3))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Go up."""
        event.stop()
        self.post_message(self.Turned(-3))

    def on_click(self, event: events.Click) -> None:
        """Find out which cell was clicked."""
        sheet, offset = self.sheet, event.get_content_offset(self)
        if sheet is None or offset is None or offset.x < sheet.label:
            return
        line, cell = offset.y - RULER, (offset.x - sheet.label) // (sheet.width + GAP)
        if 0 <= line < len(sheet.cells) and cell < len(sheet.cells[line]):
            self.post_message(self.Pointed(line, cell))
