"""What ranks hold of a tensor under one name, put together as a layout says."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from shardscope.engine.geometry.mapping.cuts import TP, shard_map
from shardscope.engine.geometry.mapping.sections import Asked
from shardscope.engine.geometry.mapping.tables import LayoutTable
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis

Parts = dict[int, LogicalTensor]
"""What each rank holds under one name."""


def joined(
    table: LayoutTable, facts: ModelFacts, tensors: Iterable[LogicalTensor]
) -> tuple[LogicalTensor, ...]:
    """Return a catalogue with the parts of its ranks put together; tensors that are whole stay as they are.

    All ranks that hold anything have to hold a part of each tensor. Those without a place in the table are left as parts.
    Raises `Fault`: `mapping.shards`, `mapping.fact_missing`, `mapping.size`.
    """
    found: list[LogicalTensor] = []
    parts: dict[str, Parts] = {}
    for tensor in tensors:
        if tensor.part_of is None:
            found.append(tensor)
            continue
        held = parts.setdefault(tensor.name, {})
        if tensor.part_of in held:
            raise Asked(table.name, tensor.name).shards(f"rank {tensor.part_of:,} holds it twice")
        held[tensor.part_of] = tensor
    ranks = sorted({rank for held in parts.values() for rank in held})
    for name, held in parts.items():
        placed = table.place(name, facts)
        if placed is None:
            found += held.values()
            continue
        asked = Asked(table.name, name)
        _check(held, ranks, asked)
        shards = [held[rank] for rank in ranks]
        mapped = shard_map(placed.kind, [part.shape for part in shards], facts, asked)
        found.append(
            replace(
                shards[0],
                shape=mapped.shape,
                map=mapped,
                mesh=DeviceMesh((MeshAxis(TP, len(ranks)),), tuple(ranks)),
                fragments=tuple(fragment for part in shards for fragment in part.fragments),
                part_of=None,
                note=f"put together by the table {table.name}",
            )
        )
    return tuple(found)


def _check(held: Parts, ranks: Sequence[int], asked: Asked) -> None:
    for rank in ranks:
        part = held.get(rank)
        if part is None or not part.fragments:
            raise asked.shards(f"rank {rank:,} has no part of it")
    dtypes = {part.dtype for part in held.values()}
    if len(dtypes) > 1:
        raise asked.shards(f"its ranks hold {' and '.join(sorted(dtypes))}")
