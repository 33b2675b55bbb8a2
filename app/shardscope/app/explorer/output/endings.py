"""How a run ended, put together from what the engine said of it and from what a person had chosen."""

from typing import TYPE_CHECKING

from shardscope.app.explorer.output.destination import Destination
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.course import Course
from shardscope.engine.model.plan import Plan
from shardscope.widgets.run_end import Failure, Outcome

if TYPE_CHECKING:
    from shardscope.engine.converting.materializing import Converted


def outcome_of(
    done: "Converted", draft: Destination, course: Course, *, again: str, verify: str, before: int | None
) -> Outcome:
    """Return what appeared. `again` and `verify` are commands; `before` is the memory of the process when the run began."""
    return Outcome(
        out=draft.out,
        plan=done.plan,
        manifest=done.manifest,
        run=done.run,
        how=done.promoted.how,
        previous=done.promoted.previous,
        again=again,
        verify=verify,
        notes=course.notes,
        before=before,
    )


def failure_of(
    refused: Blocker,
    draft: Destination,
    course: Course,
    plan: Plan | None,
    *,
    on_with: str,
    stopped: bool,
    stood: bool,
) -> Failure:
    """Return why nothing appeared, and what is left. `on_with` is the command that goes on; `stood` is whether a folder stood there."""
    return Failure(
        blocker=refused,
        stopped=stopped,
        doing=None if course.stage is None else course.doing,
        out=draft.out,
        stood=stood,
        finished=sum(at.finished for at in course.files.values()),
        files=0 if plan is None else len(plan.files),
        notes=course.notes,
        go_on=on_with if was_kept(course) else None,
        fixed=plan is not None and plan.fix is not None,
    )


def was_kept(course: Course) -> bool:
    """Tell whether finished files stay beside the target."""
    return any(note.code == "stage.kept" for note in course.notes)
