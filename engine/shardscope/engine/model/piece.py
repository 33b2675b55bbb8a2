"""The normal form of a shard map: affine pieces, in elements, never in bytes.

A piece is a block of elements with an address on two sides: in the full logical tensor and in the shard of a rank. Both
addresses are affine in the block's index: `offset + sum(index[k] * strides[k])`. The form follows DeepSpeed's affine IR
(`deepspeed/checkpoint/affine_ir.py`); its container is read and written in `geometry/deepspeed`.
"""

import math
from typing import Final

from msgspec import Struct

ONE: Final = (1, 1)
"""The scale of nearly every piece, as a fraction."""


class Side(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a block lies in one address space of elements."""

    offset: int
    strides: tuple[int, ...]

    def moved(self, by: int) -> "Side":
        """Return this side `by` elements further."""
        return Side(self.offset + by, self.strides)


class Piece(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One block: `shard[dest] = full[source] * scale`, held by every rank of `holders` at the same shard address."""

    shape: tuple[int, ...]
    """Extents, at least 1 each; empty for a single element."""
    source: Side
    """In the full logical tensor, row-major."""
    dest: Side
    """In the shard, row-major."""
    holders: tuple[int, ...]
    """Ranks that hold these elements of the logical tensor, sorted; wherever each of them keeps them."""
    scale: tuple[int, int] = ONE
    """A fraction in lowest terms with a positive denominator; never zero."""

    @property
    def elements(self) -> int:
        """How many elements the block has."""
        return math.prod(self.shape)


class IndexedPiece(Struct, frozen=True):
    """Elements that no few affine pieces describe: one address on each side for every element.

    Only an `Explicit` node that cannot be compressed makes it. It is the one thing whose cost grows with its elements,
    so it is bounded by `Budgets.explicit_bytes` and named wherever it turns up. Addresses are signed 64-bit
    little-endian integers, one after the other, by rising address in the shard.
    """

    source: bytes
    """Addresses in the full logical tensor."""
    dest: bytes
    """Addresses in the shard, rising."""
    holders: tuple[int, ...]
    """As of a `Piece`."""
    scale: tuple[int, int] = ONE

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return len(self.dest) // 8


class RankShard(Struct, frozen=True):
    """What one rank holds of a tensor."""

    rank: int
    shape: tuple[int, ...]
    """Of the shard, padding included."""
    pieces: tuple[Piece, ...]
    padding: int = 0
    """Elements of the shard that stand for no element of the logical tensor."""
    indexed: tuple[IndexedPiece, ...] = ()
    """What could not be said in pieces."""

    @property
    def held(self) -> "tuple[Piece | IndexedPiece, ...]":
        """Pieces of both kinds."""
        return (*self.pieces, *self.indexed)

    @property
    def elements(self) -> int:
        """Elements of the shard, padding included."""
        return math.prod(self.shape)

    @property
    def scales(self) -> set[tuple[int, int]]:
        """The factors of its pieces."""
        return {piece.scale for piece in self.pieces} | {piece.scale for piece in self.indexed}

    @property
    def scaled(self) -> bool:
        """Whether a piece has a factor other than 1."""
        return bool(self.scales - {ONE})


class Lowered(Struct, frozen=True):
    """A shard map in normal form: for each rank, sorted, the pieces of its shard."""

    shape: tuple[int, ...]
    """Of the full logical tensor."""
    ranks: tuple[RankShard, ...]
    explicit: bool = False
    """An `Explicit` node had a part in it: where steps form no chain, its elements may be walked, within their budget."""

    @property
    def elements(self) -> int:
        """Elements of the logical tensor."""
        return math.prod(self.shape)

    @property
    def pieces(self) -> int:
        """Pieces of all ranks, indexed ones included."""
        return sum(len(shard.pieces) + len(shard.indexed) for shard in self.ranks)

    @property
    def indexed_elements(self) -> int:
        """Elements of all ranks that only an index describes: what makes this map costly, and zero for nearly all."""
        return sum(piece.elements for shard in self.ranks for piece in shard.indexed)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous tensor of this shape."""
    strides = [1] * len(shape)
    for k in range(len(shape) - 2, -1, -1):
        strides[k] = strides[k + 1] * shape[k + 1]
    return tuple(strides)
