"""Transfer plans for ranks that live: every process goes through the same moves, and does those that it has a part in.

A move is a bounded part of one segment. Whoever has the source shard gathers its bytes, whatever carries them, and whoever
has the target shard scatters them. Nothing here knows what a transport is, and nobody holds more than a shard of a tensor and one
move. Moves come in one order for all: by pair of ranks, then by tensor, then as the plan has them; so that two sides which wait for
each other always wait for the same move.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from shardscope.engine.geometry.execution.cutting import split
from shardscope.engine.geometry.execution.move import move
from shardscope.engine.geometry.execution.program import Copy, IndexedCopy, bounded, byte_count, compiled
from shardscope.engine.geometry.pieces.factors import factor
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import ONE, Side, row_major
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.transfer import IndexedSegment, Segment, TransferPlan

MESSAGE: Final = 4 << 20
"""Bytes of a move, at the most."""

Readable: TypeAlias = bytes | bytearray | memoryview
Writable: TypeAlias = bytearray | memoryview


class Move(Struct, frozen=True):
    """Bytes that a rank gives another, or itself: a part of one segment."""

    tensor: str
    source_rank: int
    target_rank: int
    copy: Copy | IndexedCopy
    """From the source's shard to the target's, in bytes."""

    @property
    def size(self) -> int:
        """Bytes that are carried."""
        return self.copy.size


Read: TypeAlias = Callable[[int, Move], Readable]
"""`read(rank, move)`: the bytes that `gather` makes of the rank's shard, wherever that is."""
Write: TypeAlias = Callable[[int, Move, Readable], object]
"""`write(rank, move, data)`: what `scatter` does, wherever the rank's shard is. `data` is only good during the call."""


def moves(
    plans: Mapping[str, TransferPlan], dtypes: Mapping[str, str], *, most_bytes: int = MESSAGE
) -> Iterator[Move]:
    """Yield everything that some transfer plans carry, in parts of at most `most_bytes`; of a cache line, where that is less.

    `dtypes` are the types of the tensors by their names in safetensors. Every process that has equal plans gets equal moves. Padding
    of targets is carried by none: it has to be zero before. Raises `Fault`: `map.scaled` for a plan that changes values,
    `convert.dtype`, `map.sub_byte`, `map.unproven`.
    """
    bits = {name: _bits(name, dtypes) for name in plans}
    for name, plan in plans.items():
        every: tuple[Segment | IndexedSegment, ...] = (*plan.segments, *plan.indexed)
        for one in every:
            if one.scale != ONE:
                raise Fault("map.scaled", tensor=name, rank=one.source_rank, factor=factor(one.scale))
    by_pair: dict[tuple[int, int], list[tuple[str, list[Segment | IndexedSegment]]]] = {}
    for name, plan in plans.items():
        kinds: tuple[tuple[Segment | IndexedSegment, ...], ...] = (plan.segments, plan.indexed)
        for some in kinds:
            for pair, held in groupby(some, lambda one: (one.source_rank, one.target_rank)):
                by_pair.setdefault(pair, []).append((name, list(held)))
    for pair in sorted(by_pair):
        for name, segments in by_pair[pair]:
            for segment in segments:
                for copy in _copies(segment, bits[name], most_bytes):
                    yield Move(name, *pair, copy)


def stream(
    plans: Mapping[str, TransferPlan],
    dtypes: Mapping[str, str],
    read: Read,
    write: Write,
    *,
    most_bytes: int = MESSAGE,
) -> int:
    """Carry out transfer plans through any pair of callables, one move after the other; return how many bytes were carried.

    Raises `Fault`: those of `moves`, `map.short_read`; and what the callables raise.
    """
    carried = 0
    for one in moves(plans, dtypes, most_bytes=most_bytes):
        data = read(one.source_rank, one)
        found = memoryview(data).nbytes
        if found != one.size:
            raise Fault("map.short_read", rank=one.source_rank, offset=0, expected=one.size, found=found)
        write(one.target_rank, one, data)
        carried += one.size
    return carried


def gather(one: Move, shard: Readable) -> memoryview:
    """Return the bytes of a move out of the source rank's shard: a flat buffer, row-major.

    Raises `Fault` `map.outside` where the move leads out of it.
    """
    held = np.frombuffer(shard, np.uint8)
    data = np.empty(one.size, np.uint8)
    copy = _dense(one.copy, source=True)
    if isinstance(copy, Copy):
        bounded(copy, len(held), len(data))
    move(copy, held, data)
    return data.data


def scatter(one: Move, data: Readable, shard: Writable) -> None:
    """Put the bytes of a move where they go in the target rank's shard: a flat buffer, row-major, that can be written.

    Raises `Fault`: `map.outside`, `map.short_read` where there are not as many bytes as the move has.
    """
    given, held = np.frombuffer(data, np.uint8), np.frombuffer(shard, np.uint8)
    if len(given) != one.size:
        raise Fault("map.short_read", rank=one.source_rank, offset=0, expected=one.size, found=len(given))
    copy = _dense(one.copy, source=False)
    if isinstance(copy, Copy):
        bounded(copy, len(given), len(held))
    move(copy, given, held)


def _bits(name: str, dtypes: Mapping[str, str]) -> int:
    known = DTYPES.get(dtypes.get(name, ""))
    if known is None:
        raise Fault("convert.dtype", tensor=name, found=dtypes.get(name, "no type"))
    return known.bits


def _copies(segment: Segment | IndexedSegment, bits: int, most: int) -> Iterator[Copy | IndexedCopy]:
    if isinstance(segment, Segment):
        copy = compiled(segment.shape, segment.source, segment.target, bits)
        if copy is not None:
            yield from split(copy, max(1, most))
        return
    item = byte_count(1, bits)
    step = 8 * max(1, most // item)
    for start in range(0, len(segment.target), step):
        yield IndexedCopy(
            item, item, segment.source[start : start + step], segment.target[start : start + step]
        )


def _dense(copy: Copy | IndexedCopy, *, source: bool) -> Copy | IndexedCopy:
    """Return the copy between a shard and the bytes that are carried, which lie in the order of its loops."""
    if isinstance(copy, IndexedCopy):
        count = len(copy.target) // 8
        numbers: NDArray[np.int64] = np.arange(count, dtype="<i8") * (copy.run // copy.unit)
        sides = (copy.source, numbers.tobytes()) if source else (numbers.tobytes(), copy.target)
        return IndexedCopy(copy.run, copy.unit, *sides)
    steps = tuple(step * copy.run for step in row_major(copy.counts))
    between = Side(0, steps)
    if source:
        return Copy(copy.run, copy.counts, copy.source, between)
    return Copy(copy.run, copy.counts, between, copy.target)
