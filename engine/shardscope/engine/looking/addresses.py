"""Which elements of a tensor a map of one rank asks for, in their order: the addresses of any stretch of them."""

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.model.piece import Lowered, Piece, Side, row_major

Places = NDArray[np.int64]
"""Addresses in a tensor, row by row."""


class Addresses:
    """Which elements of a tensor are wanted, in their order."""

    def __init__(self, layout: Lowered | None, elements: int) -> None:
        self._layout = layout
        self._elements = elements
        pieces = () if layout is None else layout.ranks[0].pieces
        self._alone = pieces[0] if len(pieces) == 1 and pieces[0].elements == elements else None
        self._all: Places | None = None

    def run(self, low: int, high: int) -> tuple[int, int] | None:
        """Return where elements stand that follow each other; null where they do not."""
        if self._layout is None:
            return low, high
        found = self.places(low, high)
        begin, end = int(found[0]), int(found[-1]) + 1
        return (begin, end) if end - begin == high - low and bool((np.diff(found) == 1).all()) else None

    def places(self, low: int, high: int) -> Places:
        """Return the addresses of elements in the tensor."""
        if self._layout is None:
            return np.arange(low, high)
        if self._alone is not None and self._alone.dest.strides == row_major(self._alone.shape):
            return _addresses(self._alone, self._alone.source, low, high)
        if self._all is None:
            self._all = np.zeros(self._elements, np.int64)
            for piece in self._layout.ranks[0].pieces:
                to = _addresses(piece, piece.dest, 0, piece.elements)
                self._all[to] = _addresses(piece, piece.source, 0, piece.elements)
        return self._all[low:high]


def _addresses(piece: Piece, side: Side, low: int, high: int) -> Places:
    """Return the addresses of elements of a piece on one side."""
    found = np.full(high - low, side.offset, np.int64)
    rest = np.arange(low, high)
    for extent, stride in zip(reversed(piece.shape), reversed(side.strides), strict=True):
        rest, index = np.divmod(rest, extent)
        found += index * stride
    return found
