"""What has to be done for one output file, in pieces that can be done in any order: runs of bytes, and stretches of tensors.

Everything is made as it is asked for, so that what is planned ahead stays small whatever the file's size.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from shardscope.engine.convert.copies import casting, decompress
from shardscope.engine.convert.copies.contents import OPEN_RECORDS
from shardscope.engine.convert.copies.segments import Cuts, cuts
from shardscope.engine.convert.copies.tiles import GRAIN, Prepared, prepared
from shardscope.engine.geometry.execution.program import Copy, byte_count
from shardscope.engine.model.catalogue import LogicalTensor, Record
from shardscope.engine.model.piece import ONE, Lowered
from shardscope.engine.model.shardmap import Node, Replicate, Scale, SubParamConcat, TensorMap
from shardscope.engine.model.tensors import DTYPES

KERNEL: Final = 1 << 20
"""Bytes from which on the kernel copies from file to file: below, a copy through a small buffer is as quick."""
CHUNK: Final = 4 << 20
"""Bytes of one copy by the kernel, so that a person who stops it waits less than 100 ms on a slow disk."""
LARGEST: Final = 2 << 20
SMALLEST: Final = 64 << 10
"""Bytes of a tile. Smaller ones would cost more calls than copying; larger ones leave the cache."""
SIDE: Final = 1 << 20
"""Bytes of the buffer of a digest, and of one of a checksum."""
CASTING: Final = casting.SCRATCH + (2 << 20)
SCALING: Final = CASTING + (4 << 20)
"""Bytes that converting numbers takes beside the tiles, and multiplying them."""
FEWEST_RECORDS: Final = 4
"""Coded records in which a worker keeps its place whatever the budget."""


class Written(Struct, frozen=True):
    """One tensor of an output file."""

    tensor: LogicalTensor
    dtype: str
    """In the output."""
    offset: int
    """Of its first byte in the file."""
    layout: Lowered | None = None
    """Of one rank, that of the output: where only a part of the tensor is written, or all of it in another order."""

    @property
    def elements(self) -> int:
        """Its elements in the output."""
        return prod(self.tensor.shape if self.layout is None else self.layout.ranks[0].shape)

    @property
    def size(self) -> int:
        """Its bytes in the output."""
        return byte_count(self.elements, DTYPES[self.dtype].bits)


class Run(NamedTuple):
    """Bytes that stay as they are, from file to file."""

    file: str
    source: int
    target: int
    length: int


class Band(NamedTuple):
    """A stretch of a tensor that goes through a tile."""

    number: int
    """Of the tensor, among those of the file."""
    tensor: Prepared
    offset: int
    """Of the tensor in the output."""
    low: int
    high: int


class Lane(NamedTuple):
    """Tensors out of coded records, which one thread makes one after the other, in the order of the records."""

    numbers: tuple[int, ...]


Unit: TypeAlias = Run | Band | Lane


def units(items: Sequence[Written], step: int) -> Iterator[Unit]:
    """Yield the work of a file: lanes first, since only one thread can do each, then the rest by rising target."""
    lanes = _lanes(items)
    yield from lanes
    apart = {number for lane in lanes for number in lane.numbers}
    yield from _fused(
        unit
        for number in sorted(range(len(items)), key=lambda number: items[number].offset)
        if number not in apart
        for unit in tensor_units(number, items[number], step)
    )


def tensor_units(number: int, item: Written, step: int) -> Iterator[Run | Band]:
    """Yield the work of one tensor, by rising target.

    Raises `Fault`: those of `segments.cuts` and of `tiles.prepared`.
    """
    found = cuts(item.tensor, item.layout)
    tensor = prepared(found, item.dtype)
    at, size = 0, item.size
    for run in [] if tensor.coded else _runs(found, tensor, item.offset):
        yield from bands(number, tensor, item.offset, at, run.target - item.offset, step)
        yield run
        at = run.target - item.offset + run.length
    yield from bands(number, tensor, item.offset, at, size, step)


def bands(number: int, tensor: Prepared, offset: int, low: int, high: int, step: int) -> Iterator[Band]:
    """Yield a stretch of a tensor in tiles that end at multiples of `step`."""
    while low < high:
        end = min(high, (low // step + 1) * step)
        yield Band(number, tensor, offset, low, end)
        low = end


def _runs(found: Cuts, tensor: Prepared, offset: int) -> list[Run]:
    """Return what needs no tile, by rising target: long runs, and tensors that are one run."""
    if tensor.changed:
        return []
    alone = found.routes[0].copy if len(found.routes) == 1 else None
    least = 1 if isinstance(alone, Copy) and not alone.counts else KERNEL
    runs = []
    for route in found.routes:
        copy, origin = route.copy, found.origins[route.source_rank]
        if not isinstance(copy, Copy) or copy.run < least or copy.scale != ONE:
            continue
        begin = origin.record.begin + origin.base
        end = begin - origin.base + min(origin.record.length, origin.record.size)
        for indices in product(*map(range, copy.counts)):
            source, target = (
                side.offset + sum(index * step for index, step in zip(indices, side.strides, strict=True))
                for side in (copy.source, copy.target)
            )
            if begin + source + copy.run <= end:  # what is not there is missed where it is read
                runs.append(Run(origin.record.file, begin + source, offset + target, copy.run))
    runs.sort(key=lambda run: run.target)
    return runs


def _fused(some: Iterable[Run | Band]) -> Iterator[Run | Band]:
    """Yield runs that continue each other on both sides as one, cut to size: small tensors lie side by side in most files."""
    held: Run | None = None
    for unit in some:
        if isinstance(unit, Band):
            if held is not None:
                yield from _cut(held)
                held = None
            yield unit
        elif (
            held is not None
            and held.file == unit.file
            and held.source + held.length == unit.source
            and held.target + held.length == unit.target
        ):
            held = held._replace(length=held.length + unit.length)
            while held.length >= 2 * CHUNK:
                yield held._replace(length=CHUNK)
                held = Run(held.file, held.source + CHUNK, held.target + CHUNK, held.length - CHUNK)
        else:
            if held is not None:
                yield from _cut(held)
            held = unit
    if held is not None:
        yield from _cut(held)


def _cut(run: Run) -> Iterator[Run]:
    for start in range(0, run.length, CHUNK):
        length = min(CHUNK, run.length - start)
        yield Run(run.file, run.source + start, run.target + start, length)


def _lanes(items: Sequence[Written]) -> list[Lane]:
    """Return the tensors out of coded records: those that share one in one lane, by their place in it."""
    lanes: dict[tuple[str, int], list[tuple[tuple[str, int, int], int]]] = {}
    for number, item in enumerate(items):
        coded = sorted(
            (fragment.record.file, fragment.record.begin, fragment.offset)
            for fragment in item.tensor.fragments
            if fragment.record.coding != "plain"
        )
        if not coded:
            continue
        shared = lanes.get(coded[0][:2], [])
        shared.append((coded[0], number))
        for file, begin, _ in coded:
            other = lanes.get((file, begin))
            if other is not None and other is not shared:
                shared.extend(other)
                for key in [key for key, lane in lanes.items() if lane is other]:
                    lanes[key] = shared
            lanes[file, begin] = shared
    distinct = {id(lane): lane for lane in lanes.values()}
    return [Lane(tuple(number for _, number in sorted(lane))) for lane in distinct.values()]


class Memory(NamedTuple):
    """How a budget is spent."""

    step: int
    """Bytes of a tile, and of one read."""
    records: int
    """Coded records in which each worker keeps its place."""
    bytes: int
    """Of all buffers together."""


def memory(
    items: Iterable[Written], budget_bytes: int, workers: int, *, digest: bool = True, checks: bool = True
) -> Memory:
    """Return the tiles that a budget allows, and what all buffers take: more than the budget only where it is below their least.

    It looks at the tensors' types, scales and records, never at their sizes.
    """
    workers = max(1, workers)
    each = held = 0
    for item in items:
        for fragment in item.tensor.fragments:
            if (fragment.dtype or item.tensor.dtype) != item.dtype or fragment.record.big_endian:
                each = max(each, CASTING)
            held = max(held, decompress.HELD.get(fragment.record.coding, 0))
        if _scaled(item.tensor.map):
            each = max(each, SCALING)
    aside = SIDE * digest + (SIDE + held) * checks
    room = (budget_bytes - aside) // workers - each - bool(held) * decompress.SKIP
    open_records = max(FEWEST_RECORDS, min(OPEN_RECORDS, room // 2 // held)) if held else 0
    room -= open_records * held
    step = max(SMALLEST, min(LARGEST, room // 2 // GRAIN * GRAIN))
    each += bool(held) * decompress.SKIP + open_records * held + 2 * step
    return Memory(step, open_records, aside + workers * each)


def _scaled(found: Lowered | TensorMap) -> bool:
    """Tell whether a map multiplies anything."""
    if isinstance(found, Lowered):
        return any(shard.scaled for shard in found.ranks)
    left: list[Node | None] = [found.map]
    while left:
        node = left.pop()
        if isinstance(node, Scale):
            return True
        if isinstance(node, SubParamConcat):
            left += [part.map for part in node.parts]
        if node is not None and not isinstance(node, Replicate):
            left.append(node.of)
    return False


def records(items: Iterable[Written]) -> dict[Record, None]:
    """Return the records that tensors are made of, in the order of their first use."""
    return dict.fromkeys(fragment.record for item in items for fragment in item.tensor.fragments)
