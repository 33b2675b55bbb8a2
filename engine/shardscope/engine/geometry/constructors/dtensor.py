"""Placements of PyTorch's DTensor over a mesh of any number of axes.

The rule of cutting is that of torch 2.13 (`torch/distributed/tensor/placement_types.py`): `torch.chunk`, ceil(n / k) slices
each, the last ones short or empty; mesh axes from left to right. A strided shard says that its dimension had been cut
`split_factor` times before, by mesh axes further right: FSDP over tensor parallelism cuts by the later axes first.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import NoReturn

from msgspec import Struct

from shardscope.engine.geometry.constructors.cuts import chunks, refuse, unproven
from shardscope.engine.model.shardmap import (
    Block,
    Box,
    Contiguous,
    DeviceMesh,
    MeshAxis,
    Node,
    Part,
    Replicate,
    SubParamConcat,
    TensorMap,
)


class Shard(Struct, frozen=True, forbid_unknown_fields=True, tag_field="placement", tag="shard"):
    """Cut along `dim`; strided where `split_factor` is more than 1."""

    dim: int
    split_factor: int = 1


class Whole(Struct, frozen=True, forbid_unknown_fields=True, tag_field="placement", tag="replicate"):
    """Every position of the axis holds the same (`Replicate`)."""


class Partial(Struct, frozen=True, forbid_unknown_fields=True, tag_field="placement", tag="partial"):
    """Every position holds a summand: no element of the tensor is anywhere."""


Placement = Shard | Whole | Partial


def dtensor(shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> TensorMap:
    """Return the map of a DTensor, to be lowered on `mesh`.

    Raises `Fault`: `map.invalid` where the numbers contradict each other, `map.unproven` for a partial tensor and for a
    strided shard whose earlier cuts are not those of later axes beside other cuts of its dimension.
    """
    whole = tuple(shape)
    if len(placements) != len(mesh.axes):
        refuse(f"{len(placements)} placements on a mesh of {len(mesh.axes)} axes")
    cuts: dict[int, list[tuple[MeshAxis, int]]] = {}
    for axis, placement in zip(mesh.axes, placements, strict=True):
        if isinstance(placement, Partial):
            unproven(f"the tensor is a sum over the axis {axis.name}")
        if isinstance(placement, Shard):
            if not 0 <= placement.dim < len(whole) or placement.split_factor < 1:
                refuse(
                    f"a shard of dimension {placement.dim} in {placement.split_factor} of {len(whole)} dimensions"
                )
            cuts.setdefault(placement.dim, []).append((axis, placement.split_factor))
    ordered = {dim: _ordered(along) for dim, along in cuts.items()}
    node = _boxes(
        whole, {dim: along for dim, along in ordered.items() if along is not None and len(along) > 1}
    )
    for dim, along in sorted(cuts.items()):
        if (straight := ordered[dim]) is None:
            node = _strided(whole[dim], dim, along, node)
        elif len(straight) == 1:
            node = Contiguous(straight[0].name, dim, chunks(whole[dim], straight[0].size), node)
    return TensorMap(whole, node or Replicate())


def _ordered(along: Sequence[tuple[MeshAxis, int]]) -> list[MeshAxis] | None:
    """Return the axes that cut a dimension in the order of their cuts; null where a strided one stands for no later axes."""
    order: list[MeshAxis] = []
    later: list[MeshAxis] = []
    for position, (axis, factor) in enumerate(along):
        after = math.prod(other.size for other, _ in along[position + 1 :])
        if factor == 1:
            order.append(axis)
        elif factor == after:
            later.insert(0, axis)
        else:
            return None
    return [*order, *later]


def _boxes(shape: tuple[int, ...], cuts: dict[int, list[MeshAxis]]) -> Node | None:
    """Return the boxes of dimensions that several axes cut: how far the second cut goes depends on the first."""
    axes = {axis.name: axis for along in cuts.values() for axis in along}
    if not axes:
        return None
    boxes = []
    for positions in product(*[range(axis.size) for axis in axes.values()]):
        at = dict(zip(axes, positions, strict=True))
        offsets, sizes = [0] * len(shape), list(shape)
        for dim, along in cuts.items():
            for axis in along:
                widths = chunks(sizes[dim], axis.size)
                offsets[dim] += sum(widths[: at[axis.name]])
                sizes[dim] = widths[at[axis.name]]
        boxes.append(Box(tuple(offsets), tuple(sizes)))
    return Block(tuple(axes), tuple(boxes))


def _strided(extent: int, dim: int, along: Sequence[tuple[MeshAxis, int]], of: Node | None) -> Node:
    """Return a strided shard that is the only cut of its dimension: a chunk of each of `split_factor` chunks."""
    if len(along) > 1:
        _mixed(dim)
    axis, factor = along[0]
    parts = [
        Part(part, Contiguous(axis.name, dim, chunks(part, axis.size))) for part in chunks(extent, factor)
    ]
    return SubParamConcat(dim, tuple(part for part in parts if part.size) or tuple(parts[:1]), of)


def _mixed(dim: int) -> NoReturn:
    unproven(f"dimension {dim} is cut by a strided shard and by axes that it does not name")
