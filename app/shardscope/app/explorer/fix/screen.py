"""The screen of a fix: its steps, what fills each, and what it does in the background before the run."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from shardscope.app.explorer.fix import messages, workers
from shardscope.app.explorer.fix.calls import FIXES, Fixes
from shardscope.app.explorer.fix.changes_step import ChangesStep
from shardscope.app.explorer.fix.draft import Draft, command_of, same_plan
from shardscope.app.explorer.fix.fields import SAYS, Known
from shardscope.app.explorer.fix.forms import FixChoices, FixForm
from shardscope.app.explorer.fix.keys import BINDINGS, CHOOSING
from shardscope.app.explorer.fix.pages import Comes, page
from shardscope.app.explorer.output.destination import Destination
from shardscope.app.explorer.output.forms import Form, where_form
from shardscope.app.explorer.output.frame import OutputFrame, telling_of
from shardscope.app.explorer.output.making import Work
from shardscope.app.explorer.output.steps import Step
from shardscope.app.explorer.output.where_page import where_page
from shardscope.app.explorer.output.workers import carry_out, look_at_target
from shardscope.app.explorer.target import Target
from shardscope.engine.model.blocker import Blocker, Severity
from shardscope.engine.model.fix import Ailment
from shardscope.engine.model.repair import SAFE
from shardscope.widgets.figures import plural
from shardscope.widgets.safe import Tone
from shardscope.widgets.told import Told

if TYPE_CHECKING:
    from shardscope.app.explorer.fix.made import Made, Matched
    from shardscope.app.explorer.output.calls import Conduct
    from shardscope.engine.converting.fixing import Fix as Fixed
    from shardscope.engine.converting.fixing import FixLook
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.widgets.told import Telling

CHOOSABLE = frozenset({"fix.several_sets", "fix.no_match"})
"""Why nothing can be looked at until weight files are chosen by name."""


class Fix(OutputFrame):
    """One fix, from what is wrong to its end."""

    GROUP = "fix"
    WHAT = "fix"
    DOING = "fixing"
    CHOOSING: ClassVar[tuple[Step, ...]] = CHOOSING
    LOOKING = "headers and index"
    BINDINGS: ClassVar[list[BindingType]] = BINDINGS
    draft: Draft

    def __init__(
        self,
        target: Target,
        found: "Inspection",
        convert: Callable[[], None] | None = None,
        calls: Fixes = FIXES,
    ) -> None:
        """`found` is what is known of the checkpoint; `convert` begins a conversion of what cannot be fixed."""
        super().__init__(target, calls.memory)
        self.calls = calls
        self.found = found
        self.convert = convert
        self.known = Known()
        self.seen: FixLook | None = None
        """What is wrong; null while that is not known."""
        self.fixed: tuple[Fixed, Made] | None = None
        """The present plan with its changes."""
        self.matched: tuple[Matched, ...] = ()
        self.unfixable: Blocker | None = None
        """Why nothing here can be fixed at all."""

    # What an output is made of

    def blank(self) -> Draft:
        """Return the draft of which nothing was chosen."""
        return Draft()

    def same_plan(self, one: Draft, other: Draft) -> bool:
        """Tell whether two drafts have the same plan."""
        return same_plan(one, other)

    def forget_plan(self) -> None:
        """Let go of the present plan: the draft is another one."""
        super().forget_plan()
        self.fixed = None

    def take(self, draft: Draft) -> None:
        """Go on from another draft; look again where other files were chosen."""
        before = self.draft.files
        if draft.files != before:
            self.seen = None
        super().take(draft)
        if draft.files != before:
            self.read()

    def planning(self) -> Work | None:
        """Return what plans the present draft."""
        seen, draft, fixed = self.seen, self.draft, self.fixed
        if seen is None:
            return None
        return lambda _: workers.plan(self.calls, draft, seen, fixed, self.post_message)

    def seeing(self) -> Work:
        """Return what looks at the target of the present draft."""
        draft = self.draft
        return lambda _: look_at_target(
            lambda: self.calls.target(self.target, draft), draft, self.post_message
        )

    def running(self, prepared: "Prepared", conduct: "Conduct") -> Work:
        """Return what carries the fix out."""
        draft = self.draft
        return lambda _: carry_out(
            lambda: self.calls.fix(self.target, draft, prepared, conduct), conduct, self.post_message
        )

    @property
    def word(self) -> str:
        """What a person types to start."""
        return "fix"

    @property
    def option_keys(self) -> Mapping[str, str]:
        """What to press at admission for options of the command line."""
        return {"--what": "1", "--rename": "1 r"}

    def command_for(self, draft: Destination) -> str:
        """Return the command that does what a draft says."""
        assert isinstance(draft, Draft)  # noqa: S101 - what `blank` returned, or another one made of it
        return command_of(draft, self.target)

    @property
    def losses(self) -> str:
        """What no output will have, as admission has to say it."""
        gone = 0 if self.fixed is None else len(self.fixed[0].document.lost)
        return (
            f"LOST: {plural(gone, 'part')} of the source cannot be written; step 2 lists each."
            if gone
            else ""
        )

    @property
    def hindrance(self) -> str:
        """Why the next step cannot be taken now; empty where it can."""
        if self.step is Step.WHERE:
            if not self.draft.out:
                return "name a folder first"
            if self.look is not None and self.look.refused is not None:
                return "cannot appear there"
        if self.seen is None:
            return "choose weight files: u" if self.refused is not None else "reading"
        if self.draft.lacking:
            return f"{self.draft.lacking[0]}: say what ({SAYS[self.draft.lacking[0]]})"
        if not self.draft.what:
            return "choose one: space" if self.step is Step.WHAT else "nothing is chosen: 1"
        if self.refused is not None:
            return "no plan: see 1" if self.step is not Step.WHAT else "no plan"
        if self.step is Step.WHAT or self.fixed is None:
            return ""
        if self.plan is not None and self.plan.blockers:
            return "something is in the way: 2"
        return "nothing would change: 1" if self.fixed[0].idle else ""

    # Looking

    def on_mount(self) -> None:
        """Look at what is wrong."""
        self.call_after_refresh(self.begin)

    async def begin(self) -> None:
        """Show that nothing is known yet, and look."""
        await self.draw_step()
        self.read()

    def read(self) -> None:
        """Look at what is wrong; `Looked` or `NotLooked` follows."""
        draft = self.draft
        self.work(
            lambda cancel: workers.look(
                self.calls, self.target, draft, self.found, cancel, self.post_message
            ),
            "fix-read",
            "looking at what is wrong",
        )

    @on(messages.Looked)
    async def _looked(self, event: messages.Looked) -> None:
        if event.draft.files != self.draft.files:
            return
        self.seen, self.refused, self._planned = event.seen, None, None
        wrong = [
            item.repair for item in event.seen.survey.found if item.blocker.severity is not Severity.INFO
        ]
        self.known = replace(
            self.known,
            keys=event.keys,
            wrong=tuple((repair, wrong.count(repair)) for repair in event.seen.needs),
        )
        if self.step is Step.READING:
            self.draft = replace(self.draft, chosen=tuple(each for each in event.seen.needs if each in SAFE))
            await self.action_step(Step.WHAT)
        self.take(self.draft)

    @on(messages.NotLooked)
    async def _not_looked(self, event: messages.NotLooked) -> None:
        if event.draft.files != self.draft.files:
            return
        if event.blocker is None:
            if self.step is Step.READING:
                self.dismiss(None)
        elif self.step is not Step.READING or event.blocker.code in CHOOSABLE:
            self.refused = event.blocker
            if self.step is Step.READING:
                await self.action_step(Step.WHAT)
            self.draw_choices()
        else:
            await self.draw_unread(event.blocker)

    async def draw_unread(self, refused: Blocker) -> None:
        """Show why nothing can be fixed, and what can be done instead."""
        from shardscope.app.explorer.notice import Notice

        self.unfixable = refused
        instead = f"{refused.remedy} Here C converts it." if self.can_convert else refused.remedy
        await self.fill(Notice(("Not fixed here", Tone.CAUTION), refused.message, instead, refused.code))
        self.refresh_bindings()

    @property
    def can_convert(self) -> bool:
        """Whether what cannot be fixed can be converted."""
        return (
            self.unfixable is not None
            and self.unfixable.code == "fix.other_format"
            and self.convert is not None
        )

    def unread(self, error: Blocker) -> None:
        """Say that nothing could be looked at: an error of our own."""
        self.post_message(messages.NotLooked(self.draft, error))

    # Planning

    @on(messages.Planned)
    def _has_plan(self, event: messages.Planned) -> None:
        if self.same_plan(event.draft, self.draft) and self.seen is not None:
            self.fixed, self.matched = (event.fix, event.made), event.matched
            self.prepared, self.plan, self.facts = event.fix.prepared, event.plan, event.facts
            self.refused = None
            self.known = replace(self.known, resumable=self.take_earlier(event.earlier))
        self.settled(event.draft)

    @on(messages.Unplanned)
    def _has_no_plan(self, event: messages.Unplanned) -> None:
        if self.same_plan(event.draft, self.draft) and self.seen is not None:
            self.forget_plan()
            self.refused, self.matched = event.blocker, event.matched
        self.settled(event.draft)

    @on(Form.FileNamed)
    def _file_named(self, event: Form.FileNamed) -> None:
        event.stop()
        if not event.path:
            self.take(replace(self.draft, rules_file=None, rules=()))
            return
        self.work(
            lambda _: workers.read_rules(self.calls, event.path, self.post_message),
            "fix-rules",
            "reading rules of renaming",
        )

    @on(messages.RulesRead)
    def _rules_read(self, event: messages.RulesRead) -> None:
        if event.blocker is None:
            self.take(replace(self.draft, rules_file=event.path, rules=event.rules))
            return
        from shardscope.app.explorer.dialogs import NotDone

        self.app.push_screen(NotDone("Not read", event.blocker))

    # What is drawn

    def step_widgets(self) -> tuple[Widget, ...]:
        """Return what fills the present step."""
        match self.step:
            case Step.WHAT:
                return (FixForm(),)
            case Step.CHANGES:
                return (ChangesStep(),)
            case _:
                return (where_form(),)

    async def draw_step(self) -> None:
        """Show the present step."""
        await super().draw_step()
        for step in self.query(ChangesStep):
            step.rows.focus()

    def draw_present(self) -> None:
        """Show the draft and what it comes to, where the present step says it."""
        for form in self.query(FixForm):
            form.show(self.draft, self.known, self._page(form.choices.here))
        if self.step is Step.WHERE:
            for each in self.query(Form):
                telling = telling_of(where_page, self.draft, self.look, self.earlier, self.plan)
                each.show(self.draft, self.known, telling)
        for step in self.query(ChangesStep):
            if self.fixed is None:
                step.show(None, without=self.hindrance or "Planning")
            else:
                step.show(self.fixed[1], losing=bool(self.fixed[0].document.lost))

    def _page(self, here: str) -> "Telling":
        return telling_of(page, self.draft, self.known, self.comes, here)

    @property
    def comes(self) -> Comes:
        """What is known, and what the draft comes to."""
        if self.seen is None:
            return Comes(refused=self.refused)
        survey = self.seen.survey
        document = None if self.fixed is None else self.fixed[0].document
        found = (
            document.found
            if document is not None
            else tuple(Ailment(item.repair, mended=False, blocker=item.blocker) for item in survey.found)
        )
        made = None if self.fixed is None else self.fixed[1]
        return Comes(found, survey.lost, document, made, self.matched, self.refused, looked=True)

    @on(FixChoices.Moved)
    def _moved(self, event: FixChoices.Moved) -> None:
        event.stop()
        for form in self.query(FixForm):
            form.page.show(self._page(form.choices.here))

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tell which keys work now."""
        if action == "convert":
            return self.can_convert
        return super().check_action(action, parameters)

    def action_page(self) -> None:
        """Give the keys to the text beside the choices, or back."""
        if self.query(Told):
            super().action_page()

    def action_convert(self) -> None:
        """Convert what cannot be fixed."""
        convert = self.convert
        self.dismiss(None)
        if convert is not None:
            convert()
