"""What stands where in one file: a bar of letters, and the list of its stretches, with one cursor in both."""

from collections.abc import Iterator
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from shardscope.engine.model.file_layout import ByteRange, FileLayout
from shardscope.widgets.figures import plural, size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.layout_bar import LayoutBar
from shardscope.widgets.layout_map import LayoutMap
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, content, elide, visible
from shardscope.widgets.virtual_table import Column, VirtualTable

NOTE_FROM: Final = 84
"""Cells of a list that has room for types and shapes; where it is narrower, the foot has them."""
SAYS: Final = 2
"""Lines of what is wrong."""
COLUMNS: Final = (
    Column("", 1),
    Column("what", 12),
    Column("begins at", 14, right=True),
    Column("bytes", 10, right=True),
    Column("name", 16, grow=2, tail=0.7),
    Column("", 16, grow=1, from_room=NOTE_FROM),
)


class RangeRows:
    """Stretches as rows."""

    def __init__(self, layout: LayoutMap) -> None:
        self._map = layout

    @property
    def row_count(self) -> int:
        """How many stretches there are."""
        return len(self._map.ranges)

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row."""
        each = self._map.ranges[row]
        letter, tone = self._map.letter(row)
        match column:
            case 0:
                return letter, tone
            case 1:
                return each.kind, tone
            case 2:
                return f"{each.begin:,}"
            case 3:
                return size(each.end - each.begin)
            case 4:
                return each.name or each.note, Tone.PLAIN if each.name else Tone.MUTED
        return (each.note if each.name else ""), Tone.MUTED


class RangeTable(VirtualTable):
    """The list: its order is that of the file, and left and right go along the bar."""

    BINDING_GROUP_TITLE = "Layout"

    class Stepped(Message):
        """The person wants to go along the bar."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Leave sorting out: bytes have one order."""
        return action not in ("sort", "reverse")

    def pinned_clicked(self, x: int) -> None:
        """Do nothing: bytes have one order."""

    def action_leftwards(self) -> None:
        """Go to the letter before."""
        self.post_message(self.Stepped(-1))

    def action_rightwards(self) -> None:
        """Go to the next letter."""
        self.post_message(self.Stepped(1))


