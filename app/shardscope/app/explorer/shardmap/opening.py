"""From a tensor of the Explore screen to its shard map, and back to the question about decoding where that is wanted."""

from collections.abc import Callable
from typing import Any

from textual.app import App

from shardscope.app.explorer.checkpoint.panels import Found
from shardscope.app.explorer.shardmap.messages import MapWanted
from shardscope.app.explorer.shardmap.screen import DECODE, ShardMap
from shardscope.app.explorer.shardmap.subject import Subject
from shardscope.app.explorer.target import Target
from shardscope.engine.peeking.tensormaps import whole_of


def open_map(
    app: App[Any], target: Target, found: Found, wanted: MapWanted, decode: Callable[[], None]
) -> None:
    """Show the map of a tensor; `decode` asks whether to decode."""
    whole = wanted.whole
    subject = Subject(
        target=target,
        inspection=found.inspection,
        tensor=whole_of(wanted.tensor) if whole is None else whole,
        is_decoded=whole is not None,
        spec=wanted.tensor,
        asked=found.asked,
        offer=found.offered,
    )

    def ended(wish: str | None) -> None:
        if wish == DECODE:
            decode()

    app.push_screen(ShardMap(subject), ended)
