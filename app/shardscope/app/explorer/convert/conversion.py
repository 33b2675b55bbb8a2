"""What a guided conversion does in the background: reading, planning, looking at the target, the run itself, each in a thread.

The workers only post messages. The handlers here own every change of state and ask the screen to draw.
"""

import threading
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual import on
from textual.reactive import var
from textual.worker import get_current_worker

from shardscope.app.explorer.convert import messages, workers
from shardscope.app.explorer.convert.calls import Conduct, Conversions
from shardscope.app.explorer.convert.draft import Draft, command_of
from shardscope.app.explorer.convert.fields import Known
from shardscope.app.explorer.convert.pages import Comes
from shardscope.app.explorer.target import Target
from shardscope.app.explorer.working import Working
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.course import Course
from shardscope.engine.model.progress import Progress
from shardscope.widgets.figures import plural, size

if TYPE_CHECKING:
    from shardscope.engine.convert.admitting.target import TargetLook
    from shardscope.engine.converting import Prepared
    from shardscope.engine.decoding import Decoding
    from shardscope.engine.inspection import Inspection
    from shardscope.engine.materializing import Converted
    from shardscope.engine.model.plan import Plan
    from shardscope.widgets.plan_words import PlanFacts


class Step(StrEnum):
    """Where a person is on the way."""

    READING = "read"
    """What there is to convert is not known yet, or could not be read."""
    WHAT = "what"
    WHERE = "where"
    OPTIONS = "options"
    PLAN = "plan"
    RUNNING = "run"
    ENDED = "end"


CHOOSING = (Step.WHAT, Step.WHERE, Step.OPTIONS, Step.PLAN)
"""Steps that a person goes to and fro between; nothing is written in any of them."""


def same_plan(one: Draft, other: Draft) -> bool:
    """Tell whether two drafts have the same plan: they differ at most in where it goes and in how it is carried out."""
    blank = Draft()
    conduct = {
        name: getattr(blank, name) for name in ("out", "standing", "allow_gap", "resume", "keep_staging")
    }
    return replace(one, **conduct) == replace(other, **conduct)


