"""Rows and columns of a matrix that hold one number alone: dead channels, vocabularies that were padded, pruned inputs.

Nearly all rows are ruled out by four of their numbers, nearly all columns by their first rows, so that looking costs little.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.looking.statistics import Bytes
from shardscope.engine.model.tensors import DTYPES

Words = NDArray[np.unsignedinteger[Any]]

_SIGNS: Final = {
    "F64": 1 << 63,
    "F32": 1 << 31,
    "F16": 1 << 15,
    "BF16": 1 << 15,
    "C64": 1 << 63 | 1 << 31,
    "F8_E4M3": 0x80,
    "F8_E5M2": 0x80,
    "F8_E4M3FNUZ": 0,
    "F8_E5M2FNUZ": 0,
}
"""The signs of an element by type: pruning leaves zeros of either sign."""
_AT_ONCE: Final = 1 << 16
"""Numbers that are compared in one step: few enough to stay in the cache of a processor."""


def has_channels(dtype: str, shape: tuple[int, ...]) -> bool:
    """Tell whether a tensor is looked at by rows and columns: floats of whole bytes, at least two by two."""
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    return dtype in _SIGNS and len(shape) > 1 and rows > 1 and shape[-1] > 1


class Channels:
    """Counts. Tiles come in order, row by row, and may end in the middle of one. The last dimension is across, all others down."""

    def __init__(self, dtype: str, shape: tuple[int, ...]) -> None:
        self._word = np.dtype(f"<u{DTYPES[dtype].bits // 8}")
        self._signless = self._word.type(((1 << DTYPES[dtype].bits) - 1) ^ _SIGNS[dtype])
        self._width = shape[-1]
        self._first = np.zeros(self._width, self._word)
        self._seen = 0
        """Numbers of the first row that were seen."""
        self._live = np.arange(self._width)
        """Columns that still hold one number alone."""
        self._open: tuple[Any, bool] | None = None
        """The first number of a row that was cut, and whether it is the only one so far."""
        self.rows = 0

    @property
    def columns(self) -> int:
        """How many columns hold one number alone."""
        return len(self._live)

    def add(self, element: int, data: Bytes, count: int) -> None:
        """Take in `count` elements from `element` on."""
        words = data[: count * self._word.itemsize].view(self._word)
        column = element % self._width
        if column:
            head, words = words[: self._width - column], words[self._width - column :]
            self._add_part(column, head)
        whole = len(words) // self._width * self._width
        if whole:
            self._add_rows(words[:whole].reshape(-1, self._width))
        if whole < len(words):
            self._add_part(0, words[whole:])

    def _same(self, words: Words, other: Words) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = words == other
        if not found.all():
            found |= ((words | other) & self._signless) == 0
        return found

    def _add_rows(self, rows: Words) -> None:
        first = rows[:, :1]
        some = rows[:, (self._width - 1, self._width // 2, self._width // 3)]
        alike = np.flatnonzero(self._same(some, first).all(axis=1))
        step = max(1, _AT_ONCE // self._width)
        for begin in range(
            0, len(alike), step
        ):  # many at a time: an unwritten matrix has nothing but such rows
            at_once = alike[begin : begin + step]
            self.rows += int(self._same(rows[at_once], first[at_once]).all(axis=1).sum())
        at = 0
        if not self._seen:
            self._first[:] = rows[0]
            self._seen, at = self._width, 1
        step = 1
        while at < len(rows) and len(self._live):
            live = self._live
            self._live = live[self._same(rows[at : at + step, live], self._first[live]).all(axis=0)]
            at, step = at + step, min(2 * step, max(1, _AT_ONCE // max(1, len(live))))

    def _add_part(self, column: int, words: Words) -> None:
        """Take in a part of one row, from a column on."""
        end = column + len(words)
        if self._seen < self._width:
            self._first[column:end] = words
            self._seen = end
        else:
            low, high = np.searchsorted(self._live, (column, end))
            live = self._live[low:high]
            kept = live[self._same(words[live - column], self._first[live])]
            self._live = np.concatenate((self._live[:low], kept, self._live[high:]))
        number, alone = (words[0], True) if self._open is None or not column else self._open
        alone = alone and bool(self._same(words, np.full(1, number, self._word)).all())
        self._open = (number, alone)
        if end == self._width:
            self.rows += alone
            self._open = None
