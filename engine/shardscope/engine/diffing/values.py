"""The values of two tensors held against each other, tile by tile, wherever their fragments lie and in whatever type.

Bytes are compared first, at the speed of reading. Only where they differ are numbers worked out of them, from the first tile on.
"""

import threading
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from shardscope.engine.convert.comparing import Beside, differs
from shardscope.engine.convert.contents import Opener
from shardscope.engine.convert.rows import first_rows
from shardscope.engine.convert.work import Written
from shardscope.engine.diffing.measuring import SCRATCH, Measure
from shardscope.engine.diffing.numbers import parts
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.difference import Figures
from shardscope.engine.model.tensors import DTYPES

LEAST: Final = 1 << 20
"""Bytes of buffers below which no budget goes."""

OnTile = Callable[[int], None]
"""Hears how many elements were compared so far."""


def reading(opener: Opener, budget_bytes: int) -> Beside:
    """Return what reads tensors two and two within a budget, so that measuring them fits into it, too."""
    return Beside(opener, max(LEAST, budget_bytes - SCRATCH))


class Values(Struct, frozen=True):
    """What values came to, with the first difference still without its place."""

    figures: Figures
    element: int | None
    a: str = ""
    b: str = ""


def refusal(one: LogicalTensor, other: LogicalTensor) -> str | None:
    """Return in one clause why values of two tensors are not compared; null where they can be."""
    for tensor in (one, other):
        if tensor.unwritable is not None:
            return tensor.unwritable
    if one.shape != other.shape and not _rows(one, other):
        return "their shapes differ"
    if parts(one.dtype) != parts(other.dtype):
        return "one is complex and the other is not"
    return None


def _rows(one: LogicalTensor, other: LogicalTensor) -> bool:
    """Tell whether one has the first rows of the other, as a vocabulary without its padding has."""
    same = len(one.shape) == len(other.shape) and one.shape[1:] == other.shape[1:]
    return same and bool(one.shape) and 0 not in (*one.shape, *other.shape)


def compared(
    one: LogicalTensor,
    other: LogicalTensor,
    *,
    beside: Beside,
    cancel: threading.Event | None = None,
    on_tile: OnTile | None = None,
) -> Values:
    """Return the figures of two tensors that `refusal` does not refuse; of different heights, those of the rows that both have.

    Raises `Fault`: those of `Beside.tiles`; `Cancelled`.
    """
    written = _common(one, other)
    if one.dtype == other.dtype:
        equal = True
        for tile in beside.tiles(*written, cancel):
            if differs(tile):
                equal = False
                break
            if on_tile is not None:
                on_tile(tile.element + len(tile.first) * 8 // DTYPES[one.dtype].bits)
        if equal:
            return Values(_identical(written[0].elements), None)
    measure = Measure(one.dtype, other.dtype)
    for tile in beside.tiles(*written, cancel):
        measure.add(tile.element, tile.first, tile.second)
        if on_tile is not None:
            on_tile(tile.element + len(tile.first) * 8 // DTYPES[one.dtype].bits)
    figures = measure.figures(None)
    if measure.first is None:
        return Values(figures, None)
    return Values(figures, *measure.first)


def _common(one: LogicalTensor, other: LogicalTensor) -> tuple[Written, Written]:
    shape = min(one.shape, other.shape)
    return (
        Written(one, one.dtype, 0, first_rows(one.shape, shape)),
        Written(other, other.dtype, 0, first_rows(other.shape, shape)),
    )


def _identical(elements: int) -> Figures:
    return Figures(
        verdict="bits",
        elements=elements,
        differing=0,
        bits_only=0,
        not_finite=0,
        max_abs=0.0,
        max_rel=0.0,
        cosine=1.0,
    )
