"""Root mean squares along each dimension of a selection: one figure for each channel, all other dimensions taken together."""

from collections.abc import Sequence
from math import isfinite, prod, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.model.peek import Profile

MOST: Final = 16_384
"""Boxes of one dimension: of longer ones several indices share a box."""


class Profiles:
    """Sums of squares by index, for every dimension at once."""

    def __init__(self, shape: tuple[int, ...], edges: Sequence[tuple[int, ...]]) -> None:
        """`edges` are the edges of the boxes of each dimension."""
        self._shape = shape
        self._edges = tuple(edges)
        self._squares = [np.zeros(len(each) - 1) for each in edges]
        self._counts = [np.zeros(len(each) - 1, np.int64) for each in edges]
        self._steps = [prod(shape[dim + 1 : -1]) for dim in range(len(shape) - 1)]
        """How many rows go by before the index of a dimension rises."""

    def add(
        self,
        row: int,
        column: int,
        across: tuple[NDArray[Any], NDArray[Any]],
        down: tuple[NDArray[Any], NDArray[Any]],
    ) -> None:
        """Take in rows from `row` on and columns from `column` on.

        `across` has the sums and the counts of each column over these rows, and `down` those of each row.
        """
        if not self._edges:
            return
        self._add_run(len(self._edges) - 1, column, across)
        if len(self._steps) == 1:
            self._add_run(0, row, down)
            return
        rows = row + np.arange(len(down[0]))
        for dim, step in enumerate(self._steps):
            self._add(dim, rows // step % self._shape[dim], down)

    def _add_run(self, dim: int, first: int, sums: tuple[NDArray[Any], NDArray[Any]]) -> None:
        """Take in the sums of indices side by side, from the first one on."""
        end = first + len(sums[0])
        if len(self._squares[dim]) == self._shape[dim]:
            self._squares[dim][first:end] += sums[0]
            self._counts[dim][first:end] += sums[1]
        else:
            self._add(dim, np.arange(first, end), sums)

    def _add(self, dim: int, indices: NDArray[np.int64], sums: tuple[NDArray[Any], NDArray[Any]]) -> None:
        edges, squares = self._edges[dim], self._squares[dim]
        boxes = indices
        if len(squares) != self._shape[dim]:
            boxes = np.searchsorted(np.asarray(edges), indices, "right") - 1
        low = int(boxes.min())
        size = int(boxes.max()) - low + 1
        squares[low : low + size] += np.bincount(boxes - low, sums[0], size)
        self._counts[dim][low : low + size] += np.bincount(boxes - low, sums[1], size).astype(np.int64)

    def profiles(self, kept: Sequence[int]) -> tuple[Profile, ...]:
        """Return what it came to; `kept` are the tensor's own numbers of the dimensions."""
        return tuple(
            Profile(
                dim,
                edges,
                tuple(
                    sqrt(square / count) if count and isfinite(square) else None
                    for square, count in zip(squares.tolist(), counts.tolist(), strict=True)
                ),
            )
            for dim, edges, squares, counts in zip(
                kept, self._edges, self._squares, self._counts, strict=True
            )
        )
