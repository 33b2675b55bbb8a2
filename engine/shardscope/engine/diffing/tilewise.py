"""Two tensors held against each other tile by tile, wherever their fragments lie and in whatever type."""

import threading
from collections.abc import Callable

from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.convert.copies.rows import first_rows
from shardscope.engine.convert.copies.work import Written
from shardscope.engine.convert.proofs.comparing import Beside, differs
from shardscope.engine.diffing.measuring import SCRATCH, First, Measure
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.difference import Figures
from shardscope.engine.model.tensors import DTYPES

OnTile = Callable[[int], None]
"""Hears how many elements were compared so far."""


def reading(opener: Opener, budget_bytes: int, least: int) -> Beside:
    """Return what reads tensors two and two within a budget, and at least so much, so that measuring them fits into it, too."""
    return Beside(opener, max(least, budget_bytes - SCRATCH))


def measured(
    one: LogicalTensor,
    other: LogicalTensor,
    beside: Beside,
    *,
    differ: bool = False,
    cancel: threading.Event | None = None,
    on_tile: OnTile | None = None,
) -> tuple[Figures | None, First | None]:
    """Return the figures of two tensors and their first difference; no figures where every bit is the same.

    `differ` tells that their bytes were found to differ already. Of different heights, the rows that both have are compared.
    Raises `Fault`: those of `Beside.tiles`; `Cancelled`.
    """
    shape = min(one.shape, other.shape)
    items = (
        Written(one, one.dtype, 0, first_rows(one.shape, shape)),
        Written(other, other.dtype, 0, first_rows(other.shape, shape)),
    )
    if not differ and one.dtype == other.dtype and _same(items, beside, cancel, on_tile):
        return None, None
    measure = Measure(one.dtype, other.dtype)
    for tile in beside.tiles(*items, cancel):
        measure.add(tile.element, tile.first, tile.second)
        if on_tile is not None:
            on_tile(tile.element + len(tile.first) * 8 // DTYPES[one.dtype].bits)
    figures = measure.figures(None)
    return (None if figures.verdict == "bits" else figures), measure.first


def _same(
    items: tuple[Written, Written], beside: Beside, cancel: threading.Event | None, on_tile: OnTile | None
) -> bool:
    """Tell whether every byte is the same: at the speed of reading, and most of the time at the end of it."""
    bits = DTYPES[items[0].dtype].bits
    for tile in beside.tiles(*items, cancel):
        if differs(tile):
            return False
        if on_tile is not None:
            on_tile(tile.element + len(tile.first) * 8 // bits)
    return True
