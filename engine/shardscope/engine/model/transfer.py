"""A plan that moves a tensor from the shards of one layout straight into those of another, in elements, never in bytes.

The full tensor appears nowhere in it: both sides of a segment are addresses in shards. Rank labels of the two sides are
two namespaces; rank 0 of the source need not be rank 0 of the target.
"""

import math

from msgspec import Struct

from shardscope.engine.model.piece import ONE, Side


class Segment(Struct, frozen=True):
    """One strided copy: `target shard[target] = source shard[source] * scale`."""

    source_rank: int
    target_rank: int
    shape: tuple[int, ...]
    """Extents of both sides, at least 2 each; empty for a single element."""
    source: Side
    """In the shard of the source rank."""
    target: Side
    """In the shard of the target rank."""
    scale: tuple[int, int] = ONE

    @property
    def elements(self) -> int:
        """How many elements it copies."""
        return math.prod(self.shape)


class IndexedSegment(Struct, frozen=True):
    """Elements copied one by one, because a side is an indexed piece; by rising address in the target shard."""

    source_rank: int
    target_rank: int
    source: bytes
    """Addresses in the source shard: signed 64-bit little-endian integers."""
    target: bytes
    """Addresses in the target shard, rising."""
    scale: tuple[int, int] = ONE

    @property
    def elements(self) -> int:
        """How many elements it copies."""
        return len(self.target) // 8


class Traffic(Struct, frozen=True):
    """What one source rank gives one target rank."""

    source_rank: int
    target_rank: int
    elements: int


class PlanStatistics(Struct, frozen=True):
    """What planning looked at, so that a large model can be told from a fragmented layout."""

    source_pieces: int
    target_pieces: int
    pair_checks: int
    """Pairs of boxes that were compared."""
    segments_before_merge: int
    segments: int
    """Indexed ones included."""
    indexed_elements: int
    """Elements that are copied one by one: zero unless an `Explicit` could not be compressed."""
    plan_bytes: int
    """Of the segments as compact JSON."""


class TransferPlan(Struct, frozen=True):
    """Every copy that makes the target's shards, in order of source rank, target rank and address."""

    shape: tuple[int, ...]
    """Of the full logical tensor that both sides share."""
    segments: tuple[Segment, ...]
    indexed: tuple[IndexedSegment, ...]
    traffic: tuple[Traffic, ...]
    """One entry for each pair of ranks that exchange anything, sorted."""
    statistics: PlanStatistics

    @property
    def elements(self) -> int:
        """Elements that are moved, replicas of the target included."""
        return sum(pair.elements for pair in self.traffic)

    @property
    def scaled(self) -> bool:
        """Whether a value changes on its way."""
        return any(one.scale != ONE for one in self.segments) or any(one.scale != ONE for one in self.indexed)
