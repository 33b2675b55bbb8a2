"""A naming taken the other way: a model's own tensors put end to end as the producer that the naming is made of has them.

Only rows are put end to end, so that no address within a part changes. Sections that a table reorders or transposes are refused.
"""

from collections.abc import Iterable, Sequence
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.geometry.language.layout import normal_form
from shardscope.engine.geometry.mapping.sections import Asked
from shardscope.engine.geometry.mapping.tables import NamingTable, holds
from shardscope.engine.geometry.mapping.templates import Names, variants
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor
from shardscope.engine.model.mapping import Kind, Made, ModelFacts
from shardscope.engine.model.piece import Lowered, Piece, RankShard


class _Place(Struct, frozen=True):
    """What a tensor of a model is part of."""

    kind: Kind
    made: Made
    position: int
    """Among what is made of the kind."""


class _Group(Struct):
    """The parts of one tensor of the producer."""

    place: _Place
    name: str
    parts: dict[int, LogicalTensor]


class Fused(Struct, frozen=True):
    """A catalogue under the names of a producer."""

    tensors: tuple[LogicalTensor, ...]
    sources: dict[str, tuple[str, ...]]
    """The tensors that each is made of."""


def fused(table: NamingTable, facts: ModelFacts, tensors: Iterable[LogicalTensor]) -> Fused:
    """Return the tensors of a producer that those of a model are parts of.

    Raises `Fault`: `mapping.unplaced` where a tensor is none of the table's, `reshard.fuse`, `mapping.fact_missing`.
    """
    tensors = tuple(tensors)
    names = _names(table, facts)
    groups: dict[str, _Group] = {}
    strays = []
    for tensor in tensors:
        found = next(names.find(tensor.name), None)
        if found is None:
            strays.append(tensor.name)
            continue
        _, numbered, place = found
        name = variants(place.kind.names[0])[0].written(numbered.numbers)
        group = groups.setdefault(name, _Group(place, name, {}))
        group.parts[place.position] = tensor
    if strays:
        raise Fault("mapping.unplaced", table=table.name, count=len(strays), tensor=strays[0])
    made = {name: _joined(table.name, group) for name, group in groups.items()}
    sources = {
        name: tuple(part.name for _, part in sorted(group.parts.items())) for name, group in groups.items()
    }
    return Fused(tuple(made.values()), sources)


def _names(table: NamingTable, facts: ModelFacts) -> Names[_Place]:
    """Return what the names of a model stand for. Of kinds with the same targets one whose conditions hold comes first."""
    names: Names[_Place] = Names()
    kinds = sorted(table.layout.layout.kinds, key=lambda kind: not kind.when)
    for kind in kinds:
        made = table.made(kind.id)
        if made is None or not made.to or not holds(kind.when, facts, Asked(table.name, kind.id)):
            continue
        for position, target in enumerate(made.to):
            names.add(target.name, _Place(kind, made, position))
    return names


def _joined(table: str, group: _Group) -> LogicalTensor:
    kind, made = group.place.kind, group.place.made

    def refuse(reason: str) -> Fault:
        return Fault("reshard.fuse", table=table, tensor=group.name, reason=reason)

    for position, target in enumerate(made.to):
        if position not in group.parts:
            raise refuse(f"there is nothing for {', '.join(target.take) or 'a part of it'}")
        if target.order or target.transpose:
            raise refuse("its elements change their order")
    parts = [group.parts[position] for position in range(len(made.to))]
    taken = [section for target in made.to for section in target.take]
    known = [section.name for section in kind.view.sections] if kind.view is not None else []
    if taken and taken != known[: len(taken)]:
        raise refuse("its sections lie in another order")
    if len(parts) == 1:
        return replace(parts[0], name=group.name)
    if kind.view is None or kind.view.dim != 0 or kind.view.before or taken != known:
        raise refuse("its parts do not lie end to end along dimension 0")
    first = parts[0]
    if any((part.shape[1:], part.dtype) != (first.shape[1:], first.dtype) for part in parts):
        raise refuse("its parts differ in type or shape")
    if any(part.alias_of is not None for part in parts):
        raise refuse("a part of it is a tie")
    return _end_to_end(group.name, parts)


def _end_to_end(name: str, parts: Sequence[LogicalTensor]) -> LogicalTensor:
    shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
    shards: list[RankShard] = []
    fragments: list[Fragment] = []
    replicas: list[Fragment] = []
    start = 0
    for part in parts:
        lowered = normal_form(part)
        labels = {shard.rank: len(shards) + number for number, shard in enumerate(lowered.ranks)}
        shards += [_moved(shard, start, labels) for shard in lowered.ranks]
        fragments += [replace(item, label=labels[item.label]) for item in part.fragments]
        replicas += [replace(item, label=labels[item.label]) for item in part.replicas]
        start += prod(part.shape)
    explicit = any(normal_form(part).explicit for part in parts)
    return replace(
        parts[0],
        name=name,
        shape=shape,
        map=Lowered(shape, tuple(shards), explicit),
        mesh=None,
        fragments=tuple(fragments),
        replicas=tuple(replicas),
        stored_shape=None,
        note=None,
    )


def _moved(shard: RankShard, start: int, labels: dict[int, int]) -> RankShard:
    pieces = [
        Piece(
            piece.shape, piece.source.moved(start), piece.dest, _holders(piece.holders, labels), piece.scale
        )
        for piece in shard.pieces
    ]
    if shard.indexed:
        raise Fault("map.unproven", reason="a tensor with indices that is a part of another")
    return RankShard(labels[shard.rank], shard.shape, tuple(pieces), shard.padding)


def _holders(holders: Sequence[int], labels: dict[int, int]) -> tuple[int, ...]:
    return tuple(sorted(labels[rank] for rank in holders))
