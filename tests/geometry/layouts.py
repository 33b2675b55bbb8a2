"""Layouts to move tensors through, and moving them one element at a time: slow, and too simple to be wrong."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.piece import IndexedPiece, Lowered, Piece
from shardscope.engine.model.shardmap import (
    Block,
    Box,
    Contiguous,
    DeviceMesh,
    Explicit,
    FlatRange,
    Interleave,
    MeshAxis,
    Node,
    Part,
    Replicate,
    SubParamConcat,
    TensorMap,
    Trim,
)

Array = NDArray[Any]


def mesh(**axes: int) -> DeviceMesh:
    return DeviceMesh(tuple(MeshAxis(name, size) for name, size in axes.items()))


def lowered(shape: tuple[int, ...], node: Node, **axes: int) -> Lowered:
    return lower(TensorMap(shape, node), mesh(**axes))


def shares(extent: int, ranks: int) -> tuple[int, ...]:
    """Widths as even as they can be; the last ranks may get none."""
    return tuple(
        min(extent, (r + 1) * -(-extent // ranks)) - min(extent, r * -(-extent // ranks))
        for r in range(ranks)
    )


def addresses(piece: Piece | IndexedPiece) -> list[tuple[int, int]]:
    """Where each element of a piece lies: in the full tensor and in the shard."""
    if isinstance(piece, IndexedPiece):
        pair = np.frombuffer(piece.source, "<i8"), np.frombuffer(piece.dest, "<i8")
        return list(zip(*(side.tolist() for side in pair), strict=True))
    return [
        (
            piece.source.offset + sum(i * s for i, s in zip(index, piece.source.strides, strict=True)),
            piece.dest.offset + sum(i * s for i, s in zip(index, piece.dest.strides, strict=True)),
        )
        for index in np.ndindex(*piece.shape)
    ]


def one_by_one(map_: Lowered, full: Array, rank: int) -> Array:
    """The shard of a rank, element by element."""
    shard = next(shard for shard in map_.ranks if shard.rank == rank)
    held = np.zeros(shard.elements, full.dtype)
    for piece in shard.held:
        for source, dest in addresses(piece):
            held[dest] = full.reshape(-1)[source]
    return held.reshape(shard.shape)


def padding(map_: Lowered, rank: int) -> NDArray[np.bool_]:
    """Which elements of a shard stand for nothing."""
    shard = next(shard for shard in map_.ranks if shard.rank == rank)
    blank = np.ones(shard.elements, bool)
    for piece in shard.held:
        blank[[dest for _, dest in addresses(piece)]] = False
    return blank.reshape(shard.shape)


def noise(shape: tuple[int, ...], dtype: str = "<u4", seed: int = 0) -> Array:
    """Independent random bytes: as floats they hold NaNs, infinities and subnormals."""
    size = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8).view(dtype).reshape(shape)


def same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()


LAYOUTS: Mapping[str, Lowered] = {
    "rows": lowered((12, 5), Contiguous("tp", 0, (3, 3, 3, 3)), tp=4),
    "columns": lowered((7, 12), Contiguous("tp", 1, (3, 3, 3, 3)), tp=4),
    "uneven, one rank without": lowered((5, 24), Contiguous("tp", 1, (8, 12, 4, 0)), tp=4),
    "the dimension in the middle": lowered((3, 8, 5), Contiguous("tp", 1, (2, 2, 2, 2)), tp=4),
    "columns of rows": lowered((8, 6), Contiguous("tp", 1, (4, 2), of=Contiguous("ep", 0, (5, 3))), tp=2, ep=2),
    "heads by rows": lowered((72, 4), Interleave("tp", 0, 2, 3, 3), tp=4),
    "heads by rows, several groups a rank": lowered((96, 3), Interleave("tp", 0, 4, 2, 3), tp=2),
    "three by three on columns": lowered((5, 24), Interleave("tp", 1, 2, 1, 3), tp=4),
    "parts, one of them everywhere": lowered(
        (24, 3), SubParamConcat(0, (Part(16, Contiguous("tp", 0, (4, 4, 4, 4))), Part(8, Replicate()))), tp=4
    ),
    "parts on columns": lowered(
        (3, 16),
        SubParamConcat(1, (Part(8, Contiguous("tp", 1, (4, 4))), Part(8, Contiguous("tp", 1, (2, 6))))),
        tp=2,
    ),
    "padded vocabulary": lowered((10, 3), Contiguous("tp", 0, (3, 3, 3, 3), of=Trim(0, 10, 12)), tp=4),
    "padded columns": lowered((3, 10), Contiguous("tp", 1, (6, 6), of=Trim(1, 10, 12)), tp=2),
    "flat partitions": lowered((7, 11), FlatRange("dp", (0, 30, 60), (30, 60, 90)), dp=3),
    "flat partitions of columns": lowered(
        (7, 12), FlatRange("dp", (0, 40), (40, 80), of=Contiguous("tp", 1, (6, 6))), tp=2, dp=2
    ),
    "boxes": lowered(
        (6, 6), Block(("tp",), (Box((0, 0), (6, 2)), Box((0, 2), (2, 4)), Box((2, 2), (4, 4)), None)), tp=4
    ),
    "replicas": lowered((4, 6), Contiguous("tp", 0, (2, 2)), dp=3, tp=2),
    "everywhere": lowered((4, 6), Replicate(), tp=3),
    "a scalar": lowered((), Replicate(), tp=2),
    "nothing": lowered((0, 4), Replicate(), tp=2),
    "every third": lowered(
        (30,), Explicit("tp", tuple(tuple(range(r, 30, 3)) for r in range(3))), tp=3
    ),
    "shuffled": lowered(
        (40, 20),
        Explicit("tp", tuple(tuple(map(int, part)) for part in np.random.default_rng(7).permutation(800).reshape(2, 400))),
        tp=2,
    ),
    "shuffled rows": lowered(
        (256, 8),
        Explicit(
            "tp",
            tuple(
                tuple(int(row) * 8 + c for row in part for c in range(8))
                for part in np.random.default_rng(8).permutation(256).reshape(2, 128)
            ),
        ),
        tp=2,
    ),
}  # fmt: skip
