"""The engine calls of the Compare screen, in one place: a value, so that a test hands in others."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Final

from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import OnProgress

if TYPE_CHECKING:
    from shardscope.engine.comparing.compared import Compared
    from shardscope.engine.comparing.valuing import OnDifference
    from shardscope.engine.inspecting.decoding import Decoding
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.decoded import Listed


@dataclass(frozen=True)
class Calls:
    """The calls. Each of them blocks, so that only workers make them."""

    side: "Callable[[Target, Inspection | None, Decoding | None, Event, OnProgress], Side]"
    """Inspects one side; what was found before is taken where its tensors are listed. Raises `Fault` and `Cancelled`."""
    structure: "Callable[[Side, Side, Listed, tuple[Side, ...]], Compared]"
    """With the adapters that are said to be merged into the second. Raises `Fault`."""
    values: "Callable[[Compared, Collection[int] | None, OnDifference, Event, OnProgress], Compared]"
    """Raises `Fault` and `Cancelled`."""


def _side(
    target: Target,
    found: "Inspection | None",
    wish: "Decoding | None",
    cancel: Event,
    progress: OnProgress,
) -> "Side":
    from shardscope.engine.inspecting.sides import Side, side_of

    if found is not None and found.catalogue is not None and wish is None:
        return Side(target.path, found, found.catalogue)
    return side_of(
        target.path,
        limits=target.limits,
        hf_cache=target.hf_cache,
        decoding=wish,
        cancel=cancel,
        progress=progress,
    )


def _structure(
    first: "Side", second: "Side", component: "Listed", adapters: "tuple[Side, ...]"
) -> "Compared":
    from shardscope.engine.comparing.compared import DiffOptions
    from shardscope.engine.comparing.diff import structure
    from shardscope.engine.comparing.merges import with_adapters

    limits = first.found.descriptor.limits
    found = structure(first, second, DiffOptions(component=component), limits=limits)
    changes = component in ("model", "all")  # an adapter changes nothing else
    return with_adapters(found, adapters, limits) if adapters and changes else found


def _values(
    compared: "Compared",
    only: Collection[int] | None,
    on_difference: "OnDifference",
    cancel: Event,
    progress: OnProgress,
) -> "Compared":
    from shardscope.engine.comparing.valuing import with_values

    return with_values(compared, only, on_difference=on_difference, cancel=cancel, progress=progress)


CALLS: Final = Calls(_side, _structure, _values)
"""Of this installation."""
