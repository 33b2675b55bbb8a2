"""The Model screen: what the checkpoint in hand is made of, and what its weights and cache come to in a case that keys change."""

from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.screen import Screen
from textual.worker import get_current_worker

from shardscope.app.explorer.checkpoint.tensors_at import Place
from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.messages import Progressed
from shardscope.app.explorer.model import workers
from shardscope.app.explorer.model.calls import CALLS, Calls
from shardscope.app.explorer.model.case import Case, Field, grids, settings, stepped, typed
from shardscope.app.explorer.model.keys import BINDINGS
from shardscope.app.explorer.model.messages import ModelStudied, NotStudied
from shardscope.app.explorer.model.places import place_of
from shardscope.app.explorer.target import Target, model_command
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.widgets.blockers_panel import BlockersPanel
from shardscope.widgets.model_memory import MemoryPane
from shardscope.widgets.model_page import ModelPage
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine

if TYPE_CHECKING:
    from shardscope.app.explorer.checkpoint.panels import Found
    from shardscope.engine.modelling import Studied

DECODE: Final = "decode"
"""What the screen ends with where the person wants to decode."""
_FIELDS: Final[dict[str, Field]] = {
    "model.context": "context",
    "model.batch": "batch",
    "model.dtype": "dtype",
    "model.cache_dtype": "cache_dtype",
    "model.devices": "devices",
}
"""What keys change, by their stable names."""


