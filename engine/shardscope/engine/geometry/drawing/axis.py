"""One side of a drawing cut into cells, so that no cell lies on two sides of a border as long as there are cells enough."""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from shardscope.engine.model.shardview import Axis


def even(extent: int, most: int) -> int:
    """Return how many cells of equal size an extent is cut into: up to a third fewer than allowed for their sake."""
    if extent <= most:
        return extent
    return next((n for n in range(most, most * 2 // 3, -1) if extent % n == 0), most)


def cut(
    first: int, count: int, most: int, edges: Sequence[int], *, known: bool = True, repeat: int = 1
) -> Axis:
    """Return positions `first` to `first + count` in at most `most` cells.

    `edges` are the positions, sorted, at which something else begins; `known` says that they are all there are. Every stretch
    between two of them gets at least one cell, and equal stretches get equally many. Where there are more stretches than cells, the
    cells are of one size and not exact. Where there is much room, a position gets up to `repeat` cells.
    """
    if count <= 0 or most <= 0:
        return Axis((), first)
    inner = edges[bisect_right(edges, first) : bisect_left(edges, first + count)]
    if len(inner) >= most:
        number = even(count, most)
        starts = tuple([first + n * count // number for n in range(number)])
        return Axis(starts, first + count, (), number == count)
    borders = [first, *inner, first + count]
    lengths = [high - low for low, high in itertools.pairwise(borders)]
    shares = _shares(lengths, most)
    times = max(1, min(repeat, most // count)) if sum(shares) == count else 1
    found: list[int] = []
    begins: list[int] = []
    for low, length, cells in zip(borders, lengths, shares, strict=False):
        begins.append(len(found))
        found += [low + n * length // cells for n in range(cells) for _ in range(times)]
    return Axis(tuple(found), first + count, tuple(begins[1:]), known or len(found) >= count)


def _shares(lengths: Sequence[int], most: int) -> list[int]:
    """Return how many cells each stretch gets: in proportion, one at least, never more than it has positions."""
    if len(set(lengths)) == 1:
        return [min(lengths[0], most // len(lengths))] * len(lengths)
    total = sum(lengths)
    wanted = min(most, total)
    shares = [max(1, min(length, length * wanted // total)) for length in lengths]
    while (left := wanted - sum(shares)) > 0:
        order = sorted(range(len(lengths)), key=lambda n: shares[n] / lengths[n])
        for number in [n for n in order if shares[n] < lengths[n]][:left]:
            shares[number] += 1
    while sum(shares) > wanted:
        number = max((n for n in range(len(lengths)) if shares[n] > 1), key=lambda n: shares[n] / lengths[n])
        shares[number] -= 1
    return shares
