"""The engine calls of the shard map, as a value, so that a test hands in others. Each may take a while: workers make them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardscope.app.explorer.shardmap.asking import Wish

if TYPE_CHECKING:
    from shardscope.engine.geometry.drawing.lanes import Lane
    from shardscope.engine.inspection import Inspection
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.engine.model.transfer import TransferPlan
    from shardscope.engine.tensormaps import Chart


@dataclass(frozen=True)
class Calls:
    """The calls."""

    chart: "Callable[[LogicalTensor], Chart]"
    """A tensor's map. Raises `Fault`."""
    lanes: "Callable[[LogicalTensor, Inspection], tuple[Lane, ...]]"
    """The files in which its shards lie."""
    aim: "Callable[[Inspection, LogicalTensor, Chart, Wish], tuple[Chart, TransferPlan]]"
    """Its map in a target, and the copies that lead there. Raises `Fault`."""


def _chart(tensor: "LogicalTensor") -> "Chart":
    from shardscope.engine.tensormaps import chart

    return chart(tensor)


def _lanes(tensor: "LogicalTensor", found: "Inspection") -> "tuple[Lane, ...]":
    from shardscope.engine.geometry.drawing.lanes import lanes

    return lanes(tensor, (tensor,) if found.catalogue is None else found.catalogue.tensors)


def _aim(
    found: "Inspection", tensor: "LogicalTensor", source: "Chart", wish: Wish
) -> "tuple[Chart, TransferPlan]":
    from shardscope.engine.tensormaps import target_chart, transfer

    target = target_chart(found, tensor, wish.aim(), found.descriptor.limits)
    return target, transfer(source, target)


CALLS = Calls(_chart, _lanes, _aim)
"""The engine of this installation."""
