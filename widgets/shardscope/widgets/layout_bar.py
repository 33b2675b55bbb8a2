"""The bar of a file's layout: some lines of letters with the offset of each, the stretch of the cursor marked."""

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from shardscope.engine.model.file_layout import FileLayout
from shardscope.widgets.figures import size
from shardscope.widgets.layout_map import Cell, LayoutMap
from shardscope.widgets.safe import Tone

MARGIN = 11
"""Cells of the offset before each line."""


class LayoutBar(Widget):
    """Fill it with `show(layout_map)`, then `mark(place)`.

    Message: `PlaceClicked` with a stretch.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {"bar--cursor", *(f"bar--{tone}" for tone in Tone if tone)}  # noqa: RUF012 - as in its base
    DEFAULT_CSS = "LayoutBar { height: 3; }"

    class PlaceClicked(Message):
        """A letter was clicked."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - the word of Textual
        """Make an empty bar."""
        super().__init__(id=id)
        self._map = LayoutMap(FileLayout("", 0, 0, "unknown", ()))
        self._cells: list[Cell] = []
        self._marked = 0

    def show(self, layout: LayoutMap) -> None:
        """Show another file."""
        self._map, self._marked = layout, 0
        self._fit()

    def mark(self, place: int) -> None:
        """Mark the letters of a stretch."""
        self._marked = place
        self.refresh()

    @property
    def across(self) -> int:
        """Letters of one line."""
        return max(8, self.size.width - MARGIN)

    @property
    def count(self) -> int:
        """Letters of the whole bar."""
        return self.across * max(1, self.size.height)

    def on_resize(self) -> None:
        """Share the bytes among other letters."""
        self._fit()

    def _fit(self) -> None:
        self._cells = self._map.cells(self.count) if self._map.layout.size else []
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual calls it so
        """Return the lines that the style sheet gives."""
        return 3

    def step(self, by: int) -> int:
        """Return the stretch some letters further than those that are marked."""
        if not self._cells:
            return 0
        span = self._map.span(self._marked, self.count)
        at = span[-1] + by if by > 0 else span[0] + by
        at = max(0, min(len(self._cells) - 1, at))
        found = self._cells[at].place
        return found if found != self._marked else max(0, min(len(self._map.ranges) - 1, self._marked + by))

    def render_line(self, y: int) -> Strip:
        """Return one line: the offset of its first letter, and its letters."""
        first = y * self.across
        cells = self._cells[first : first + self.across]
        if not cells:
            return Strip.blank(self.size.width)
        offset = first * self._map.layout.size // len(self._cells)
        muted = self.get_component_rich_style(f"bar--{Tone.MUTED}")
        segments = [Segment(f"{size(offset):>{MARGIN - 1}} ", muted)]
        marked = self._map.span(self._marked, self.count)
        for number, cell in enumerate(cells, start=first):
            here = number in marked
            style = (
                self.get_component_rich_style("bar--cursor")
                if here
                else self.get_component_rich_style(f"bar--{cell.tone}")
                if cell.tone
                else self.rich_style
            )
            segments.append(Segment(cell.letter, style))
        return Strip(segments).adjust_cell_length(self.size.width)

    def on_click(self, event: events.Click) -> None:
        """Tell which stretch was clicked."""
        at = event.y * self.across + event.x - MARGIN
        if event.x >= MARGIN and at < len(self._cells):
            self.post_message(self.PlaceClicked(self._cells[at].place))
