"""`0:4,-1,::2`: which elements of a tensor are looked at, written as numpy has it.

The parser is a few lines and bounded: so many characters, so many digits, nothing is evaluated. Steps are above zero.
"""

import re
from collections.abc import Sequence
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side, row_major

LONGEST: Final = 256
"""Characters of a slice."""
_PART: Final = re.compile(
    r"\s*(?:(?P<all>\.\.\.)|(?P<start>-?[0-9]{1,18})?\s*(?P<range>:)?\s*(?P<stop>-?[0-9]{1,18})?\s*(?P<second>:)?\s*(?P<step>[0-9]{1,18})?)\s*"
)

Indices = tuple[range, ...]
"""Indices in each dimension of a tensor."""


class Selection(Struct, frozen=True):
    """Some elements of a tensor: a box with steps."""

    of: tuple[int, ...]
    """The shape of the tensor."""
    indices: Indices
    """In each of its dimensions, rising."""
    kept: tuple[int, ...]
    """The dimensions that are not one index alone."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is selected."""
        return tuple(len(self.indices[dim]) for dim in self.kept)

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def run(self) -> int:
        """How many elements stand side by side in the tensor, row by row, before one is left out."""
        found = 1
        for indices, extent in zip(reversed(self.indices), reversed(self.of), strict=True):
            if indices.step == 1 or len(indices) == 1:
                found *= len(indices)
            if indices.step != 1 or len(indices) != extent:
                break
        return found

    def index(self, element: int) -> tuple[int, ...]:
        """Return the index in the tensor of one of its elements, counted row by row."""
        found = []
        for indices in reversed(self.indices):
            element, at = divmod(element, len(indices))
            found.append(indices[at])
        return tuple(reversed(found))

    def place(self, index: Sequence[int]) -> tuple[int, ...] | None:
        """Return where an index of the tensor stands along the dimensions that are kept; null where it is not selected."""
        if any(at not in indices for at, indices in zip(index, self.indices, strict=True)):
            return None
        return tuple(self.indices[dim].index(index[dim]) for dim in self.kept)

    def within(self, places: Sequence[range | int]) -> "Selection":
        """Return a part of it: for each dimension that is kept, a range of places along it, or one place alone."""
        indices = list(self.indices)
        kept = []
        for dim, place in zip(self.kept, places, strict=True):
            if isinstance(place, int):
                at = indices[dim][place]
                indices[dim] = range(at, at + 1)
            else:
                indices[dim] = indices[dim][place.start : place.stop : place.step]
                kept.append(dim)
        return Selection(self.of, tuple(indices), tuple(kept))

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the slice that selects it, one for each dimension of the tensor."""
        return tuple(
            _written(indices, extent) if dim in self.kept else str(indices.start)
            for dim, (indices, extent) in enumerate(zip(self.indices, self.of, strict=True))
        )

    @property
    def words(self) -> str:
        """The slice that selects it, as `selection` reads it; empty for a tensor without dimensions."""
        return ",".join(self.parts)


def _written(indices: range, extent: int) -> str:
    """Return a range as a slice has it."""
    if not len(indices):
        return "0:0"
    step = indices.step if len(indices) > 1 else 1
    start, stop = indices.start, indices[-1] + 1
    end = "" if indices[-1] + step >= extent else str(stop)
    return f"{start or ''}:{end}{'' if step == 1 else f':{step}'}"


def selection(text: str | None, shape: tuple[int, ...], tensor: str) -> Selection:
    """Return what a slice selects; all of it without one. Raises `Fault`: `peek.slice`, `peek.dimensions`, `peek.index`."""
    parts = [] if text is None else _parts(text)
    given = len(parts) - (None in parts)
    if text is not None and given > len(shape):
        raise Fault("peek.dimensions", slice=text, found=given, expected=len(shape), tensor=tensor)
    at = parts.index(None) if None in parts else len(parts)
    whole: list[int | slice | None] = [slice(None)] * (len(shape) - given)
    full = [*parts[:at], *whole, *parts[at + 1 :]]
    indices: list[range] = []
    kept: list[int] = []
    for dim, (part, extent) in enumerate(zip(full, shape, strict=True)):
        if isinstance(part, slice):
            kept.append(dim)
            indices.append(range(*part.indices(extent)))
        elif isinstance(part, int):
            if not -extent <= part < extent:
                raise Fault("peek.index", index=part, dimension=dim, tensor=tensor, extent=extent)
            first = part % extent
            indices.append(range(first, first + 1))
    return Selection(shape, tuple(indices), tuple(kept))


def _parts(text: str) -> list[int | slice | None]:
    """Return an index, a range or null, for `...`, for each part of a slice."""
    if len(text) > LONGEST:
        raise _bad(text[:LONGEST], f"it is longer than {LONGEST} characters", LONGEST)
    found: list[int | slice | None] = []
    at = 0
    for word in text.split(","):
        match = _PART.fullmatch(word)
        if match is None or not word.strip():
            raise _bad(text, "no index and no range" if word.strip() else "nothing stands there", at)
        if match["all"]:
            if None in found:
                raise _bad(text, "a second `...`", at)
            found.append(None)
        elif not match["range"]:
            if match["start"] is None or match["stop"] or match["second"] or match["step"]:
                raise _bad(text, "no index and no range", at)
            found.append(int(match["start"]))
        else:
            start, stop, step = (None if match[key] is None else int(match[key]) for key in _ENDS)
            if step == 0 or (step is not None and not match["second"]):
                raise _bad(text, "a step of nothing", at)
            found.append(slice(start, stop, step))
        at += len(word) + 1
    return found


_ENDS: Final = ("start", "stop", "step")


def _bad(text: str, why: str, at: int) -> Fault:
    return Fault("peek.slice", slice=text, why=why, at=at)


def layout(found: Selection) -> Lowered | None:
    """Return the map of one rank that has what is selected, and nothing else; null where that is the whole tensor."""
    if found.shape == found.of:
        return None
    return _one_rank(found.of, found.shape, [_piece(found.of, found.indices, found.shape)])


def boxed(of: tuple[int, ...], view: tuple[int, int], indices: tuple[range, range]) -> Lowered | None:
    """Return the map of one rank that has some rows and columns of a tensor that is looked at as a matrix of as many elements.

    Null where that is the whole tensor.
    """
    block = (len(indices[0]), len(indices[1]))
    if block == view:
        return None
    return Lowered(of, _one_rank(view, block, [_piece(view, indices, block)]).ranks)


def edges(extent: range, most: int) -> tuple[range, ...]:
    """Return the first and the last of some indices, in one range or two, at most so many."""
    if len(extent) <= most:
        return (extent,)
    low = (most + 1) // 2
    return tuple(part for part in (extent[:low], extent[len(extent) - (most - low) :]) if len(part))


def corners(found: Selection, rows: Sequence[range], columns: Sequence[range]) -> Lowered:
    """Return the map of one rank that has the corners of what is selected, in its last two dimensions, as a small matrix.

    Dimensions before these stand at their first index. Of fewer than two dimensions it has one row, and of none one column.
    """
    matrix = found.kept[-2:]
    shape = (sum(map(len, rows)), sum(map(len, columns)))
    pieces, down = [], 0
    for some in rows:
        across = 0
        for others in columns:
            indices = [each[:1] for each in found.indices]
            for dim, line in zip(reversed(matrix), (others, some), strict=False):
                indices[dim] = line
            block = (len(some), len(others))
            pieces.append(_piece(found.of, tuple(indices), block, shape, down * shape[1] + across))
            across += len(others)
        down += len(some)
    return _one_rank(found.of, shape, pieces)


def _piece(
    of: tuple[int, ...],
    indices: Indices,
    block: tuple[int, ...],
    within: tuple[int, ...] | None = None,
    offset: int = 0,
) -> Piece:
    """Return a box with steps as a piece; `within`: the shape of the shard, in which it begins at `offset`."""
    steps = row_major(of)
    begin = sum(each.start * step for each, step in zip(indices, steps, strict=True))
    counts = [
        (len(each), each.step * step) for each, step in zip(indices, steps, strict=True) if len(each) != 1
    ]
    dest = row_major(within or block)
    places = [(count, stride) for count, stride in zip(block, dest, strict=True) if count != 1]
    shape = tuple(count for count, _ in counts)
    source, target = (
        Side(at, tuple(step for _, step in some)) for at, some in ((begin, counts), (offset, places))
    )
    return Piece(shape, source, target, (0,))


def _one_rank(of: tuple[int, ...], shape: tuple[int, ...], pieces: Sequence[Piece]) -> Lowered:
    full = tuple(piece for piece in pieces if 0 not in piece.shape)
    return Lowered(of, (RankShard(0, shape, full),))
