"""Elements of less than a byte that are selected where no byte begins or ends: the groups that hold them are read, and they are picked.

A group is the fewest elements that fill bytes: two of four bits, four of six.
"""

import threading
from collections.abc import Iterator, Sequence
from math import gcd, prod
from typing import Final

import numpy as np

from shardscope.engine.convert.copies.work import Written
from shardscope.engine.convert.proofs.comparing import Stretch, Tiles
from shardscope.engine.diffing.numbers import Codes, codes
from shardscope.engine.looking.addresses import Addresses, Places
from shardscope.engine.looking.slices import boxed
from shardscope.engine.looking.statistics import Bytes
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.progress import check
from shardscope.engine.model.tensors import DTYPES

STEP: Final = 1 << 15
"""Elements that are picked at one time."""
_DENSE: Final = 8
"""Groups that are read at the most for each that is wanted."""


class Picking(Tiles):
    """Reads parts of tensors whose elements have less than a byte, alone, as well as whole tensors. It serves one thread."""

    def stretches(self, items: Sequence[Written], cancel: threading.Event | None = None) -> Iterator[Stretch]:
        """Yield tensors tile by tile; of a part, elements are packed anew, and zeros fill its last byte.

        Raises `Fault`: those of `Tiles.stretches`; `Cancelled`.
        """
        part = items[0].layout
        if part is None or len(items) != 1:
            yield from super().stretches(items, cancel)
            return
        where = Addresses(part, items[0].elements)
        for low in range(0, items[0].elements, STEP):
            check(cancel)
            high = min(low + STEP, items[0].elements)
            found = self._codes(items[0].tensor, where.places(low, high))
            yield Stretch(low, high - low, (packed(found, DTYPES[items[0].dtype].bits),))

    def _codes(self, tensor: LogicalTensor, places: Places) -> Codes:
        """Return the bits of elements at any places, by windows of groups that are as far from each other."""
        group = 8 // gcd(8, DTYPES[tensor.dtype].bits)
        numbers = places // group
        used = np.unique(numbers)
        steps = np.diff(used)
        begin, end = int(used[0]), int(used[-1]) + 1
        step = int(steps[0]) if len(steps) and bool((steps == steps[0]).all()) else 1
        if (end - begin) > _DENSE * step * len(used):
            half = len(places) // 2
            return np.concatenate([self._codes(tensor, part) for part in (places[:half], places[half:])])
        found = codes(self._groups(tensor, group, range(begin, end, step)), tensor.dtype)
        picked: Codes = found[(numbers - begin) // step * group + places % group]
        return picked

    def _groups(self, tensor: LogicalTensor, group: int, which: range) -> Bytes:
        part = boxed(tensor.shape, (prod(tensor.shape) // group, group), (which, range(group)))
        data = [
            stretch.data[0].copy() for stretch in super().stretches([Written(tensor, tensor.dtype, 0, part)])
        ]
        return data[0] if len(data) == 1 else np.concatenate(data)


def packed(found: Codes, bits: int) -> Bytes:
    """Return codes of so many bits side by side, from the lowest bit on; zeros fill the last byte."""
    single = np.unpackbits(found.astype(np.uint8)[:, None], axis=1, count=bits, bitorder="little")
    return np.packbits(single.reshape(-1), bitorder="little")
