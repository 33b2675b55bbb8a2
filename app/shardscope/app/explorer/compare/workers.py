"""What the Compare screen does in threads: each function makes engine calls and posts what came of them."""

import time
from collections.abc import Callable, Collection
from threading import Event
from typing import TYPE_CHECKING, Final

from textual.message import Message

from shardscope.app.explorer.compare.calls import Calls
from shardscope.app.explorer.compare.messages import (
    ComparingStopped,
    Folded,
    NotCompared,
    SidesSeen,
    ValuesCompared,
)
from shardscope.app.explorer.messages import Progressed
from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import Cancelled, OnProgress, Progress

if TYPE_CHECKING:
    from shardscope.engine.comparing.compared import Compared
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.decoded import Listed
    from shardscope.engine.model.difference import TensorDifference

Post = Callable[[Message], object]
BETWEEN: Final = 0.1
"""Seconds between two messages about tensors whose values were compared."""


def _reporting(post: Post) -> OnProgress:
    def report(progress: Progress) -> None:
        post(Progressed(progress))

    return report


def look(
    calls: Calls,
    targets: tuple[Target, ...],
    known: "tuple[Inspection | None, ...]",
    wishes: "tuple[Decoding | None, ...]",
    component: "Listed",
    cancel: Event,
    post: Post,
) -> None:
    """Inspect both sides, and the adapters behind them, and compare their structure; posts `SidesSeen`, and what `compare` does;
    `NotCompared` where a side cannot be seen.
    """
    from shardscope.app.explorer.offer import offer_of
    from shardscope.engine.model.blocker import Fault, blocker

    sides = []
    for target, found, wish in zip(targets, known, wishes, strict=True):
        try:
            sides.append(calls.side(target, found, wish, cancel, _reporting(post)))
        except Cancelled:
            post(ComparingStopped())
            return
        except Fault as fault:
            post(NotCompared(blocker(fault.finding, target.path)))
            return
    first, second, *adapters = sides
    offers = [offer_of(side.found.descriptor, side.found.inventory) for side in (first, second)]
    post(SidesSeen(first, second, (offers[0], offers[1]), tuple(adapters)))
    compare(calls, first, second, component, post, tuple(adapters))


def compare(
    calls: Calls,
    first: "Side",
    second: "Side",
    component: "Listed",
    post: Post,
    adapters: "tuple[Side, ...]" = (),
) -> None:
    """Compare the structure of two sides; posts `Folded` or `NotCompared`."""
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        compared = calls.structure(first, second, component, adapters)
    except Fault as fault:
        post(NotCompared(blocker(fault.finding)))
    else:
        post(folded(compared))


def folded(compared: "Compared") -> Folded:
    """Return what is different with its rows: a hundred thousand tensors are folded in a thread."""
    from shardscope.engine.diffing.folding import folded as fold
    from shardscope.engine.model.difference import LETTERS

    tensors = compared.document.tensors
    return Folded(compared, fold(tensors), fold(tensors, LETTERS))


def values(
    calls: Calls, compared: "Compared", only: Collection[int] | None, cancel: Event, post: Post
) -> None:
    """Compare values; posts `ValuesCompared` on the way and `Folded` at the end, also where it was stopped: with `ComparingStopped` or
    `NotCompared` after it.
    """
    from shardscope.engine.comparing.compared import with_news
    from shardscope.engine.model.blocker import Fault, blocker

    news: dict[int, TensorDifference] = {}
    batch: dict[int, TensorDifference] = {}
    due = time.monotonic() + BETWEEN

    def hear(number: int, item: "TensorDifference") -> None:
        nonlocal batch, due
        news[number] = batch[number] = item
        if time.monotonic() >= due:
            post(ValuesCompared(batch))
            batch, due = {}, time.monotonic() + BETWEEN

    after: Message | None = None
    try:
        compared = calls.values(compared, only, hear, cancel, _reporting(post))
    except Cancelled:
        compared, after = with_news(compared, news), ComparingStopped()
    except Fault as fault:
        compared, after = with_news(compared, news), NotCompared(blocker(fault.finding))
    post(folded(compared))
    if after is not None:
        post(after)
