"""Blocks with an address on two sides, and their composition through a space that two lists of blocks share.

This is the one operation behind lowering (a node after its child), planning (a target map after the inverse of a source
map) and inverting. It works on intersections of digit boxes and never on elements.
"""

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from shardscope.engine.geometry.budget import Budget
from shardscope.engine.geometry.digits import DigitBox, boxes_of, chain_of
from shardscope.engine.model.piece import Side


class Block(Struct, frozen=True):
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


class Meeting(Struct, frozen=True):
    """Where a block of one list and a block of another share elements of the space between them."""

    shape: tuple[int, ...]
    a: Side
    """On the outer side of the first block."""
    b: Side
    """On the outer side of the second block."""
    first: int
    """Position of the first block in its list."""
    second: int


def steps(blocks: Sequence[Block], *, side: str) -> Iterator[int]:
    """Yield the strides of every dimension longer than 1 on one side (`a` or `b`)."""
    for block in blocks:
        strides: tuple[int, ...] = getattr(block, side).strides
        for extent, stride in zip(block.shape, strides, strict=True):
            if extent != 1:
                yield stride


def boxes(blocks: Sequence[Block], places: Sequence[int], *, side: str) -> list[DigitBox]:
    """Return the digit boxes of all blocks on one side, tagged with the block's position; empty blocks have none."""
    found: list[DigitBox] = []
    for position, block in enumerate(blocks):
        if 0 in block.shape:
            continue
        here, there = (block.a, block.b) if side == "a" else (block.b, block.a)
        dims = tuple(zip(block.shape, here.strides, there.strides, strict=True))
        found += boxes_of(here.offset, dims, there.offset, places, position)
    return found


def meet(first: Sequence[Block], second: Sequence[Block], total: int, budget: Budget) -> list[Meeting]:
    """Return what `first` (by its side b) and `second` (by its side a) share in a space of `total` elements.

    In order of the shared space. Raises `Fault` `map.unproven` or `map.budget`.
    """
    places = chain_of((*steps(first, side="b"), *steps(second, side="a")), total)
    left = boxes(first, places, side="b")
    right = boxes(second, places, side="a")
    meetings = []
    for one, other in overlapping(left, right, budget):
        low = tuple(map(max, one.low, other.low))
        size = tuple(
            min(x + n, y + m) - z
            for x, n, y, m, z in zip(one.low, one.size, other.low, other.size, low, strict=True)
        )
        kept = [k for k in range(len(size) - 1, -1, -1) if size[k] > 1]
        meetings.append(
            Meeting(
                shape=tuple(size[k] for k in kept),
                a=Side(_at(one, low), tuple(one.step[k] for k in kept)),
                b=Side(_at(other, low), tuple(other.step[k] for k in kept)),
                first=one.tag,
                second=other.tag,
            )
        )
    return meetings


def _at(box: DigitBox, low: Sequence[int]) -> int:
    return box.base + sum((x - y) * s for x, y, s in zip(low, box.low, box.step, strict=True))


def overlapping(
    left: Sequence[DigitBox], right: Sequence[DigitBox], budget: Budget
) -> Iterator[tuple[DigitBox, DigitBox]]:
    """Yield the pairs of boxes that share elements, by a sweep along the digit that tells most boxes apart."""
    if not left or not right:
        return
    digits = range(len(left[0].low))
    digit = max(digits, key=lambda k: (len({box.low[k] for box in (*left, *right)}), k))
    events = sorted(
        [(box.low[digit], 0, n) for n, box in enumerate(left)]
        + [(box.low[digit], 1, n) for n, box in enumerate(right)]
    )
    active: tuple[list[DigitBox], list[DigitBox]] = ([], [])
    for low, which, number in events:
        box = (left, right)[which][number]
        others = active[1 - which]
        others[:] = [other for other in others if other.low[digit] + other.size[digit] > low]
        active[which].append(box)
        budget.spend("pair_checks", len(others))
        for other in others:
            if all(
                x < y + m and y < x + n
                for x, n, y, m in zip(box.low, box.size, other.low, other.size, strict=True)
            ):
                yield (box, other) if which == 0 else (other, box)
