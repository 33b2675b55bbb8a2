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
    Decoded,
    DecodingStopped,
    Digested,
    DigestsStopped,
    Examined,
    Faulted,
    LaidOut,
    Preflighted,
    Previewed,
    Progressed,
    Stopped,
)
from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import Cancelled, OnProgress, Progress

if TYPE_CHECKING:
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import DigestMode, Inspection
    from shardscope.engine.model.limits import DecodeLimits

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
        from shardscope.app.explorer.checkpoint import workspace  # noqa: F401
        from shardscope.app.explorer.checkpoint.marks import marks, roles
        from shardscope.app.explorer.offer import offer_of
        from shardscope.widgets.file_tree import InventoryTree

        letters = marks(found.descriptor, found.inventory)
        files = InventoryTree(found.inventory, letters, roles(found.descriptor))
        offer = offer_of(found.descriptor, found.inventory)
        post(Examined(found, engine.host(target), files, offer))


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
        from shardscope.app.explorer.checkpoint.marks import marks

        news = digested.descriptor.blockers != found.descriptor.blockers
        post(Digested(found, digested, marks(digested.descriptor, digested.inventory) if news else None))


def preflight(engine: Engine, limits: "DecodeLimits", post: Post) -> None:
    """Find out which containment this machine gives; posts `Preflighted`."""
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        post(Preflighted(engine.preflight(limits)))
    except Fault as fault:
        post(Preflighted(blocker(fault.finding)))


def decode(
    engine: Engine, target: Target, found: "Inspection", wish: "Decoding", cancel: Event, post: Post
) -> None:
    """Inspect `target` once more with its pickles decoded; posts `Decoded` or `DecodingStopped`.

    `found` is what is known so far: its digests are kept where nothing has changed.
    """
    from shardscope.engine.inspecting.inspection import carry_digests
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        decoded = engine.decode(target, wish, cancel, _reporting(post))
    except Cancelled:
        post(DecodingStopped(found))
    except Fault as fault:
        post(DecodingStopped(found, blocker(fault.finding, target.path)))
    else:
        from shardscope.app.explorer.checkpoint.marks import marks, roles
        from shardscope.widgets.file_tree import InventoryTree

        carried = carry_digests(decoded, found)
        shown = carried or decoded
        letters = marks(shown.descriptor, shown.inventory)
        files = InventoryTree(shown.inventory, letters, roles(shown.descriptor))
        post(Decoded(found, shown, files, digested=carried is not None))


def preview(engine: Engine, found: "Inspection", path: bytes, cancel: Event, post: Post) -> None:
    """Read the beginning of one file; posts `Previewed`, or nothing once cancelled."""
    try:
        shown = engine.preview(found, path, cancel)
    except Cancelled:
        return
    from shardscope.widgets.preview_panel import json_blocks

    post(Previewed(shown, json_blocks(shown.lines) if shown.kind == "json" else None))


def layout(engine: Engine, found: "Inspection", path: bytes, cancel: Event, post: Post) -> None:
    """Find out what stands where in one file; posts `LaidOut`, or nothing once cancelled."""
    try:
        shown = engine.layout(found, path, cancel)
    except Cancelled:
        return
    if not cancel.is_set():  # another file is wanted by now, which may have come first
        post(LaidOut(shown))
