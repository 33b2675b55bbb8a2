"""Index arrays: compressed to blocks where that pays, otherwise kept as they are, walked and paid for.

The rule of escalation, the same for every `Explicit` node and every rank: an index array becomes affine pieces when they
number at most one for `INDICES_PER_PIECE` indices (`FEW_PIECES` always pass). Otherwise it stays an index. Where the pieces
of a whole map then cannot be proven, since their steps form no chain, the map is lowered once more with every `Explicit`
node as an index. An index is a list of runs of step 1 to the rest of this room, since such runs meet anything.
"""

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Final

from shardscope.engine.geometry.pieces.blocks import Block, boxes, steps
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.digits import DigitBox, chain_of
from shardscope.engine.geometry.pieces.fold import folded, separable
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import IndexedPiece, Side

INDICES_PER_PIECE: Final = 8
FEW_PIECES: Final = 16

INDEXED: Final = 1
"""The tag of a block that is part of an index: never folded, and packed again at the end."""

_ONE: Final = (1,)

_Run = tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Position, index, extents, and the strides of both, outermost first."""


def blocks_of(indices: Sequence[int], *, index: bool) -> list[Block]:
    """Return an index array as blocks from positions (a) to indices (b).

    `index` forbids compression. Blocks that stand for an index have the tag `INDEXED`.
    """
    found = None if index else compressed(indices)
    return runs(range(len(indices)), indices) if found is None else found


def compressed(indices: Sequence[int]) -> list[Block] | None:
    """Return the few blocks that an index array comes to; null where the rule says no."""
    most = allowed(len(indices))
    found = _progressions(indices)
    while True:
        before = len(found)
        found = _grouped(found)
        if len(found) == before:
            break
    if len(found) > max(4 * most, 64):
        return None
    merged = folded(Block(extents, Side(at, a), Side(index, b)) for at, index, extents, a, b in found)
    return merged if len(merged) <= most else None


def allowed(elements: int) -> int:
    """Return how many pieces may stand for so many elements before an index is the better description."""
    return max(FEW_PIECES, elements // INDICES_PER_PIECE)


def _progressions(indices: Sequence[int]) -> list[_Run]:
    found: list[_Run] = []
    start, count = 0, len(indices)
    while start < count:
        end = start + 1
        step = indices[end] - indices[start] if end < count else 0
        if step > 0:
            while end < count and indices[end] - indices[end - 1] == step:
                end += 1
            found.append((start, indices[start], (end - start,), _ONE, (step,)))
        else:
            found.append((start, indices[start], (), (), ()))
        start = end
    return found


def _grouped(found: Sequence[_Run]) -> list[_Run]:
    """Group neighbours of one form that stand in a progression: one dimension more for each call."""
    grouped: list[_Run] = []
    start = 0
    while start < len(found):
        at, index, extents, a, b = found[start]
        end = start + 1
        if end < len(found) and found[end][2:] == (extents, a, b):
            step, stride = found[end][0] - at, found[end][1] - index
            while (
                end < len(found)
                and found[end][2:] == (extents, a, b)
                and found[end][1] == index + (end - start) * stride
            ):
                end += 1
            outer = (end - start, *extents)
            if separable((stride, *b), outer):
                grouped.append((at, index, outer, (step, *a), (stride, *b)))
                start = end
                continue
            end = start + 1
        grouped.append(found[start])
        start = end
    return grouped


def runs(a: Sequence[int], b: Sequence[int]) -> list[Block]:
    """Return two lists of addresses, side by side, as runs of step 1 on both sides."""
    found = []
    start = 0
    for end in range(1, len(a) + 1):
        if end == len(a) or a[end] - a[end - 1] != 1 or b[end] - b[end - 1] != 1:
            found.append(Block((end - start,), Side(a[start], _ONE), Side(b[start], _ONE), INDEXED))
            start = end
    return found


def walked(blocks: Iterable[Block]) -> list[Block]:
    """Return blocks as runs of step 1 on both sides, by rising address on side a. This walks elements."""
    starts: list[tuple[int, int, int]] = []
    for block in blocks:
        if 0 not in block.shape:
            starts += _starts(block)
    starts.sort()
    joined: list[tuple[int, int, int]] = []
    for at, there, length in starts:
        if joined:
            before, other, extent = joined[-1]
            if before + extent == at and other + extent == there:
                joined[-1] = (before, other, extent + length)
                continue
        joined.append((at, there, length))
    return [Block((n,), Side(at, _ONE), Side(there, _ONE), INDEXED) for at, there, n in joined]


def walked_each(blocks: Iterable[Block]) -> list[Block]:
    """Return every block as `walked`, with its own tag. This walks elements."""
    return [Block(run.shape, run.a, run.b, block.tag) for block in blocks for run in walked([block])]


def boxed(
    blocks: Sequence[Block], total: int, budget: Budget, *, side: str, walk: bool
) -> tuple[tuple[int, ...], list[DigitBox]]:
    """Return place values for one side of blocks and their boxes, with the tags of the blocks.

    `walk` allows to walk elements where steps form no chain. Raises `Fault` `map.unproven`, `map.budget`.
    """
    try:
        places = chain_of(steps(blocks, side=side), total)
        return places, boxes(blocks, places, budget, side=side, tagged=True)
    except Fault as fault:
        if not walk or fault.finding.code != "map.unproven":
            raise
    budget.walk(sum(block.elements for block in blocks))
    single = walked_each(blocks)
    places = chain_of(steps(single, side=side), total)
    return places, boxes(single, places, budget, side=side, tagged=True)


def runs_of(one: IndexedPiece, tag: int) -> list[Block]:
    """Return an indexed piece as runs from logical (a) to shard (b) addresses."""
    found = runs(unpacked(one.source), unpacked(one.dest))
    return [Block(run.shape, run.a, run.b, tag) for run in found]


def _starts(block: Block) -> Iterator[tuple[int, int, int]]:
    dims = sorted(zip(block.a.strides, block.b.strides, block.shape, strict=True), reverse=True)
    length = 1
    if dims and dims[-1][:2] == (1, 1):
        length = dims.pop()[2]
    for index in product(*[range(extent) for _, _, extent in dims]):
        at, there = block.a.offset, block.b.offset
        for n, (a, b, _) in zip(index, dims, strict=True):
            at, there = at + n * a, there + n * b
        yield at, there, length


def settled(parts: Sequence[Block]) -> tuple[list[Block], list[Block]]:
    """Return blocks as few merged ones, and as those that an index had better describe."""
    plain = folded(part for part in parts if part.tag != INDEXED)
    index = [part for part in parts if part.tag == INDEXED]
    if index and len(plain) > allowed(sum(part.elements for part in plain)):
        return [], walked([*plain, *index])
    return plain, walked(index)


def packed(addresses: Iterable[tuple[int, int]]) -> bytes:
    """Return runs of addresses (first, length) as signed 64-bit little-endian integers."""
    found = array("q")
    for first, length in addresses:
        if length == 1:
            found.append(first)
        else:
            found.extend(range(first, first + length))
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()


def unpacked(addresses: bytes) -> "array[int]":
    """Return what `packed` packed."""
    found = array("q")
    found.frombytes(addresses)
    if sys.byteorder == "big":
        found.byteswap()
    return found


def indexed_piece(blocks: Sequence[Block], holders: tuple[int, ...], scale: tuple[int, int]) -> IndexedPiece:
    """Return runs from logical (a) to shard (b) addresses as one indexed piece."""
    ordered = sorted((run.b.offset, run.a.offset, run.elements) for run in blocks)
    return IndexedPiece(
        packed((source, length) for _, source, length in ordered),
        packed((dest, length) for dest, _, length in ordered),
        holders,
        scale,
    )


def rising(addresses: Sequence[int]) -> bool:
    """Tell whether addresses rise from each to the next."""
    return all(one < other for one, other in pairwise(addresses))
