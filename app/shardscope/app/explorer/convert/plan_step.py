"""The plan as a table: its files, the tensors of one or of all, what is renamed; and of each tensor every place that it is read from."""

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from shardscope.engine.model.plan import Plan
from shardscope.widgets.plan_table import VIEWS, PlanFiles, PlanRenames, PlanTensors, View
from shardscope.widgets.plan_words import PlanFacts
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, content, elide, visible
from shardscope.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.model.catalogue import LogicalTensor


class PlanTable(VirtualTable):
    """Files and tensors in the order in which they are written."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work: there is one order."""
        return action not in ("sort", "reverse")


class PlanStep(Vertical):
    """One plan to look through."""

    BINDING_GROUP_TITLE = "The plan"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "v",
            "view",
            "Files, tensors, renames",
            id="plan.view",
            tooltip="Look at files, tensors, or renames",
        ),
        Binding("escape", "up", "Files", id="plan.up", tooltip="Back to the files"),
    ]

    def __init__(self, show_map: "Callable[[LogicalTensor], object]") -> None:
        """`show_map` draws which rank holds what of a tensor of the source."""
        super().__init__(id="plan-step")
        self._show_map = show_map
        self.plan: Plan | None = None
        self.facts: PlanFacts | None = None
        self._prepared: Prepared | None = None
        self.view: View = "files"
        self._file: int | None = None
        """Whose tensors are shown; null for those of all files."""
        self.table = PlanTable((), _Nothing(), empty="Planning")

    def compose(self) -> ComposeResult:
        """Draw a line of what is shown over the table."""
        yield Static(id="facts")
        yield Static(id="view")
        yield self.table

    def show(self, plan: Plan | None, facts: PlanFacts | None, prepared: "Prepared | None") -> None:
        """Show a plan; one that is shown already stays as it was scrolled."""
        if plan is None or self.plan is None or plan.files is not self.plan.files:
            self.plan, self.facts, self._prepared = plan, facts, prepared
            self.view, self._file = "files", None
            self._draw()

    def _draw(self) -> None:
        plan = self.plan
        self.refresh_bindings()
        facts = self.facts
        if plan is None or facts is None:
            self.query_one("#facts", Static).update(content(("Planning", Tone.STRONG)))
            self.query_one("#view", Static).update(content(""))
            self.table.show(_Nothing(), columns=())
            return
        self.query_one("#facts", Static).update(
            content((facts.write, Tone.STRONG), (f"  {facts.types}", Tone.MUTED))
        )
        rows = self._rows(plan)
        self.query_one("#view", Static).update(content(*self._views(plan)))
        self.table.say_empty("Nothing is renamed" if self.view == "renames" else "No files")
        self.table.show(rows, columns=rows.columns)

    def _rows(self, plan: Plan) -> PlanFiles | PlanTensors:
        match self.view:
            case "files":
                return PlanFiles(plan)
            case "renames":
                return PlanRenames(plan.files, () if self.facts is None else self.facts.renamed)
            case "tensors":
                return PlanTensors(
                    plan.files if self._file is None else plan.files[self._file : self._file + 1]
                )

    def _views(self, plan: Plan) -> list[Part]:
        parts: list[Part] = []
        keys = "v changes, enter opens"
        room = max(16, self.size.width - len(f" of    {keys}") - sum(len(f"{name}   ") for name in VIEWS))
        for name in VIEWS:
            here, of = name == self.view, ""
            if here and self._file is not None:
                of = f" of {elide(visible(plan.files[self._file].name), room, self.table.glyphs.ellipsis)}"
            parts += [(f"{name}{of}", Tone.HERE if here else Tone.MUTED), "   "]
        return [*parts, (keys, Tone.MUTED)]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now: at the files, esc is the screen's."""
        return action != "up" or self.view != "files"

    def action_view(self) -> None:
        """Show the next of files, tensors and renames."""
        self.view, self._file = VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)], None
        self._draw()

    def action_up(self) -> None:
        """Go back to the files."""
        self.view, self._file = "files", None
        self._draw()

    @on(VirtualTable.SortRequested)
    def _sort(self, event: VirtualTable.SortRequested) -> None:
        event.stop()  # a title was clicked: there is one order

    @on(VirtualRows.RowHighlighted)
    def _highlighted(self, event: VirtualRows.RowHighlighted) -> None:
        event.stop()

    @on(VirtualRows.RowSelected)
    def _selected(self, event: VirtualRows.RowSelected) -> None:
        event.stop()
        source = self.table.source
        if isinstance(source, PlanTensors):
            self._open_tensor(source.at(event.row)[0].source)
        elif self.plan is not None and event.row < len(self.plan.files):
            self.view, self._file = "tensors", event.row
            self._draw()

    def _open_tensor(self, name: str) -> None:
        from shardscope.app.explorer.checkpoint.detail import Detail

        if self._prepared is None:
            return
        tensor = next((item for item in self._prepared.catalogue.tensors if item.name == name), None)
        if tensor is not None:
            self.app.push_screen(Detail(tensor, lambda: self._show_map(tensor)))


class _Nothing:
    row_count = 0

    def cell(self, row: int, column: int) -> Part:  # noqa: ARG002 - as rows are asked
        """Return nothing."""
        return ""
