"""Optimizer state that older versions of Megatron Core stored flattened, in its true shape again.

`megatron/core/dist_checkpointing/strategies/torch.py` (0.7 to 0.13), `sharded_tensor_to_torch_sharded_tensor`: a tensor [X, Y] whose
shards of [x, y] were flattened and cut once more is stored as [X / x, Y / y, x * y]; `mcore_data` keeps [X, Y].
"""

from collections.abc import Iterable
from math import prod
from typing import Final

import msgspec

from shardscope.engine.formats.decode.dcp_metadata import Saved
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor, Shape
from shardscope.engine.model.shardmap import Block, Box, FlatRange, TensorMap

_ORIGINAL: Final = "nd_reformulated_orig_global_shape"


def original_shapes(saved: Saved) -> dict[str, Shape]:
    """Return the true shapes of tensors that are stored flattened, by key."""
    extra = saved.extra("mcore_data")  # noqa: S610 - no query: an attribute of the metadata
    if extra is None:
        return {}
    tree, number = extra
    found: dict[str, Shape] = {}
    for key, value in tree.entries(number):
        shape = tree.integers(value, _ORIGINAL)
        if isinstance(key, str) and shape is not None:
            found[key] = shape
    return found


def unflattened(
    decoder: Decoder, tensors: Iterable[LogicalTensor], shapes: dict[str, Shape], subject: str
) -> list[LogicalTensor]:
    """Return tensors with those that are stored flattened in their true shape. One that does not fit is reported and kept out."""
    found = []
    for tensor in tensors:
        shape = shapes.get(tensor.name)
        if shape is None:
            found.append(tensor)
            continue
        try:
            found.append(_original(tensor, shape))
        except Fault as fault:
            decoder.probe.note(fault.finding, subject)
    return found


def _original(tensor: LogicalTensor, shape: Shape) -> LogicalTensor:
    """Return a tensor in its true shape. Raises `Fault` `megatron.flat_unknown`."""
    mapped = tensor.map
    if not isinstance(mapped, TensorMap) or not isinstance(mapped.map, Block):
        raise _unknown(tensor, "its chunks are no boxes")
    grid, flat = tensor.shape[:-1], tensor.shape[-1] if tensor.shape else 0
    if len(grid) != len(shape) or min((*shape, *grid), default=0) < 0:
        raise _unknown(tensor, "the true shape has another number of dimensions than the grid of shards")
    if any(parts == 0 or extent % parts for extent, parts in zip(shape, grid, strict=True)):
        raise _unknown(tensor, "the true shape does not divide into the grid of shards")
    local = tuple(extent // parts for extent, parts in zip(shape, grid, strict=True))
    if prod(local) != flat:
        raise _unknown(tensor, f"shards of {prod(local):,} elements are stored as rows of {flat:,}")
    boxes, starts, stops = [], [], []
    for box in mapped.map.boxes:
        if box is None or any(size != 1 for size in box.sizes[:-1]):
            raise _unknown(tensor, "a chunk is part of several shards")
        offsets = tuple(at * size for at, size in zip(box.offsets[:-1], local, strict=True))
        boxes.append(Box(offsets, local))
        starts.append(box.offsets[-1])
        stops.append(box.offsets[-1] + box.sizes[-1])
    axes = mapped.map.axes
    node = FlatRange(axes[0], tuple(starts), tuple(stops), Block(axes, tuple(boxes)))
    fragments = tuple(
        msgspec.structs.replace(fragment, shape=(prod(fragment.shape),)) for fragment in tensor.fragments
    )
    return msgspec.structs.replace(
        tensor,
        shape=shape,
        map=TensorMap(shape, node, mesh=mapped.mesh),
        fragments=fragments,
        note="stored as stretches of flattened shards",
    )


def _unknown(tensor: LogicalTensor, reason: str) -> Fault:
    return Fault("megatron.flat_unknown", tensor=tensor.name, reason=reason)
