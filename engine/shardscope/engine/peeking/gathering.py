"""What the numbers of a selection come to, in one pass over its tiles; what is known so far can be heard on the way."""

import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.looking.slices import Selection, layout
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.gathered import Gathered
from shardscope.engine.model.peek import Landmarks
from shardscope.engine.model.progress import Cancelled, OnProgress, Pace, Progress
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import display_name

if TYPE_CHECKING:
    from shardscope.engine.convert.proofs.comparing import Tiles
    from shardscope.engine.looking.places import Places
    from shardscope.engine.looking.statistics import Bytes

BETWEEN: Final = 0.25
"""Seconds between two reports of what is known so far."""

OnGathered = Callable[[Gathered], None]


class Wanted(Struct, frozen=True):
    """Which figures are wanted."""

    bits: int | None = None
    """As of `PeekOptions`."""
    statistics: bool = True
    """With where the extremes are."""
    histogram: bool = True
    heat: bool = True
    profiles: bool = True
    heat_rows: int = 16
    heat_columns: int = 64


def gather(
    tensor: LogicalTensor,
    chosen: Selection,
    wanted: Wanted,
    tiles: "Tiles",
    *,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
    on_gathered: OnGathered | None = None,
) -> Gathered:
    """Read each number of a selection once, and return what all of them come to.

    `on_gathered` hears what the first of them come to: four times a second, and where it ends early. Raises `Fault` as reading
    does, and `Cancelled`.
    """
    from shardscope.engine.convert.copies.work import Written

    pass_ = _Pass(tensor, chosen, wanted)
    each = DTYPES[tensor.dtype].bits / 8
    said = Progress("peek", 0, int(chosen.elements * each), "bytes", display_name(tensor.name, 120))
    pace, due = Pace(progress), monotonic() + BETWEEN
    try:
        if chosen.elements:
            for stretch in tiles.stretches([Written(tensor, tensor.dtype, 0, layout(chosen))], cancel):
                pass_.add(stretch.element, stretch.data[0], stretch.elements)
                if pace.due():
                    pace.report(replace(said, done=int(pass_.done * each)))
                if on_gathered is not None and monotonic() >= due:
                    on_gathered(pass_.gathered())
                    due = monotonic() + BETWEEN
    except (Cancelled, Fault):
        if on_gathered is not None:
            on_gathered(pass_.gathered())
        raise
    pace.report(replace(said, done=said.total or 0))
    return pass_.gathered()


class _Pass:
    """One pass over a selection."""

    def __init__(self, tensor: LogicalTensor, chosen: Selection, wanted: Wanted) -> None:
        from shardscope.engine.looking.heat import Heating
        from shardscope.engine.looking.places import Places
        from shardscope.engine.looking.statistics import summing

        self._chosen = chosen
        self._wanted = wanted
        self.done = 0
        """Elements that were read."""
        sums = wanted.statistics or wanted.histogram
        self._sums = summing(tensor.dtype, histogram=wanted.histogram, bits=wanted.bits) if sums else None
        self._places = Places(tensor.dtype, wanted.bits) if sums else None
        boxes = (wanted.heat_rows, wanted.heat_columns)
        drawn = wanted.heat or wanted.profiles
        self._heating = Heating(tensor.dtype, chosen.shape, *boxes) if drawn else None

    def add(self, element: int, data: "Bytes", count: int) -> None:
        """Take in `count` elements from `element` on."""
        if self._sums is not None and self._places is not None:
            self._sums.add(data, count)
            self._places.add(element, data, count, self._sums)
        if self._heating is not None:
            self._heating.add(element, data, count)
        self.done = element + count

    def gathered(self) -> Gathered:
        """Return what it comes to so far."""
        sums, heating, chosen = self._sums, self._heating, self._chosen
        return Gathered(
            self.done,
            chosen.elements,
            None if sums is None else sums.statistics(),
            None if self._places is None else _landmarks(self._places, chosen),
            None if heating is None or not self._wanted.heat else heating.heat(),
            None if heating is None or not self._wanted.profiles else heating.profiles(chosen.kept),
        )


def _landmarks(places: "Places", chosen: Selection) -> Landmarks:
    def index(element: int | None) -> tuple[int, ...] | None:
        return None if element is None else chosen.index(element)

    return Landmarks(
        index(places.min),
        index(places.max),
        index(places.nan),
        index(places.positive_infinite),
        index(places.negative_infinite),
    )
