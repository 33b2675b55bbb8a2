"""Root mean squares of a tensor in boxes: its last dimension across, all others down, so that one odd channel is seen."""

from collections.abc import Sequence
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
        self._edges = np.asarray(self._columns)
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
        """Return elements in 64 bits; of complex ones their magnitudes."""
        bits = DTYPES[self._dtype].bits
        if bits < 8:
            data = np.pad(data, (0, -len(data) % 3))
        found = (values(data, self._dtype) if bits <= 8 else narrow(data, self._dtype)).astype("f8")
        some: NDArray[Any] = found[: count * parts(self._dtype)]
        return np.hypot(some[::2], some[1::2]) if parts(self._dtype) == 2 else some

    def _add(self, element: int, numbers: NDArray[Any]) -> None:
        width = self._width
        row, column = divmod(element, width)
        if column:
            head, numbers = numbers[: width - column], numbers[width - column :]
            self._add_part(row, column, head)
            row += 1
        whole = len(numbers) // width
        if whole:
            self._add_rows(row, numbers[: whole * width].reshape(whole, width))
        if len(numbers) > whole * width:
            self._add_part(row + whole, 0, numbers[whole * width :])

    def _add_rows(self, first: int, numbers: NDArray[Any]) -> None:
        """Take in whole rows, band by band."""
        at = first
        while at < first + len(numbers):
            band = int(np.searchsorted(self._rows, at, "right")) - 1
            end = min(self._rows[band + 1], first + len(numbers))
            self._add_box(band, at, 0, numbers[at - first : end - first])
            at = end

    def _add_part(self, row: int, column: int, numbers: NDArray[Any]) -> None:
        band = int(np.searchsorted(self._rows, row, "right")) - 1
        self._add_box(band, row, column, numbers.reshape(1, -1))

    def _add_box(self, band: int, row: int, column: int, numbers: NDArray[Any]) -> None:
        """Take in some rows of one band from `row` on, from a column on."""
        height, width = numbers.shape
        down = np.einsum("ij,ij->j", numbers, numbers)
        known, beside = np.full(width, height), np.full(height, width)
        if not isfinite(down.sum()):  # NaN, infinite, or squares beyond the range
            finite = np.isfinite(np.square(numbers))
            numbers = np.where(finite, numbers, 0)
            known, beside = finite.sum(axis=0), finite.sum(axis=1)
            down = np.einsum("ij,ij->j", numbers, numbers)
        self._profiles.add(row, column, (down, known), (np.einsum("ij,ij->i", numbers, numbers), beside))
        low = int(np.searchsorted(self._edges, column, "right")) - 1
        high = int(np.searchsorted(self._edges, column + width, "left"))
        starts = np.maximum(self._edges[low:high] - column, 0)
        self._squares[band, low:high] += np.add.reduceat(down, starts)
        self._counts[band, low:high] += np.add.reduceat(known, starts)

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
