"""What a screen does in the background on the way to an output: planning, looking at the target, the run itself, each in a thread.

The workers only post messages. The handlers here own every change of state and ask the screen to draw.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.reactive import var
from textual.worker import get_current_worker

from shardscope.app.explorer.output import messages, workers
from shardscope.app.explorer.output.calls import Conduct
from shardscope.app.explorer.output.destination import Destination
from shardscope.app.explorer.output.steps import Step
from shardscope.app.explorer.output.stop import Answer, Stop
from shardscope.app.explorer.target import Target
from shardscope.app.explorer.working import Working
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.course import Course
from shardscope.engine.model.progress import Progress
from shardscope.widgets.figures import plural, size

if TYPE_CHECKING:
    from shardscope.engine.convert.admitting.target import TargetLook
    from shardscope.engine.convert.stage.resuming import Resumable
    from shardscope.engine.converting.materializing import Converted
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.model.plan import Plan
    from shardscope.widgets.plan_words import PlanFacts

Work = Callable[[threading.Event], None]
"""What a worker does until the event is set."""


class Making(Working):
    """A screen about one output, without its looks. A subclass says what is planned, and how it is carried out."""

    GROUP: ClassVar[str]
    """Of its workers; what they do for the run, and with a hyphen what comes before it."""
    WHAT: ClassVar[str]
    """What is made, as a question calls it."""
    DOING: ClassVar[str]
    """What a run does."""

    step: var[Step] = var(Step.READING, init=False, bindings=True)

    def __init__(self, target: Target, memory: Callable[[], int | None]) -> None:
        super().__init__()
        self.target = target
        self.memory_of_run = memory
        self.draft: Any = self.blank()
        self.prepared: Prepared | None = None
        """What the present plan was made from; null while there is none."""
        self.plan: Plan | None = None
        """The present plan with its admission."""
        self.facts: PlanFacts | None = None
        """The present plan in few words."""
        self.refused: Blocker | None = None
        """Why there is no plan."""
        self.earlier: Blocker | None = None
        """What an earlier run of the present plan has left."""
        self.look: TargetLook | None = None
        self.progress: Progress | None = None
        self.course = Course()
        self.before: int | None = None
        """Bytes that were resident when the run began."""
        self._planned: Destination | None = None
        self._is_planning = False
        self._is_looking = False
        self._then: Callable[[], None] | None = None
        self._cancel = threading.Event()
        self._keeps = False

    # What a subclass says

    def blank(self) -> Destination:
        """Return the draft of which nothing was chosen."""
        raise NotImplementedError

    def same_plan(self, one: Any, other: Any) -> bool:
        """Tell whether two drafts have the same plan."""
        raise NotImplementedError

    def forget_plan(self) -> None:
        """Let go of the present plan: the draft is another one."""
        self.prepared = self.plan = self.refused = self.earlier = None

    def planning(self) -> Work | None:
        """Return what plans the present draft; null while there is nothing to plan."""
        raise NotImplementedError

    def seeing(self) -> Work:
        """Return what looks at the target of the present draft."""
        raise NotImplementedError

    def running(self, prepared: "Prepared", conduct: Conduct) -> Work:
        """Return what carries the present draft out."""
        raise NotImplementedError

    # What a screen draws

    def draw_progress(self, progress: Progress) -> None:
        """Show how far the work is."""
        raise NotImplementedError

    def draw_choices(self) -> None:
        """Show the draft and what it comes to."""
        raise NotImplementedError

    async def draw_step(self) -> None:
        """Show the present step."""
        raise NotImplementedError

    async def draw_unread(self, refused: Blocker) -> None:
        """Show why the checkpoint could not be read."""
        raise NotImplementedError

    async def draw_done(self, done: "Converted") -> None:
        """Show what appeared."""
        raise NotImplementedError

    async def draw_failed(self, refused: Blocker, *, stopped: bool) -> None:
        """Show why nothing appeared."""
        raise NotImplementedError

    # Work

    def work(self, does: Work, group: str, description: str) -> None:
        """Do something in a thread; a later work of the same group takes its place."""
        # Started on the app, so that it hears of errors.
        self.app.run_worker(
            lambda: does(get_current_worker().cancelled_event),
            group=group,
            description=description,
            exclusive=True,
            thread=True,
            exit_on_error=False,
        )

    def take(self, draft: Any) -> None:
        """Go on from another draft: plan it, and look at its target."""
        before, self.draft = self.draft, draft
        if not self.same_plan(before, draft):
            self.forget_plan()
        if (before.out, before.standing) != (draft.out, draft.standing):
            self.look = None
        self.draw_choices()
        self.go_on()

    def go_on(self) -> None:
        """Plan the draft, and look at its target, as far as that is not done or being done."""
        self._plan()
        self._see()

    def _plan(self) -> None:
        # One plan at a time: making one cannot be cut short, and only the last draft counts.
        if self._is_planning or self._planned == self.draft:
            return
        work = self.planning()
        if work is not None:
            self._is_planning = True
            self.work(work, f"{self.GROUP}-plan", f"planning a {self.WHAT}")

    def _see(self) -> None:
        if not self.draft.out or self._is_looking or self.look is not None:
            return
        self._is_looking = True
        self.work(self.seeing(), f"{self.GROUP}-target", f"looking at the target of a {self.WHAT}")

    def admit(self, then: Callable[[], None]) -> None:
        """Hold the plan against this machine once more, and look at its target; `then` is called when both are known."""
        self._then = then
        self._planned = self.look = None
        self.go_on()

    async def start(self) -> None:
        """Carry the plan out; `Appeared` or `EndedEarly` follows."""
        prepared = self.prepared
        if prepared is None or self.step is Step.RUNNING:
            return
        self.course, self.progress = Course(), None
        self.before = self.memory_of_run()
        self._cancel, self._keeps = threading.Event(), self.draft.keep_staging
        self.step = Step.RUNNING
        await self.draw_step()
        conduct = Conduct(
            self._cancel, workers.reporting(self.post_message), self.course, lambda _: self._keeps
        )
        self.work(self.running(prepared, conduct), self.GROUP, self.DOING)

    @property
    def is_stopping(self) -> bool:
        """Whether the run was asked to stop."""
        return self._cancel.is_set()

    def stop(self, *, keep: bool) -> None:
        """Ask the run to stop; `EndedEarly` follows."""
        self._keeps = self._keeps or keep
        self._cancel.set()
        self.refresh_bindings()

    def on_unmount(self) -> None:
        """Stop the run with the screen, however that ends."""
        self._cancel.set()

    def leave(self, *, hung_up: bool) -> None:
        """Stop the run; what it has finished stays where the terminal went away."""
        self.stop(keep=hung_up)

    def ask_to_leave(self, *, insist: bool) -> bool:
        """Ask whether to stop a run; a second ctrl+c says yes."""
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
        self.app.push_screen(Stop(self.WHAT, finished, self.draft.out, keeps=keeps), answered)

    @property
    def finished(self) -> int:
        """Files of the run that are written and hashed."""
        return sum(at.finished for at in self.course.files.values())

    # What the workers say

    @on(messages.Advanced)
    def _advanced(self, event: messages.Advanced) -> None:
        self.progress = event.progress
        self.draw_progress(event.progress)

    def take_earlier(self, earlier: "Resumable | None") -> str | None:
        """Take what an earlier run of the present plan has left; return it in few words."""
        from shardscope.engine.convert.stage.resuming import available

        self.earlier = None if earlier is None else available(earlier)
        if earlier is None or self.earlier is None:
            return None
        return f"{plural(earlier.held.files, 'file')}, {size(earlier.held.file_bytes)}"

    def settled(self, draft: Destination) -> None:
        """Go on from what is known of a draft by now: plan the one that was chosen meanwhile, or say what this comes to."""
        self._is_planning = False
        self._planned = draft
        self._plan()
        self._told()

    @on(messages.TargetSeen)
    def _target_seen(self, event: messages.TargetSeen) -> None:
        self._is_looking = False
        if (event.draft.out, event.draft.standing) == (self.draft.out, self.draft.standing):
            self.look = event.look
        self._see()
        self._told()

    def _told(self) -> None:
        self.draw_choices()
        self.refresh_bindings()
        if self._then is not None and self.is_settled:
            then, self._then = self._then, None
            then()

    @property
    def is_settled(self) -> bool:
        """Whether everything is known of the draft that there is to know now."""
        return not self._is_planning and not self._is_looking and self._planned == self.draft

    @on(messages.Appeared)
    async def _appeared(self, event: messages.Appeared) -> None:
        self._close_question()
        self.step = Step.ENDED
        await self.draw_done(event.done)

    @on(messages.EndedEarly)
    async def _ended_early(self, event: messages.EndedEarly) -> None:
        self._close_question()
        self.step = Step.ENDED
        await self.draw_failed(event.blocker, stopped=event.stopped)

    def _close_question(self) -> None:
        if isinstance(self.app.screen, Stop):
            self.app.screen.action_answer("")

    def unread(self, error: Blocker) -> None:
        """Say that what there is to work on could not be read: an error of our own."""
        raise NotImplementedError

    def broke(self, group: str, error: Blocker) -> None:
        """An error of our own ended a worker: nothing goes on from there."""
        if group == self.GROUP and self.step is Step.RUNNING:
            self.post_message(messages.EndedEarly(error, stopped=False))
        elif group.startswith(f"{self.GROUP}-") and (self.step is Step.READING or not self.is_settled):
            self._is_planning = self._is_looking = False
            self.unread(error)
