"""The screen of a guided conversion: its steps, and what fills each."""

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from shardscope.app.explorer.convert.calls import CONVERSIONS, Conversions
from shardscope.app.explorer.convert.conversion import Conversion
from shardscope.app.explorer.convert.forms import form_of
from shardscope.app.explorer.convert.keys import BINDINGS
from shardscope.app.explorer.convert.pages import options_page, what_page
from shardscope.app.explorer.convert.plan_step import PlanStep
from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.offer import Offer
from shardscope.app.explorer.output.forms import Form
from shardscope.app.explorer.output.frame import telling_of
from shardscope.app.explorer.output.steps import Step
from shardscope.app.explorer.output.where_page import where_page
from shardscope.app.explorer.target import Target

if TYPE_CHECKING:
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.widgets.told import Telling


class Convert(Conversion):
    """One conversion, from the first choice to its end."""

    BINDINGS: ClassVar[list[BindingType]] = BINDINGS

    def __init__(
        self, target: Target, offer: Offer | None, engine: Engine, calls: Conversions = CONVERSIONS
    ) -> None:
        super().__init__(target, calls)
        self.offer = offer
        """What has to be decoded first; null where nothing has to."""
        self.engine = engine

    def on_mount(self) -> None:
        """Ask for what has to be decoded, then read."""
        self.call_after_refresh(self.begin)

    async def begin(self) -> None:
        """Read what there is to convert, decoded where it has to be and the person says so."""
        await self.draw_step()
        if self.offer is None:
            self.read(None)
            return
        from shardscope.app.explorer.decode import Decode

        def answered(wish: "Decoding | None") -> None:
            if wish is None:
                self.dismiss(None)
            else:
                self.read(wish)

        self.app.push_screen(Decode(self.target, self.offer, self.engine, "convert"), answered)

    def step_widgets(self) -> tuple[Widget, ...]:
        """Return what fills the present step."""
        if self.step is not Step.PLAN:
            return (form_of(self.step),)
        return (PlanStep(self._show_map),)

    async def draw_step(self) -> None:
        """Show the present step."""
        await super().draw_step()
        for step in self.query(PlanStep):
            step.table.focus()

    def draw_present(self) -> None:
        """Show the draft and what it comes to, where the present step says it."""
        for form in self.query(Form):
            form.show(self.draft, self.known, self._page())
        for step in self.query(PlanStep):
            step.show(self.plan, self.facts, self.prepared)

    def _page(self) -> "Telling":
        draft, comes = self.draft, self.comes
        match self.step:
            case Step.WHAT:
                return telling_of(what_page, draft, self.known.components, comes)
            case Step.WHERE:
                return telling_of(where_page, draft, self.look, self.earlier, self.plan)
            case _:
                return telling_of(options_page, comes)

    @property
    def hindrance(self) -> str:
        """Why the next step cannot be taken now; empty where it can."""
        if self.step is Step.WHERE and not self.draft.out:
            return "name a folder first"
        if self.step is Step.WHERE and self.look is not None and self.look.refused is not None:
            return "cannot appear there"
        if self.step is Step.PLAN:
            if not self.draft.out:
                return "where to? (2)"
            if self.refused is not None:
                return "no plan: see 3"
        return ""

    @on(Form.FileNamed)
    def _file_named(self, event: Form.FileNamed) -> None:
        event.stop()
        self.name_renames(event.path)

    def _show_map(self, tensor: "LogicalTensor") -> None:
        from shardscope.app.explorer.shardmap.screen import ShardMap
        from shardscope.app.explorer.shardmap.subject import Subject
        from shardscope.app.explorer.target import Asked

        if self.prepared is not None:
            asked = Asked("all") if self.decoded else None
            self.app.push_screen(
                ShardMap(Subject(self.target, self.prepared.inspection, tensor, is_decoded=True, asked=asked))
            )
