"""The numbers of one tensor as text: a grid, what they come to, how they are spread, and where they are large."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from shardscope.app.cli.paragraphs import WIDTH, wrapped
from shardscope.engine.looking.slices import selection
from shardscope.engine.model.peek import Heat, Landmarks, PackedWeight, PeekDocument, Profile, Statistics
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.tensors import DTYPES, array_bytes
from shardscope.widgets.compare_words import NAME, extents
from shardscope.widgets.figure_words import LEVELS, bars, figure, part, sign, used
from shardscope.widgets.figures import number, plural, size

LOUDEST: Final = 5
"""Indices of a dimension that are told by their root mean squares."""
BARS: Final = 10
"""Lines of a histogram for each sign, at most."""
_BAR: Final = 30


def text_lines(document: PeekDocument) -> Iterator[str]:
    """Yield the lines of a text, 80 columns wide unless more columns were asked for."""
    name = shown(document.name, NAME) or "''"
    yield from (name[at : at + WIDTH] for at in range(0, len(name), WIDTH))
    yield from wrapped(_what(document), 2, first="  ")
    if document.packing is not None:
        yield from wrapped(_packing(document.packing), 2, first="  ")
    yield ""
    yield from grid_lines(document)
    if document.statistics is not None:
        yield ""
        yield from statistics_lines(document.statistics)
        yield from landmark_lines(document.landmarks)
        if document.statistics.histogram is not None:
            yield ""
            yield from histogram_lines(document.statistics)
    if document.heat is not None:
        yield ""
        yield from heat_lines(document.heat)
    if document.profiles is not None:
        yield ""
        chosen = selection(document.slice, document.shape, document.name)
        for profile in document.profiles:
            yield from profile_lines(profile, chosen.indices[profile.dimension])


def _what(document: PeekDocument) -> str:
    said = f"{document.dtype} {extents(document.shape)}, {size(array_bytes(document.dtype, document.shape))}"
    if document.bits is not None:
        said += f", taken apart into numbers of {plural(document.bits, 'bit')}"
    if document.part_of is not None:
        said += f", of rank {document.part_of}"
    files = document.files
    if files:
        said += f", in {shown(files[0], 120)}"
        if len(files) > 1:
            said += f" and {plural(len(files) - 1, 'more file')}"
    if document.slice is not None:
        said += f"; selected {extents(document.selected)}, {plural(document.elements, 'element')}"
    return said


def _packing(packed: PackedWeight) -> str:
    stored = f"{packed.dtype} {extents(packed.shape)}, {size(array_bytes(packed.dtype, packed.shape))}"
    beside = ", ".join(shown(name, 80) for name in packed.companions)
    return f"packed as {packed.scheme} in {stored}: {packed.formula}{f'; with {beside}' if beside else ''}"


def grid_lines(document: PeekDocument) -> Iterator[str]:
    """Yield the grid, with the indices of its rows and columns."""
    grid = document.grid
    if not grid.values:
        yield "No element is selected."
        return
    if grid.leading and len(document.selected) > 2:
        yield f"at {', '.join(map(str, grid.leading))} of the dimensions before:"
    cells = [[_short(word, document.dtype) for word in row] for row in grid.values]
    heads = [str(column) for column in grid.columns]
    widths = [max(len(head), *(len(row[at]) for row in cells)) for at, head in enumerate(heads)]
    names = [str(row) for row in grid.rows] if len(document.selected) > 1 else [""]
    label = max(map(len, names))
    fit = _fitting(widths, WIDTH - label, elided=bool(grid.columns_elided))
    gap = _middle(grid.columns_elided or len(widths) - len(fit), len(fit))
    heads, widths = [heads[at] for at in fit], [widths[at] for at in fit]
    yield _line("", label, heads, widths, gap)
    down = _middle(grid.rows_elided, len(grid.rows))
    for at, (name, row) in enumerate(zip(names, cells, strict=True)):
        if at == down:
            yield f"{'...':>{label}}  ({plural(grid.rows_elided, 'row')})"
        yield _line(name, label, [row[column] for column in fit], widths, gap)


def _fitting(widths: Sequence[int], room: int, *, elided: bool) -> list[int]:
    """Return the columns that fit side by side: those in the middle go first."""
    fit = list(range(len(widths)))
    while len(fit) > 1:
        gap = 5 if elided or len(fit) < len(widths) else 0
        if sum(widths[at] + 2 for at in fit) + gap <= room:
            break
        del fit[len(fit) // 2]
    return fit


def _middle(elided: int, shown_: int) -> int | None:
    return (shown_ + 1) // 2 if elided else None


def _line(name: str, label: int, cells: Sequence[str], widths: Sequence[int], gap: int | None) -> str:
    parts = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
    if gap is not None:
        parts.insert(gap, "...")
    return f"{name:>{label}}  {'  '.join(parts)}".rstrip()


def _short(word: str, dtype: str) -> str:
    """Return a number with the digits that fit beside others."""
    kind = DTYPES[dtype].kind
    if kind == "complex":
        found = complex(word)
        return f"{found.real:.3g}{found.imag:+.3g}j"
    return f"{float(word):.5g}" if kind in ("float", "scale") else word


def statistics_lines(found: Statistics) -> Iterator[str]:
    """Yield the figures in two columns."""
    rows = (
        ("numbers", number(found.numbers), "zeros", part(found.zeros, found.numbers)),
        ("min", figure(found.min), "NaN", part(found.nans, found.numbers)),
        ("max", figure(found.max), "+inf", part(found.positive_infinite, found.numbers)),
        ("mean", figure(found.mean), "-inf", part(found.negative_infinite, found.numbers)),
        ("std", figure(found.std), "sign and exponent", used(found)),
        ("L2", figure(found.l2), "different values", _distinct(found)),
    )
    wide = max(24, *(len(left) for _, left, _, _ in rows))
    for label, left, other, right in rows:
        yield (
            f"  {label:<8}  {left:<{wide}}  {other:<17}  {right}".rstrip()
            if right
            else f"  {label:<8}  {left}"
        )


def landmark_lines(at: Landmarks | None) -> Iterator[str]:
    """Yield where the extremes and the first numbers that are not finite are."""
    if at is None:
        return
    known = (
        ("min", at.min),
        ("max", at.max),
        ("first NaN", at.nan),
        ("first +inf", at.positive_infinite),
        ("first -inf", at.negative_infinite),
    )
    if words := ", ".join(f"{name} at {extents(place)}" for name, place in known if place is not None):
        yield from wrapped(words, 2, first="  ")


def _distinct(found: Statistics) -> str:
    return "" if found.distinct is None else number(found.distinct)


def histogram_lines(found: Statistics) -> Iterator[str]:
    """Yield how many numbers there are of each sign and exponent; exponents side by side share a line where there are many."""
    yield "Finite numbers by sign and magnitude"
    lines = bars(found, BARS)
    most = max(count for _, count in lines) or 1
    label = max(len(word) for word, _ in lines)
    for word, count in lines:
        bar = "#" * -(-count * _BAR // most)
        yield f"  {word:>{label}}  {part(count, found.numbers):<22}  {bar}".rstrip()


def heat_lines(heat: Heat) -> Iterator[str]:
    """Yield a map with one sign for each box, by the logarithm of its root mean square."""
    known = [value for row in heat.rms for value in row if value]
    if not known:
        yield "No box of the heat map has a number other than zero."
        return
    low, high = min(known), max(known)
    down = [
        f"{first:,}" if last - first == 1 else f"{first:,}-{last - 1:,}"
        for first, last in pairwise(heat.row_edges)
    ]
    label = max(map(len, down))
    yield "Root mean square, rows down and the last dimension across"
    for word, row in zip(down, heat.rms, strict=True):
        line = "".join(sign(value, low, high) for value in row)
        yield f"{word:>{label}}  {line[: WIDTH - label - 2]}".rstrip()
    across = heat.column_edges
    widest = max(last - first for first, last in pairwise(across))
    each = "column" if widest == 1 else f"{number(widest)} columns at most"
    yield from wrapped(
        f"one sign is {each} of {number(across[-1])}; {LEVELS[0]} {low:.3g} to {LEVELS[-1]} {high:.3g} in "
        "equal factors, 0 zero, ! nothing finite"
    )


def profile_lines(profile: Profile, indices: range) -> Iterator[str]:
    """Yield which of the selected indices of a dimension have the largest root mean squares."""
    known = sorted(
        ((value, at) for at, value in enumerate(profile.rms) if value), key=lambda item: (-item[0], item[1])
    )
    boxes = len(profile.rms)
    what = "indices" if boxes == len(indices) else f"boxes of {number(profile.edges[1])} indices or so"
    said = f"Dimension {profile.dimension}, root mean squares of {number(boxes)} {what}: "
    if not known:
        yield from wrapped(f"{said}no number other than zero", 2)
        return
    middle = median(value for value, _ in known)
    loud = ", ".join(
        f"{value:.4g} at {_where(indices, *profile.edges[at : at + 2])}" for value, at in known[:LOUDEST]
    )
    said += f"median {middle:.4g}; largest {loud}"
    if silent := boxes - len(known):
        said += f"; {number(silent)} zero or not finite"
    yield from wrapped(said, 2)


def _where(indices: range, low: int, high: int) -> str:
    """Return places along a dimension as indices of the tensor."""
    return (
        number(indices[low]) if high - low == 1 else f"{number(indices[low])} to {number(indices[high - 1])}"
    )
