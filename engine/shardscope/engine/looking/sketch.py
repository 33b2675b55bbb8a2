"""A tensor in few numbers, by which those that are nearly equal are found without reading any of them twice.

Some of its elements are taken in the one pass that reads it, at places that follow from its size alone. What they are is a key for copies;
centred, multiplied with random signs and added up they are a sketch: the sketches of two tensors that correlate do so, too
(Charikar, Chen and Farach-Colton's count sketch). Both only say what is worth a second, exact look.
"""

import threading
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.diffing.numbers import Values, parts, table, values
from shardscope.engine.looking.statistics import Bytes
from shardscope.engine.model.progress import check
from shardscope.engine.model.tensors import DTYPES

POINTS: Final = 16 << 10
"""Numbers that are taken of a tensor, at most."""
WIDTH: Final = 64
"""Numbers of a sketch."""
FEWEST: Final = 16
"""Numbers below which a tensor has no sketch: so few are alike by chance."""
_SEED: Final = 20_10
LIKE: Final = 0.98
"""Correlation of two sketches from which on their tensors are looked at again."""
_SLACK: Final = 0.002
"""Correlations so near the best one count as equal to it, and the first tensor is taken."""
WINDOW: Final = 16 << 10
"""Tensors before one that it is held against, at most."""
_ROWS, _BLOCK = 32, 64
"""Rows and columns of one product of matrices. A larger one is divided among threads of BLAS, which wait for each other by spinning:
where other programs work, too, that took ten times the processor's time."""


@lru_cache(16)
def points(numbers: int) -> NDArray[np.int64]:
    """Return the places of numbers that are taken of a tensor of so many: rising, one somewhere in each equal part."""
    if numbers <= POINTS:
        return np.arange(numbers)
    chance = np.random.default_rng(_SEED).random(POINTS)
    places = ((np.arange(POINTS) + chance) * (numbers / POINTS)).astype(np.int64)
    return np.minimum(places, numbers - 1)


@lru_cache(1)
def _signs() -> NDArray[np.float64]:
    return np.where(np.random.default_rng(_SEED + 1).random(POINTS) < 0.5, -1.0, 1.0)


class Sketcher:
    """Takes numbers of one tensor out of its tiles, in whatever order these come."""

    def __init__(self, dtype: str, elements: int) -> None:
        self._dtype = dtype
        self._parts = parts(dtype)
        self._bits = DTYPES[dtype].bits // self._parts
        self._points = points(elements * self._parts)
        self._taken = np.zeros((len(self._points), max(1, self._bits // 8)), np.uint8)

    def add(self, element: int, data: Bytes, count: int) -> None:
        """Take in `count` elements from `element` on."""
        low = element * self._parts
        first, last = np.searchsorted(self._points, (low, low + count * self._parts))
        places = self._points[first:last] - low
        if self._bits < 8:
            self._taken[first:last, 0] = _narrow(data, places, self._bits)
        else:
            words = data[: count * self._parts * self._bits // 8].view(f"<u{self._bits // 8}")
            self._taken[first:last] = words[places].view(np.uint8).reshape(len(places), -1)

    def key(self) -> bytes:
        """Return what tensors of one size and type that are copies have in common, and few others."""
        return blake2b(self._taken.data, digest_size=16).digest()

    def sketch(self) -> NDArray[np.float32] | None:
        """Return the sketch, of length 1; null where numbers are too few, not finite, or all but the same."""
        if len(self._taken) < FEWEST:
            return None
        with np.errstate(all="ignore"):
            numbers = self._numbers()
            centred = numbers - numbers.mean()
            size = float(np.sqrt(np.square(centred).sum()))
            if not np.isfinite(size) or size <= 1e-6 * float(np.abs(numbers).max()):
                return None
            signed = np.zeros(-(-len(centred) // WIDTH) * WIDTH)
            np.multiply(centred / size, _signs()[: len(centred)], out=signed[: len(centred)])
            found = signed.reshape(-1, WIDTH).sum(axis=0)
            length = float(np.sqrt(np.square(found).sum()))
        return (found / length).astype(np.float32) if length > 0 else None

    def _numbers(self) -> Values:
        if self._bits < 8:
            return table(self._dtype)[self._taken[:, 0]]
        return values(self._taken.reshape(-1), self._dtype)


def _narrow(data: Bytes, places: NDArray[np.int64], bits: int) -> Bytes:
    """Return elements of less than a byte, each in one of its own."""
    at = places * bits
    low = at // 8
    high = np.minimum(low + 1, len(data) - 1)
    words = data[low].astype(np.uint16) | (data[high].astype(np.uint16) << np.uint16(8))
    return ((words >> (at % 8).astype(np.uint16)) & np.uint16((1 << bits) - 1)).astype(np.uint8)


def likely(sketches: NDArray[np.float32], cancel: threading.Event | None = None) -> Iterator[tuple[int, int]]:
    """Yield for each row that is like an earlier one both their numbers: that of the first of those that it is most like.

    Raises `Cancelled`.
    """
    width = sketches.shape[1]
    blocks = np.zeros((-(-len(sketches) // _BLOCK), _BLOCK, width), np.float32)
    blocks.reshape(-1, width)[: len(sketches)] = sketches
    columns = blocks.transpose(0, 2, 1)
    for low in range(0, len(sketches), _ROWS):
        check(cancel)
        rows = np.arange(low, min(low + _ROWS, len(sketches)))
        block = max(0, low - WINDOW) // _BLOCK
        products = np.matmul(sketches[rows], columns[block : rows[-1] // _BLOCK + 1])
        alike: NDArray[Any] = products.transpose(1, 0, 2).reshape(len(rows), -1)
        begin = block * _BLOCK
        late = alike[:, low - begin :]
        late[np.arange(low, low + late.shape[1]) >= rows[:, None]] = -1  # itself, and those after it
        best = alike.max(axis=1, initial=-1)
        for row in np.flatnonzero(best >= LIKE):
            first = int(np.argmax(alike[row] >= best[row] - _SLACK))
            yield int(rows[row]), begin + first
