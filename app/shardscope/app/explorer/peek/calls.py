"""The engine calls of the screen, in one place: a value, so that a test hands in others."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from shardscope.app.explorer.peek.subject import Subject
from shardscope.engine.model.progress import OnProgress

if TYPE_CHECKING:
    from shardscope.app.explorer.peek.sight import Ask
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.looking.slices import Selection
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.engine.model.gathered import Gathered
    from shardscope.engine.model.window import Window
    from shardscope.engine.peeking.gathering import OnGathered, Wanted

_SEEN: "Final[WeakKeyDictionary[Inspection, Side]]" = WeakKeyDictionary()
"""Checkpoints that were inspected once more for their catalogues, as long as what is known of them is in hand."""
WHOLE: Final = frozenset({"hf_safetensors"})
"""Formats of which a row of a header is the whole tensor."""


@dataclass(frozen=True)
class Calls:
    """The calls. Each of them blocks, so that only workers make them. They raise `Fault` and `Cancelled`."""

    open: "Callable[[Subject, Event], tuple[Side, LogicalTensor]]"
    """Finds the tensor."""
    window: "Callable[[Side, LogicalTensor, Ask, Event], Window]"
    gather: "Callable[[Side, LogicalTensor, Selection, Wanted, Event, OnProgress, OnGathered], Gathered]"


def _open(subject: Subject, cancel: Event) -> "tuple[Side, LogicalTensor]":
    from shardscope.engine.model.descriptor import PlaneState
    from shardscope.engine.peeking.peek import tensor_of
    from shardscope.engine.peeking.unpacking import unpacked

    side = _side(subject, cancel)
    if subject.logical:
        return side, unpacked(side, subject.name)
    decoded = side.found.descriptor.planes.decoded is PlaneState.EXAMINED
    return side, tensor_of(side, subject.name, _rank(subject, side), decoded=decoded)


def _rank(subject: Subject, side: "Side") -> int | None:
    """Return whose tensor it is, where every rank has one of this name: by the file of the row that was chosen."""
    if subject.part_of is not None or subject.spec is None:
        return subject.part_of
    for each in side.catalogue.tensors:
        if each.name == subject.name and each.fragments[:1]:
            if each.part_of is None:
                return None
            if each.fragments[0].record.file == subject.spec.file:
                return each.part_of
    return None


def _side(subject: Subject, cancel: Event) -> "Side":
    from shardscope.engine.inspecting.sides import Side, side_from, side_of
    from shardscope.engine.model.catalogue import Catalogue
    from shardscope.engine.peeking.tensormaps import whole_of

    found, target, spec = subject.inspection, subject.target, subject.spec
    if subject.side is not None:
        return subject.side
    if found.catalogue is not None:
        return side_from(found, target.limits)
    is_whole = found.descriptor.classification.format in WHOLE and not subject.logical
    if spec is not None and is_whole and found.tensors.names.count(spec.name) == 1:
        return Side(target.path, found, Catalogue((whole_of(spec),)))  # at once: nothing is inspected again
    if found not in _SEEN:
        _SEEN[found] = side_of(target.path, limits=target.limits, hf_cache=target.hf_cache, cancel=cancel)
    return _SEEN[found]


def _window(side: "Side", tensor: "LogicalTensor", ask: "Ask", cancel: Event) -> "Window":
    from shardscope.engine.peeking.windows import window

    return window(side, tensor, ask.part, ask.bits, cancel=cancel)


def _gather(
    side: "Side",
    tensor: "LogicalTensor",
    chosen: "Selection",
    wanted: "Wanted",
    cancel: Event,
    progress: OnProgress,
    on_gathered: "OnGathered",
) -> "Gathered":
    from shardscope.engine.peeking.gathering import gather
    from shardscope.engine.peeking.peek import MEMORY
    from shardscope.engine.peeking.windows import check_readable, opened

    check_readable(tensor, wanted.bits)
    with opened(side, tensor, chosen, MEMORY) as tiles:
        return gather(
            tensor, chosen, wanted, tiles, cancel=cancel, progress=progress, on_gathered=on_gathered
        )


CALLS: Final = Calls(_open, _window, _gather)
"""Of this installation."""
