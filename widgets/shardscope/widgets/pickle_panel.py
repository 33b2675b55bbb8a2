"""What decoded pickles refer to, foreign names first, what they say as a tree, and which streams of them there are."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from shardscope.engine.model.decoded import DecodedPlane, DecodedStream, Reference
from shardscope.engine.model.outline import Outline
from shardscope.widgets.figures import plural
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.record_tree import RecordTree
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, content, elide, visible
from shardscope.widgets.virtual_table import Column, VirtualTable

FILE_FROM: Final = 96
"""Cells of a table that has room for the files; where it is narrower, the foot names the file of the cursor."""

REFERENCES: Final = (
    Column("known?", 9),
    Column("name", 20, grow=3, tail=0.7),
    Column("used", 6),
    Column("count", 9, right=True),
    Column("streams", 7, right=True),
    Column("first in", 20, grow=1, tail=0.7, from_room=FILE_FROM),
)
STREAMS: Final = (
    Column("file", 24, grow=3, tail=0.7),
    Column("begins at", 15, right=True),
    Column("protocol", 8, right=True),
    Column("opcodes", 11, right=True),
)


VIEWS: Final = ("references", "records", "streams")
"""What `v` goes through."""
SAID: Final = {
    "references": "Names that the pickles refer to. A loader would have imported them; nothing here did.",
    "records": "What the pickles say, read as data: enter and right open a branch.",
    "streams": "Where each stream of pickles lies.",
}


class ReferenceRows:
    """References as rows."""

    def __init__(self, references: Sequence[Reference], glyphs: Glyphs) -> None:
        self.references = references
        self._glyphs = glyphs

    @property
    def row_count(self) -> int:
        """How many references there are."""
        return len(self.references)

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row."""
        item = self.references[row]
        tone = Tone.PLAIN if item.known else Tone.CAUTION
        match column:
            case 0:
                return ("  known", Tone.MUTED) if item.known else (f"{self._glyphs.caution} foreign", tone)
            case 1:
                return name_of(item), tone
            case 2:
                return item.use, tone
            case 3:
                return f"{item.count:,}", tone
            case 4:
                return f"{item.streams:,}", tone
        return item.first, Tone.MUTED

    def order(self, column: int) -> list[int]:
        """Return the rows in ascending order of a column."""
        keys = (
            lambda item: item.known,
            lambda item: name_of(item).casefold(),
            lambda item: item.use,
            lambda item: item.count,
            lambda item: item.streams,
            lambda item: item.first,
        )
        return sorted(range(self.row_count), key=lambda row: keys[column](self.references[row]))

    def file(self, row: int) -> str:
        """Return the first file of a row."""
        return self.references[row].first

    def text(self, row: int) -> str:
        """Return what a search looks at."""
        item = self.references[row]
        return f"{'known' if item.known else 'foreign'} {name_of(item)} {item.use} {item.first}"


