"""Copy programs: pieces and segments as strided loops over runs of bytes.

A `Copy` says in bytes what a piece says in elements: dimensions that continue each other on both sides are fused, the
innermost one that is contiguous on both becomes a run, and the loops around it go by falling step of the target. All of it
is arithmetic on a few numbers, whatever the tensor's size.
"""

import math
import sys
from array import array
from collections.abc import Iterable, Sequence

from msgspec import Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import ONE, IndexedPiece, Piece, RankShard, Side

_UNIT = (1,)

SHORT_RUN = 64 << 10
MANY = 64
"""So many runs of at most `SHORT_RUN` bytes are moved by index: a call for each would take longer than moving them."""


class Copy(Struct, frozen=True, gc=False):
    """`run` bytes moved for every index of `counts`, in one strided loop. All addresses and steps are in bytes."""

    run: int
    counts: tuple[int, ...]
    """Extents of the loops, at least 2 each, by falling step of the target; empty for a single run."""
    source: Side
    target: Side
    scale: tuple[int, int] = ONE
    """Target by source."""

    @property
    def size(self) -> int:
        """Bytes moved."""
        return self.run * math.prod(self.counts)

    @property
    def source_span(self) -> int:
        """Bytes from the first to the last that is read."""
        return _span(self.run, self.counts, self.source)

    @property
    def target_span(self) -> int:
        """Bytes from the first to the last that is written."""
        return _span(self.run, self.counts, self.target)

    def part(self, dim: int, start: int, count: int) -> "Copy":
        """Return `count` indices of one loop from `start` on."""
        source, target = self.source, self.target
        s, t = source.offset + start * source.strides[dim], target.offset + start * target.strides[dim]
        before, after = slice(dim), slice(dim + 1, None)
        if count == 1:
            return Copy(
                self.run,
                self.counts[before] + self.counts[after],
                Side(s, source.strides[before] + source.strides[after]),
                Side(t, target.strides[before] + target.strides[after]),
                self.scale,
            )
        counts = (*self.counts[before], count, *self.counts[after])
        return Copy(self.run, counts, Side(s, source.strides), Side(t, target.strides), self.scale)

    def run_part(self, start: int, length: int) -> "Copy":
        """Return `length` bytes of every run, from byte `start` of it on."""
        return Copy(length, self.counts, self.source.moved(start), self.target.moved(start), self.scale)

    def moved(self, source: int, target: int) -> "Copy":
        """Return the copy between buffers that begin `source` and `target` bytes later."""
        return Copy(self.run, self.counts, self.source.moved(-source), self.target.moved(-target), self.scale)

    def turned(self) -> "Copy":
        """Return the copy from target to source, its loops in their order there. The scale is turned too."""
        dims = sorted(zip(self.source.strides, self.target.strides, self.counts, strict=True), reverse=True)
        return Copy(
            self.run,
            tuple([count for _, _, count in dims]),
            Side(self.target.offset, tuple([t for _, t, _ in dims])),
            Side(self.source.offset, tuple([s for s, _, _ in dims])),
            inverse(self.scale),
        )


