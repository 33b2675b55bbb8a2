"""What runs in threads for every output: a look at its target, and the run itself.

An outcome that the engine foresees becomes a message. Anything else is an error of ours: it leaves the worker, whose state
then tells the application.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from shardscope.app.explorer.output.calls import Conduct
from shardscope.app.explorer.output.destination import Destination
from shardscope.app.explorer.output.messages import Advanced, Appeared, EndedEarly, TargetSeen
from shardscope.app.explorer.workers import Post
from shardscope.engine.model.progress import Cancelled, OnProgress, Progress

if TYPE_CHECKING:
    from shardscope.engine.convert.admitting.target import TargetLook
    from shardscope.engine.converting.materializing import Converted


def reporting(post: Post) -> OnProgress:
    """Return a callback that posts reports. A report that nobody has read yet is replaced by the next."""

    def report(progress: Progress) -> None:
        post(Advanced(progress))

    return report


def look_at_target(look: "Callable[[], TargetLook]", draft: Destination, post: Post) -> None:
    """Look at the target of a draft; posts `TargetSeen`."""
    post(TargetSeen(draft, look()))


def carry_out(run: "Callable[[], Converted]", conduct: Conduct, post: Post) -> None:
    """Carry a plan out; posts `Appeared` or `EndedEarly`."""
    from shardscope.engine.model.blocker import Fault, Finding, blocker

    try:
        done = run()
    except Cancelled:
        stopped = Finding("convert.cancelled", {"signal": "a key", "doing": conduct.course.doing})
        post(EndedEarly(blocker(stopped), stopped=True))
    except Fault as fault:
        post(EndedEarly(blocker(fault.finding), stopped=False))
    else:
        post(Appeared(done))
