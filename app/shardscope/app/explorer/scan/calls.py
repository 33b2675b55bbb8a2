"""The engine calls of the Scan screen, in one place: a value, so that a test hands in others."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Final

from shardscope.app.explorer.target import Target
from shardscope.engine.model.progress import OnProgress

if TYPE_CHECKING:
    from shardscope.engine.inspecting.inspection import Inspection
    from shardscope.engine.inspecting.sides import Side
    from shardscope.engine.model.decoded import Listed
    from shardscope.engine.model.scan import ScanDocument
    from shardscope.engine.peeking.scanning import OnFinding, Reading


@dataclass(frozen=True)
class Calls:
    """The calls. Each of them blocks, so that only workers make them. They raise `Fault` and `Cancelled`."""

    side: "Callable[[Target, Inspection, Event, OnProgress], Side]"
    """Lists the tensors with what holds them, unless an inspection has already."""
    to_read: "Callable[[Side, Listed, bool], Reading]"
    """Of a component; whether pickles were decoded."""
    scan: "Callable[[Side, Reading, Listed, Event, OnProgress, OnFinding], ScanDocument]"


def _side(target: Target, found: "Inspection", cancel: Event, progress: OnProgress) -> "Side":
    from shardscope.engine.inspecting.sides import side_from, side_of

    if found.catalogue is not None:
        return side_from(found, target.limits)
    return side_of(
        target.path, limits=target.limits, hf_cache=target.hf_cache, cancel=cancel, progress=progress
    )


def _to_read(side: "Side", component: "Listed", decoded: bool) -> "Reading":
    from shardscope.engine.peeking.scanning import to_read

    return to_read(side, component, decoded=decoded)


def _scan(
    side: "Side",
    reading: "Reading",
    component: "Listed",
    cancel: Event,
    progress: OnProgress,
    on_finding: "OnFinding",
) -> "ScanDocument":
    from shardscope.engine.peeking.scanning import scan_side

    return scan_side(
        side, reading, component=component, cancel=cancel, progress=progress, on_finding=on_finding
    )


CALLS: Final = Calls(_side, _to_read, _scan)
"""Of this installation."""
