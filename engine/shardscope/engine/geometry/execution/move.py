"""Running copy programs with numpy, on flat buffers of bytes. Elements are never interpreted here.

A run is one element of a plain (`u1`, `u2`, `u4`, `u8`) or opaque (`V`) type of its length, so that numpy's strided loops move
a whole run at a time: for runs of 6 to 64 bytes that is 2 to 8 times the speed of a loop over their bytes. numpy checks
once more that each view lies within its buffer, and drops the interpreter lock while it copies.
"""

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.geometry.execution.cutting import LINE, blocked, split
from shardscope.engine.geometry.execution.program import Copy, IndexedCopy
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Side

Bytes: TypeAlias = NDArray[np.uint8]
"""A flat buffer."""

Index: TypeAlias = NDArray[np.int64]
"""Addresses."""

PLAIN = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}
"""Dtypes whose copies numpy has loops of their own for, by their bytes."""

LONGEST = 1 << 28
"""Bytes of a run that numpy is given as one element; longer ones are moved one by one."""

SCRATCH = 256 << 10
"""Bytes of a part that is gathered into a buffer of its own, to be compared or scaled while in cache."""

CHUNK = 32 << 10
"""Indices that are looked up at one time."""


def move(copy: Copy | IndexedCopy, source: Bytes, target: Bytes) -> None:
    """Run one copy. A `Copy` has been `bounded` by these buffers.

    Raises `Fault` `map.outside` for an index that leads out of them.
    """
    if isinstance(copy, IndexedCopy):
        _move_indexed(copy, source, target)
    elif not copy.counts:
        begin, start = copy.source.offset, copy.target.offset
        np.copyto(target[start : start + copy.run], source[begin : begin + copy.run])
    elif copy.run > LONGEST:
        for index in range(copy.counts[0]):
            move(copy.part(0, index, 1), source, target)
    else:
        for block in blocked(copy):
            np.copyto(_view(block, target, block.target), _view(block, source, block.source))


def _view(copy: Copy, buffer: Bytes, side: Side) -> NDArray[np.generic]:
    return np.ndarray(copy.counts, PLAIN.get(copy.run) or f"V{copy.run}", buffer, side.offset, side.strides)


