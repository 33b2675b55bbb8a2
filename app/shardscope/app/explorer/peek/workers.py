"""The work of the screen in threads. Each call ends with a message, or with none where the person has moved on."""

from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Final

from textual.message import Message

from shardscope.app.explorer.messages import Progressed
from shardscope.app.explorer.peek.calls import Calls
from shardscope.app.explorer.peek.messages import (
    GatheredSoFar,
    GatheringEnded,
    NotFound,
    TensorFound,
    WindowNotRead,
    WindowRead,
)
from shardscope.app.explorer.peek.subject import Subject
from shardscope.engine.model.progress import Cancelled, Progress

if TYPE_CHECKING:
    from shardscope.app.explorer.peek.sight import Ask
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.looking.slices import Selection
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.engine.model.gathered import Gathered
    from shardscope.engine.model.piece import Lowered
    from shardscope.engine.peeking.gathering import Wanted

Post = Callable[[Message], object]
"""Safe to call from any thread."""
MOST_SHARDS: Final = 256
MOST_PIECES: Final = 4_096
"""Of a map in which an element is looked up at every move."""


def find(calls: Calls, subject: Subject, cancel: Event, post: Post) -> None:
    """Find the tensor; posts `TensorFound` or `NotFound`."""
    from shardscope.engine.diffing.placing import owners
    from shardscope.engine.model.blocker import Fault, blocker
    from shardscope.engine.peeking.unpacking import described

    try:
        side, tensor = calls.open(subject, cancel)
    except Cancelled:
        return
    except Fault as fault:
        post(NotFound(blocker(fault.finding, subject.target.path)))
        return
    topology = side.found.descriptor.topology
    post(TensorFound(side, tensor, _map(tensor), owners(topology), described(tensor)))


def _map(tensor: "LogicalTensor") -> "Lowered | None":
    from shardscope.engine.geometry.language.layout import normal_form
    from shardscope.engine.model.blocker import Fault
    from shardscope.engine.model.catalogue import LogicalTensor

    if len(tensor.fragments) > MOST_SHARDS or type(tensor) is not LogicalTensor:
        return None  # numbers that are worked out from others have no byte of their own
    try:
        found = normal_form(tensor)
    except Fault:
        return None  # reading says what is wrong with it
    return found if found.pieces <= MOST_PIECES else None


def read(calls: Calls, side: "Side", tensor: "LogicalTensor", ask: "Ask", cancel: Event, post: Post) -> None:
    """Read a window; posts `WindowRead` or `WindowNotRead`."""
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        post(WindowRead(ask, calls.window(side, tensor, ask, cancel)))
    except Cancelled:
        return
    except Fault as fault:
        post(WindowNotRead(ask, blocker(fault.finding)))


def gather(
    calls: Calls,
    side: "Side",
    tensor: "LogicalTensor",
    chosen: "Selection",
    wanted: "Wanted",
    run: int,
    cancel: Event,
    post: Post,
) -> None:
    """Read every number; posts `GatheredSoFar` on the way and `GatheringEnded`."""
    from shardscope.engine.model.blocker import Fault, blocker

    def report(progress: Progress) -> None:
        post(Progressed(progress))

    def tell(known: "Gathered") -> None:
        post(GatheredSoFar(run, known))

    try:
        known = calls.gather(
            side,
            tensor,
            chosen,
            wanted,
            cancel,
            report,
            tell,
        )
    except Cancelled:
        post(GatheringEnded(run))
    except Fault as fault:
        post(GatheringEnded(run, blocker=blocker(fault.finding)))
    else:
        post(GatheringEnded(run, known))
