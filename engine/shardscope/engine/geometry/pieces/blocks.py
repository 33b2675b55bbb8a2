"""Blocks with an address on two sides, and their composition through a space that two lists of blocks share.

This is the one operation behind lowering (a node after its child), planning (a target map after the inverse of a source
map) and inverting. It works on intersections of digit boxes and never on elements.
"""

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.digits import DigitBox, box_of, boxes_of, chain_of, written_out
from shardscope.engine.geometry.pieces.sweep import overlapping
from shardscope.engine.model.piece import Side


class Block(Struct, frozen=True, gc=False):
    """Elements with an address in two spaces. `tag` is whatever the caller wants to find again."""

    shape: tuple[int, ...]
    a: Side
    b: Side
    tag: int = 0

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    def swapped(self) -> "Block":
        """Return the block with its sides exchanged."""
        return Block(self.shape, self.b, self.a, self.tag)


class Meeting(Struct, frozen=True, gc=False):
    """Where a block of one list and a block of another share elements of the space between them."""

    shape: tuple[int, ...]
    a: Side
    """On the outer side of the first block."""
    b: Side
    """On the outer side of the second block."""
    first: int
    """Position of the first block in its list."""
    second: int


def steps(blocks: Sequence[Block], *, side: str) -> Iterator[tuple[int, int]]:
    """Yield the extent and the stride of every dimension on one side (`a` or `b`); blocks without elements have none."""
    for block in blocks:
        if 0 in block.shape:
            continue
        yield from zip(block.shape, block.a.strides if side == "a" else block.b.strides, strict=True)


def boxes(
    blocks: Sequence[Block], places: Sequence[int], budget: Budget, *, side: str, tagged: bool = False
) -> list[DigitBox]:
    """Return the digit boxes of all blocks on one side, tagged with the block's position (or its tag, where `tagged`).

    Blocks without elements have none. Raises `Fault` `map.unproven`.
    """
    found: list[DigitBox] = []
    for position, block in enumerate(blocks):
        if 0 in block.shape:
            continue
        here, there = (block.a, block.b) if side == "a" else (block.b, block.a)
        dims = tuple(zip(block.shape, here.strides, there.strides, strict=True))
        tag = block.tag if tagged else position
        single = box_of(here.offset, dims, there.offset, places, tag)
        if single is not None:
            found.append(single)
            continue
        for offset, fitting, base in written_out(here.offset, dims, there.offset, places, budget):
            found += boxes_of(offset, fitting, base, places, tag)
    return found


def meet(first: Sequence[Block], second: Sequence[Block], total: int, budget: Budget) -> list[Meeting]:
    """Return what `first` (by its side b) and `second` (by its side a) share in a space of `total` elements.

    Raises `Fault` `map.unproven` or `map.budget`.
    """
    places = chain_of((*steps(first, side="b"), *steps(second, side="a")), total)
    left = boxes(first, places, budget, side="b")
    return met(left, boxes(second, places, budget, side="a"), budget)


def met(first: Sequence[DigitBox], second: Sequence[DigitBox], budget: Budget) -> list[Meeting]:
    """Return what two lists of boxes share; each box's other side is an outer side.

    Raises `Fault` `map.budget`.
    """
    meetings = []
    for one, other in overlapping(first, second, budget):
        low = tuple(map(max, one.low, other.low))
        size = [min(x, y) - z for x, y, z in zip(one.high, other.high, low, strict=True)]
        kept = [k for k in range(len(size) - 1, -1, -1) if size[k] > 1]
        meetings.append(
            Meeting(
                shape=tuple([size[k] for k in kept]),
                a=Side(one.at(low), tuple([one.step[k] for k in kept])),
                b=Side(other.at(low), tuple([other.step[k] for k in kept])),
                first=one.tag,
                second=other.tag,
            )
        )
    return meetings