class StreamRows:
    """Streams of pickles as rows."""

    def __init__(self, streams: Sequence[DecodedStream]) -> None:
        self.streams = streams

    @property
    def row_count(self) -> int:
        """How many streams there are."""
        return len(self.streams)

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row."""
        stream = self.streams[row]
        match column:
            case 0:
                return stream.file
            case 1:
                return f"{stream.begin:,}"
            case 2:
                return str(stream.protocol)
        return f"{stream.opcodes:,}"

    def order(self, column: int) -> list[int]:
        """Return the rows in ascending order of a column."""
        keys = (
            lambda item: item.file,
            lambda item: item.begin,
            lambda item: item.protocol,
            lambda item: item.opcodes,
        )
        return sorted(range(self.row_count), key=lambda row: keys[column](self.streams[row]))

    def file(self, row: int) -> str:
        """Return the file of a row."""
        return self.streams[row].file

    def text(self, row: int) -> str:
        """Return what a search looks at."""
        return self.streams[row].file


def name_of(item: Reference) -> str:
    """Return module and name as pickles have them."""
    return f"{item.module}.{item.name}"


class PickleTable(VirtualTable):
    """A table of references or of streams, which a search goes through line by line."""

    def __init__(
        self, columns: Sequence[Column], rows: ReferenceRows | StreamRows, glyphs: Glyphs | None
    ) -> None:
        """Show `rows`."""
        super().__init__(columns, rows, empty="Nothing was decoded", glyphs=glyphs)
        self.pickles = rows

    def show_pickles(self, columns: Sequence[Column], rows: ReferenceRows | StreamRows) -> None:
        """Show other rows, unsorted."""
        self.sort_column, self.descending = None, False
        self.pickles = rows
        self.show(rows, columns=columns)

    def sort(self, column: int | None, *, descending: bool) -> None:
        """Show the rows in the order of a column, or as they came."""
        order = list(range(self.pickles.row_count)) if column is None else self.pickles.order(column)
        if descending:
            order.reverse()
        self.show_sorted(order, column, descending=descending)

    @property
    def text_lines(self) -> list[str]:
        """What stands in each line."""
        return [self.pickles.text(row) for row in self.order]

    def show_line(self, line: int) -> None:
        """Put the cursor on a line."""
        self.move_to(line)


class PicklePanel(Vertical):
    """The references of decoded pickles, what they say, or their streams.

    `PicklePanel(plane=None, *, glyphs=None, id=None, classes=None)`, then `show(plane, outlines)`.

    Message: `FileChosen` with the file of what was chosen.
    """

    BINDING_GROUP_TITLE = "Pickles"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "v",
            "other",
            "Other view",
            id="pickles.view",
            tooltip="Go on from the names that pickles refer to, to what they say as a tree, to their streams, and around",
        ),
    ]
    DEFAULT_CSS = """
    PicklePanel {
        height: 1fr;
        #pickle-head { height: auto; padding: 0 1; margin-bottom: 1; }
        #pickle-foot { height: 2; padding: 0 1; }
        RecordTree { display: none; }
        &.-records RecordTree { display: block; }
        &.-records VirtualTable { display: none; }
    }
    """

    class FileChosen(Message):
        """The file of a row was asked for."""

        def __init__(self, panel: "PicklePanel", file: str) -> None:
            super().__init__()
            self.panel = panel
            self.file = file
            """Relative path, neutralised."""

        @property
        def control(self) -> "PicklePanel":
            """The panel it happened in."""
            return self.panel

    def __init__(
        self,
        plane: DecodedPlane | None = None,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`plane` is None while nothing was decoded."""
        super().__init__(id=id, classes=classes)
        self._plane = plane
        self._outlines: Sequence[Outline] = ()
        self._view = 0
        """Which of `VIEWS` is shown."""
        self.rows = PickleTable(REFERENCES, StreamRows(()), glyphs)
        self.tree_rows = RecordTree(glyphs=glyphs)

    def compose(self) -> ComposeResult:
        """Draw what was read, the table and its foot."""
        yield Static(id="pickle-head")
        yield self.rows
        yield self.tree_rows
        yield Static(id="pickle-foot")

    def on_mount(self) -> None:
        """Fill the table."""
        self._fill()

    def show(self, plane: DecodedPlane, outlines: Sequence[Outline] = ()) -> None:
        """Show another decoding, with what its streams say."""
        self._plane, self._outlines = plane, outlines
        self.tree_rows.show_outlines(outlines)
        self._fill()

    def _fill(self) -> None:
        plane = self._plane
        if plane is None or not self.is_attached:
            return
        front = self.tree_rows if VIEWS[self._view] == "records" else self.rows
        had_keys = self.rows.has_focus or self.tree_rows.has_focus
        self.set_class(front is self.tree_rows, "-records")
        for widget in (self.rows, self.tree_rows):
            widget.set_class(widget is front, "-front")
        if VIEWS[self._view] == "streams":
            self.rows.say_empty("No pickle could be read")
            self.rows.show_pickles(STREAMS, StreamRows(plane.streams))
        else:
            self.rows.say_empty("No pickle refers to anything")
            self.rows.show_pickles(REFERENCES, ReferenceRows(plane.references, self.rows.glyphs))
        if had_keys:
            front.focus()
        said = SAID[VIEWS[self._view]]
        self.query_one("#pickle-head", Static).update(_head(plane, self.rows.glyphs, said))
        self._tell()

    def action_other(self) -> None:
        """Show the next view."""
        self._view = (self._view + 1) % len(VIEWS)
        self._fill()

    @on(VirtualTable.SortRequested)
    def _sort(self, event: VirtualTable.SortRequested) -> None:
        event.stop()
        self.rows.sort(event.column, descending=event.descending)

    def on_resize(self) -> None:
        """Give the foot the new width."""
        self._tell()

    @on(VirtualRows.RowHighlighted)
    def _highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()
        self._tell()

    @on(VirtualRows.RowSelected)
    def _selected(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        if event.rows is self.tree_rows:
            file = self.tree_rows.records.outline_of(event.row)[0].file
        else:
            file = self.rows.pickles.file(event.row)
        self.post_message(self.FileChosen(self, file))

    def _tell(self) -> None:
        self.query_one("#pickle-foot", Static).update(self._foot(), layout=False)

    def _foot(self) -> Content:
        if VIEWS[self._view] == "records":
            return self._record_foot()
        row, source = self.rows.row, self.rows.pickles
        if row is None:
            return content()
        width, ellipsis = max(16, self.size.width - 2), self.rows.glyphs.ellipsis
        if isinstance(source, StreamRows):
            return content((elide(visible(source.file(row)), width, ellipsis, tail=0.7), Tone.MUTED))
        item = source.references[row]
        name = content(elide(visible(name_of(item)), width, ellipsis, tail=0.7))
        file = elide(visible(item.first), width - 10, ellipsis, tail=0.7)
        return name + Content("\n") + content((f"first in  {file}", Tone.MUTED))

    def _record_foot(self) -> Content:
        node = self.tree_rows.node
        if node is None:
            return content()
        width, ellipsis = max(16, self.size.width - 2), self.rows.glyphs.ellipsis
        records = self.tree_rows.records
        way = records.way(node) or records.outline_of(node)[0].file
        words = records.detail(node)
        said = words if isinstance(words, str) else words[0]
        first = content(elide(visible(way), width, ellipsis, tail=0.7))
        return first + Content("\n") + content((elide(visible(said), width, ellipsis, tail=0.3), Tone.MUTED))


def _head(plane: DecodedPlane, glyphs: Glyphs, said: str) -> Content:
    foreign = sum(not item.known for item in plane.references)
    called = sum(not item.known and item.use == "called" for item in plane.references)
    opcodes = sum(stream.opcodes for stream in plane.streams)
    dot: Part = (f" {glyphs.dot} ", Tone.MUTED)
    parts: list[Part] = [
        plural(len(plane.streams), "pickle stream"),
        dot,
        plural(opcodes, "opcode"),
        dot,
        plural(len(plane.references), "name"),
        dot,
    ]
    if foreign:
        words = f"{glyphs.caution} {foreign:,} foreign" + (f", {called:,} called" if called else "")
        parts.append((words, Tone.CAUTION))
    else:
        parts.append((f"{glyphs.ok} none is foreign", Tone.OK))
    return content(*parts) + Content("\n") + content((said, Tone.MUTED))
