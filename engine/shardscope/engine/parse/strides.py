"""Strided views of a stretch of elements: how far they reach, and whether they lie as they are read. Nothing walks elements."""

from collections.abc import Sequence
from typing import Final

_BEYOND: Final = 1 << 63


def reach(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return how many elements from the first one on a view touches.

    Of impossible views (another number of strides, something below zero) it is more than there can be.
    """
    if len(shape) != len(strides) or min((*shape, *strides), default=0) < 0:
        return _BEYOND
    if 0 in shape:
        return 0
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))


def is_row_major(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Tell whether the elements lie one after the other in the order in which they are read.

    What an axis of one slice has for a stride says nothing.
    """
    if 0 in shape:
        return True
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1:
            if stride != expected:
                return False
            expected *= extent
    return True


def repeats(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Tell whether a view certainly reads an element more than once: an axis of several slices without a stride."""
    return 0 not in shape and any(
        extent > 1 and not stride for extent, stride in zip(shape, strides, strict=True)
    )


def addresses(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the address of each element of a small view, row-major."""
    found = [0]
    for extent, stride in zip(shape, strides, strict=True):
        found = [at + step * stride for at in found for step in range(extent)]
    return found
