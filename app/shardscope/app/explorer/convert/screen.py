"""The screen of a guided conversion: where we are, the present step, the command that does the same, and the keys."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal
from textual.widget import Widget
from textual.widgets import Static

from shardscope.app.explorer.convert.calls import CONVERSIONS, Conversions
from shardscope.app.explorer.convert.conversion import CHOOSING, Conversion, Step
from shardscope.app.explorer.convert.endings import failure_of, outcome_of, was_kept
from shardscope.app.explorer.convert.forms import Form, form_of
from shardscope.app.explorer.convert.keys import BINDINGS
from shardscope.app.explorer.convert.pages import options_page, what_page, where_page
from shardscope.app.explorer.convert.plan_step import PlanStep
from shardscope.app.explorer.convert.run_view import RunView
from shardscope.app.explorer.convert.stop import Answer, Stop
from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.offer import Offer
from shardscope.app.explorer.target import Target
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.progress import Progress
from shardscope.widgets.figures import plural
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.run_end import Failure, Outcome, failure, success
from shardscope.widgets.safe import Part, Tone, content, elide, visible
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine
from shardscope.widgets.told import Told

if TYPE_CHECKING:
    from shardscope.engine.decoding import Decoding
    from shardscope.engine.materializing import Converted
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.widgets.glyphs import Glyphs
    from shardscope.widgets.paragraphs import Paragraph
    from shardscope.widgets.told import Telling

STEPS = (Step.WHAT, Step.WHERE, Step.OPTIONS, Step.PLAN, Step.RUNNING, Step.ENDED)
NOT_YET: Part = "nothing is written before a typed word"


def _telling(page: "Callable[..., Iterable[Paragraph]]", *given: object) -> "Telling":
    """Return a page about what is given, for any width."""

    def telling(_: int, glyphs: "Glyphs") -> "Iterable[Paragraph]":
        return page(*given, glyphs)

    return telling


class Convert(Conversion):
    """One conversion, from the first choice to its end."""

    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - no ClassVar in its base
    BINDINGS: ClassVar[list[BindingType]] = BINDINGS

    def __init__(
        self, target: Target, offer: Offer | None, engine: Engine, calls: Conversions = CONVERSIONS
    ) -> None:
        super().__init__(target, calls)
        self.offer = offer
        """What has to be decoded first; null where nothing has to."""
        self.engine = engine
        self.outcome: Outcome | None = None
        self.failure: Failure | None = None

    # What is drawn

    def compose(self) -> ComposeResult:
        """Draw the frame; what fills it is the step's."""
        from shardscope.app.explorer.checkpoint.explore import crumbs

        with Horizontal(id="top"):
            yield Breadcrumbs(*crumbs(self.target.path), "convert")
            yield StatusLine(NOT_YET)
        yield Static(id="steps")
        yield Container(id="main")
        yield Static(id="same")
        yield Hints()

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

    def draw_progress(self, progress: Progress) -> None:
        """Show how far the work is."""
        if self.step is Step.RUNNING:
            for view in self.query(RunView):
                view.show(progress)
        elif self.step is Step.READING:
            for line in self.query(ProgressLine):
                line.show(progress)

    async def _fill(self, *widgets: Widget) -> None:
        main = self.query_one("#main")
        with self.app.batch_update():
            await main.remove_children()
            await main.mount_all(widgets)

    async def draw_step(self) -> None:
        """Show the present step."""
        match self.step:
            case Step.READING:
                said = content(
                    "Reading",
                    ("  what there is to convert; nothing is run or written. esc stops.", Tone.MUTED),
                )
                await self._fill(Static(said, id="loading"), ProgressLine())
            case Step.WHAT | Step.WHERE | Step.OPTIONS:
                await self._fill(form_of(self.step))
            case Step.PLAN:
                step = PlanStep(self._show_map)
                await self._fill(step)
                step.table.focus()
            case Step.RUNNING if self.plan is not None:
                await self._fill(RunView(self.plan, self.course, self.calls.memory, self.before))
            case _:
                return
        self.draw_choices()

    def draw_choices(self) -> None:
        """Show the draft and what it comes to."""
        self.query_one(StatusLine).facts = (self._plane(),)
        self.query_one("#steps", Static).update(content(*self._steps()))
        room = max(20, self.size.width - 6)
        self.query_one("#same", Static).update(
            content(("$ ", Tone.MUTED), (elide(visible(self.command), room, tail=0.4), Tone.MUTED))
        )
        for form in self.query(Form):
            form.show(self.draft, self.known, self._page())
        for step in self.query(PlanStep):
            step.show(self.plan, self.facts, self.prepared)

    def _plane(self) -> Part:
        if self.step is Step.ENDED:
            return ("written and verified", Tone.OK) if self.outcome is not None else "no output"
        return ("writing", Tone.CAUTION) if self.step is Step.RUNNING else NOT_YET

    def _page(self) -> "Telling":
        draft, comes = self.draft, self.comes
        match self.step:
            case Step.WHAT:
                return _telling(what_page, draft, self.known.components, comes)
            case Step.WHERE:
                return _telling(where_page, draft, self.look, self.earlier, comes)
            case _:
                return _telling(options_page, comes)

    def _steps(self) -> list[Part]:
        parts: list[Part] = []
        for number, step in enumerate(STEPS, start=1):
            here = step is self.step
            parts += [(f"{number} {step}", Tone.HERE if here else Tone.MUTED), "   "]
        if self.step in CHOOSING and (why := self.hindrance):
            parts.append((why, Tone.CAUTION))
        return parts

    def on_resize(self) -> None:
        """Cut the command anew."""
        self.call_after_refresh(self.draw_choices)

    # Steps

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

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now."""
        match action:
            case "next" | "step" | "page":
                return self.step in CHOOSING
            case "stop":
                return self.step is Step.RUNNING and not self.is_stopping
            case "back":
                return self.step is not Step.RUNNING
            case "again":
                return self.step is Step.ENDED and self.outcome is None
            case "look_at" | "verify":
                return self.step is Step.ENDED and self.outcome is not None
            case "copy":
                return self.step is not Step.READING
            case _:
                return True

    async def action_step(self, step: str) -> None:
        """Go to a step."""
        self.step = Step(step)
        await self.draw_step()
        if self.step is Step.WHERE and not self.draft.out:
            self.query_one(Form).type_in("out")

    async def action_next(self) -> None:
        """Go to the next step; after the plan comes admission."""
        if self.hindrance:
            self.draw_choices()
            return
        if self.step is Step.PLAN:
            self.admit(self._ask)
        else:
            await self.action_step(CHOOSING[CHOOSING.index(self.step) + 1])

    def _ask(self) -> None:
        """Show the admission of the plan, and start when the word was typed."""
        from shardscope.app.explorer.convert.admission import Admission
        from shardscope.app.explorer.dialogs import NotDone

        plan, facts = self.plan, self.facts
        if self.step is not Step.PLAN:
            return
        in_the_way = self.refused or (self.look.refused if self.look is not None else None)
        if plan is not None and plan.blockers:
            in_the_way = plan.blockers[0]
        if plan is None or facts is None or in_the_way is not None:
            if in_the_way is not None:
                self.app.push_screen(NotDone("Nothing starts", in_the_way))
            return

        async def answered(confirmed: bool | None) -> None:
            if confirmed:
                await self.start()

        note = ""
        if self.earlier is not None:
            gone_on = (
                "It is gone on with." if self.draft.resume else "It is not used: u in step 2 goes on with it."
            )
            note = f"{self.earlier.message} {gone_on}"
        self.app.push_screen(Admission(plan, facts, self.draft.kind, note=note), answered)

    async def action_back(self) -> None:
        """Go one step back."""
        if self.step is Step.READING:
            self.app.workers.cancel_group(self.app, "convert-read")
            self.dismiss(None)
        elif self.step in (Step.WHAT, Step.ENDED):
            self.dismiss(None)
        else:
            await self.action_step(CHOOSING[CHOOSING.index(self.step) - 1])

    def action_page(self) -> None:
        """Give the keys to the text beside the choices, or back."""
        for form in self.query(Form):
            (form.rows if form.page.has_focus else form.page).focus()

    @on(Form.Chosen)
    def _chosen(self, event: Form.Chosen) -> None:
        event.stop()
        self.take(event.change(self.draft))

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

    # The run and its end

    def ask_to_leave(self, *, insist: bool) -> bool:
        """Ask whether to stop a conversion that runs; a second ctrl+c says yes."""
        if self.step is not Step.RUNNING or self.is_stopping:
            return False
        if isinstance(self.app.screen, Stop):
            if insist:
                self.app.screen.action_answer("remove")
            return True
        self.action_stop()
        return True

    def action_stop(self) -> None:
        """Ask whether to stop."""

        def answered(answer: Answer | None) -> None:
            if answer is not None and self.step is Step.RUNNING:
                self.stop(keep=answer == "keep")

        files = 0 if self.plan is None else len(self.plan.files)
        finished = f"{self.finished:,} of {plural(files, 'file')} finished"
        keeps = self.draft.resume or self.draft.keep_staging
        self.app.push_screen(Stop(finished, self.draft.out, keeps=keeps), answered)

    def _close_question(self) -> None:
        if isinstance(self.app.screen, Stop):
            self.app.screen.action_answer("")

    async def draw_unread(self, refused: Blocker) -> None:
        """Show why the checkpoint could not be read."""
        from shardscope.app.explorer.notice import Notice

        await self._fill(Notice.fault(refused))
        self.query_one(Hints).refresh()

    async def draw_done(self, done: "Converted") -> None:
        """Show what appeared."""
        self._close_question()
        self.outcome = outcome_of(
            done, self.draft, self.target, self.course, before=self.before, decoded=self.decoded
        )
        await self._end(_telling(success, self.outcome))

    async def draw_failed(self, refused: Blocker, *, stopped: bool) -> None:
        """Show why nothing appeared, and what is left."""
        self._close_question()
        self.failure = failure_of(
            refused,
            self.draft,
            self.target,
            self.course,
            self.plan,
            stopped=stopped,
            stood=self.look is not None and self.look.stands == "folder",
            decoded=self.decoded,
        )
        if was_kept(self.course):
            self.take(replace(self.draft, resume=True))
        await self._end(_telling(failure, self.failure))

    async def _end(self, telling: "Telling") -> None:
        page = Told(telling)
        await self._fill(page)
        page.focus()
        self.draw_choices()
        self.refresh_bindings()

    async def action_again(self) -> None:
        """Go back to the plan."""
        self.failure = None
        await self.action_step(Step.PLAN)
        self.admit(lambda: None)

    def action_look_at(self) -> None:
        """Look at the output."""
        from shardscope.app.explorer.messages import Chosen

        self.app.post_message(Chosen(self.draft.out))

    # Saying the same on the command line

    def action_copy(self) -> None:
        """Copy the command that does what was chosen, and show it."""
        note = "" if self.draft.out else "OUT stands for the folder that was not named yet."
        self._copy(self.command, note)

    def action_verify(self) -> None:
        """Copy the command that verifies the output once more, and show it."""
        if self.outcome is not None:
            self._copy(self.outcome.verify, "")

    def _copy(self, command: str, note: str) -> None:
        from shardscope.app.explorer.dialogs import CopiedCommand

        self.app.copy_to_clipboard(command)
        self.app.push_screen(CopiedCommand(command, note))