class Conversion(Working):
    """A screen about one conversion, without its looks."""

    step: var[Step] = var(Step.READING, init=False, bindings=True)

    def __init__(self, target: Target, calls: Conversions) -> None:
        super().__init__()
        self.target = target
        self.calls = calls
        self.draft = Draft()
        self.known = Known()
        self.found: Inspection | None = None
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
        self.decoded = False
        self._planned: Draft | None = None
        self._is_planning = False
        self._is_looking = False
        self._then: Callable[[], None] | None = None
        self._cancel = threading.Event()
        self._keeps = False

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

    def _start(self, work: Callable[[threading.Event], None], group: str, description: str) -> None:
        # Started on the app, so that it hears of errors.
        self.app.run_worker(
            lambda: work(get_current_worker().cancelled_event),
            group=group,
            description=description,
            exclusive=True,
            thread=True,
            exit_on_error=False,
        )

    def read(self, decoding: "Decoding | None") -> None:
        """Read what plans are made of; `Read` or `Unread` follows."""
        self.decoded = decoding is not None
        self._start(
            lambda cancel: workers.look(self.calls, self.target, decoding, cancel, self.post_message),
            "convert-read",
            "reading what there is to convert",
        )

    def take(self, draft: Draft) -> None:
        """Go on from another draft: plan it, and look at its target."""
        before, self.draft = self.draft, draft
        if not same_plan(before, draft):
            self.prepared = self.plan = self.refused = self.earlier = None
        if (before.out, before.standing) != (draft.out, draft.standing):
            self.look = None
        self.draw_choices()
        self._plan()
        self._see()

    def _plan(self) -> None:
        # One plan at a time: making one cannot be cut short, and only the last draft counts.
        if self.found is None or self._is_planning or self._planned == self.draft:
            return
        self._is_planning = True
        draft, made_of = self.draft, self.prepared or self.found
        self._start(
            lambda cancel: workers.plan(self.calls, self.target, draft, made_of, cancel, self.post_message),
            "convert-plan",
            "planning a conversion",
        )

    def _see(self) -> None:
        if not self.draft.out or self._is_looking or self.look is not None:
            return
        self._is_looking = True
        draft = self.draft
        self._start(
            lambda _: workers.look_at_target(self.calls, self.target, draft, self.post_message),
            "convert-target",
            "looking at the target of a conversion",
        )

    def admit(self, then: Callable[[], None]) -> None:
        """Hold the plan against this machine once more, and look at its target; `then` is called when both are known."""
        self._then = then
        self._planned = self.look = None
        self._plan()
        self._see()

    def name_renames(self, path: str) -> None:
        """Take the renaming rules of a file; none for an empty path."""
        if not path:
            self.take(replace(self.draft, renames_file=None, options=replace(self.draft.options, renames=())))
            return
        draft = self.draft
        self._start(
            lambda _: workers.read_renames(self.calls, draft, path, self.post_message),
            "convert-renames",
            "reading rules of renaming",
        )

    async def start(self) -> None:
        """Carry the plan out; `Appeared` or `EndedEarly` follows."""
        prepared, draft = self.prepared, self.draft
        if prepared is None or self.step is Step.RUNNING:
            return
        self.course, self.progress = Course(), None
        self.before = self.calls.memory()
        self._cancel, self._keeps = threading.Event(), draft.keep_staging
        self.step = Step.RUNNING
        await self.draw_step()
        conduct = Conduct(
            self._cancel, workers.reporting(self.post_message), self.course, lambda _: self._keeps
        )
        self._start(
            lambda _: workers.convert(self.calls, self.target, draft, prepared, conduct, self.post_message),
            "convert",
            "converting",
        )

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

    @property
    def command(self) -> str:
        """The command that does what was chosen."""
        return command_of(self.draft, self.target, decoded=self.decoded)

    @property
    def comes(self) -> Comes:
        """What the draft comes to."""
        return Comes(self.plan, self.facts, self.refused)

    @property
    def finished(self) -> int:
        """Files of the run that are written and hashed."""
        return sum(at.finished for at in self.course.files.values())

    # What the workers say

    @on(messages.Advanced)
    def _advanced(self, event: messages.Advanced) -> None:
        self.progress = event.progress
        self.draw_progress(event.progress)

    @on(messages.Read)
    async def _read(self, event: messages.Read) -> None:
        self.found = event.found
        self.known = replace(self.known, components=event.components)
        self.step = Step.WHAT
        await self.draw_step()
        self._plan()

    @on(messages.Unread)
    async def _unread(self, event: messages.Unread) -> None:
        if event.blocker is None:
            self.dismiss(None)
        else:
            await self.draw_unread(event.blocker)

    @on(messages.Planned)
    def _has_plan(self, event: messages.Planned) -> None:
        from shardscope.engine.convert.stage.resuming import available

        self._is_planning = False
        if same_plan(event.draft, self.draft):
            self.prepared, self.plan, self.refused = event.prepared, event.plan, None
            self.facts = event.facts
            self.earlier = None if event.earlier is None else available(event.earlier)
            said = None
            if event.earlier is not None and self.earlier is not None:
                held = event.earlier.held
                said = f"{plural(held.files, 'file')}, {size(held.file_bytes)}"
            self.known = replace(self.known, resumable=said)
        self._settled(event.draft)

    @on(messages.Unplanned)
    def _has_no_plan(self, event: messages.Unplanned) -> None:
        self._is_planning = False
        if same_plan(event.draft, self.draft):
            self.prepared = self.plan = self.earlier = None
            self.refused = event.blocker
        self._settled(event.draft)

    def _settled(self, draft: Draft) -> None:
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

    @on(messages.RenamesRead)
    def _renames_read(self, event: messages.RenamesRead) -> None:
        if event.blocker is None and event.draft is not None:
            self.take(
                replace(
                    self.draft,
                    renames_file=event.path,
                    options=replace(self.draft.options, renames=event.draft.options.renames),
                )
            )
        elif event.blocker is not None:
            from shardscope.app.explorer.dialogs import NotDone

            self.app.push_screen(NotDone("Not read", event.blocker))

    @on(messages.Appeared)
    async def _appeared(self, event: messages.Appeared) -> None:
        self.step = Step.ENDED
        await self.draw_done(event.done)

    @on(messages.EndedEarly)
    async def _ended_early(self, event: messages.EndedEarly) -> None:
        self.step = Step.ENDED
        await self.draw_failed(event.blocker, stopped=event.stopped)

    def broke(self, group: str, error: Blocker) -> None:
        """An error of our own ended a worker: nothing goes on from there."""
        if group == "convert" and self.step is Step.RUNNING:
            self.post_message(messages.EndedEarly(error, stopped=False))
        elif group.startswith("convert-") and (self.step is Step.READING or not self.is_settled):
            self._is_planning = self._is_looking = False
            self.post_message(messages.Unread(error))
