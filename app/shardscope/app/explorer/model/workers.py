"""What the Model screen does in a thread: one engine call, and what came of it."""

from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING

from textual.message import Message

from shardscope.app.explorer.messages import Progressed
from shardscope.app.explorer.model.calls import Calls
from shardscope.app.explorer.model.messages import ModelStudied, NotStudied
from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import Cancelled, Progress

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import Inspection


def study(
    calls: Calls,
    target: Target,
    found: "Inspection",
    base: str | None,
    cancel: Event,
    post: Callable[[Message], object],
) -> None:
    """Look at a model; posts `ModelStudied` or `NotStudied`, and nothing once cancelled."""
    from shardscope.engine.model.blocker import Fault, blocker

    def report(progress: Progress) -> None:
        post(Progressed(progress))

    try:
        studied = calls.study(target, found, base, cancel, report)
    except Cancelled:
        return
    except Fault as fault:
        post(NotStudied(blocker(fault.finding, base or target.path)))
    else:
        post(ModelStudied(studied, base))
