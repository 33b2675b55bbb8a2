"""A naming applied to a catalogue: the same fragments, under a model's own names and shapes."""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Final

import msgspec
from msgspec import Struct

from shardscope.engine.geometry.language.layout import normal_form
from shardscope.engine.geometry.mapping.sections import Asked, Sectioned, sectioned, taken
from shardscope.engine.geometry.mapping.tables import NamingTable, Placed
from shardscope.engine.geometry.mapping.templates import written
from shardscope.engine.geometry.mapping.through import Source
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.mapping import Made, ModelFacts, Target
from shardscope.engine.model.piece import row_major

MOST: Final = 1 << 20
"""Tensors that one stacked tensor may become."""


class Mapped(Struct, frozen=True):
    """A catalogue under a naming."""

    tensors: tuple[LogicalTensor, ...]
    sources: dict[str, str]
    """Which tensor of the checkpoint each is made of."""
    left: tuple[str, ...] = ()
    """Tensors of the checkpoint of which the table makes nothing: the model works them out by itself."""


def apply(
    table: NamingTable, facts: ModelFacts, tensors: Iterable[LogicalTensor], budget: Budget | None = None
) -> Mapped:
    """Return the tensors that a naming makes of a catalogue, each with a map over the fragments it was made of.

    Raises `Fault`: `mapping.unplaced` where a tensor has no place in the table (nothing is left out silently),
    `mapping.collision`, `mapping.fact_missing`, `mapping.size`, and those of maps.
    """
    found: dict[str, LogicalTensor] = {}
    sources: dict[str, str] = {}
    strays: dict[str, None] = {}
    left: list[str] = []
    for tensor in tensors:
        if tensor.alias_of is not None:
            continue  # it has the bytes of another, which is there
        placed = table.layout.place(tensor.name, facts)
        rule = None if placed is None else table.made(placed.kind.id)
        if placed is None or rule is None:
            strays.setdefault(tensor.name)
            continue
        if not rule.to:
            left.append(tensor.name)
        for made in _made(table, facts, tensor, placed, rule, budget):
            if made.name in found:
                raise Fault(
                    "mapping.collision",
                    table=table.name,
                    target=made.name,
                    first=sources[made.name],
                    second=tensor.name,
                )
            found[made.name] = made
            sources[made.name] = tensor.name
    if strays:
        raise Fault("mapping.unplaced", table=table.name, count=len(strays), tensor=next(iter(strays)))
    return Mapped(tuple(found.values()), sources, tuple(left))


def _made(
    table: NamingTable,
    facts: ModelFacts,
    tensor: LogicalTensor,
    placed: Placed,
    made: Made,
    budget: Budget | None,
) -> Iterator[LogicalTensor]:
    asked = Asked(table.name, tensor.name)
    depth = len(placed.stacked)
    own = tensor.shape[depth:]
    if len(own) + depth != len(tensor.shape):
        raise asked.size(0, len(tensor.shape), "it lacks the leading axes of its kind")
    view = placed.kind.view
    cut: Sectioned | None = None
    if view is not None and any(target.take or target.order for target in made.to):
        if view.dim >= len(own):
            raise asked.size(view.dim, 0, "it has no such dimension")
        cut = sectioned(view, own[view.dim], facts, asked)
    source = Source(normal_form(tensor, budget))
    strides = row_major(tensor.shape)
    for place in _places(tensor.shape[:depth]):
        numbers = placed.numbers | dict(zip(placed.stacked, place, strict=True))
        offset = sum(at * stride for at, stride in zip(place, strides, strict=False))
        for target in made.to:
            yield _target(tensor, target, numbers, source, own, offset, cut, budget)


def _target(
    tensor: LogicalTensor,
    target: Target,
    numbers: dict[str, int],
    source: Source,
    own: tuple[int, ...],
    offset: int,
    cut: Sectioned | None,
    budget: Budget | None,
) -> LogicalTensor:
    part = taken(own, offset, cut, target.take, target.order, transpose=target.transpose)
    lowered = source.map_of(part, budget)
    held = {shard.rank for shard in lowered.ranks}
    return msgspec.structs.replace(
        tensor,
        name=written(target.name, numbers),
        shape=part.shape,
        map=lowered,
        mesh=None,
        fragments=tuple(fragment for fragment in tensor.fragments if fragment.label in held),
        replicas=tuple(fragment for fragment in tensor.replicas if fragment.label in held),
        alias_of=None,
        stored_shape=None,
        note=None,
    )


def _places(extents: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield every place on the leading axes. Raises `Fault` `map.budget`."""
    if prod(extents) > MOST:
        raise Fault("map.budget", budget="tensors", limit=MOST, found=prod(extents))
    places: list[tuple[int, ...]] = [()]
    for extent in extents:
        places = [(*place, at) for place in places for at in range(extent)]
    return iter(places)
