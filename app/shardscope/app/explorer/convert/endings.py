"""How a conversion ended, put together from what the engine said of it and from what a person had chosen."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from shardscope.app.explorer.convert.draft import Draft, command_of
from shardscope.app.explorer.target import Target, verify_command
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.course import Course
from shardscope.engine.model.plan import Plan
from shardscope.widgets.run_end import Failure, Outcome

if TYPE_CHECKING:
    from shardscope.engine.materializing import Converted


def outcome_of(
    done: "Converted", draft: Draft, target: Target, course: Course, *, before: int | None, decoded: bool
) -> Outcome:
    """Return what appeared. `before` is the memory of the process when the run began."""
    return Outcome(
        out=draft.out,
        plan=done.plan,
        manifest=done.manifest,
        run=done.run,
        how=done.promoted.how,
        previous=done.promoted.previous,
        again=command_of(replace(draft, resume=False), target, decoded=decoded),
        verify=verify_command(target, draft.out, decoded=decoded),
        notes=course.notes,
        before=before,
    )


def failure_of(
    refused: Blocker,
    draft: Draft,
    target: Target,
    course: Course,
    plan: Plan | None,
    *,
    stopped: bool,
    stood: bool,
    decoded: bool,
) -> Failure:
    """Return why nothing appeared, and what is left. `stood` is whether a folder stood at the target."""
    on_with = command_of(replace(draft, resume=True), target, decoded=decoded)
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
    )


def was_kept(course: Course) -> bool:
    """Tell whether finished files stay beside the target."""
    return any(note.code == "stage.kept" for note in course.notes)
