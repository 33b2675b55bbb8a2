"""Chunk lists of PyTorch's distributed checkpoints: boxes, each its own shard, whoever wrote it."""

from collections.abc import Sequence

from shardscope.engine.geometry.constructors.cuts import refuse
from shardscope.engine.model.shardmap import Block, Box, DeviceMesh, MeshAxis, TensorMap

CHUNK = "chunk"


def chunk_list(
    shape: Sequence[int],
    chunks: Sequence[tuple[Sequence[int], Sequence[int]]],
    labels: Sequence[int] | None = None,
) -> tuple[TensorMap, DeviceMesh]:
    """Return the map of a chunk list [(offsets, sizes), ...] and the mesh of its chunks.

    A chunk list tells where elements lie, not which rank holds them: duplicates are gone before it is written. Each chunk
    takes the place of a rank, with its number or its entry of `labels` as the label. Raises `Fault` `map.invalid`.
    """
    if not chunks:
        refuse("a list of no chunks")
    if labels is not None and len(labels) != len(chunks):
        refuse(f"{len(labels):,} labels for {len(chunks):,} chunks")
    boxes = []
    for number, (offsets, sizes) in enumerate(chunks):
        if len(offsets) != len(shape) or len(sizes) != len(shape) or min((*offsets, *sizes), default=0) < 0:
            refuse("a chunk has other dimensions than the tensor, or a negative number", f"chunks[{number}]")
        boxes.append(Box(tuple(offsets), tuple(sizes)))
    mesh = DeviceMesh((MeshAxis(CHUNK, len(boxes)),), None if labels is None else tuple(labels))
    return TensorMap(tuple(shape), Block((CHUNK,), tuple(boxes)), mesh=CHUNK), mesh
