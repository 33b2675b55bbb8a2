"""What runs in threads before a fix starts: each function makes engine calls and posts what came of them.

An outcome that the engine foresees becomes a message. Anything else is an error of ours: it leaves the worker, whose state
then tells the application.
"""

from threading import Event
from typing import TYPE_CHECKING

from shardscope.app.explorer.fix.calls import Fixes
from shardscope.app.explorer.fix.draft import Draft
from shardscope.app.explorer.fix.messages import Looked, NotLooked, Planned, RulesRead, Unplanned
from shardscope.app.explorer.output.workers import reporting
from shardscope.app.explorer.target import Target
from shardscope.app.explorer.workers import Post
from shardscope.engine.model.progress import Cancelled

if TYPE_CHECKING:
    from shardscope.app.explorer.fix.made import Made
    from shardscope.engine.converting.fixing import Fix, FixLook
    from shardscope.engine.inspecting.inspection import Inspection


def look(calls: Fixes, target: Target, draft: Draft, found: "Inspection", cancel: Event, post: Post) -> None:
    """Look at what is wrong; posts `Looked` or `NotLooked`."""
    from shardscope.app.explorer.fix.metadata import keys_of
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        seen = calls.look(target, draft, found, cancel, reporting(post))
    except Cancelled:
        post(NotLooked(draft, None))
    except Fault as fault:
        post(NotLooked(draft, blocker(fault.finding, target.path)))
    else:
        _ = seen.survey.lost  # sorted out here, and kept: the screen's own thread stays free for keys
        post(Looked(draft, seen, keys_of(file.metadata for file in seen.survey.files)))


def plan(calls: Fixes, draft: Draft, seen: "FixLook", planned: "tuple[Fix, Made] | None", post: Post) -> None:
    """Plan a fix, where that is not done yet, and hold it against this machine; posts `Planned` or `Unplanned`."""
    from shardscope.app.explorer.fix.made import made_of, matched
    from shardscope.engine.model.blocker import Fault, blocker
    from shardscope.widgets.plan_words import of_plan

    fits = matched(seen, draft)
    if not draft.what:
        post(Unplanned(draft, fits, None))
        return
    try:
        fix, made = planned or (calls.plan(seen, draft), None)
        admitted, earlier = calls.admit(fix.prepared, draft)
    except Fault as fault:
        post(Unplanned(draft, fits, blocker(fault.finding)))
    else:
        made = made or made_of(fix.document)
        post(Planned(draft, fix, made, fits, admitted, of_plan(admitted), earlier))


def read_rules(calls: Fixes, path: str, post: Post) -> None:
    """Read the rules of a file; posts `RulesRead`."""
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        post(RulesRead(path, calls.renames(path)))
    except Fault as fault:
        post(RulesRead(path, blocker=blocker(fault.finding, path)))
