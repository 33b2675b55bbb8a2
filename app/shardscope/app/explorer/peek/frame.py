"""The frame of the screen that shows numbers: the views, and the lines around them. It draws what is known, and decides nothing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.peek.keys import BINDINGS
from shardscope.app.explorer.peek.subject import Subject
from shardscope.widgets.heat_map import HeatMap
from shardscope.widgets.paragraphs import Paragraph
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.safe import Part, Tone, content
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine
from shardscope.widgets.value_grid import ValueGrid
from shardscope.widgets.value_reading import Reading, standing, summary
from shardscope.widgets.value_statistics import ReadingPane, ValueHistogram, ValueStatistics
from shardscope.widgets.value_words import Notation
from shardscope.widgets.view_line import ViewLine

if TYPE_CHECKING:
    from shardscope.app.explorer.peek.heat_sight import HeatSight
    from shardscope.app.explorer.peek.sight import Sight
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.engine.model.peek import PackedWeight
    from shardscope.engine.model.piece import Lowered

VALUES, STATISTICS, HISTOGRAM, HEAT = range(4)
OPAQUE: Final = "Opaque: where its numbers lie is said in a pickle, which is not read unless you ask for it."
FACTS: Final = 44
"""Cells of the facts at the right end of the first line, at most."""
VIEWS: Final = ("Values", "Statistics", "Histogram", "Heat map")


class Frame(Screen["str | None"]):
    """What is drawn of one tensor."""

    AUTO_FOCUS = ""  # the keys are the screen's own
    BINDINGS: ClassVar[list[BindingType]] = BINDINGS

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject
        self.tensor: LogicalTensor | None = None
        """None until it is found."""
        self.sight: Sight | None = None
        """Where the person is; None until the tensor is found, and where it cannot be read."""
        self.heat: HeatSight | None = None
        self.blocker: Blocker | None = None
        """Why there is nothing to look at."""
        self.reading = Reading()
        self.view = VALUES
        self.notation: Notation = "short"
        self.packing: PackedWeight | None = None
        """How the numbers are worked out, where they are not those that are stored."""
        self.lowered: Lowered | None = None
        self.owners: dict[str, str] = {}
        self._column = 0
        """Cells of a column; it only grows, so that columns stand still."""

    def compose(self) -> ComposeResult:
        """Draw the frame; what fills it comes from workers."""
        from shardscope.app.explorer.checkpoint.explore import crumbs

        with Horizontal(id="top"):
            yield Breadcrumbs(*crumbs(self.subject.target.path), self.subject.name)
            yield StatusLine(*self._facts())
        yield ViewLine(VIEWS, id="views")
        yield Static(id="slice")
        with Container(id="panes"):
            yield ValueGrid()
            yield ValueStatistics()
            yield ValueHistogram()
            yield HeatMap()
            yield Static(id="why")
        yield Static(id="element")
        yield Static(id="place")
        yield ProgressLine()
        yield Static(id="summary")
        yield Hints()

    def _facts(self) -> tuple[Part, ...]:
        from shardscope.engine.model.tensors import array_bytes
        from shardscope.widgets.figures import size
        from shardscope.widgets.tensor_detail import shape_words

        known = self.tensor or self.subject.spec
        if known is None:
            return ("looking",)
        facts: list[Part] = [f"{known.dtype} {shape_words(known.shape)}"]
        if (count := array_bytes(known.dtype, known.shape)) is not None:
            facts.append(size(count))
        if self.subject.part_of is not None:
            facts.append(f"rank {self.subject.part_of}")
        return tuple(facts)

    def tell_facts(self) -> None:
        """Say what the tensor is, in as much of the line as that takes."""
        line, facts = self.query_one(StatusLine), self._facts()
        words = sum(len(fact if isinstance(fact, str) else fact[0]) for fact in facts)
        line.styles.width = min(FACTS, words + len(" . ") * (len(facts) - 1))
        line.facts = facts

    @property
    def pane(self) -> ReadingPane | None:
        """The pane of figures that is in front; None where there is another one."""
        if self.view == STATISTICS:
            return self.query_one(ValueStatistics)
        return self.query_one(ValueHistogram) if self.view == HISTOGRAM else None

    # Drawing.

    def draw(self) -> None:
        """Draw everything that there is."""
        if not self.is_mounted:
            return
        self._show_parts()
        self.query_one(ViewLine).show(self.view, self._aside())
        if self.sight is None:
            self._say_nothing()
            return
        self._draw_front(self.sight)
        self._draw_foot(self.sight)

    def _aside(self) -> tuple[Part, ...]:
        words = []
        if self.packing is not None:
            words.append("unpacked")
        if self.sight is not None and self.sight.bits is not None:
            words.append(f"{self.sight.bits} bits")
        if self.view == VALUES:
            words.append(self.notation)
        elif self.view == HEAT and self.heat is not None:
            kept, axis = self.heat.chosen.kept, self.heat.axis
            words.append("rows and columns" if axis is None else f"channels of dimension {kept[axis]}")
        return (("  ".join(words), Tone.MUTED),)

    def _show_parts(self) -> None:
        """Show what belongs to the view in front."""
        known = self.sight is not None
        lost = self.blocker is not None and (self.sight is None or self.view == VALUES)
        fronts: tuple[type[Widget], ...] = (ValueGrid, ValueStatistics, ValueHistogram, HeatMap)
        for view, kind in enumerate(fronts):
            self.query_one(kind).display = view == self.view and not lost
        self.query_one("#why").display = lost
        for name in ("#element", "#place"):
            self.query_one(name).display = known and self.view in (VALUES, HEAT)
        busy = self.reading.state == "reading"
        self.query_one(ProgressLine).display = busy
        self.query_one("#summary").display = not busy

    def _say_nothing(self) -> None:
        if self.blocker is None:
            self.query_one(ValueGrid).say("Looking for the tensor; nothing but names and headers is read.")
            return
        self._explain(self.blocker)
        self.query_one("#slice", Static).update(content(), layout=False)
        self.query_one("#summary", Static).update(content(), layout=False)

    def _explain(self, blocker: "Blocker") -> None:
        offer = self.subject.offer
        lines = [content((blocker.message, Tone.STOP)), content(blocker.remedy)]
        if offer and blocker.code == "peek.opaque":
            lines = [content((OPAQUE, Tone.CAUTION)), content((offer, Tone.STRONG))]
        lines.append(content((blocker.code, Tone.MUTED)))
        self.query_one("#why", Static).update(Content("\n").join(lines))

    def _draw_front(self, sight: "Sight") -> None:
        if self.view == VALUES:
            self._draw_grid(sight)
            if self.blocker is not None:
                self._explain(self.blocker)
        elif self.view == HEAT:
            self._draw_heat()
        elif self.pane is not None:
            self.pane.show(self.reading)

    def _draw_grid(self, sight: "Sight") -> None:
        from shardscope.app.explorer.peek import words

        grid, tensor = self.query_one(ValueGrid), self.tensor
        if tensor is None or not grid.size:  # there is no room yet: `Resized` will tell
            return
        if sight.empty:
            grid.say("No element is selected.")
            return
        for _ in range(2):  # wider columns are fewer, and their indices may be shorter
            label = words.label_width(sight)
            self._column = max(self._column, words.column_width(sight, tensor.dtype, self.notation))
            sight.fit(*grid.room(label, self._column))
        grid.show(words.sheet(sight, tensor.dtype, self.notation, self._column, label))

    def _draw_heat(self) -> None:
        picture, heat = self.query_one(HeatMap), self.heat
        if heat is None or not picture.size:
            return
        heat.fit(*picture.size)
        if heat.there:
            picture.show(heat.sheet())
            return
        said = list(standing(self.reading))
        if self.sight is not None and self.sight.bits is not None:
            said = [
                Paragraph(
                    ("Packed numbers have no heat map: in which order a scheme puts them is not known.",)
                )
            ]
        picture.say(said)

    def _draw_foot(self, sight: "Sight") -> None:
        from shardscope.app.explorer.peek import words

        tensor = self.tensor
        if tensor is None:
            return
        element: Sequence[Part] = ()
        place: Sequence[Part] = ()
        if self.view == VALUES:
            element = words.element_words(sight)
            place = words.place_words(sight, tensor, self.lowered, self.owners)
            if self.packing is not None:
                place = words.packing_words(self.packing)
        elif self.view == HEAT and self.heat is not None and self.heat.there:
            element, place = (self.heat.words(),), ((self.heat.ends_words(), Tone.MUTED),)
        self._line("#slice", words.slice_words(sight, tensor, placed=self.view == VALUES))
        self._line("#element", element)
        self._line("#place", (*self._partly(), *place) if self.view == HEAT else place)
        self._line("#summary", summary(self.reading))

    def _partly(self) -> tuple[Part, ...]:
        return (("PARTIAL  ", Tone.CAUTION),) if self.reading.partial else ()

    def _line(self, name: str, parts: Sequence[Part]) -> None:
        self.query_one(name, Static).update(content(*parts), layout=False)
