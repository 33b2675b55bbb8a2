"""The map of a tensor whose slices were cut as a layout says."""

from collections.abc import Sequence

from shardscope.engine.geometry.constructors.cuts import even, fused
from shardscope.engine.geometry.mapping.sections import Asked, sectioned
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.mapping import Kind, ModelFacts
from shardscope.engine.model.shardmap import Contiguous, Node, Replicate, TensorMap

TP = "tp"


def shard_map(
    kind: Kind, shards: Sequence[tuple[int, ...]], facts: ModelFacts, asked: Asked, *, axis: str = TP
) -> TensorMap:
    """Return the map of a tensor whose slices, rank by rank of `axis`, have these shapes.

    Raises `Fault`: `megatron.shard_shape` where they are not what an even cut gives, `mapping.fact_missing`, `mapping.size`.
    """
    first = shards[0]
    if any(shard != first for shard in shards):
        raise _shape(asked, "its ranks hold shards of different shapes")
    if kind.cut is None or len(shards) == 1:
        return TensorMap(first, Replicate())
    if kind.cut >= len(first):
        raise _shape(asked, f"it has no dimension {kind.cut}, along which ranks cut it")
    dim = kind.cut
    extent = first[dim] * len(shards)
    shape = (*first[:dim], extent, *first[dim + 1 :])
    if not kind.each or kind.view is None:
        return TensorMap(shape, Contiguous(axis, dim, (first[dim],) * len(shards)))
    cut = sectioned(kind.view, extent, facts, asked)
    for size in cut.sizes:
        if size * cut.inner % len(shards):
            raise _shape(asked, f"a section of {size * cut.inner:,} slices among {len(shards):,} ranks")
    node: Node = fused(axis, dim, [even(size * cut.inner, len(shards)) for size in cut.sizes])
    return TensorMap(shape, node)


def _shape(asked: Asked, reason: str) -> Fault:
    return Fault("megatron.shard_shape", tensor=asked.tensor, reason=reason)
