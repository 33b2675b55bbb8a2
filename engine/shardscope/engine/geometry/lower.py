"""From the tree of nodes to the normal form: for each rank the pieces of its shard, merged, with their holders."""

import math

from shardscope.engine.geometry.budget import Budget
from shardscope.engine.geometry.holders import with_holders
from shardscope.engine.geometry.nodes import Local, Site, apply
from shardscope.engine.model import shardmap as nodes
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered, row_major
from shardscope.engine.model.shardmap import DeviceMesh, Node, TensorMap


def lower(tensor: TensorMap, mesh: DeviceMesh, budget: Budget | None = None) -> Lowered:
    """Return the normal form of one tensor's map.

    Raises `Fault`: `map.invalid`, `map.unproven`, `map.budget`.
    """
    budget = budget or Budget()
    budget.spend("axes", max(len(tensor.shape), len(mesh.axes)))
    used = axes_of(tensor.map)
    sizes = {axis.name: axis.size for axis in mesh.axes}
    for name in used:
        if name not in sizes:
            raise Fault("map.invalid", place="map", reason=f"the mesh has no axis {name}")
    locals_: dict[tuple[int, ...], Local] = {}
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank, coordinate in coordinates(mesh):
        key = tuple(coordinate[name] for name in used)
        groups.setdefault(key, []).append(rank)
        if key not in locals_:
            locals_[key] = apply(tensor.map, tensor.shape, Site(coordinate, sizes, budget))
            budget.spend("pieces", len(locals_[key].blocks))
    shards = with_holders(tensor.shape, [(tuple(groups[key]), locals_[key]) for key in groups], budget)
    return Lowered(tensor.shape, tuple(sorted(shards, key=lambda shard: shard.rank)))


def coordinates(mesh: DeviceMesh) -> list[tuple[int, dict[str, int]]]:
    """Return every rank label of a mesh with its coordinate, row-major over the axes."""
    sizes = [axis.size for axis in mesh.axes]
    total = math.prod(sizes)
    labels = mesh.ranks if mesh.ranks is not None else tuple(range(total))
    if len(labels) != total or len(set(labels)) != total:
        reason = f"{len(labels):,} rank labels for {total:,} places, or a label twice"
        raise Fault("map.invalid", place="mesh", reason=reason)
    strides = row_major(tuple(sizes))
    return [
        (
            label,
            {axis.name: n // stride % axis.size for axis, stride in zip(mesh.axes, strides, strict=True)},
        )
        for n, label in enumerate(labels)
    ]


def axes_of(node: Node | None) -> tuple[str, ...]:
    """Return the mesh axes that a tree names, sorted."""
    names: set[str] = set()
    stack: list[Node | None] = [node]
    while stack:
        item = stack.pop()
        if item is None:
            continue
        if isinstance(item, nodes.Block):
            names.update(item.axes)
        elif isinstance(item, nodes.Contiguous | nodes.Interleave | nodes.Explicit | nodes.FlatRange):
            names.add(item.axis)
        if isinstance(item, nodes.SubParamConcat):
            stack.extend(part.map for part in item.parts)
        if not isinstance(item, nodes.Replicate):
            stack.append(item.of)
    return tuple(sorted(names))
