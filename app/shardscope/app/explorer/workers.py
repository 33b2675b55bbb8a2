"""What runs in threads: each function makes one engine call and posts what came of it.

An outcome that the engine foresees (a fault, a cancellation) becomes a message. Anything else is an error of ours: it
leaves the worker, whose state then tells the application.
"""

from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING

from textual.message import Message

from shardscope.app.explorer.engine import Engine
from shardscope.app.explorer.messages import (
    Digested,
    DigestsStopped,
    Examined,
    Faulted,
    Previewed,
    Progressed,
    Stopped,
)
from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import Cancelled, OnProgress, Progress

if TYPE_CHECKING:
    from shardscope.engine.inspection import DigestMode, Inspection

Post = Callable[[Message], object]
"""Safe to call from any thread."""


def _reporting(post: Post) -> OnProgress:
    # The engine reports at most 30 times a second, and a report that nobody has read yet is replaced by the next.
    def report(progress: Progress) -> None:
        post(Progressed(progress))

    return report


def examine(engine: Engine, target: Target, cancel: Event, post: Post) -> None:
    """Inspect `target` without digests; posts `Examined`, `Faulted` or `Stopped`."""
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        found = engine.inspect(target, cancel, _reporting(post))
    except Cancelled:
        post(Stopped())
    except Fault as fault:
        post(Faulted(blocker(fault.finding, target.path)))
    else:
        # What the screen needs next is imported here, and a hundred thousand files are marked here: the screen's own
        # thread stays free for keys.
        from shardscope.app.explorer import workspace  # noqa: F401
        from shardscope.app.explorer.marks import marks
        from shardscope.widgets.file_tree import InventoryTree

        files = InventoryTree(found.inventory, marks(found.descriptor, found.inventory))
        post(Examined(found, engine.host(target), files))


def digest(engine: Engine, found: "Inspection", mode: "DigestMode", cancel: Event, post: Post) -> None:
    """Hash the files of `found`; posts `Digested` or `DigestsStopped`."""
    from shardscope.engine.model.blocker import Fault

    try:
        digested = engine.with_digests(found, mode, cancel, _reporting(post))
    except Cancelled:
        post(DigestsStopped("stopped"))
    except Fault as fault:
        post(DigestsStopped(f"failed ({fault.finding.code})"))
    else:
        from shardscope.app.explorer.marks import marks

        news = digested.descriptor.blockers != found.descriptor.blockers
        post(Digested(digested, marks(digested.descriptor, digested.inventory) if news else None))


def preview(engine: Engine, found: "Inspection", path: bytes, cancel: Event, post: Post) -> None:
    """Read the beginning of one file; posts `Previewed`, or nothing once cancelled."""
    try:
        shown = engine.preview(found, path, cancel)
    except Cancelled:
        return
    from shardscope.widgets.preview_panel import json_blocks

    post(Previewed(shown, json_blocks(shown.lines) if shown.kind == "json" else None))
