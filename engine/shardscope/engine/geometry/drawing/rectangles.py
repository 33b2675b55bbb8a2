"""Pieces as a person sees them: a piece that jumps over rows becomes the rectangles of a matrix that it consists of.

The normal form says keys and values of a rank in one piece with a step between them. In a picture these are two places.
"""

from itertools import product
from math import prod

from msgspec.structs import replace

from shardscope.engine.model.piece import Piece, RankShard, Side

MOST = 256
"""Rectangles that one piece is cut into; with more it stays whole."""
ALL = 4_096
"""Those of a shard."""


def rectangles(shard: RankShard, columns: int) -> tuple[Piece, ...]:
    """Return the pieces of a shard in its order, cut where they jump in a full tensor of so many columns."""
    found: list[Piece] = []
    for piece in shard.pieces:
        found += _cut(piece, columns)
        if len(found) > ALL:
            return shard.pieces
    found.sort(key=lambda piece: (piece.dest.offset, piece.source.offset))
    return tuple(found)


def _cut(piece: Piece, columns: int) -> list[Piece]:
    dims = sorted(zip(piece.source.strides, piece.shape, piece.dest.strides, strict=True))
    kept = _joined(dims, columns)
    jumps = dims[kept:]
    if not jumps or prod(count for _, count, _ in jumps) > MOST:
        return [piece]
    inner = dims[:kept][::-1]
    shape = tuple(count for _, count, _ in inner)
    source = Side(piece.source.offset, tuple(stride for stride, _, _ in inner))
    dest = Side(piece.dest.offset, tuple(stride for _, _, stride in inner))
    found = []
    for numbers in product(*[range(count) for _, count, _ in jumps]):
        there = sum(n * stride for n, (stride, _, _) in zip(numbers, jumps, strict=True))
        here = sum(n * stride for n, (_, _, stride) in zip(numbers, jumps, strict=True))
        found.append(replace(piece, shape=shape, source=source.moved(there), dest=dest.moved(here)))
    return found


def _joined(dims: list[tuple[int, int, int]], columns: int) -> int:
    """Return how many dimensions, the smallest stride first, make one rectangle."""
    reach, down = 1, columns
    for number, (stride, count, _) in enumerate(dims):
        if stride == reach:
            reach *= count
        elif stride == down and reach <= columns:
            reach = 0  # a rectangle now: only further rows join it
        else:
            return number
        down = stride * count if reach == 0 else max(columns, reach)
    return len(dims)
