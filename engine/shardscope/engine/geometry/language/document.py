"""Shard maps as documents: JSON values to maps, strictly, and maps back to what is written.

A value comes from the bounded JSON parser. Each tensor is read by itself, so that a message can name it. Versions other
than the known one are refused before anything else is looked at.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from shardscope.engine.geometry.pieces.budget import INDEX_BYTES, Budget
from shardscope.engine.geometry.pieces.explicit import packed, unpacked
from shardscope.engine.geometry.pieces.wellformed import MOST
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.lowered import IndexList, LoweredDocument, LoweredTensor, ShardGroup
from shardscope.engine.model.piece import IndexedPiece, Lowered, RankShard
from shardscope.engine.model.schemas import LOWERED, SHARD_MAP
from shardscope.engine.model.shardmap import DeviceMesh, ShardMapDocument, TensorMap

MapDocument = ShardMapDocument | LoweredDocument

T = TypeVar("T", bound=Struct)


class _Envelope(Struct, forbid_unknown_fields=True):
    schema: str
    tensors: dict[str, Any]
    meshes: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


def read_document(value: object, file: str) -> MapDocument:
    """Return the document that a JSON value is: shard maps, or their normal forms. `file` is for messages.

    Raises `Fault`: `map.not_a_map`, `map.version`, `map.document`.
    """
    known = _known(value, file)
    envelope = _converted(value, _Envelope, "the document")
    if known == LOWERED:
        if envelope.meshes is not msgspec.UNSET:
            raise Fault("map.document", place="the document", problem="normal forms have no meshes")
        found = {name: _converted(entry, LoweredTensor, name) for name, entry in envelope.tensors.items()}
        return LoweredDocument(LOWERED, found)
    if envelope.meshes is msgspec.UNSET:
        raise Fault("map.document", place="the document", problem="meshes are missing")
    meshes = {name: _converted(entry, DeviceMesh, f"mesh {name}") for name, entry in envelope.meshes.items()}
    tensors = {name: _converted(entry, TensorMap, name) for name, entry in envelope.tensors.items()}
    for name, tensor in tensors.items():
        if tensor.mesh not in meshes:
            raise Fault("map.document", place=name, problem=f"there is no mesh {tensor.mesh}")
    return ShardMapDocument(SHARD_MAP, meshes, tensors)


def _known(value: object, file: str) -> str:
    """Return which of the two documents a value claims to be."""
    name = value.get("schema") if isinstance(value, Mapping) else None
    if not isinstance(name, str):
        raise Fault("map.not_a_map", file=file, found="JSON without a schema")
    for known in (SHARD_MAP, LOWERED):
        if name == known:
            return known
        if name.startswith(known.partition("/")[0] + "/"):
            raise Fault("map.version", file=file, found=name, known=known)
    raise Fault("map.not_a_map", file=file, found=f"a document of {name}")


def _converted(value: object, kind: type[T], place: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at ")
        inner = path.strip("`").removeprefix("$")
        raise Fault("map.document", place=f"{place}{inner}", problem=reason) from None


def lowered_of(tensor: LoweredTensor, budget: Budget | None = None) -> Lowered:
    """Return the normal form that an entry of a document writes out. It has not been checked.

    Raises `Fault` `map.document` or `map.budget`.
    """
    budget = budget or Budget()
    budget.spend("ranks", sum(len(group.ranks) for group in tensor.shards))
    shards = []
    for group in tensor.shards:
        indexed = tuple(_indexed(entry, budget) for entry in group.indexed)
        shards += [RankShard(rank, group.shape, group.pieces, group.padding, indexed) for rank in group.ranks]
    shards.sort(key=lambda shard: shard.rank)
    return Lowered(tensor.shape, tuple(shards), tensor.explicit)


def _indexed(entry: IndexList, budget: Budget) -> IndexedPiece:
    budget.spend("explicit_bytes", INDEX_BYTES * len(entry.dest))
    if any(not -MOST <= address <= MOST for side in (entry.source, entry.dest) for address in side):
        raise Fault("map.document", place="indexed", problem="an address has more than 64 bits")
    source, dest = (packed((at, 1) for at in side) for side in (entry.source, entry.dest))
    return IndexedPiece(source, dest, entry.holders, entry.scale)


def written(lowered: Lowered, dtype: str | None = None) -> LoweredTensor:
    """Return a normal form as an entry of a document; equal shards stand there once."""
    return LoweredTensor(lowered.shape, groups(lowered.ranks), lowered.explicit, dtype)


def groups(shards: Iterable[RankShard]) -> tuple[ShardGroup, ...]:
    """Return shards with equal ones together, in the order of their lowest rank."""
    alike: dict[object, list[RankShard]] = {}
    for shard in sorted(shards, key=lambda shard: shard.rank):
        alike.setdefault((shard.shape, shard.padding, shard.pieces, shard.indexed), []).append(shard)
    return tuple(
        ShardGroup(
            tuple(shard.rank for shard in same),
            same[0].shape,
            same[0].pieces,
            same[0].padding,
            tuple(_listed(piece) for piece in same[0].indexed),
        )
        for same in alike.values()
    )


def _listed(piece: IndexedPiece) -> IndexList:
    return IndexList(tuple(unpacked(piece.source)), tuple(unpacked(piece.dest)), piece.holders, piece.scale)
