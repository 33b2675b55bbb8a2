"""A shard map in words: the tree, what each rank holds and where, what the checks say, and a picture."""

from msgspec import Struct

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.picture import Picture


class PieceInWords(Struct, frozen=True):
    """One piece, both sides."""

    full: str
    """Where it lies in the full tensor: `rows 0-7, columns 4-7`."""
    shard: str
    """Where it lies in the shard."""
    elements: int
    full_bytes: tuple[int, int] | None
    """First byte in the full tensor and one past the last, with gaps between them perhaps; null without a dtype."""
    shard_bytes: tuple[int, int] | None
    holders: str
    scale: str | None
    """`1/4`; null where values are as they are."""


class ShardInWords(Struct, frozen=True):
    """What ranks with equal shards hold."""

    ranks: tuple[int, ...]
    shape: tuple[int, ...]
    elements: int
    bytes: int | None
    padding: int
    pieces: tuple[PieceInWords, ...]


class Explanation(Struct, frozen=True):
    """Everything that is to be said of one tensor's map."""

    name: str
    shape: tuple[int, ...]
    dtype: str | None
    mesh: str | None
    """The mesh with its axes: `dense: dp 2 x tp 4`. Null for a map that came in normal form."""
    tree: tuple[str, ...]
    """One line for each node, the first applied first; empty for a map that came in normal form."""
    shards: tuple[ShardInWords, ...]
    says: tuple[str, ...]
    """What the checks found to hold, a sentence each."""
    blockers: tuple[Blocker, ...]
    """What they found wrong."""
    picture: Picture | None
    """Null where the map is too broken to be drawn."""
    shard_picture: Picture | None = None
    """Of the rank that was asked for."""
