"""Tensors that are copies of earlier ones, or nearly: candidates from one pass over all, then an exact second look at these alone."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.convert.copies.work import Written
from shardscope.engine.convert.proofs.comparing import Tiles
from shardscope.engine.looking.nearness import Nearness
from shardscope.engine.looking.packed.reading import Pairs
from shardscope.engine.looking.sketch import Sketcher, likely
from shardscope.engine.looking.twins import Twin
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.modules import pattern_of
from shardscope.engine.model.peek import Statistics
from shardscope.engine.model.tensors import DTYPES

_COMPARED: Final = frozenset({"float", "complex"})
"""Kinds of types of which nearly equal tensors are looked for. Packed integers that are near each other mean nothing."""

Kind = tuple[str, tuple[int, ...]]
OnElements = Callable[[str, int], None]
"""Hears of which tensor so many more elements were read."""


class Candidate(NamedTuple):
    """A tensor that may be nearly equal to an earlier one: their positions."""

    tensor: int
    other: int


class Copies:
    """Keys and sketches of the tensors of a checkpoint, by position."""

    def __init__(self, tensors: Sequence[LogicalTensor]) -> None:
        self._tensors = tensors
        self._alike = Counter((each.dtype, each.shape) for each in tensors)
        self._patterns = Counter((each.dtype, each.shape, pattern_of(each.name).parts) for each in tensors)
        self._keys: dict[tuple[object, ...], list[int]] = {}
        self._sketches: dict[tuple[object, ...], list[tuple[int, NDArray[np.float32]]]] = {}

    def sketcher(self, tensor: LogicalTensor, elements: int) -> Sketcher | None:
        """Return what takes the tiles of a tensor; null where no other is of its type and shape."""
        if self._alike[tensor.dtype, tensor.shape] < 2 or not elements:
            return None
        return Sketcher(tensor.dtype, elements)

    def keep(self, position: int, sketcher: Sketcher, found: Statistics) -> None:
        """Take in a tensor that was read."""
        tensor = self._tensors[position]
        exact = (found.min, found.max, found.zeros, found.nans, found.exponent_min, found.exponent_max)
        kind = (tensor.dtype, tensor.shape)
        self._keys.setdefault((*kind, sketcher.key(), *exact), []).append(position)
        group = (*kind, pattern_of(tensor.name).parts)
        if self._patterns[group] > 1 and DTYPES[tensor.dtype].kind in _COMPARED:
            sketch = sketcher.sketch()
            if sketch is not None:
                self._sketches.setdefault(group, []).append((position, sketch))

    def maybe_equal(self) -> list[list[int]]:
        """Return the positions of tensors that may be copies of each other."""
        return [some for some in self._keys.values() if len(some) > 1]

    def maybe_near(self, copies: Set[int], cancel: threading.Event | None) -> Iterator[Candidate]:
        """Yield tensors that may be nearly equal to an earlier one, each with one at most; those that are copies are left out."""
        for some in self._sketches.values():
            kept = [(position, sketch) for position, sketch in some if position not in copies]
            if len(kept) > 1:
                for row, other in likely(np.stack([sketch for _, sketch in kept]), cancel):
                    yield Candidate(kept[row][0], kept[other][0])


def equal(
    tensors: Sequence[LogicalTensor],
    groups: Iterable[list[int]],
    tiles: Tiles,
    *,
    cancel: threading.Event | None,
    on_elements: OnElements,
) -> Iterator[Twin]:
    """Yield tensors of which an earlier one has the same digest. Raises `Fault`: those of reading; `Cancelled`."""
    for positions in groups:
        first: dict[bytes, int] = {}
        for position in positions:
            tensor = tensors[position]
            digest = blake2b(digest_size=16)
            for stretch in tiles.stretches([Written(tensor, tensor.dtype, 0)], cancel):
                digest.update(stretch.data[0].data)
                on_elements(tensor.name, stretch.elements)
            other = first.setdefault(digest.digest(), position)
            if other != position:
                yield Twin(tensor.name, tensors[other].name, position, None)


def near(
    tensors: Sequence[LogicalTensor],
    candidates: Iterable[Candidate],
    pairs: Pairs,
    *,
    cancel: threading.Event | None,
    on_elements: OnElements,
) -> Iterator[Twin]:
    """Yield those candidates that are nearly equal, with figures over all their numbers. Raises as `equal`."""
    for position, other in candidates:
        one, two = tensors[position], tensors[other]
        sums = Nearness(one.dtype)
        for first, second, count in pairs.tiles(one, two, cancel):
            sums.add(first, second)
            on_elements(one.name, 2 * count)
        found = sums.near()
        if found is not None:
            yield Twin(one.name, two.name, position, found, len(one.shape) > 1)
