"""What runs in threads: each function makes engine calls and posts what came of them.

An outcome that the engine foresees becomes a message. Anything else is an error of ours: it leaves the worker, whose state
then tells the application.
"""

from threading import Event
from typing import TYPE_CHECKING

from msgspec.structs import replace

from shardscope.app.explorer.convert.calls import Conversions
from shardscope.app.explorer.convert.draft import Draft
from shardscope.app.explorer.convert.messages import Planned, Read, RenamesRead, Unplanned, Unread
from shardscope.app.explorer.output.workers import reporting
from shardscope.app.explorer.target import Target
from shardscope.app.explorer.workers import Post
from shardscope.engine.model.progress import Cancelled

if TYPE_CHECKING:
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import Inspection


def look(calls: Conversions, target: Target, decoding: "Decoding | None", cancel: Event, post: Post) -> None:
    """Read what plans are made of; posts `Read` or `Unread`."""
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        found = calls.look(target, decoding, cancel, reporting(post))
    except Cancelled:
        post(Unread(None))
    except Fault as fault:
        post(Unread(blocker(fault.finding, target.path)))
    else:
        from shardscope.engine.inspecting.decoding import components_of
        from shardscope.engine.model.catalogue import Catalogue

        post(Read(found, components_of(found.catalogue or Catalogue(()))))


def plan(
    calls: Conversions,
    target: Target,
    draft: Draft,
    made_of: "Inspection | Prepared",
    cancel: Event,
    post: Post,
) -> None:
    """Make a plan, where there is none yet, and hold it against this machine; posts `Planned` or `Unplanned`."""
    from shardscope.engine.converting.preparing import Prepared
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        if isinstance(made_of, Prepared):
            prepared = made_of
        else:
            prepared = calls.plan(target, draft, made_of, cancel, reporting(post))
        admitted, earlier = calls.admit(prepared, draft)
    except Cancelled:
        post(Unplanned(draft, None))
    except Fault as fault:
        post(Unplanned(draft, blocker(fault.finding)))
    else:
        # A million tensors are looked through here: the screen's own thread stays free for keys.
        from shardscope.widgets.plan_words import of_plan

        post(Planned(draft, prepared, admitted, of_plan(admitted), earlier))


def read_renames(calls: Conversions, draft: Draft, path: str, post: Post) -> None:
    """Read the rules of a file; posts `RenamesRead`."""
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        rules = calls.renames(path)
    except Fault as fault:
        post(RenamesRead(path, None, blocker(fault.finding, path)))
    else:
        post(
            RenamesRead(
                path, replace(draft, renames_file=path, options=replace(draft.options, renames=rules))
            )
        )
