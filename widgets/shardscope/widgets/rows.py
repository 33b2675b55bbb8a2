"""Rows of one line each, drawn as they come in sight: what tables, trees and texts have in common.

Textual's own table and tree format every row when it is added: a hundred thousand rows block for half a minute. Here
only the rows on the screen are drawn, so a million cost what a thousand cost. A subclass says how many rows there are
and draws one of them.
"""

from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from shardscope.widgets.glyphs import Glyphs, terminal_glyphs
from shardscope.widgets.safe import Part, Tone, fit

STEP = 8
"""Cells of one horizontal scroll."""


class VirtualRows(ScrollView, can_focus=True):
    """A scrolling list of rows with a cursor.

    Subclasses implement `row_count` and `draw_row`, and call `rows_changed` when either may answer differently.
    """

    ALLOW_SELECT = False
    BINDING_GROUP_TITLE = "Rows"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor(-1)", "Up", show=False, id="rows.up", tooltip="Go to the row above"),
        Binding("down,j", "cursor(1)", "Down", show=False, id="rows.down", tooltip="Go to the row below"),
        Binding(
            "pageup,ctrl+b", "page(-1)", "Page up", show=False, id="rows.page_up", tooltip="Go a page up"
        ),
        Binding(
            "pagedown,ctrl+f",
            "page(1)",
            "Page down",
            show=False,
            id="rows.page_down",
            tooltip="Go a page down",
        ),
        Binding("home,g", "first", "First row", show=False, id="rows.first", tooltip="Go to the first row"),
        Binding("end,G", "last", "Last row", show=False, id="rows.last", tooltip="Go to the last row"),
        Binding(
            "left,h",
            "leftwards",
            "Left",
            show=False,
            id="rows.left",
            tooltip="Go left, or show what is further left",
        ),
        Binding(
            "right,l",
            "rightwards",
            "Right",
            show=False,
            id="rows.right",
            tooltip="Go right, or show what is further right",
        ),
        Binding(
            "enter", "select", "Open", show=False, id="rows.select", tooltip="Choose what is under the cursor"
        ),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--cursor",
        "rows--header",
        *(f"rows--{tone}" for tone in Tone if tone),
    }
    DEFAULT_CSS = """
    VirtualRows { height: 1fr; scrollbar-size: 1 1; }
    """
    """How it looks is in `styles/widgets.tcss`."""

    cursor: reactive[int] = reactive(0, repaint=False, init=False)
    """The row that the person is on; 0 also when there are no rows."""
    PINNED: ClassVar[int] = 0
    """Lines at the top that do not scroll with the rows."""
    PINNED_SIDEWAYS: ClassVar[bool] = False
    """Whether they scroll sideways with them."""

    class RowHighlighted(Message):
        """The cursor came to another row."""

        def __init__(self, rows: "VirtualRows", line: int, row: int) -> None:
            super().__init__()
            self.rows = rows
            self.line = line
            """Where it is in the list as shown."""
            self.row = row
            """Which row of the source it is."""

        @property
        def control(self) -> "VirtualRows":
            """The list it happened in."""
            return self.rows

        def can_replace(self, message: Message) -> bool:
            """Only the newest place of the cursor matters."""
            return isinstance(message, type(self)) and message.rows is self.rows

    class RowSelected(Message):
        """A row was chosen, by enter or by a click on the row of the cursor."""

        def __init__(self, rows: "VirtualRows", line: int, row: int) -> None:
            super().__init__()
            self.rows = rows
            self.line = line
            self.row = row

        @property
        def control(self) -> "VirtualRows":
            """The list it happened in."""
            return self.rows

    def __init__(
        self,
        *,
        empty: str = "Nothing to show",
        glyphs: Glyphs | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`empty` is the sentence shown where there are no rows."""
        super().__init__(name=name, id=id, classes=classes)
        self.glyphs = glyphs or terminal_glyphs()
        self._empty = empty
        self._strips: LRUCache[tuple[int, bool], Strip] = LRUCache(512)
        self._styles: dict[Tone, Style] = {}
        self._fitted: int | None = None

    # What a subclass says.

    def row_count(self) -> int:
        """Return how many rows there are."""
        raise NotImplementedError

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return row `line` in segments. `style` overrides tones on the row of the cursor."""
        raise NotImplementedError

    def is_here(self, line: int) -> bool:
        """Tell whether a row is drawn as that of the cursor."""
        return line == self.cursor

    def draw_pinned(self, y: int) -> list[Segment]:
        """Return line `y` of those that do not scroll."""
        raise NotImplementedError

    def source_row(self, line: int) -> int:
        """Return which row of the source stands at `line`."""
        return line

    def least_width(self) -> int:
        """Return the cells that a row cannot do without: beyond the room there is, rows scroll sideways."""
        return 0

    def fit_rows(self, room: int) -> None:
        """Prepare for rows in `room` cells. Called before the first row is drawn and after each change."""

    # What a subclass uses.

    def say_when_empty(self, words: str) -> None:
        """Change the sentence that is shown where there are no rows."""
        self._empty = words

    @property
    def room(self) -> int:
        """Cells of the visible part of a row."""
        return self.scrollable_content_region.width

    def tone_style(self, tone: Tone) -> Style:
        """Return the style of a tone in the theme of the moment."""
        if not self._styles:
            self._styles = {each: self.get_component_rich_style(f"rows--{each}") for each in Tone if each}
            self._styles[Tone.PLAIN] = self.rich_style
        return self._styles[tone]

    def segment(
        self,
        part: Part,
        width: int,
        style: Style | None = None,
        *,
        right: bool = False,
        tail: float = 0.5,
        keep: int = -1,
    ) -> Segment:
        """Return `part` neutralised and fitted into `width` cells. See `safe.elide` for `tail` and `keep`."""
        text, tone = (part, Tone.PLAIN) if isinstance(part, str) else part
        shown = fit(text, width, right=right, ellipsis=self.glyphs.ellipsis, tail=tail, keep=keep)
        return Segment(shown, style or self.tone_style(tone))

    def rows_changed(self, cursor: int | None = None) -> None:
        """Draw everything anew; the cursor goes to `cursor`, or stays as far as there are rows."""
        self._fit_into(self.room)
        count = self.row_count()
        self.virtual_size = Size(self.least_width(), self.PINNED + max(count, 1))
        wanted = self.cursor if cursor is None else cursor
        self.cursor = max(0, min(wanted, count - 1))
        self._show_cursor()
        self.refresh()

    def say_empty(self, sentence: str) -> None:
        """Change the sentence that stands where there are no rows."""
        self._empty = sentence
        self.refresh()

    def _fit_into(self, room: int) -> None:
        self._strips.clear()
        self._fitted = room
        self.fit_rows(room)

    # Drawing.

    def render_line(self, y: int) -> Strip:
        """Return line `y` of what is visible."""
        scroll_x, scroll_y = self.scroll_offset
        width = self.room
        if width != self._fitted:  # no event tells of the first frame, nor of a scroll bar that came or went
            self._fit_into(width)
        if y < self.PINNED:
            strip = Strip(self.draw_pinned(y))
            scroll_x = scroll_x if self.PINNED_SIDEWAYS else 0
        else:
            line = scroll_y + y - self.PINNED
            count = self.row_count()
            if count == 0:
                scroll_x = 0
                strip = Strip([self.segment((self._empty, Tone.MUTED), width)] if line == 0 else [])
            elif line < count:
                strip = self._row_strip(line)
            else:
                strip = Strip([])
        return strip.crop_extend(scroll_x, scroll_x + width, self.tone_style(Tone.PLAIN))

    def _row_strip(self, line: int) -> Strip:
        here = self.is_here(line)
        strip = self._strips.get((line, here))
        if strip is None:
            style = self.get_component_rich_style("rows--cursor") if here else None
            strip = Strip(self.draw_row(line, style))
            self._strips[line, here] = strip
        return strip

    def _refresh_row(self, line: int) -> None:
        y = line - self.scroll_offset.y + self.PINNED
        if self.PINNED <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def notify_style_update(self) -> None:
        """Forget what was drawn in other styles."""
        super().notify_style_update()
        self._strips.clear()
        self._styles.clear()

    def on_resize(self, _: events.Resize) -> None:
        """Fit the rows into the new width."""
        self.rows_changed()

    # Moving.

    @property
    def page(self) -> int:
        """Rows that are visible at once."""
        return max(1, self.scrollable_content_region.height - self.PINNED)

    def watch_cursor(self, before: int, after: int) -> None:
        """Draw the rows that the cursor left and came to, and tell."""
        self._refresh_row(before)
        self._refresh_row(after)
        self._show_cursor()
        if self.row_count():
            self.post_message(self.RowHighlighted(self, after, self.source_row(after)))

    def _show_cursor(self) -> None:
        if not self.size:  # not laid out yet: whatever the cursor is on would come to the top
            return
        top, page = self.scroll_offset.y, self.page
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + page:
            self.scroll_to(y=self.cursor - page + 1, animate=False, force=True)

    def move_to(self, line: int) -> None:
        """Put the cursor on row `line` of the list as shown, or as near as there are rows."""
        self.cursor = max(0, min(line, self.row_count() - 1))

    def action_cursor(self, rows: int) -> None:
        """Move the cursor by some rows."""
        self.move_to(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.move_to(self.cursor + pages * self.page)

    def action_first(self) -> None:
        """Move the cursor to the first row."""
        self.move_to(0)

    def action_last(self) -> None:
        """Move the cursor to the last row."""
        self.move_to(self.row_count() - 1)

    def action_leftwards(self) -> None:
        """Show what is further left."""
        self.scroll_to(x=max(0, self.scroll_offset.x - STEP), animate=False, force=True)

    def action_rightwards(self) -> None:
        """Show what is further right."""
        self.scroll_to(x=self.scroll_offset.x + STEP, animate=False, force=True)

    def action_select(self) -> None:
        """Choose the row of the cursor."""
        if self.row_count():
            self.post_message(self.RowSelected(self, self.cursor, self.source_row(self.cursor)))

    def on_click(self, event: events.Click) -> None:
        """Find out what was clicked."""
        offset: Any = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y < self.PINNED:
            self.pinned_clicked(offset.x + self.scroll_offset.x)
            return
        line = offset.y - self.PINNED + self.scroll_offset.y
        if line < self.row_count():
            self.line_clicked(line, offset.x + self.scroll_offset.x)

    def line_clicked(self, line: int, x: int) -> None:  # noqa: ARG002 - a row is one thing
        """Put the cursor on a row; a click where it is already chooses that row."""
        if line == self.cursor:
            self.action_select()
        else:
            self.move_to(line)

    def pinned_clicked(self, x: int) -> None:
        """Answer a click on a line that does not scroll, `x` cells from its beginning."""
