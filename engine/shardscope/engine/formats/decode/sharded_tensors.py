"""ShardedTensors that torch.save pickled on one rank: the list of all shards, and those that this rank holds.

Fields are those of `torch/distributed/_shard/sharded_tensor/api.py` (`__getstate__`), `metadata.py` and `shard.py`. FSDP1 writes
them for sharded and, under names of flat parameters, for local states.
"""

from typing import Final

from msgspec import Struct

from shardscope.engine.formats.decode.dtensors import odd
from shardscope.engine.model.catalogue import Shape
from shardscope.engine.model.pickled import Number, PickledTensor
from shardscope.engine.parse.pickled.tree import Tree

_MOST_SHARDS: Final = 1 << 20

Box = tuple[Shape, Shape]
"""Offsets and sizes."""


class Held(Struct, frozen=True):
    """What one rank holds of a ShardedTensor."""

    boxes: tuple[Box, ...]
    """Of all shards, in the order of the list."""
    owners: tuple[int | None, ...]
    """The rank that holds each of them, where the list says so."""
    rank: int | None
    """That wrote this file."""
    shards: tuple[tuple[Box, PickledTensor], ...]


def read_sharded(tree: Tree, tensor: PickledTensor) -> Held:
    """Return what a ShardedTensor says. Raises `Fault` `fsdp.layout_unknown` with a reason."""
    parts = tensor.parts
    listed = tree.items(parts.get("metadata"), "shards_metadata")
    if not 0 < len(listed) <= _MOST_SHARDS:
        raise odd("it lists no shards")
    size = tree.integers(parts.get("metadata"), "size")
    if size is not None and size != tuple(tensor.shape):
        raise odd("its list of shards is of another shape")
    boxes = tuple(_box(tree, item, len(tensor.shape)) for item in listed)
    owners = tuple(tree.integer(item, "placement", "_rank") for item in listed)
    shards = []
    for item in tree.items(parts.get("local_shards")):
        local = tree.tensor(item, "tensor")
        if local is None or local.kind != "strided":
            raise odd("it has a shard that is no plain tensor")
        shards.append((_box(tree, tree.get(item, "metadata"), len(tensor.shape)), local))
    return Held(boxes, owners, tree.integer(parts.get("process_group"), "global_rank"), tuple(shards))


def _box(tree: Tree, number: Number | None, axes: int) -> Box:
    offsets, sizes = tree.integers(number, "shard_offsets"), tree.integers(number, "shard_sizes")
    if offsets is None or sizes is None or len(offsets) != axes or len(sizes) != axes:
        raise odd("a shard has no place in it")
    if min((*offsets, *sizes), default=0) < 0:
        raise odd("a shard has a negative place")
    return offsets, sizes