def _move_indexed(copy: IndexedCopy, source: Bytes, target: Bytes) -> None:
    begin, start = np.frombuffer(copy.source, "<i8"), np.frombuffer(copy.target, "<i8")
    if not len(begin):
        return
    begin, start, run = _lengthened(begin, start, copy.run, copy.run // copy.unit)
    here, take_step = _grid(begin, source, run, copy.unit)
    there, put_step = _grid(start, target, run, copy.unit)
    if run >= LINE and len(begin) > 1 and not (np.diff(start) > 0).all():
        order = np.argsort(
            start
        )  # gathering what the target needs is quicker than scattering what the source has
        begin, start = begin[order], start[order]
    for at in range(
        0, len(begin), CHUNK
    ):  # a chunk's indices stay in cache while they are checked, divided and used
        take = _numbers(begin[at : at + CHUNK], take_step, len(here), copy.unit)
        put = _numbers(start[at : at + CHUNK], put_step, len(there), copy.unit)
        if isinstance(put, slice) and not isinstance(take, slice) and here.flags.c_contiguous:
            np.take(here, take, out=there[put], mode="clip")  # "raise" would go through a buffer
        else:
            there[put] = here[take]


def _numbers(addresses: Index, step: int, count: int, unit: int) -> Index | slice:
    """Return which elements of a grid addresses stand for, as a slice where they follow each other.

    Raises `Fault` `map.outside`.
    """
    numbers = addresses if step == 1 else addresses // step
    first, length = int(numbers[0]), len(numbers)
    follow = int(numbers[-1]) - first == length - 1 and bool((numbers[1:] > numbers[:-1]).all())
    # Read without their sign, addresses below zero are beyond every end.
    high = int(addresses[-1] if follow and first >= 0 else addresses.view("<u8").max())
    if high // step >= count:
        raise Fault(
            "map.outside",
            start=int(addresses.min()) * unit,
            end=(high + step) * unit,
            limit=count * step * unit,
        )
    return slice(first, first + length) if follow else numbers


def _lengthened(begin: Index, start: Index, run: int, units: int) -> tuple[Index, Index, int]:
    """Return the same runs as fewer and longer ones, where all of them continue each other as evenly as that."""
    each = len(begin)
    for at in range(0, len(begin), CHUNK):  # with one address before, so that every step is seen
        first, chosen = max(0, at - 1), slice(max(0, at - 1), at + CHUNK)
        breaks = np.flatnonzero((np.diff(begin[chosen]) != units) | (np.diff(start[chosen]) != units))
        each = int(np.gcd.reduce(breaks + (first + 1), initial=each))
        if each == 1:
            return begin, start, run
    return begin[::each], start[::each], run * each


def _grid(addresses: Index, buffer: Bytes, run: int, unit: int) -> tuple[NDArray[np.generic], int]:
    """Return a buffer as elements of `run` bytes, one at each multiple of a step, and this step, in units.

    All addresses are multiples of it.
    """
    step = run
    if run != unit:
        step = math.gcd(int(np.gcd.reduce(addresses)) * unit, run)
    count = max(0, (len(buffer) - run) // step + 1)
    return np.ndarray((count,), PLAIN.get(run) or f"V{run}", buffer, 0, (step,)), step // unit


def parts(copy: Copy | IndexedCopy) -> Iterator[tuple[Copy | IndexedCopy, Copy | IndexedCopy]]:
    """Yield a copy in parts that fit a scratch buffer, each as two copies: from the source into scratch, and from there on."""
    if isinstance(copy, IndexedCopy):
        for part in _index_split(copy):
            count = len(part.target) // 8
            dense = (np.arange(count, dtype="<i8") * (part.run // part.unit)).tobytes()
            yield (
                IndexedCopy(part.run, part.unit, part.source, dense),
                IndexedCopy(part.run, part.unit, dense, part.target),
            )
        return
    for piece in split(copy, SCRATCH):
        strides, step = [], piece.run
        for extent in reversed(piece.counts):
            strides.append(step)
            step *= extent
        scratch = Side(0, tuple(reversed(strides)))
        yield (
            Copy(piece.run, piece.counts, piece.source, scratch),
            Copy(piece.run, piece.counts, scratch, piece.target),
        )


def _index_split(copy: IndexedCopy) -> Iterator[IndexedCopy]:
    count = len(copy.target) // 8
    each = max(1, SCRATCH // copy.run)
    for start in range(0, count, each):
        chosen = slice(8 * start, 8 * min(start + each, count))
        yield IndexedCopy(copy.run, copy.unit, copy.source[chosen], copy.target[chosen])


def dense(gather: Copy | IndexedCopy, buffer: Bytes) -> Bytes:
    """Return what a copy into scratch reads: a view where it is contiguous."""
    if isinstance(gather, Copy) and not gather.counts:
        return buffer[gather.source.offset : gather.source.offset + gather.run]
    scratch = np.empty(gather.size, np.uint8)
    move(gather, buffer, scratch)
    return scratch


def first_difference(one: Bytes, other: Bytes) -> int | None:
    """Return where two buffers of one length first differ; null where they do not."""
    whole = len(one) // 8 * 8
    if np.array_equal(one[:whole].view("u8"), other[:whole].view("u8")) and np.array_equal(
        one[whole:], other[whole:]
    ):
        return None
    return int(np.argmax(one != other))


def address(scatter: Copy | IndexedCopy, at: int) -> int:
    """Return the target address of the byte `at` of the scratch that a copy reads."""
    index, byte = divmod(at, scatter.run)
    if isinstance(scatter, IndexedCopy):
        entry = scatter.target[8 * index : 8 * index + 8]
        return int.from_bytes(entry, "little", signed=True) * scatter.unit + byte
    found = scatter.target.offset + byte
    inner = math.prod(scatter.counts)
    for count, step in zip(scatter.counts, scatter.target.strides, strict=True):
        inner //= count
        position, index = divmod(index, inner)
        found += position * step
    return found
