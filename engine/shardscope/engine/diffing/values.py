"""The values of two tensors held against each other, wherever their fragments lie and in whatever type.

Bytes are compared first, at the speed of reading. Only where they differ are numbers worked out of them, from the first one on, and
only then is what works them out loaded.
"""

import threading
from contextlib import ExitStack
from math import prod
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from shardscope.engine.convert.copies.contents import Contents, Opener
from shardscope.engine.diffing.alike import BUFFERS, Alike, stored_alike
from shardscope.engine.diffing.updates import Target
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.difference import Figures
from shardscope.engine.model.tensors import DTYPES

if TYPE_CHECKING:
    from shardscope.engine.convert.proofs.comparing import Beside, Tiles
    from shardscope.engine.diffing.merging import MergeMeasure
    from shardscope.engine.diffing.tilewise import OnTile

LEAST: Final = 1 << 20
"""Bytes of buffers for tiles below which no budget goes."""


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
    kinds = [DTYPES[tensor.dtype].kind for tensor in (one, other)]
    if kinds.count("complex") == 1:
        return "one is complex and the other is not"
    return None


def _rows(one: LogicalTensor, other: LogicalTensor) -> bool:
    """Tell whether one has the first rows of the other, as a vocabulary without its padding has."""
    same = len(one.shape) == len(other.shape) and one.shape[1:] == other.shape[1:]
    return same and bool(one.shape) and 0 not in (*one.shape, *other.shape)


class Comparing:
    """Compares tensors two and two within a budget of bytes. Files stay open for the next ones; it serves one thread.

    Use it in a `with` block: leaving it verifies every file that is still open (`source.changed`).
    """

    def __init__(self, opener: Opener, budget_bytes: int) -> None:
        self._opener = opener
        self._budget = budget_bytes
        self._open = ExitStack()
        self._alike = Alike(self._open.enter_context(Contents(opener)))
        self._tiles: Beside | None = None
        self._factors: Tiles | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def compared(
        self,
        one: LogicalTensor,
        other: LogicalTensor,
        *,
        cancel: threading.Event | None = None,
        on_tile: "OnTile | None" = None,
    ) -> Values:
        """Return the figures of two tensors that `refusal` does not refuse; of different heights, those of the rows that both have.

        Raises `Fault`: those of reading, and of the maps; `Cancelled`.
        """
        alike = stored_alike(one, other)
        if alike:
            bits = DTYPES[one.dtype].bits

            def on_bytes(count: int) -> None:
                if on_tile is not None:
                    on_tile(count * 8 // bits)

            if self._alike.same(one, other, cancel=cancel, on_bytes=on_bytes):
                return Values(_identical(prod(one.shape)), None)
        from shardscope.engine.diffing.tilewise import measured

        figures, first = measured(one, other, self._beside(), differ=alike, cancel=cancel, on_tile=on_tile)
        if figures is None:
            return Values(_identical(prod(min(one.shape, other.shape))), None)
        return Values(figures, None) if first is None else Values(figures, *first)

    def merged(
        self,
        one: LogicalTensor,
        other: LogicalTensor,
        target: Target,
        *,
        cancel: threading.Event | None = None,
        on_tile: "OnTile | None" = None,
    ) -> "MergeMeasure":
        """Return what one tensor is beside another one with the updates of a target, which `merging.refusal` does not refuse.

        Raises as `compared`.
        """
        from shardscope.engine.convert.copies.work import Written
        from shardscope.engine.convert.proofs.comparing import Tiles
        from shardscope.engine.diffing.merging import MergeMeasure, loaded, width_of

        if self._factors is None:
            self._factors = self._open.enter_context(Tiles(self._opener, LEAST, 1))
        products = [loaded(update, self._factors, cancel) for update in target.updates]
        measure = MergeMeasure(one.dtype, other.dtype, products, width_of(target, one.shape))
        items = (Written(one, one.dtype, 0), Written(other, other.dtype, 0))
        for tile in self._beside().tiles(*items, cancel):
            measure.add(tile.element, tile.first, tile.second)
            if on_tile is not None:
                on_tile(tile.element + len(tile.first) * 8 // DTYPES[one.dtype].bits)
        return measure

    def _beside(self) -> "Beside":
        from shardscope.engine.diffing.tilewise import reading

        if self._tiles is None:
            self._tiles = self._open.enter_context(reading(self._opener, self._budget - BUFFERS, LEAST))
        return self._tiles


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
