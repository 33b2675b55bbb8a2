"""A window of a shard map as a picture: a letter for each cell, a colour that says the same, and the cell of the cursor.

It only draws. What is in sight and where the cursor is, the screen decides, as `engine.geometry.drawing` lays it out.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from shardscope.engine.model.picture import CLASH, EVERYWHERE, GAP, OUTSIDE, PADDING
from shardscope.engine.model.shardview import Drawing
from shardscope.widgets.cell_picture import CellPicture
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.safe import fit, visible

HUES = 6
"""Colours of letters; the seventh letter has the first colour again."""
RULER = 1
"""Lines over the cells."""
LABEL = 10
"""Cells of a name beside a line."""
SIGNS = {EVERYWHERE: "every", PADDING: "padding", GAP: "gap", CLASH: "gap", OUTSIDE: "padding"}
NEIGHBOURS = "<>"


def hue(letter: str) -> str:
    """Return the name of the style of a letter."""
    if letter in SIGNS:
        return SIGNS[letter]
    if letter in NEIGHBOURS:
        return "neighbour"
    return f"holder-{(int(letter) - 1 if letter.isdigit() else ord(letter.lower()) - ord('a')) % HUES}"


def gutter(drawing_rows: int) -> int:
    """Return the cells that numbers of rows take."""
    return max(4, len(f"{max(0, drawing_rows - 1):,}"))


class ShardPicture(CellPicture):
    """The picture. `show(drawing, line, cell)`; `room(rows)` says for how many cells there is room."""

    STYLES = "shard"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"shard--holder-{number}" for number in range(HUES)),
        "shard--every",
        "shard--padding",
        "shard--gap",
        "shard--neighbour",
        "shard--cursor",
        "shard--number",
        "shard--label",
    }
    DEFAULT_CSS = "ShardPicture { width: 1fr; height: 1fr; }"

    class Pointed(CellPicture.Pointed):
        """A cell was clicked."""

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
        self._drawing: Drawing | None = None
        self._here = (0, 0)
        self._empty = ""

    def show(self, drawing: Drawing, line: int, cell: int) -> None:
        """Draw this, with the cursor on a cell."""
        self._drawing, self._here = drawing, (line, cell)
        self.refresh()

    def say(self, sentence: str) -> None:
        """Draw a sentence of ours in the place of a picture."""
        self._drawing, self._empty = None, sentence
        self.refresh()

    def room(self, rows: int, labels: Sequence[str] = ()) -> tuple[int, int]:
        """Return how many cells fit across and down, beside numbers up to `rows` and the names of `labels`."""
        names = max((min(LABEL, cell_len(visible(label))) + 1 for label in labels), default=0)
        width = self.size.width - gutter(rows) - 1 - names
        return max(1, width), max(1, self.size.height - RULER)

    # Drawing.

    def render_line(self, y: int) -> Strip:
        """Return a line: the ruler, or numbers, cells and a name."""
        width = self.size.width
        drawing = self._drawing
        if drawing is None:
            text = self._empty if y == 0 else ""
            return Strip(
                [Segment(fit(text, width, ellipsis=self.glyphs.ellipsis), self.style_of("number"))], width
            )
        if y < RULER:
            segments = self._ruler(drawing)
        elif y - RULER < len(drawing.cells):
            segments = self._line(drawing, y - RULER)
        else:
            segments = []
        return Strip(segments).crop_extend(0, width, self.rich_style)

    def _ruler(self, drawing: Drawing) -> list[Segment]:
        left = gutter(drawing.extent[0])
        text = [" "] * len(drawing.columns.starts)
        free = 0
        for cell in (0, *drawing.columns.edges):
            number = f"{drawing.columns.starts[cell]:,}" if drawing.columns.starts else ""
            tick = "|" if cell else ""
            if cell >= free and cell + len(tick + number) <= len(text):
                text[cell : cell + len(tick + number)] = tick + number
                free = cell + len(tick + number) + 1
            elif cell >= free and cell < len(text):
                text[cell] = "|"
        return [Segment(" " * (left + 1), self.rich_style), Segment("".join(text), self.style_of("number"))]

    def _line(self, drawing: Drawing, line: int) -> list[Segment]:
        left = gutter(drawing.extent[0])
        begins = line == 0 or drawing.rows.starts[line] != drawing.rows.starts[line - 1]
        number = f"{drawing.rows.starts[line]:,}" if begins else ""
        found = [Segment(f"{number:>{left}} ", self.style_of("number"))]
        letters = drawing.cells[line]
        chosen = self._cursor(drawing, line)
        begin = 0
        for end in range(1, len(letters) + 1):
            if end == len(letters) or letters[end] != letters[begin] or end in (chosen.start, chosen.stop):
                name = "cursor" if begin in chosen else hue(letters[begin])
                found.append(Segment(letters[begin:end], self.style_of(name)))
                begin = end
        label = next((one.text for one in drawing.labels if one.line == line), None)
        if label is not None:
            found.append(
                Segment(f" {fit(label, LABEL, ellipsis=self.glyphs.ellipsis)}", self.style_of("label"))
            )
        return found

    def _cursor(self, drawing: Drawing, line: int) -> range:
        """Return the cells of a line that belong to the place of the cursor: several, where a tensor is small."""
        here, cell = self._here
        rows = drawing.rows.starts
        if here >= len(rows) or rows[line] != rows[here] or not drawing.cells[line]:
            return range(0)
        fold = drawing.folds[line]
        starts = drawing.columns.starts if fold is None else fold.starts
        cell = min(cell, len(starts) - 1)
        while cell and starts[cell - 1] == starts[cell]:
            cell -= 1
        end = cell
        while end < len(starts) and starts[end] == starts[cell]:
            end += 1
        return range(cell, end)

    # The mouse.

    def on_click(self, event: events.Click) -> None:
        """Find out which cell was clicked."""
        drawing, offset = self._drawing, event.get_content_offset(self)
        if drawing is None or offset is None:
            return
        line, cell = offset.y - RULER, offset.x - gutter(drawing.extent[0]) - 1
        if 0 <= line < len(drawing.cells) and 0 <= cell < len(drawing.cells[line]):
            self.post_message(self.Pointed(line, cell))
