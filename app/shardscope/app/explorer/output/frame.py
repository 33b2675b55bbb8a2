"""The frame of a screen that makes an output: where we are, the present step, the command that does the same, and the keys.

What is asked before a run, the run, and its end look alike whatever is made; a subclass fills the steps before.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.widget import Widget
from textual.widgets import Static

from shardscope.app.explorer.help.hints import Hints
from shardscope.app.explorer.output.endings import failure_of, outcome_of, was_kept
from shardscope.app.explorer.output.forms import Form
from shardscope.app.explorer.output.making import Making
from shardscope.app.explorer.output.run_view import RunView
from shardscope.app.explorer.output.steps import Step
from shardscope.app.explorer.target import Target, verify_command
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.progress import Progress
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.run_end import Failure, Outcome, failure, success
from shardscope.widgets.safe import Part, Tone, content, elide, visible
from shardscope.widgets.status_lines import Breadcrumbs, StatusLine
from shardscope.widgets.told import Told

if TYPE_CHECKING:
    from shardscope.app.explorer.output.destination import Destination
    from shardscope.engine.converting.materializing import Converted
    from shardscope.widgets.glyphs import Glyphs
    from shardscope.widgets.paragraphs import Paragraph
    from shardscope.widgets.told import Telling

NOT_YET: Part = "nothing is written before a typed word"


def telling_of(page: "Callable[..., Iterable[Paragraph]]", *given: object) -> "Telling":
    """Return a page about what is given, for any width."""

    def telling(_: int, glyphs: "Glyphs") -> "Iterable[Paragraph]":
        return page(*given, glyphs)

    return telling


class OutputFrame(Making):
    """One output, from the first choice to its end."""

    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - no ClassVar in its base
    CHOOSING: ClassVar[tuple[Step, ...]]
    """Steps that a person goes to and fro between; nothing is written in any of them. After the last one comes admission."""
    LOOKING: ClassVar[str]
    """What is read first."""

    def __init__(self, target: Target, memory: Callable[[], int | None]) -> None:
        super().__init__(target, memory)
        self.outcome: Outcome | None = None
        self.failure: Failure | None = None

    # What a subclass says

    @property
    def word(self) -> str:
        """What a person types to start."""
        raise NotImplementedError

    @property
    def option_keys(self) -> Mapping[str, str]:
        """What to press at admission for options of the command line."""
        raise NotImplementedError

    @property
    def is_decoded(self) -> bool:
        """Whether pickles are decoded for it."""
        return False

    @property
    def hindrance(self) -> str:
        """Why the next step cannot be taken now; empty where it can."""
        raise NotImplementedError

    @property
    def losses(self) -> str:
        """What no output will have, as admission has to say it."""
        return ""

    def command_for(self, draft: "Destination") -> str:
        """Return the command that does what a draft says."""
        raise NotImplementedError

    def step_widgets(self) -> tuple[Widget, ...]:
        """Return what fills the present step, one that is chosen in."""
        raise NotImplementedError

    def draw_present(self) -> None:
        """Show the draft and what it comes to, where the present step says it."""
        raise NotImplementedError

    # What is drawn

    def compose(self) -> ComposeResult:
        """Draw the frame; what fills it is the step's."""
        from shardscope.app.explorer.checkpoint.explore import crumbs

        with Horizontal(id="top"):
            yield Breadcrumbs(*crumbs(self.target.path), self.GROUP)
            yield StatusLine(NOT_YET)
        yield Static(id="steps")
        yield Container(id="main")
        yield Static(id="same")
        yield Hints()

    def draw_progress(self, progress: Progress) -> None:
        """Show how far the work is."""
        if self.step is Step.RUNNING:
            for view in self.query(RunView):
                view.show(progress)
        elif self.step is Step.READING:
            for line in self.query(ProgressLine):
                line.show(progress)

    async def fill(self, *widgets: Widget) -> None:
        """Put widgets into the frame in the place of those that are there."""
        main = self.query_one("#main")
        with self.app.batch_update():
            await main.remove_children()
            await main.mount_all(widgets)

    async def draw_step(self) -> None:
        """Show the present step."""
        if self.step is Step.READING:
            said = content(
                "Reading", (f"  {self.LOOKING}; nothing is run or written. esc stops.", Tone.MUTED)
            )
            await self.fill(Static(said, id="loading"), ProgressLine())
        elif self.step is Step.RUNNING and self.plan is not None:
            await self.fill(RunView(self.plan, self.course, self.memory_of_run, self.before))
        elif self.step in self.CHOOSING:
            await self.fill(*self.step_widgets())
        else:
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
        self.draw_present()

    def _plane(self) -> Part:
        if self.step is Step.ENDED:
            return ("written and verified", Tone.OK) if self.outcome is not None else "no output"
        return ("writing", Tone.CAUTION) if self.step is Step.RUNNING else NOT_YET

    def _steps(self) -> list[Part]:
        parts: list[Part] = []
        for number, step in enumerate((*self.CHOOSING, Step.RUNNING, Step.ENDED), start=1):
            here = step is self.step
            parts += [(f"{number} {step}", Tone.HERE if here else Tone.MUTED), "   "]
        if self.step in self.CHOOSING and (why := self.hindrance):
            parts.append((why, Tone.CAUTION))
        return parts

    def on_resize(self) -> None:
        """Cut the command anew."""
        self.call_after_refresh(self.draw_choices)

    # Steps

    @property
    def command(self) -> str:
        """The command that does what was chosen."""
        return self.command_for(self.draft)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Tell which keys work now."""
        match action:
            case "next" | "step" | "page":
                return self.step in self.CHOOSING
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
        """Go to the next step; after the last one comes admission."""
        if self.hindrance:
            self.draw_choices()
            return
        if self.step is self.CHOOSING[-1]:
            self.admit(self._ask)
        else:
            await self.action_step(self.CHOOSING[self.CHOOSING.index(self.step) + 1])

    def _ask(self) -> None:
        """Show the admission of the plan, and start when the word was typed."""
        from shardscope.app.explorer.dialogs import NotDone
        from shardscope.app.explorer.output.admission import Admission

        plan, facts = self.plan, self.facts
        if self.step is not self.CHOOSING[-1]:
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
            where = f"{self.CHOOSING.index(Step.WHERE) + 1}"
            gone_on = (
                "It is gone on with."
                if self.draft.resume
                else f"It is not used: u in step {where} goes on with it."
            )
            note = f"{self.earlier.message} {gone_on}"
        self.app.push_screen(
            Admission(plan, facts, self.word, self.option_keys, note=note, lost=self.losses), answered
        )

    async def action_back(self) -> None:
        """Go one step back."""
        if self.step is Step.READING:
            self.app.workers.cancel_group(self.app, f"{self.GROUP}-read")
            self.dismiss(None)
        elif self.step in (self.CHOOSING[0], Step.ENDED):
            self.dismiss(None)
        else:
            await self.action_step(self.CHOOSING[self.CHOOSING.index(self.step) - 1])

    def action_page(self) -> None:
        """Give the keys to the text beside the choices, or back."""
        for form in self.query(Form):
            (form.rows if form.page.has_focus else form.page).focus()

    @on(Form.Chosen)
    def _chosen(self, event: Form.Chosen) -> None:
        event.stop()
        self.take(event.change(self.draft))

    # The end of a run

    async def draw_unread(self, refused: Blocker) -> None:
        """Show why the checkpoint could not be read."""
        from shardscope.app.explorer.notice import Notice

        await self.fill(Notice.fault(refused))
        self.query_one(Hints).refresh()

    async def draw_done(self, done: "Converted") -> None:
        """Show what appeared."""
        self.outcome = outcome_of(
            done,
            self.draft,
            self.course,
            again=self.command_for(replace(self.draft, resume=False)),
            verify=verify_command(self.target, self.draft.out, decoded=self.is_decoded),
            before=self.before,
        )
        await self._end(telling_of(success, self.outcome))

    async def draw_failed(self, refused: Blocker, *, stopped: bool) -> None:
        """Show why nothing appeared, and what is left."""
        self.failure = failure_of(
            refused,
            self.draft,
            self.course,
            self.plan,
            on_with=self.command_for(replace(self.draft, resume=True)),
            stopped=stopped,
            stood=self.look is not None and self.look.stands == "folder",
        )
        if was_kept(self.course):
            self.take(replace(self.draft, resume=True))
        await self._end(telling_of(failure, self.failure))

    async def _end(self, telling: "Telling") -> None:
        page = Told(telling)
        await self.fill(page)
        page.focus()
        self.draw_choices()
        self.refresh_bindings()

    async def action_again(self) -> None:
        """Go back to the last step before the run."""
        self.failure = None
        await self.action_step(self.CHOOSING[-1])
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
