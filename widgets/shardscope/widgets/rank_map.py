"""Every rank of every mesh as a letter with a cursor among them, and under them what the axes are."""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive

from shardscope.engine.model.topology import Mesh, Topology
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.mesh_picture import (
    MISSING,
    TWICE,
    Line,
    Picture,
    Place,
    beside,
    is_drawable,
    picture,
)
from shardscope.widgets.mesh_words import axis_line, counts, has_ranks, legend, troubles
from shardscope.widgets.paragraphs import Paragraph, Paragraphs, heading
from shardscope.widgets.safe import Tone, visible


class RankMap(Paragraphs):
    """The ranks of a topology and its axes.

    `RankMap(topology=None, *, glyphs=None, id=None, classes=None)`, then `show(topology)`.

    Messages: `RankHighlighted` and `RankSelected` with the place of a rank. Keys `m` and `M` go from one rank that is
    missing or there twice to the next.
    """

    BINDING_GROUP_TITLE = "Ranks"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "m",
            "trouble(1)",
            "Next missing",
            id="ranks.next",
            tooltip="Go to the next rank that is missing or twice",
        ),
        Binding(
            "M",
            "trouble(-1)",
            "Missing before",
            show=False,
            id="ranks.before",
            tooltip="Go to the one before",
        ),
    ]

    at: reactive[int] = reactive(0, repaint=False, init=False)
    """Which of the ranks the person is on, in the order in which they are drawn; 0 also where there is none."""

    class RankHighlighted(Message):
        """The cursor came to another rank; None where no rank is drawn."""

        def __init__(self, rank_map: "RankMap", place: Place | None) -> None:
            super().__init__()
            self.rank_map = rank_map
            self.place = place

        @property
        def control(self) -> "RankMap":
            """The map it happened in."""
            return self.rank_map

        def can_replace(self, message: Message) -> bool:
            """Only the newest place of the cursor matters."""
            return isinstance(message, type(self)) and message.rank_map is self.rank_map

    class RankSelected(Message):
        """A rank was chosen."""

        def __init__(self, rank_map: "RankMap", place: Place) -> None:
            super().__init__()
            self.rank_map = rank_map
            self.place = place

        @property
        def control(self) -> "RankMap":
            """The map it happened in."""
            return self.rank_map

    def __init__(
        self,
        topology: Topology | None = None,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`topology` is None while nothing was examined."""
        super().__init__(empty="Not examined yet", glyphs=glyphs, id=id, classes=classes)
        self._topology = topology
        self._places: list[tuple[int, Place]] = []
        """Every rank that is drawn with the line it stands on."""
        self._on_line: list[range] = []
        """For each line of the picture, which of `_places` stand on it."""

    def show(self, topology: Topology) -> None:
        """Show another topology; the cursor goes to the first rank that something is the matter with."""
        self._topology = topology
        self._places = []
        self.rows_changed(0)

    @property
    def place(self) -> Place | None:
        """The rank under the cursor."""
        return self._places[self.at][1] if self._places else None

    # What it says.

    def fit_rows(self, room: int) -> None:
        """Draw the ranks for the width, and wrap what is said under them."""
        here = self.place
        super().fit_rows(room)
        drawn = [] if self._topology is None else _pictures(self._topology.meshes, room - 2 * self.PADDING)
        self._lines = [list(line.pieces) for line in drawn] + self._lines
        self._keys = [None] * len(self._lines)
        self._places, self._on_line = [], []
        for number_of_line, line in enumerate(drawn):
            self._on_line.append(range(len(self._places), len(self._places) + len(line.places)))
            self._places += [(number_of_line, place) for place in line.places]
        wanted = (
            (at for at, (_, place) in enumerate(self._places) if _is_trouble(place))
            if here is None
            else (at for at, (_, place) in enumerate(self._places) if _is_same(place, here))
        )
        self.set_reactive(RankMap.at, next(wanted, 0))  # quietly: this may be in the middle of drawing

    def rows_changed(self, cursor: int | None = None) -> None:
        """Draw everything anew; the cursor stays on its rank."""
        super().rows_changed(cursor)
        if self._places:
            self.cursor = self._places[self.at][0]
            self._keep_in_sight(self.cursor)
        self._told()

    def paragraphs(self, width: int) -> Iterable[Paragraph]:  # noqa: ARG002 - the same at any width
        """Return what stands under the ranks."""
        return () if self._topology is None else self._said(self._topology)

    def _said(self, topology: Topology) -> Iterator[Paragraph]:
        if not topology.meshes:
            yield Paragraph((("No rank is named anywhere that was examined.", Tone.STRONG),))
        drawn = [mesh for mesh in topology.meshes if has_ranks(mesh)]
        if drawn:
            yield legend(drawn)
        for mesh in drawn:
            yield from troubles(mesh, named=len(drawn) > 1)
        if topology.note:
            if drawn:
                yield Paragraph()
            yield Paragraph((topology.note,))
        for mesh in topology.meshes:
            aside = "" if has_ranks(mesh) else "no rank of it is named"
            yield from heading(f"Axes of the {mesh.name} mesh", aside)
            for axis in mesh.axes:
                yield axis_line(axis)

    # The cursor.

    def is_here(self, line: int) -> bool:
        """Tell whether the cursor is on a line of the picture."""
        return bool(self._places) and line == self._places[self.at][0]

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return a line in segments, the rank of the cursor in its style."""
        segments = super().draw_row(line, None)
        place = self.place
        if style is None or place is None:
            return segments
        drawn: list[Segment] = []
        x, wanted = 0, place.x + self.PADDING
        for text, own, _ in segments:
            at = wanted - x
            if 0 <= at < cell_len(text) == len(text):
                pieces = ((text[:at], own), (text[at], style), (text[at + 1 :], own))
                drawn += [Segment(piece, its) for piece, its in pieces if piece]
            else:
                drawn.append(Segment(text, own))
            x += cell_len(text)
        return drawn

    def watch_at(self, before: int, after: int) -> None:  # noqa: ARG002 - the whole picture forgets
        """Show the rank that the cursor came to, and tell."""
        self._strips.clear()
        if self._places:
            self.cursor = self._places[after][0]
            self._keep_in_sight(self.cursor)
        self.refresh()
        self._told()

    def _keep_in_sight(self, line: int) -> None:
        if not self.size:  # not laid out yet: everything would be out of sight
            return
        top = self.scroll_offset.y
        first = self._places[0][0]
        if line == first:
            line = 0  # with the titles over it
        if line < top:
            self.scroll_to(y=line, animate=False, force=True)
        elif line >= top + self.page:
            self.scroll_to(y=line - self.page + 1, animate=False, force=True)

    def _told(self) -> None:
        self.post_message(self.RankHighlighted(self, self.place))

    def _across(self, line: int, x: int) -> int:
        """Return the rank on `line` that is nearest to `x`."""
        return min(self._on_line[line], key=lambda at: abs(self._places[at][1].x - x))

    def action_cursor(self, rows: int) -> None:
        """Go to the rank above or below; scroll where there is none."""
        place = self.place
        if place is None:
            self.scroll_to(y=self.scroll_offset.y + rows, animate=False)
            return
        here = self._places[self.at][0]
        if rows < 0 and here < self.scroll_offset.y:  # the picture is out of sight: first come back to it
            self.scroll_to(y=self.scroll_offset.y + rows, animate=False)
            return
        ways = range(here + 1, len(self._on_line)) if rows > 0 else range(here - 1, -1, -1)
        line = next((line for line in ways if self._on_line[line]), None)
        if line is None:
            self.scroll_to(y=self.scroll_offset.y + rows, animate=False)
        else:
            self.at = self._across(line, place.x)

    def action_page(self, pages: int) -> None:
        """Go a page further: among the ranks while there are some, then through the text."""
        place = self.place
        filled = [line for line, ranks in enumerate(self._on_line) if ranks]
        if place is None or (pages > 0 and self._places[self.at][0] == filled[-1]):
            self.scroll_to(y=self.scroll_offset.y + pages * self.page, animate=False)
            return
        wanted = self._places[self.at][0] + pages * self.page
        self.at = self._across(min(filled, key=lambda line: abs(line - wanted)), place.x)
        self._keep_in_sight(self.cursor)

    def action_first(self) -> None:
        """Go to the first rank, with the titles over it."""
        self.at = 0
        self.scroll_to(y=0, animate=False)

    def action_last(self) -> None:
        """Go to the last rank and to the end of the text."""
        self.at = max(0, len(self._places) - 1)
        self.scroll_to(y=self.row_count(), animate=False)

    def action_leftwards(self) -> None:
        """Go to the rank before."""
        self.at = max(0, self.at - 1)

    def action_rightwards(self) -> None:
        """Go to the rank after."""
        self.at = max(0, min(len(self._places) - 1, self.at + 1))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now."""
        return action != "trouble" or any(_is_trouble(place) for _, place in self._places)

    def action_trouble(self, by: int) -> None:
        """Go to the next rank that is missing or there twice, around the ends."""
        count = len(self._places)
        ways = (self.at + by * step for step in range(1, count + 1))
        self.at = next((at % count for at in ways if _is_trouble(self._places[at % count][1])), self.at)

    def action_select(self) -> None:
        """Choose the rank under the cursor."""
        if (place := self.place) is not None:
            self.post_message(self.RankSelected(self, place))

    def line_clicked(self, line: int, x: int) -> None:
        """Go to the rank that was clicked; a click on the rank of the cursor chooses it."""
        if line >= len(self._on_line) or not self._on_line[line]:
            return
        clicked = self._across(line, x - self.PADDING)
        if abs(self._places[clicked][1].x - x + self.PADDING) > 1:
            return
        if clicked == self.at:
            self.action_select()
        else:
            self.at = clicked


def _is_same(one: Place, other: Place) -> bool:
    return (one.mesh, one.coordinate) == (other.mesh, other.coordinate)


def _is_trouble(place: Place) -> bool:
    return place.letter in (MISSING, TWICE)


def _pictures(meshes: Sequence[Mesh], width: int) -> Picture:
    """Return the titled pictures of the meshes, side by side as long as there is room."""
    drawn: list[Line] = []
    row: Picture = ()
    for at, mesh in enumerate(meshes):
        if not has_ranks(mesh):
            continue
        title = Line(((f"{visible(mesh.name)} mesh", Tone.STRONG), (f"  {counts(mesh)}", Tone.MUTED)))
        if is_drawable(mesh):
            lines = (title, *picture(mesh, at, width))
        else:
            words = "Too many ranks to draw, or of uneven coordinates."
            lines = (title, Line(((words, Tone.MUTED),)))
        together = beside(row, lines) if row else lines
        if row and max(line.width for line in together) > width:
            drawn += [*row, Line()]
            together = lines
        row = together
    return (*drawn, *row, Line()) if row else ()
