"""From the tree of nodes to the normal form: for each rank the pieces of its shard, merged, with their holders."""

import math

from shardscope.engine.geometry.language.holders import with_holders
from shardscope.engine.geometry.language.nodes import Local, Memory, Site, apply, axes_of
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.explicit import INDEXED
from shardscope.engine.model import shardmap as nodes
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered, row_major
from shardscope.engine.model.shardmap import DeviceMesh, Node, TensorMap


def lower(tensor: TensorMap, mesh: DeviceMesh, budget: Budget | None = None) -> Lowered:
    """Return the normal form of one tensor's map.

    Raises `Fault`: `map.invalid`, `map.unproven`, `map.budget`.
    """
    budget = budget or Budget()
    budget.bound("axes", max(len(tensor.shape), len(mesh.axes)))
    budget.bound("ranks", math.prod(axis.size for axis in mesh.axes))
    used = axes_of(tensor.map)
    sizes = {axis.name: axis.size for axis in mesh.axes}
    if len(sizes) != len(mesh.axes):
        raise Fault("map.invalid", place="mesh", reason="two axes have one name")
    for name in used:
        if name not in sizes:
            raise Fault("map.invalid", place="map", reason=f"the mesh has no axis {name}")
    places = coordinates(mesh)
    try:
        return _lowered(tensor, places, sizes, budget, index=False)
    except Fault as fault:
        if fault.finding.code != "map.unproven" or not has_explicit(tensor.map):
            raise
    return _lowered(tensor, places, sizes, budget, index=True)


def _lowered(
    tensor: TensorMap,
    places: list[tuple[int, dict[str, int]]],
    sizes: dict[str, int],
    budget: Budget,
    *,
    index: bool,
) -> Lowered:
    memory = Memory()
    used = axes_of(tensor.map)
    shards: dict[tuple[int, ...], Local] = {}
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank, coordinate in places:
        key = tuple([coordinate[name] for name in used])
        if key in groups:
            groups[key].append(rank)
            continue
        groups[key] = [rank]
        site = Site(coordinate, sizes, budget, memory, index=index)
        shards[key] = apply(tensor.map, tensor.shape, site)
        budget.spend("pieces", sum(block.tag != INDEXED for block in shards[key].blocks))
    held = [(tuple(sorted(groups[key])), shards[key]) for key in groups]
    ranks = with_holders(tensor.shape, held, budget)
    ranks.sort(key=lambda shard: shard.rank)
    return Lowered(tensor.shape, tuple(ranks), has_explicit(tensor.map))


def has_explicit(node: Node) -> bool:
    """Tell whether a tree has an `Explicit` node."""
    stack: list[Node | None] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, nodes.Explicit):
            return True
        if isinstance(item, nodes.SubParamConcat):
            stack.extend(part.map for part in item.parts)
        if item is not None and not isinstance(item, nodes.Replicate):
            stack.append(item.of)
    return False


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