class IndexedCopy(Struct, frozen=True, gc=False):
    """Runs moved one by one, because no loops describe them. Addresses are signed 64-bit little-endian integers."""

    run: int
    """Bytes of each."""
    unit: int
    """Bytes that an address counts."""
    source: bytes
    target: bytes
    scale: tuple[int, int] = ONE

    @property
    def size(self) -> int:
        """Bytes moved."""
        return self.run * (len(self.target) // 8)

    def turned(self) -> "IndexedCopy":
        """Return the copy from target to source, in the same order. The scale is turned too."""
        return IndexedCopy(self.run, self.unit, self.target, self.source, inverse(self.scale))


class Program(Struct, frozen=True):
    """All copies from one buffer into another."""

    rank: int
    """Whose shard one of the buffers is."""
    copies: tuple[Copy, ...]
    indexed: tuple[IndexedCopy, ...] = ()

    @property
    def all(self) -> tuple[Copy | IndexedCopy, ...]:
        """Copies of both kinds."""
        return (*self.copies, *self.indexed)

    @property
    def size(self) -> int:
        """Bytes moved."""
        return sum(copy.size for copy in self.all)


def inverse(scale: tuple[int, int]) -> tuple[int, int]:
    """Return the fraction that undoes another."""
    above, below = scale
    return (below, above) if above > 0 else (-below, -above)


def byte_count(elements: int, bits: int) -> int:
    """Return the bytes of so many elements.

    Raises `Fault` `map.sub_byte` where they do not fill whole bytes.
    """
    if elements * bits % 8:
        raise Fault("map.sub_byte", bits=bits)
    return elements * bits // 8


def shard_program(
    shard: RankShard, elements: int, bits: int, pieces: Iterable[Piece | IndexedPiece], *, inward: bool
) -> Program:
    """Return the copies of some pieces of a shard: from the shard into the full tensor (`inward`), or out of it.

    `elements` are those of the full tensor. Raises `Fault`: `map.sub_byte`, `map.unproven`, `map.outside`.
    """
    full, held = byte_count(elements, bits), byte_count(shard.elements, bits)
    sizes = (held, full) if inward else (full, held)
    copies: list[Copy] = []
    indexed: list[IndexedCopy] = []
    runs: dict[tuple[tuple[int, ...], tuple[int, int]], list[Piece]] = {}
    for piece in pieces:
        if isinstance(piece, IndexedPiece):
            item = byte_count(1, bits)
            sides = (piece.dest, piece.source) if inward else (piece.source, piece.dest)
            scale = inverse(piece.scale) if inward else piece.scale
            indexed.append(IndexedCopy(item, item, *sides, scale))
            continue
        if piece.source.strides == _UNIT == piece.dest.strides:
            runs.setdefault((piece.shape, piece.scale), []).append(piece)
            continue
        one, other = (piece.dest, piece.source) if inward else (piece.source, piece.dest)
        scale = inverse(piece.scale) if inward else piece.scale
        copy = compiled(piece.shape, one, other, bits, scale)
        if copy is not None:
            copies.append(bounded(copy, *sizes))
    for ((extent,), factor), group in runs.items():
        scale = inverse(factor) if inward else factor
        sources = [piece.source.offset for piece in group]
        targets = [piece.dest.offset for piece in group]
        if inward:
            sources, targets = targets, sources
        if len(group) < MANY or bits % 8 or not 0 < extent * bits // 8 <= SHORT_RUN:
            for source, target in zip(sources, targets, strict=True):
                copy = compiled((extent,), Side(source, _UNIT), Side(target, _UNIT), bits, scale)
                if copy is not None:
                    copies.append(bounded(copy, *sizes))
            continue
        item = bits // 8
        for starts, limit in ((sources, sizes[0]), (targets, sizes[1])):
            low, high = min(starts) * item, (max(starts) + extent) * item
            if low < 0 or high > limit:
                raise Fault("map.outside", start=low, end=high, limit=limit)
        indexed.append(IndexedCopy(extent * item, item, _addresses(sources), _addresses(targets), scale))
    return Program(shard.rank, tuple(copies), tuple(indexed))


def _addresses(values: Sequence[int]) -> bytes:
    packed = array("q", values)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _span(run: int, counts: Sequence[int], side: Side) -> int:
    return run + sum((count - 1) * step for count, step in zip(counts, side.strides, strict=True))


def compiled(
    shape: Sequence[int],
    source: Side,
    target: Side,
    bits: int,
    scale: tuple[int, int] = ONE,
) -> Copy | None:
    """Return a strided block of elements of `bits` bits as a copy of bytes; null where it is empty.

    Raises `Fault`: `map.sub_byte` where elements smaller than a byte would have to be moved one by one, `map.unproven` where
    dimensions run into each other or a step is not positive.
    """
    if 0 in shape:
        return None
    dims = sorted(
        [dim for dim in zip(target.strides, source.strides, shape, strict=True) if dim[2] != 1], reverse=True
    )
    merged: list[tuple[int, int, int]] = []
    for t, s, extent in dims:
        if t <= 0 or s <= 0:
            raise Fault("map.unproven", reason="a stride is not positive")
        if merged and merged[-1][0] == t * extent and merged[-1][1] == s * extent:
            merged[-1] = (t, s, merged[-1][2] * extent)
        else:
            merged.append((t, s, extent))
    run = bits
    if merged and merged[-1][:2] == (1, 1):
        run *= merged.pop()[2]
    addresses = (source.offset, target.offset, *(step for dim in merged for step in dim[:2]))
    if bits % 8 and (run % 8 or any(address * bits % 8 for address in addresses)):
        raise Fault("map.sub_byte", bits=bits)
    copy = Copy(
        run // 8,
        tuple([extent for _, _, extent in merged]),
        Side(source.offset * bits // 8, tuple([s * bits // 8 for _, s, _ in merged])),
        Side(target.offset * bits // 8, tuple([t * bits // 8 for t, _, _ in merged])),
        scale,
    )
    for side in (copy.source, copy.target):
        inner = copy.run
        for step, count in sorted(zip(side.strides, copy.counts, strict=True)):
            if step < inner:
                raise Fault("map.unproven", reason="the dimensions of one piece overlap")
            inner += (count - 1) * step
    return copy


def bounded(copy: Copy, source_bytes: int, target_bytes: int) -> Copy:
    """Return a copy that stays within buffers of these sizes. Maps come from files: nothing runs before this.

    Raises `Fault` `map.outside`.
    """
    for side, span, limit in (
        (copy.source, copy.source_span, source_bytes),
        (copy.target, copy.target_span, target_bytes),
    ):
        if side.offset < 0 or side.offset + span > limit:
            raise Fault("map.outside", start=side.offset, end=side.offset + span, limit=limit)
    return copy
