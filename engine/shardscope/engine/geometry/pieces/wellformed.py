"""What can be said of one piece alone: its numbers, its bounds, its holders. Maps from anywhere are safe after this."""

import math
from collections.abc import Iterable

from shardscope.engine.geometry.pieces.explicit import rising, unpacked
from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.piece import IndexedPiece, Lowered, Piece, RankShard, Side

MOST = (1 << 63) - 1
"""The largest address, and the most elements of a tensor."""


def labels(lowered: Lowered) -> list[Finding]:
    """Return what is wrong with the rank labels: any whole numbers will do, each once."""
    seen: set[int] = set()
    found = []
    for shard in lowered.ranks:
        if type(shard.rank) is not int:
            found.append(
                Finding("map.rank_labels", {"found": f"{type(shard.rank).__name__} is no whole number"})
            )
        elif abs(shard.rank) > MOST:
            found.append(Finding("map.rank_labels", {"found": "a label has more than 64 bits"}))
        elif shard.rank in seen:
            found.append(Finding("map.rank_labels", {"found": f"rank {shard.rank} occurs twice"}))
        else:
            seen.add(shard.rank)
    return found


def size(shape: tuple[int, ...], what: str) -> Finding | None:
    """Return what is wrong with a shape: extents below zero or more elements than have an address."""
    if not _whole(shape) or any(extent < 0 for extent in shape):
        return Finding(
            "map.invalid", {"place": what, "reason": "an extent is not a whole number of at least 0"}
        )
    if math.prod(extent for extent in shape if extent) > MOST:
        return Finding("map.unsupported_size", {"side": what, "limit": MOST})
    return None


def piece(number: int, one: Piece, shard: RankShard, total: int, ranks: frozenset[int]) -> Finding | None:
    """Return the first thing that is wrong with piece `number` of a shard of a tensor of `total` elements."""
    where = {"piece": number, "rank": shard.rank}
    if (reason := _malformed(one)) is not None:
        return Finding("map.malformed", {**where, "reason": reason})
    if (found := _held(one.scale, one.holders, shard.rank, ranks, where)) is not None:
        return found
    for what, side, limit in (("full tensor", one.source, total), ("shard", one.dest, shard.elements)):
        if (found := _bounds(one.shape, side, limit, {**where, "side": what})) is not None:
            return found
    return None


def indexed(
    number: int, one: IndexedPiece, shard: RankShard, total: int, ranks: frozenset[int]
) -> Finding | None:
    """Return the first thing that is wrong with an indexed piece. This walks its elements."""
    where = {"piece": number, "rank": shard.rank}
    if len(one.source) != len(one.dest) or len(one.dest) % 8:
        reason = "its two lists of addresses have different lengths"
        return Finding("map.malformed", {**where, "reason": reason})
    if (wrong := _marks(one.scale, one.holders)) is not None:
        return Finding("map.malformed", {**where, "reason": wrong})
    if (found := _held(one.scale, one.holders, shard.rank, ranks, where)) is not None:
        return found
    source, dest = unpacked(one.source), unpacked(one.dest)
    if not rising(dest):
        return Finding("map.malformed", {**where, "reason": "its addresses in the shard do not rise"})
    for what, addresses, limit in (("full tensor", source, total), ("shard", dest, shard.elements)):
        if addresses and not 0 <= min(addresses) <= max(addresses) < limit:
            found_at = min(addresses) if min(addresses) < 0 else max(addresses)
            return _beyond(found_at, limit, {**where, "side": what})
    return None


def _whole(numbers: Iterable[object]) -> bool:
    for number in numbers:  # noqa: SIM110 - a plain loop: this is asked of every number of every piece
        if type(number) is not int:
            return False
    return True


def _malformed(one: Piece) -> str | None:
    shape, source, dest = one.shape, one.source, one.dest
    if not len(shape) == len(source.strides) == len(dest.strides):
        return "it has another number of steps than of extents"
    numbers = (*shape, *source.strides, *dest.strides, source.offset, dest.offset)
    if not _whole(numbers):
        return "a number is not a whole number"
    if shape and min(shape) < 0:
        return "an extent is below 0"
    if max(numbers) > MOST or min(numbers) < -MOST:
        return "a number has more than 64 bits"
    return _marks(one.scale, one.holders)


def _marks(scale: tuple[int, int], holders: tuple[int, ...]) -> str | None:
    if not _whole(scale) or scale[1] < 1 or (scale[0] and math.gcd(*scale) != 1):
        return "its factor is not a fraction in lowest terms"
    if not holders or not _whole(holders) or not rising(holders) or max(-holders[0], holders[-1]) > MOST:
        return "its holders are not a sorted set of ranks"
    return None


def _held(
    scale: tuple[int, int],
    holders: tuple[int, ...],
    rank: int,
    ranks: frozenset[int],
    where: dict[str, int],
) -> Finding | None:
    if scale[0] == 0:
        return Finding("map.scale_zero", {**where})
    if rank not in holders:
        return Finding("map.holders_self", {**where, "holders": named(holders)})
    unknown = next((holder for holder in holders if holder not in ranks), None)
    return None if unknown is None else Finding("map.holders_unknown", {**where, "other": unknown})


def _bounds(shape: tuple[int, ...], side: Side, limit: int, where: dict[str, int | str]) -> Finding | None:
    if 0 in shape:
        return None if 0 <= side.offset <= limit else _beyond(side.offset, limit, where)
    last = side.offset
    for extent, stride in zip(shape, side.strides, strict=True):
        if extent > 1 and stride < 1:
            return Finding("map.unsupported_stride", {**where, "found": stride})
        last += (extent - 1) * stride if extent > 1 else 0
    if side.offset < 0 or last >= limit:
        return _beyond(side.offset if side.offset < 0 else last, limit, where)
    return None


def _beyond(found: int, limit: int, where: dict[str, int | str]) -> Finding:
    return Finding("map.out_of_bounds", {**where, "found": max(-MOST, min(found, MOST)), "limit": limit})


def named(ranks: tuple[int, ...]) -> str:
    """Return rank labels as words: runs shortened, and many only counted."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    parts = [
        str(low) if low == high else f"{low}-{high}" if high > low + 1 else f"{low}, {high}"
        for low, high in runs
    ]
    more = f" and {len(parts) - 8:,} more runs" if len(parts) > 8 else ""
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(parts[:8]) + more
