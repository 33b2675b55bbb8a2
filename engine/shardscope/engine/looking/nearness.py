"""How far two tensors of one type and shape are from each other, over tiles of both: what is said of layers that are nearly equal."""

from math import isfinite, sqrt
from typing import Final

import numpy as np
from msgspec import Struct

from shardscope.engine.diffing.numbers import values
from shardscope.engine.looking.statistics import Bytes, Sum
from shardscope.engine.model.tensors import DTYPES

BLOCK: Final = 3 * (16 << 10)
"""Elements that are worked on at one time: whole bytes of every type."""
NEAR: Final = 0.1
"""Two tensors are nearly equal up to this length of their difference, beside what either deviates from its mean: 0.1 is a correlation
of 0.995. Beside the deviation and not the numbers themselves, since norms are all ones and little else."""


class Near(Struct, frozen=True):
    """What it came to."""

    cosine: float
    apart: float
    """Length of the difference, beside that of the longer one."""
    largest: float
    """The largest difference of two numbers, beside the largest number."""


class Nearness:
    """Sums over tiles of two tensors side by side."""

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype
        self._count = 0
        self._dot, self._apart = Sum(), Sum()
        self._sums, self._squares = (Sum(), Sum()), (Sum(), Sum())
        self._largest = self._most = 0.0

    def add(self, first: Bytes, second: Bytes) -> None:
        """Take in a tile of each."""
        bits = DTYPES[self._dtype].bits
        for low in range(0, len(first), BLOCK * bits // 8):
            high = low + BLOCK * bits // 8
            with np.errstate(all="ignore"):
                one, other = (values(_filled(data[low:high], bits), self._dtype) for data in (first, second))
                self._count += len(one)
                self._dot.add(float(np.einsum("i,i->", one, other)))
                for side, numbers in enumerate((one, other)):
                    self._sums[side].add(float(numbers.sum()))
                    self._squares[side].add(float(np.einsum("i,i->", numbers, numbers)))
                    self._most = max(self._most, float(numbers.max()), -float(numbers.min()))
                apart = one - other
                self._apart.add(float(np.einsum("i,i->", apart, apart)))
                self._largest = max(self._largest, float(apart.max()), -float(apart.min()))

    def near(self) -> Near | None:
        """Return what it came to; null where they are not nearly equal, or something is not finite."""
        apart, lengths = self._apart.value, [each.value for each in self._squares]
        deviations = [
            length - total.value * total.value / max(1, self._count)
            for length, total in zip(lengths, self._sums, strict=True)
        ]
        if not all(map(isfinite, (apart, self._dot.value, *deviations))) or min(lengths) <= 0:
            return None
        if apart > NEAR * NEAR * max(deviations):
            return None
        cosine = self._dot.value / sqrt(lengths[0]) / sqrt(lengths[1])
        largest = self._largest / self._most if self._most else 0.0
        return Near(max(-1.0, min(1.0, cosine)), sqrt(apart / max(lengths)), largest)


def _filled(data: Bytes, bits: int) -> Bytes:
    """Elements of six bits end with every third byte."""
    return np.pad(data, (0, -len(data) % 3)) if bits == 6 else data
