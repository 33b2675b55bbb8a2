"""Which ranks of a rectangle wrote files, by the numbers in their names.

Names can be hostile: `rank_999999` alone spans a million ranks. Nothing here loops over what is only spanned, so the work
follows the files that are there.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import prod
from typing import Final

from msgspec import Struct

Coordinate = tuple[int, ...]

SHOWN: Final = 256
"""Missing ranks that are listed one by one; the rest is only counted."""


class RankGrid(Struct, frozen=True):
    """The ranks that were seen, and what the rectangle they span lacks."""

    extents: tuple[int, ...]
    """Size of each axis: one more than the highest number seen, or the declared size where that is larger."""
    seen: tuple[Coordinate, ...]
    """Distinct and sorted."""
    missing: tuple[Coordinate, ...]
    """The first `SHOWN` of those in the rectangle that were not seen, sorted."""
    missing_count: int
    duplicate: tuple[Coordinate, ...]
    """Seen more than once."""

    @property
    def ranks(self) -> int:
        """How many ranks the rectangle holds."""
        return prod(self.extents)


def rank_grid(coordinates: Iterable[Coordinate], declared: Sequence[int | None] = ()) -> RankGrid:
    """Return the grid that `coordinates` (all of one length, counted from 0) span.

    `declared` gives sizes that are known from elsewhere, axis by axis; without them a missing last rank cannot be seen.
    Without any coordinate the grid is what is declared, all of it missing.
    """
    counts = Counter(iter(coordinates))
    seen = sorted(counts)
    sizes = [1 + max(along) for along in zip(*seen, strict=True)] or [0] * len(declared)
    for axis, size in enumerate(declared):
        sizes[axis] = max(sizes[axis], size or 0)
    extents = tuple(sizes)
    total = prod(extents)
    missing_count = total - len(seen)
    missing = tuple(_missing(extents, counts, min(missing_count, SHOWN)))
    return RankGrid(
        extents=extents,
        seen=tuple(seen),
        missing=missing,
        missing_count=missing_count,
        duplicate=tuple(coordinate for coordinate in seen if counts[coordinate] > 1),
    )


def _missing(extents: Sequence[int], seen: Collection[Coordinate], wanted: int) -> Iterator[Coordinate]:
    """Yield the first `wanted` absent coordinates in order: at most `wanted` steps more than there are seen."""
    number = 0
    while wanted:
        coordinate = _coordinate(number, extents)
        if coordinate not in seen:
            wanted -= 1
            yield coordinate
        number += 1


def _coordinate(number: int, extents: Sequence[int]) -> Coordinate:
    parts: list[int] = []
    for extent in reversed(extents):
        number, part = divmod(number, extent)
        parts.append(part)
    return tuple(reversed(parts))
