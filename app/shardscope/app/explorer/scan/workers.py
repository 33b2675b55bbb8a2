"""What the Scan screen does in threads: each function makes engine calls and posts what came of them."""

import time
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Final

from textual.message import Message

from shardscope.app.explorer.messages import Progressed
from shardscope.app.explorer.scan.calls import Calls
from shardscope.app.explorer.scan.messages import (
    FindingsHeard,
    NotPlanned,
    ReadingPlanned,
    ScanEnded,
    Scanned,
)
from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import Cancelled, Progress

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.blocker import Blocker
    from shardscope.engine.model.decoded import Listed
    from shardscope.engine.peeking.scanning import Reading

Post = Callable[[Message], object]
BETWEEN: Final = 0.1
"""Seconds between two messages about findings."""


def plan(
    calls: Calls,
    target: Target,
    found: "Inspection | Side",
    component: "Listed",
    cancel: Event,
    post: Post,
    *,
    decoded: bool,
) -> None:
    """Find out what would be read; posts `ReadingPlanned`, `NotPlanned`, or `ScanEnded` once cancelled."""
    from shardscope.engine.diffing.placing import owners
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.blocker import Fault, blocker

    def report(progress: Progress) -> None:
        post(Progressed(progress))

    side = found if isinstance(found, Side) else None
    try:
        if not isinstance(found, Side):
            side = calls.side(target, found, cancel, report)
        assert side is not None  # noqa: S101 - one of the two
        reading = calls.to_read(side, component, decoded)
    except Cancelled:
        post(ScanEnded())
    except Fault as fault:
        post(NotPlanned(blocker(fault.finding, target.path), side))
    else:
        post(ReadingPlanned(side, reading, owners(side.found.descriptor.topology)))


def scan(
    calls: Calls, side: "Side", reading: "Reading", component: "Listed", cancel: Event, post: Post
) -> None:
    """Read everything; posts `FindingsHeard` on the way, and `Scanned` or `ScanEnded` in any case at the end."""
    from shardscope.engine.model.blocker import Fault, blocker

    batch: list[Blocker] = []
    due = 0.0

    def flush() -> None:
        nonlocal batch, due
        if batch:
            post(FindingsHeard(batch))
            batch, due = [], time.monotonic() + BETWEEN

    def hear(item: "Blocker") -> None:
        batch.append(item)
        if time.monotonic() >= due:
            flush()

    def report(progress: Progress) -> None:
        if time.monotonic() >= due:  # the last of a batch waits for no other finding
            flush()
        post(Progressed(progress))

    end: Message = ScanEnded()
    try:
        end = Scanned(calls.scan(side, reading, component, cancel, report, hear))
    except Cancelled:
        pass
    except Fault as fault:
        end = ScanEnded(blocker(fault.finding, str(side.path)))
    finally:  # also of an error of our own, which the application shows
        flush()
        post(end)