class LayoutPanel(Vertical):
    """The bytes of one file.

    `LayoutPanel(*, glyphs=None, id=None, classes=None)`, then `show(layout)` and `go_to(offset)`.

    Messages: `RangeChosen` with a stretch, `OtherFileWanted` with how many files further.
    """

    BINDING_GROUP_TITLE = "Layout"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "e", "file(1)", "Next file", id="layout.next_file", tooltip="Show the bytes of the next file"
        ),
        Binding(
            "E",
            "file(-1)",
            "File before",
            show=False,
            id="layout.previous_file",
            tooltip="Show the bytes of the file before",
        ),
        Binding(
            "x",
            "odd",
            "Next odd one",
            show=False,
            id="layout.odd",
            tooltip="Go to the next gap, hole, or what lies behind the end",
        ),
    ]
    DEFAULT_CSS = """
    LayoutPanel {
        height: 1fr;
        #layout-head { height: auto; padding: 0 1; }
        #layout-legend { height: auto; padding: 0 1; margin-bottom: 1; }
        #layout-foot { height: 2; padding: 0 1; }
    }
    """

    class RangeChosen(Message):
        """A stretch was chosen."""

        def __init__(self, panel: "LayoutPanel", file: str, chosen: ByteRange) -> None:
            super().__init__()
            self.panel = panel
            self.file = file
            """Relative path, neutralised."""
            self.chosen = chosen

        @property
        def control(self) -> "LayoutPanel":
            """The panel it happened in."""
            return self.panel

    class OtherFileWanted(Message):
        """The bytes of another file are wanted."""

        def __init__(self, panel: "LayoutPanel", by: int) -> None:
            super().__init__()
            self.panel = panel
            self.by = by
            """How many files further."""

        @property
        def control(self) -> "LayoutPanel":
            """The panel it happened in."""
            return self.panel

    def __init__(
        self,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """Make an empty panel."""
        super().__init__(id=id, classes=classes)
        self.map = LayoutMap(FileLayout("", 0, 0, "unknown", ()))
        self.bar = LayoutBar()
        self.rows = RangeTable(COLUMNS, RangeRows(self.map), empty="No file was laid out yet", glyphs=glyphs)

    def compose(self) -> ComposeResult:
        """Draw the head, the bar with its legend, the list and the foot."""
        yield Static(id="layout-head")
        yield self.bar
        yield Static(id="layout-legend")
        yield self.rows
        yield Static(id="layout-foot")

    @property
    def file_layout(self) -> FileLayout:
        """What is shown."""
        return self.map.layout

    def show(self, layout: FileLayout) -> None:
        """Show another file."""
        self.map = LayoutMap(layout)
        self.bar.show(self.map)
        self.rows.say_empty("The file has no bytes")
        self.rows.show(RangeRows(self.map), cursor=0)
        self.bar.mark(0)
        self._tell_head()
        self._tell()

    def go_to(self, offset: int) -> None:
        """Put the cursor on the stretch that holds a byte."""
        if self.map.ranges:
            self.rows.move_to(self.map.at(offset))

    def on_resize(self) -> None:
        """Give head and foot the new width."""
        self._tell_head()
        self._tell()

    def action_file(self, by: int) -> None:
        """Ask for another file."""
        self.post_message(self.OtherFileWanted(self, by))

    def action_odd(self) -> None:
        """Go to the next gap, hole or trailing stretch, around the end."""
        count = len(self.map.ranges)
        ways = ((self.rows.cursor + step) % count for step in range(1, count + 1))
        found = next((place for place in ways if _is_odd(self.map.ranges[place])), None)
        if found is not None:
            self.rows.move_to(found)

    @on(RangeTable.Stepped)
    def _stepped(self, event: RangeTable.Stepped) -> None:
        event.stop()
        self.rows.move_to(self.bar.step(event.by))

    @on(LayoutBar.PlaceClicked)
    def _clicked(self, event: LayoutBar.PlaceClicked) -> None:
        event.stop()
        self.rows.move_to(event.place)

    @on(VirtualRows.RowHighlighted)
    def _highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()
        self.bar.mark(event.row)
        self._tell()

    @on(VirtualRows.RowSelected)
    def _selected(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        self.post_message(self.RangeChosen(self, self.map.layout.file, self.map.ranges[event.row]))

    # Words.

    def _tell_head(self) -> None:
        self.query_one("#layout-head", Static).update(self._head())
        self.query_one("#layout-legend", Static).update(Content("\n").join(self._legend()))

    def _legend(self) -> list[Content]:
        """Return the letters with their words in lines, never broken between the two."""
        width = max(16, self.size.width - 2)
        lines: list[Content] = []
        for letter, tone, word in self.map.legend():
            item = content((letter, tone), (f" {word}", Tone.MUTED))
            longer = lines[-1] + Content("   ") + item if lines else item
            if lines and longer.cell_length <= width:
                lines[-1] = longer
            else:
                lines.append(item)
        return lines

    def _head(self) -> Content:
        layout, glyphs = self.map.layout, self.rows.glyphs
        if not layout.file:
            return content(("Choose a file, or a tensor and b, to see its bytes.", Tone.MUTED))
        width = max(16, self.size.width - 2)
        dot = f" {glyphs.dot} "
        said = f"  {layout.container}{dot}{size(layout.size)}"
        name = elide(visible(layout.file), max(12, width - len(said)), glyphs.ellipsis, tail=0.7)
        lines = [content((name, Tone.STRONG), (said, Tone.MUTED))]
        if facts := list(self._facts()):
            lines.append(content((dot.join(facts), Tone.MUTED)))
        lines += [
            content(
                (f"{glyphs.caution} ", Tone.CAUTION), elide(visible(each), width - 2, glyphs.ellipsis, tail=0)
            )
            for each in layout.says[:SAYS]
        ]
        return Content("\n").join(lines)

    def _facts(self) -> Iterator[str]:
        layout, counts = self.map.layout, self.map.counts
        if "tensor" in counts:
            yield plural(counts["tensor"][0], "tensor")
        if "gap" in counts:
            yield f"{plural(counts['gap'][0], 'gap')}, {size(counts['gap'][1])}"
        if "trailing" in counts:
            yield f"{size(counts['trailing'][1])} behind the end"
        if layout.holes:
            holes = sum(end - begin for begin, end in layout.holes)
            yield f"{plural(len(layout.holes), 'hole')}, {size(holes)}"

    def _tell(self) -> None:
        self.query_one("#layout-foot", Static).update(self._foot(), layout=False)

    def _foot(self) -> Content:
        row = self.rows.row
        if row is None:
            return content()
        each = self.map.ranges[row]
        width = max(16, self.size.width - 2)
        hole = f"  {size(each.hole)} of it are a hole" if each.hole else ""
        where = f"bytes {each.begin:,} .. {each.end:,}"
        first = content(
            (f"{row + 1:,} of {len(self.map.ranges):,}", Tone.MUTED), f"  {where}", (hole, Tone.CAUTION)
        )
        words = "  ".join(part for part in (visible(each.name), visible(each.note)) if part)
        return first + Content("\n") + content(elide(words, width, self.rows.glyphs.ellipsis, tail=0.6))


def _is_odd(each: ByteRange) -> bool:
    return each.kind in ("gap", "trailing") or bool(each.hole)
