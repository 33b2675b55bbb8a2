"""The engine calls of the shard map, as a value, so that a test hands in others. All but one may take a while: workers make them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shardscope.app.explorer.shardmap.asking import Wish

if TYPE_CHECKING:
    from shardscope.engine.geometry.drawing.lanes import Lane
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.engine.model.transfer import TransferPlan
    from shardscope.engine.peeking.tensormaps import Chart

MOST_SHARDS: Final = 256
"""Shards of a tensor whose map is made at once."""


@dataclass(frozen=True)
class Calls:
    """The calls."""

    chart: "Callable[[LogicalTensor], Chart]"
    """A tensor's map. Raises `Fault`."""
    quick: "Callable[[LogicalTensor], Chart | None]"
    """The same, where that is the work of a few milliseconds: then the first frame has it. Raises no fault of maps."""
    lanes: "Callable[[LogicalTensor, Inspection], tuple[Lane, ...]]"
    """The files in which its shards lie."""
    aim: "Callable[[Inspection, LogicalTensor, Chart, Wish], tuple[Chart, TransferPlan]]"
    """Its map in a target, and the copies that lead there. Raises `Fault`."""


def _chart(tensor: "LogicalTensor") -> "Chart":
    from shardscope.engine.peeking.tensormaps import chart

    return chart(tensor)


def _quick(tensor: "LogicalTensor") -> "Chart | None":
    from shardscope.engine.geometry.drawing.lanes import is_partition
    from shardscope.engine.model.blocker import Fault
    from shardscope.engine.peeking.tensormaps import QUICK, chart

    if is_partition(tensor) or len(tensor.fragments) > MOST_SHARDS:
        return None
    try:
        return chart(tensor, QUICK)
    except Fault:
        return None  # a worker takes the time that it needs, or says what is wrong


def _lanes(tensor: "LogicalTensor", found: "Inspection") -> "tuple[Lane, ...]":
    from shardscope.engine.geometry.drawing.lanes import lanes

    return lanes(tensor, (tensor,) if found.catalogue is None else found.catalogue.tensors)


def _aim(
    found: "Inspection", tensor: "LogicalTensor", source: "Chart", wish: Wish
) -> "tuple[Chart, TransferPlan]":
    from shardscope.engine.peeking.tensormaps import target_chart, transfer

    target = target_chart(found, tensor, wish.aim(), found.descriptor.limits)
    return target, transfer(source, target)


CALLS = Calls(_chart, _quick, _lanes, _aim)
"""The engine of this installation."""
