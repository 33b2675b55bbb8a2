"""Normal forms as a document (`shardscope.lowered/1`): what `map lower` prints and every map command reads back."""

from typing import Final

from msgspec import Struct

from shardscope.engine.model.piece import ONE, Piece
from shardscope.engine.model.schemas import LOWERED

SCHEMA: Final = LOWERED


class IndexList(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Elements that no few pieces describe, one address on each side for each of them."""

    source: tuple[int, ...]
    """Addresses in the full logical tensor."""
    dest: tuple[int, ...]
    """Addresses in the shard, rising."""
    holders: tuple[int, ...]
    scale: tuple[int, int] = ONE


class ShardGroup(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Ranks with equal shards: said once for all of them, so that replicas over a thousand ranks cost one entry."""

    ranks: tuple[int, ...]
    shape: tuple[int, ...]
    """Of the shard, padding included."""
    pieces: tuple[Piece, ...]
    padding: int = 0
    indexed: tuple[IndexList, ...] = ()


class LoweredTensor(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The normal form of one tensor's map."""

    shape: tuple[int, ...]
    """Of the full logical tensor."""
    shards: tuple[ShardGroup, ...]
    explicit: bool = False
    """An `Explicit` node had a part in it."""
    dtype: str | None = None


class LoweredDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """Normal forms of many tensors, by name."""

    schema: str
    tensors: dict[str, LoweredTensor]