class Model(Screen[Place | str | None]):
    """What a model is made of. Ends with tensors to look at, with `DECODE`, or with None."""

    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (112, "-wide")]  # noqa: RUF012 - no ClassVar in its base
    BINDINGS: ClassVar[list[BindingType]] = BINDINGS

    def __init__(
        self, target: Target, found: "Found", *, crumbs: tuple[str, ...], calls: Calls = CALLS
    ) -> None:
        super().__init__()
        self.target = target
        self.case = Case()
        self.studied: Studied | None = None
        """What is known; None until it is."""
        self.base: str | None = None
        """What an adapter was held against."""
        self.page = ModelPage()
        self.pane = MemoryPane()
        self._found = found
        self._crumbs = crumbs
        self._calls = calls
        self._at_work = False

    # What is drawn

    def compose(self) -> ComposeResult:
        """Draw the frame; what fills it comes from the worker."""
        with Horizontal(id="top"):
            yield Breadcrumbs(*self._crumbs, "model")
            yield StatusLine(*self._facts())
        yield ProgressLine()
        with Container(id="model"):
            yield self.page
            yield self.pane
        yield Hints()

    def on_mount(self) -> None:
        """Look, once the frame stands on the screen."""
        self.set_focus(self.page)
        self.page.say(("Looking at names, types and shapes.", Tone.MUTED))
        self._look(None)

    def on_unmount(self) -> None:
        """Stop what still runs for this screen."""
        self.app.workers.cancel_group(self.app, "model")

    def _facts(self) -> tuple[Part, ...]:
        return ("headers only", "decoded as data" if self._found.asked is not None else "nothing decoded")

    def _look(self, base: str | None) -> None:
        calls, target, found = self._calls, self.target, self._found.inspection
        self._at_work = True
        self.query_one(ProgressLine).display = base is not None
        self.app.run_worker(
            lambda: workers.study(
                calls, target, found, base, get_current_worker().cancelled_event, self.post_message
            ),
            group="model",
            description="looking at a model",
            thread=True,
            exclusive=True,
            exit_on_error=False,
        )

    @on(Progressed)
    def _progressed(self, event: Progressed) -> None:
        event.stop()
        if self._at_work:
            line = self.query_one(ProgressLine)
            line.display = True
            line.show(event.progress)

    def _at_rest(self) -> None:
        self._at_work = False
        line = self.query_one(ProgressLine)
        line.clear()
        line.display = False

    @on(ModelStudied)
    def _studied(self, event: ModelStudied) -> None:
        self._at_rest()
        self.studied, self.base = event.studied, event.base
        document = event.studied.document
        if document.tensors:
            self.page.show(document, FORMAT_TITLES.get(document.format, document.format))
            self._count()
        else:
            offered = "Press d to read them as data, this once." if self._offered else ""
            files = (
                f"{document.opaque_files:,} of its files could not be looked into."
                if document.opaque_files
                else ""
            )
            self.page.say(("No tensor is listed.", Tone.CAUTION), files, offered)
        self.pane.display = bool(document.tensors) and document.adapter is None
        self.refresh_bindings()

    @on(NotStudied)
    def _not_studied(self, event: NotStudied) -> None:
        self._at_rest()
        if self.studied is not None:
            from shardscope.app.explorer.dialogs import NotDone

            self.app.push_screen(NotDone("Not held against a base", event.blocker))
            return
        item = event.blocker
        self.page.say((item.message, Tone.STOP), item.remedy, (item.code, Tone.MUTED))
        self.pane.display = False

    def _count(self) -> None:
        """Show the figures of the case: a matter of microseconds."""
        if self.studied is None:
            return
        from shardscope.app.explorer.help.keys import key_rows

        keys = {_FIELDS[row.id]: row.keys[0] for row in key_rows(self) if row.id in _FIELDS}
        memory = self.studied.figures(self.case.options())
        self.pane.show(memory, settings(self.case, memory, keys), grids(self.studied, self.case))

    # What the keys do

    @property
    def _offered(self) -> bool:
        return bool(self._found.offered)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now."""
        document = None if self.studied is None else self.studied.document
        match action:
            case "case" | "tokens" | "turn":
                return document is not None and bool(document.tensors) and document.adapter is None
            case "base":
                return document is not None and document.adapter is not None
            case "decode":
                return self._offered
            case "explain":
                return document is not None and bool(document.findings)
        return True

    def action_case(self, field: Field, by: int) -> None:
        """Count another case."""
        if self.studied is not None:
            declared = None if self.studied.sizes is None else self.studied.sizes.context
            self.case = stepped(self.case, field, by, declared)
            self._count()

    def action_tokens(self) -> None:
        """Ask how many tokens a sequence has."""
        from shardscope.app.explorer.shardmap.dialogs import Question

        def answered(count: int | None) -> None:
            if count is not None:
                self.case = replace(self.case, context=count)
                self._count()

        words = "How many tokens does a sequence have?"
        self.app.push_screen(Question("Context", words, "such as 32768 or 32k", typed), answered)

    def action_base(self) -> None:
        """Ask for the base of the adapter, and hold it against that."""
        from shardscope.app.explorer.model.base import AskBase

        def answered(path: tuple[str] | None) -> None:
            if path is not None:
                self._look(path[0])

        self.app.push_screen(AskBase(self.base or ""), answered)

    def action_turn(self) -> None:
        """Go to the figures, or back to the page."""
        self.set_focus(self.page if self.pane.has_focus else self.pane)

    @on(ModelPage.PlaceWanted)
    def _place_wanted(self, event: ModelPage.PlaceWanted) -> None:
        event.stop()
        if self.studied is None or not self.is_current:  # another key may have come in between
            return
        place = place_of(self.studied.document, event.key)
        if place is not None:
            self.dismiss(place)
        elif event.key.startswith("finding:"):
            self.action_explain()

    def action_explain(self) -> None:
        """Explain the code of the finding under the cursor, or of the first one."""
        if self.studied is None:
            return
        kind, _, at = (self.page.chosen or "").partition(":")
        number = int(at) if kind == "finding" else 0
        self.post_message(BlockersPanel.ExplanationWanted(self.studied.document.findings[number].code))

    def action_copy(self) -> None:
        """Copy the command that says the same, and show it."""
        from shardscope.app.explorer.copying import Copy, copy, of_path

        case = [] if self.studied is None or self.studied.document.adapter is not None else self.case.words()
        command = model_command(self.target, case, asked=self._found.asked, base=self.base)
        copy(self.app, (Copy("y", "command", command), *of_path(self.target.path)[1:]))

    def action_decode(self) -> None:
        """End, and ask whether to decode."""
        self.dismiss(DECODE)

    def action_back(self) -> None:
        """Go back to the checkpoint."""
        self.dismiss(None)
