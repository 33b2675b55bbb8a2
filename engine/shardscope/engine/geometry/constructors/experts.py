"""Experts on their own grid of the ranks that hold the dense parameters too, and DeepSpeed's placement descriptors.

A descriptor (`deepspeed/checkpoint/autoep_affine.py`, version 1) names for every expert-parallel rank the experts that it
holds, in the order in which it packs them. How expert parallelism meets the data-parallel partition of optimizer states is
open upstream: a placement describes whole packed tensors and nothing below them.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from msgspec import Struct

from shardscope.engine.geometry.constructors.cuts import refuse
from shardscope.engine.geometry.language.holders import with_holders
from shardscope.engine.geometry.language.nodes import Local
from shardscope.engine.geometry.pieces.blocks import Block
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.fold import folded
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered, Side
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis

VERSION: Final = 1
MOST: Final = 1 << 20
"""Experts of a layer, and ranks of a placement."""


class Placement(Struct, frozen=True):
    """Which experts each expert-parallel rank holds, in its packed order."""

    experts: int
    """Of the layer."""
    held: tuple[tuple[int, ...], ...]
    """By rank."""


def read_placement(value: object) -> Placement:
    """Return a placement descriptor.

    Raises `Fault`: `experts.malformed`, `experts.version`.
    """
    if not isinstance(value, Mapping):
        _malformed("placement", "it is no dictionary")
    version = _whole(value.get("version"), "placement.version", 0, MOST)
    if version != VERSION:
        raise Fault("experts.version", found=str(version), known=VERSION)
    experts = _whole(value.get("num_experts"), "placement.num_experts", 1, MOST)
    size = _whole(value.get("ep_size"), "placement.ep_size", 1, MOST)
    entries = value.get("ranks")
    if not isinstance(entries, list | tuple) or len(entries) != size:
        _malformed("placement.ranks", f"it is no list of {size:,} ranks")
    held: dict[int, tuple[int, ...]] = {}
    for number, entry in enumerate(entries):
        place = f"placement.ranks[{number}]"
        if not isinstance(entry, Mapping):
            _malformed(place, "it is no dictionary")
        rank = _whole(entry.get("rank"), place, 0, size - 1)
        listed = entry.get("experts")
        if rank in held or not isinstance(listed, list | tuple):
            _malformed(place, "its rank is there twice, or its experts are no list")
        held[rank] = tuple(_whole(expert, place, 0, experts - 1) for expert in listed)
        if len(set(held[rank])) != len(held[rank]):
            _malformed(place, "an expert is there twice")
    return _covering(Placement(experts, tuple(held[rank] for rank in range(size))))


def write_placement(placement: Placement) -> dict[str, object]:
    """Return the descriptor of a placement, as plain data."""
    return {
        "version": VERSION,
        "num_experts": placement.experts,
        "ep_size": len(placement.held),
        "ranks": [{"rank": rank, "experts": list(experts)} for rank, experts in enumerate(placement.held)],
    }


def uniform_placement(experts: int, ranks: int) -> Placement:
    """Return the placement of writers that record none: equal runs of experts. Raises `Fault` `experts.malformed`."""
    if experts < 1 or ranks < 1 or experts > MOST or experts % ranks:
        _malformed("placement", f"{experts:,} experts do not divide among {ranks:,} ranks")
    each = experts // ranks
    return Placement(experts, tuple(tuple(range(rank * each, rank * each + each)) for rank in range(ranks)))


def read_layer(value: object) -> Placement:
    """Return the placement of one entry of `ds_autoep_layers`: the recorded one, or the uniform one of older writers.

    Raises `Fault`: `experts.malformed`, `experts.version`.
    """
    if not isinstance(value, Mapping):
        _malformed("ds_autoep_layers", "an entry is no dictionary")
    experts = _whole(value.get("num_experts"), "ds_autoep_layers.num_experts", 1, MOST)
    size = _whole(value.get("ep_size"), "ds_autoep_layers.ep_size", 1, MOST)
    recorded = value.get("expert_placement")
    if recorded is None:
        placement = uniform_placement(experts, size)
        local = _whole(value.get("num_local_experts"), "ds_autoep_layers.num_local_experts", 0, MOST)
        if local * size != experts:
            _malformed("ds_autoep_layers", f"{local:,} experts on each of {size:,} ranks are not {experts:,}")
        return placement
    placement = read_placement(recorded)
    if placement.experts != experts or len(placement.held) != size:
        _malformed("ds_autoep_layers", "its placement counts other experts or ranks than the layer")
    return placement


def placed(placement: Placement, shape: Sequence[int], budget: Budget | None = None) -> Lowered:
    """Return the map of a tensor [expert, ...] of which each rank holds its experts, packed in its order.

    Raises `Fault`: `map.invalid`, `map.budget`.
    """
    if not shape or shape[0] != placement.experts or min(shape) < 0:
        refuse(f"a tensor whose first dimension is not {placement.experts:,} experts")
    inner = tuple(shape[1:])
    each = math.prod(inner)
    groups: dict[tuple[int, ...], list[int]] = {}
    for rank, held in enumerate(placement.held):
        groups.setdefault(held, []).append(rank)
    shards = []
    for held, ranks in groups.items():
        shards.append((tuple(ranks), Local((len(held), *inner), _packed(held, each))))
    found = with_holders(tuple(shape), shards, budget or Budget())
    return Lowered(tuple(shape), tuple(sorted(found, key=lambda shard: shard.rank)))


def _packed(held: Sequence[int], each: int) -> tuple[Block, ...]:
    """Return a run of experts for each block, from packed (a) to logical (b) addresses."""
    blocks = []
    start = 0
    for end in range(1, len(held) + 1):
        if end == len(held) or held[end] != held[end - 1] + 1:
            run = Block(((end - start) * each,), Side(start * each, (1,)), Side(held[start] * each, (1,)))
            blocks.append(run)
            start = end
    return tuple(folded(blocks))


def side_by_side(
    dense: Mapping[str, int], expert: Mapping[str, int], ranks: Sequence[int] | None = None
) -> dict[str, DeviceMesh]:
    """Return the meshes `dense` and `expert` over the same ranks, by the axes of each, the slowest first.

    With expert parallelism folded into the other axes, the same ranks carry tp x dp for dense parameters and ep x etp x edp
    for experts. Raises `Fault` `map.invalid` where the two grids have different numbers of ranks.
    """
    sizes = [math.prod(axes.values()) for axes in (dense, expert)]
    if min((*dense.values(), *expert.values()), default=1) < 1 or sizes[0] != sizes[1]:
        refuse(f"{sizes[0]:,} ranks of dense parameters and {sizes[1]:,} of experts")
    if ranks is not None and (len(ranks) != sizes[0] or len(set(ranks)) != sizes[0]):
        refuse(f"{len(ranks):,} labels for {sizes[0]:,} ranks, or a label twice")
    labels = None if ranks is None else tuple(ranks)
    return {
        name: DeviceMesh(tuple(MeshAxis(axis, size) for axis, size in axes.items()), labels)
        for name, axes in (("dense", dense), ("expert", expert))
    }


def _covering(placement: Placement) -> Placement:
    missing = placement.experts - len({expert for held in placement.held for expert in held})
    if missing:
        _malformed("placement", f"{missing:,} of {placement.experts:,} experts are on no rank")
    return placement


def _whole(value: object, place: str, lowest: int, highest: int) -> int:
    if type(value) is not int:
        _malformed(place, "a number is missing or not whole")
    if not lowest <= value <= highest:
        _malformed(place, "a number is out of its range")
    return value


def _malformed(place: str, reason: str) -> NoReturn:
    raise Fault("experts.malformed", place=place, reason=reason)
