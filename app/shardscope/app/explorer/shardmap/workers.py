"""The work of the shard map in threads. Each call ends with a message."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.message import Message

from shardscope.app.explorer.shardmap.asking import Wish
from shardscope.app.explorer.shardmap.engine import Calls
from shardscope.app.explorer.shardmap.messages import Aimed, Charted, Laned

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.model.catalogue import LogicalTensor
    from shardscope.engine.peeking.tensormaps import Chart

Post = Callable[[Message], object]
"""Safe to call from any thread."""


def chart(calls: Calls, found: "Inspection", tensor: "LogicalTensor", post: Post) -> None:
    """Make the map of a tensor ready; posts `Charted`, after `Laned` for a partition of a flattened buffer."""
    from shardscope.engine.geometry.drawing.lanes import is_partition
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        if is_partition(tensor):
            post(Laned(calls.lanes(tensor, found)))
        post(Charted(calls.chart(tensor)))
    except Fault as fault:
        post(Charted(blocker(fault.finding)))


def lanes(calls: Calls, found: "Inspection", tensor: "LogicalTensor", post: Post) -> None:
    """Find the files of a tensor's shards and its neighbours there; posts `Laned`."""
    post(Laned(calls.lanes(tensor, found)))


def aim(
    calls: Calls, found: "Inspection", tensor: "LogicalTensor", source: "Chart", wish: Wish, post: Post
) -> None:
    """Make the map of a tensor in a target; posts `Aimed`."""
    from shardscope.engine.model.blocker import Fault, blocker

    try:
        post(Aimed(wish, calls.aim(found, tensor, source, wish)))
    except Fault as fault:
        post(Aimed(wish, blocker(fault.finding)))
