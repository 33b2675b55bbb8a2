"""Root mean squares of a tensor in boxes: its last dimension across, all others down, so that one odd channel is seen."""

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.diffing.numbers import parts, values
from shardscope.engine.looking.profiles import MOST, Profiles
from shardscope.engine.looking.statistics import BLOCK, Bytes, narrow
from shardscope.engine.model.peek import Heat, Profile
from shardscope.engine.model.tensors import DTYPES


def cut(extent: int, most: int) -> tuple[int, ...]:
    """Return the edges of boxes, at most so many, that differ by one in size."""
    count = max(1, min(extent, most))
    return tuple(extent * number // count for number in range(count + 1))


class Heating:
    """Sums of squares in boxes. Tiles come in order, row by row, and may end in the middle of one."""

    def __init__(self, dtype: str, shape: tuple[int, ...], rows: int, columns: int) -> None:
        self._dtype = dtype
        self._width = shape[-1] if shape else 1
        self._rows = cut(prod(shape[:-1]), rows)
        self._columns = cut(self._width, columns)
        size = (len(self._rows) - 1, len(self._columns) - 1)
        self._squares, self._counts = np.zeros(size), np.zeros(size, np.int64)
        self._profiles = Profiles(shape, [cut(extent, MOST) for extent in shape])

    def add(self, element: int, data: Bytes, count: int) -> None:
        """Take in `count` elements from `element` on."""
        bits, step = DTYPES[self._dtype].bits, BLOCK
        with np.errstate(all="ignore"):
            for low in range(0, count, step):
                high = min(low + step, count)
                some = data[low * bits // 8 : -(-high * bits // 8)]
                self._add(element + low, self._numbers(some, high - low))

    def _numbers(self, data: Bytes, count: int) -> NDArray[Any]:
        """Return the squares of elements, NaN where one is not finite."""
        bits = DTYPES[self._dtype].bits
        if bits < 8:
            data = np.pad(data, (0, -len(data) % 3))
        found = (values(data, self._dtype) if bits <= 8 else narrow(data, self._dtype)).astype("f8")
        squares: NDArray[Any] = np.square(found[: count * parts(self._dtype)])
        if parts(self._dtype) == 2:
            squares = squares[::2] + squares[1::2]
        return squares

    def _add(self, element: int, squares: NDArray[Any]) -> None:
        width = self._width
        row, column = divmod(element, width)
        if column:
            head, squares = squares[: width - column], squares[width - column :]
            self._add_part(row, column, head)
            row += 1
        whole = len(squares) // width
        if whole:
            self._add_rows(row, squares[: whole * width].reshape(whole, width))
        if len(squares) > whole * width:
            self._add_part(row + whole, 0, squares[whole * width :])

    def _add_rows(self, first: int, squares: NDArray[Any]) -> None:
        """Take in whole rows, band by band."""
        at = first
        while at < first + len(squares):
            band = int(np.searchsorted(self._rows, at, "right")) - 1
            end = min(self._rows[band + 1], first + len(squares))
            self._add_box(band, at, 0, squares[at - first : end - first])
            at = end

    def _add_part(self, row: int, column: int, squares: NDArray[Any]) -> None:
        band = int(np.searchsorted(self._rows, row, "right")) - 1
        self._add_box(band, row, column, squares.reshape(1, -1))

    def _add_box(self, band: int, row: int, column: int, squares: NDArray[Any]) -> None:
        """Take in some rows of one band from `row` on, from a column on."""
        finite = np.isfinite(squares)
        height, width = squares.shape
        if finite.all():
            known, beside = np.full(width, height), np.full(height, width)
        else:
            squares = np.where(finite, squares, 0)
            known, beside = finite.sum(axis=0), finite.sum(axis=1)
        down = squares.sum(axis=0)
        self._profiles.add(row, column, (down, known), (squares.sum(axis=1), beside))
        for number, (low, high) in enumerate(pairwise(self._columns)):
            start, stop = max(low - column, 0), min(high - column, width)
            if start < stop:
                self._squares[band, number] += down[start:stop].sum()
                self._counts[band, number] += known[start:stop].sum()

    def profiles(self, kept: Sequence[int]) -> tuple[Profile, ...]:
        """Return it by index of each dimension; `kept` are the tensor's own numbers of the dimensions."""
        return self._profiles.profiles(kept)

    def heat(self) -> Heat:
        """Return what it came to."""
        rms = tuple(
            tuple(
                sqrt(square / count) if count and isfinite(square) else None
                for square, count in zip(squares, counts, strict=True)
            )
            for squares, counts in zip(self._squares.tolist(), self._counts.tolist(), strict=True)
        )
        return Heat(self._rows, self._columns, rms)
