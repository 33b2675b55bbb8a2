"""What numbers come to, in words: figures, bins of a histogram that share a line, and signs of a heat map. Without a screen."""

from collections.abc import Sequence
from math import log2
from typing import Final

from shardscope.engine.model.peek import Bin, Statistics
from shardscope.widgets.figures import plural

LEVELS: Final = ".:-=+*#%@"
"""Of a heat map, from its smallest number above zero to its largest."""
ZERO, NOTHING = "0", "!"
"""A box of zeros, and one with nothing finite."""


def part(count: int, total: int) -> str:
    """Return a count with its share of all."""
    if not count or not total:
        return f"{count:,}"
    percent = 100 * count / total
    return f"{count:,} ({'100' if percent >= 99.5 else f'{percent:.2g}'}%)"


def figure(value: float | None) -> str:
    """Return a number with nine digits, integers with all."""
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:.9g}"


def used(found: Statistics) -> str:
    """Return which signs and exponents occur."""
    if found.exponent_min is None:
        return "none"
    return f"{plural(found.sign_exponents, 'pair')}, 2^{found.exponent_min} to 2^{found.exponent_max}"


def bars(found: Statistics, most: int) -> list[tuple[str, int]]:
    """Return which numbers there are and how many, by rising numbers; at most so many lines a sign, beside the zeros."""
    bins = found.histogram or ()
    below, above = _of(bins, negative=True), _of(bins, negative=False)
    step = max(1, *(-(-_span(some) // most) for some in (below, above)))
    lines = [(f"-2^{end} to -2^{low}", count) for low, end, count in reversed(_grouped(below, step))]
    lines.append(("0", found.zeros))
    lines += [(f"2^{low} to 2^{end}", count) for low, end, count in _grouped(above, step)]
    return lines


def _of(bins: Sequence[Bin], *, negative: bool) -> list[Bin]:
    return sorted((each for each in bins if each.negative is negative), key=lambda each: each.exponent)


def _span(bins: Sequence[Bin]) -> int:
    return bins[-1].exponent - bins[0].exponent + 1 if bins else 0


def _grouped(bins: Sequence[Bin], step: int) -> list[tuple[int, int, int]]:
    """Return the counts of so many exponents each, from the largest down: the largest are the telling ones."""
    if not bins:
        return []
    found = []
    end = bins[-1].exponent + 1
    while end > bins[0].exponent:
        count = sum(each.count for each in bins if end - step <= each.exponent < end)
        found.append((end - step, end, count))
        end -= step
    return found[::-1]


def sign(value: float | None, low: float, high: float) -> str:
    """Return the sign of a root mean square between the smallest and the largest one, in equal factors."""
    if value is None:
        return NOTHING
    if not value:
        return ZERO
    if low == high:
        return LEVELS[len(LEVELS) // 2]
    place = (log2(value) - log2(low)) / (log2(high) - log2(low))
    return LEVELS[min(len(LEVELS) - 1, int(place * len(LEVELS)))]
