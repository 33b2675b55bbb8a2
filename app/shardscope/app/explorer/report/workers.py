"""What the Report screen does in threads: each function makes one engine call and posts what came of it."""

from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING

from textual.message import Message

from shardscope.app.explorer.messages import Progressed
from shardscope.app.explorer.report.calls import Calls
from shardscope.app.explorer.report.messages import NotMade, NotWritten, PageMade, ReportMade, Written
from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import Cancelled, Progress

if TYPE_CHECKING:
    from shardscope.engine.model.descriptor import Descriptor
    from shardscope.engine.reporting import Request

Post = Callable[[Message], object]


def make(
    calls: Calls, target: Target, request: "Request", known: "Descriptor | None", cancel: Event, post: Post
) -> None:
    """Make a report; posts `ReportMade` or `NotMade`, or nothing once cancelled."""
    from shardscope.engine.model.blocker import Fault, blocker

    def report(progress: Progress) -> None:
        post(Progressed(progress))

    try:
        made = calls.make(target, request, known, cancel, report)
    except Cancelled:
        return
    except Fault as fault:
        post(NotMade(blocker(fault.finding, target.path)))
    else:
        post(ReportMade(made))


def page(calls: Calls, error: BaseException, doing: str, post: Post) -> None:
    """Make the page about an error of ours; posts `PageMade` or `NotMade`."""
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        post(PageMade(calls.page(error, doing)))
    except Fault as fault:
        post(NotMade(blocker(fault.finding)))


def write(work: Callable[[str], None], path: str, post: Post) -> None:
    """Write to `path` by `work`; posts `Written` or `NotWritten`."""
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        work(path)
    except Fault as fault:
        post(NotWritten(blocker(fault.finding)))
    else:
        post(Written(path))
