"""From one tensor of the output to the strided copies that make it, each out of one record of the source: O(pieces).

The map of the tensor is composed with the map of what is written, so that nothing is proven or merged here a second time.
Addresses on both sides are bytes of elements as they are stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Final

import numpy as np
from msgspec import Struct

from shardscope.engine.geometry.execution.program import Copy, IndexedCopy, byte_count
from shardscope.engine.geometry.execution.routes import Route
from shardscope.engine.geometry.language.layout import is_plain, normal_form
from shardscope.engine.geometry.transfer.compose import compose, whole
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side, row_major
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.transfer import IndexedSegment, Segment

MOST_PARTS: Final = 1 << 16
"""Copies into which a view that reads elements repeatedly may be cut."""
SPAN: Final = 64 << 10
"""Bytes within which a copy may read elements repeatedly or in any order."""
_UNIT: Final = (1,)


class Origin(Struct, frozen=True, gc=False):
    """Where the source addresses of a copy count from, and what is there."""

    record: Record
    base: int
    """Bytes into the decoded record."""
    dtype: str
    """Of the elements, as they are stored."""


class Cuts(Struct, frozen=True):
    """All copies of one tensor."""

    origins: tuple[Origin, ...]
    routes: tuple[Route, ...]
    """By rising start. `source_rank` is a position in `origins`; targets are bytes of the written tensor, if it had the type of the
    origin."""
    padded: bool = False
    """It has elements that no copy makes: they are zero."""


def cuts(tensor: LogicalTensor, layout: Lowered | None = None) -> Cuts:
    """Return the copies that make a tensor of its fragments; with a `layout` of one rank, those that make this part of it.

    Raises `Fault`: `convert.fragment_missing`, `convert.outside_record`, `convert.dtype`, `map.shard_size`, `map.incomplete`,
    and those of lowering and composing.
    """
    found = _Found(tensor, layout)
    fragments = {fragment.label: fragment for fragment in tensor.fragments}
    if layout is None and len(tensor.fragments) == 1 and is_plain(normal_form(tensor)):
        (fragment,) = tensor.fragments
        segments: Sequence[Segment | IndexedSegment] = _straight(fragment, tensor.shape)
    else:
        source = normal_form(tensor)
        _check_shapes(source, fragments)
        segments = _composed(layout or whole(tensor.shape), source)
    for fragment, some in _by_fragment(segments, fragments, tensor.name):
        found.add(fragment, some)
    return found.cuts()


@lru_cache(128)
def _composed(target: Lowered, source: Lowered) -> tuple[Segment | IndexedSegment, ...]:
    """Compose once for all layers of a model that are laid out alike."""
    plan = compose(target, source)
    return (*plan.segments, *plan.indexed)


def _straight(fragment: Fragment, shape: tuple[int, ...]) -> Sequence[Segment]:
    count = prod(shape)
    if prod(fragment.shape) != count:
        raise Fault("map.shard_size", rank=fragment.label, found=prod(fragment.shape), expected=count)
    if not count:
        return ()
    if count == 1:
        return (Segment(fragment.label, 0, (), Side(0, ()), Side(0, ())),)
    return (Segment(fragment.label, 0, (count,), Side(0, _UNIT), Side(0, _UNIT)),)


def _check_shapes(source: Lowered, fragments: Mapping[int, Fragment]) -> None:
    for shard in source.ranks:
        fragment = fragments.get(shard.rank)
        if fragment is not None and prod(fragment.shape) != shard.elements:
            raise Fault(
                "map.shard_size", rank=shard.rank, found=prod(fragment.shape), expected=shard.elements
            )


def _by_fragment(
    segments: Sequence[Segment | IndexedSegment], fragments: Mapping[int, Fragment], name: str
) -> Iterator[tuple[Fragment, list[Segment | IndexedSegment]]]:
    by_label: dict[int, list[Segment | IndexedSegment]] = {}
    for segment in segments:
        by_label.setdefault(segment.source_rank, []).append(segment)
    for label, some in by_label.items():
        if label not in fragments:
            raise Fault("convert.fragment_missing", tensor=name, rank=label)
        yield fragments[label], some


class _Found:
    """Copies, while they are collected."""

    def __init__(self, tensor: LogicalTensor, layout: Lowered | None) -> None:
        self._tensor = tensor
        self._elements = prod(tensor.shape) if layout is None else layout.ranks[0].elements
        self._shape = tensor.shape if layout is None else layout.ranks[0].shape
        self._padding = 0 if layout is None else layout.ranks[0].padding
        self._origins: dict[Origin, int] = {}
        self._routes: list[Route] = []
        self._moved = 0

    def add(self, fragment: Fragment, segments: Sequence[Segment | IndexedSegment]) -> None:
        """Add what one fragment gives."""
        dtype = fragment.dtype or self._tensor.dtype
        if dtype not in DTYPES:
            raise Fault("convert.dtype", tensor=self._tensor.name, found=dtype)
        bits = DTYPES[dtype].bits
        strides = fragment.strides
        if strides is not None and len(strides) != len(fragment.shape):
            raise Fault("convert.strides", tensor=self._tensor.name, found=len(strides))
        view = None if strides is None else _View(fragment.shape, strides)
        reach = prod(fragment.shape) if view is None else view.reach
        size = byte_count(reach, bits) if bits % 8 == 0 else -(-reach * bits // 8)
        if fragment.offset < 0 or fragment.offset + size > fragment.record.size:
            raise Fault(
                "convert.outside_record",
                tensor=self._tensor.name,
                file=fragment.record.file,
                end=fragment.offset + size,
                size=fragment.record.size,
            )
        if view is not None and not view.plain:
            segments = view.turned(segments, self._shape)
        for segment in segments:
            self._moved += segment.elements
            if isinstance(segment, IndexedSegment):
                self._indexed(fragment, segment, dtype)
            else:
                self._plain(fragment, segment, dtype)

    def cuts(self) -> Cuts:
        """Return the copies in their order."""
        if self._moved != self._elements - self._padding:
            raise Fault("map.incomplete", found=self._moved, expected=self._elements - self._padding)
        self._routes.sort(key=lambda route: (route.start, route.end))
        return Cuts(tuple(self._origins), tuple(self._routes), self._padding > 0)

    def _origin(self, fragment: Fragment, base: int, dtype: str) -> int:
        return self._origins.setdefault(Origin(fragment.record, base, dtype), len(self._origins))

    def _plain(self, fragment: Fragment, segment: Segment, dtype: str) -> None:
        bits = DTYPES[dtype].bits
        copy = _copy(segment, bits)
        if copy is None:
            return
        # Elements smaller than a byte cannot be addressed within a record, except where a fragment begins.
        origin = self._origin(fragment, 0, dtype)
        limit = byte_count(self._elements, bits)
        for part in _sound(copy.moved(-fragment.offset, 0)):
            start, end = part.target.offset, part.target.offset + part.target_span
            low, high = part.source.offset, part.source.offset + part.source_span
            if start < 0 or end > limit or low < 0 or high > fragment.record.size:
                raise Fault("map.outside", start=low, end=high, limit=fragment.record.size)
            self._routes.append(Route(origin, part, start, end))
            if len(self._routes) > MOST_PARTS * (1 + len(self._tensor.fragments)):
                raise Fault("convert.view", tensor=self._tensor.name, limit=MOST_PARTS)

    def _indexed(self, fragment: Fragment, segment: IndexedSegment, dtype: str) -> None:
        width = byte_count(1, DTYPES[dtype].bits)
        source, target = np.frombuffer(segment.source, "<i8"), np.frombuffer(segment.target, "<i8")
        if not len(target):
            return
        room = (fragment.record.size - fragment.offset) // width
        for addresses, limit in ((source, room), (target, self._elements)):
            low, high = int(addresses.min()), int(addresses.max()) + 1
            if low < 0 or high > limit:
                raise Fault("map.outside", start=low * width, end=high * width, limit=limit * width)
        if (np.diff(target) <= 0).any():
            raise Fault("map.unproven", reason="the addresses of an index do not rise")
        copy = IndexedCopy(width, width, segment.source, segment.target, segment.scale)
        origin = self._origin(fragment, fragment.offset, dtype)
        self._routes.append(Route(origin, copy, int(target[0]) * width, (int(target[-1]) + 1) * width))


class _View:
    """A shard that is stored with strides of its own: a transposed, expanded or overlapping view of a storage.

    Composition wants addresses that differ for every element. So it is given made-up ones, each of which stands for one index in each
    dimension, and so does each step between two of them. They are exchanged for the true ones; a step along several dimensions at
    once, from the end of a row to the next one, is none of a loop, and is written out.
    """

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        dims = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
        if any(s < 0 for _, s in dims):
            raise Fault("map.unproven", reason="a stride is negative")
        self.shape = tuple([n for n, _ in dims])
        self.strides = tuple([s for _, s in dims])
        self.elements = prod(shape)
        self.reach = 1 + sum((n - 1) * s for n, s in dims) if self.elements else 0
        self.plain = self.strides == row_major(self.shape)
        self._room = tuple([2 * n for n in self.shape])
        self._made_up = row_major(self._room)

    def turned(
        self, segments: Sequence[Segment | IndexedSegment], shape: tuple[int, ...]
    ) -> list[Segment | IndexedSegment]:
        """Return copies out of the row-major shard as copies out of the storage."""
        pieces, found = [], list[Segment | IndexedSegment]()
        for segment in segments:
            if isinstance(segment, IndexedSegment):
                indices = np.unravel_index(np.frombuffer(segment.source, "<i8"), self.shape or (1,))
                source = sum(
                    (index * step for index, step in zip(indices, self.strides, strict=False)),
                    np.zeros(segment.elements, "<i8"),
                )
                found.append(
                    IndexedSegment(
                        segment.source_rank,
                        segment.target_rank,
                        source.astype("<i8").tobytes(),
                        segment.target,
                        segment.scale,
                    )
                )
            else:
                pieces.append(Piece(segment.shape, segment.source, segment.target, (0,), segment.scale))
        if pieces:
            rank = segments[0].source_rank
            target = Lowered(self.shape, (RankShard(0, shape, tuple(pieces)),))
            every = Piece(self.shape, Side(0, row_major(self.shape)), Side(0, self._made_up), (0,))
            room = prod(self._room)
            source_map = Lowered(self.shape, (RankShard(0, (room,), (every,), room - self.elements),))
            for one in compose(target, source_map).segments:
                found += self._true(one, rank)
        return found

    def _true(self, one: Segment, rank: int) -> Iterator[Segment]:
        """Yield a copy with true addresses."""
        steps = [self._digits(step) for step in one.source.strides]
        mixed = next(
            (k for k, digits in enumerate(steps) if sum(map(bool, digits)) != 1 or min(digits) < 0), None
        )
        if mixed is None:
            strides = tuple([self._address(digits) for digits in steps])
            source = Side(self._address(self._digits(one.source.offset)), strides)
            yield Segment(rank, 0, one.shape, source, one.target, one.scale)
            return
        rest = [k for k in range(len(one.shape)) if k != mixed]
        for index in range(one.shape[mixed]):
            source, target = (
                Side(side.offset + index * side.strides[mixed], tuple([side.strides[k] for k in rest]))
                for side in (one.source, one.target)
            )
            shape = tuple([one.shape[k] for k in rest])
            yield from self._true(Segment(rank, 0, shape, source, target, one.scale), rank)

    def _digits(self, made_up: int) -> list[int]:
        """Return the indices, or the differences of indices, that a made-up address or step stands for."""
        digits = []
        for room in reversed(self._room):
            digit = made_up % room
            digit -= room if digit >= room // 2 else 0
            digits.append(digit)
            made_up = (made_up - digit) // room
        return digits[::-1]

    def _address(self, digits: Sequence[int]) -> int:
        return sum(digit * step for digit, step in zip(digits, self.strides, strict=True))


def _copy(segment: Segment, bits: int) -> Copy | None:
    """Return a segment in bytes. Unlike `program.compiled` it takes any strides that are not negative on its source side.

    Raises `Fault`: `map.sub_byte`, `map.unproven`.
    """
    if 0 in segment.shape:
        return None
    dims = sorted(
        [
            dim
            for dim in zip(segment.target.strides, segment.source.strides, segment.shape, strict=True)
            if dim[2] != 1
        ],
        reverse=True,
    )
    merged: list[tuple[int, int, int]] = []
    for t, s, extent in dims:
        if merged and merged[-1][0] == t * extent and merged[-1][1] == s * extent:
            merged[-1] = (t, s, merged[-1][2] * extent)
        else:
            merged.append((t, s, extent))
    run = bits
    if merged and merged[-1][:2] == (1, 1):
        run *= merged.pop()[2]
    numbers = [segment.source.offset, segment.target.offset, *(step for dim in merged for step in dim[:2])]
    if bits % 8 and (run % 8 or any(number * bits % 8 for number in numbers)):
        raise Fault("map.sub_byte", bits=bits)
    copy = Copy(
        run // 8,
        tuple([extent for _, _, extent in merged]),
        Side(segment.source.offset * bits // 8, tuple([s * bits // 8 for _, s, _ in merged])),
        Side(segment.target.offset * bits // 8, tuple([t * bits // 8 for t, _, _ in merged])),
        segment.scale,
    )
    if not _apart(copy, copy.target):
        raise Fault("map.unproven", reason="the dimensions of one piece overlap")
    return copy


def _apart(copy: Copy, side: Side) -> bool:
    """Tell whether no byte of a side is touched twice."""
    inner = copy.run
    for step, count in sorted(zip(side.strides, copy.counts, strict=True)):
        if step < inner:
            return False
        inner += (count - 1) * step
    return True


def _sound(copy: Copy) -> Iterator[Copy]:
    """Yield a copy in parts that read no byte twice, or not far from each other: only then can reads be cut to size."""
    if copy.source_span <= SPAN or _apart(copy, copy.source):
        yield copy
        return
    repeated = [dim for dim, step in enumerate(copy.source.strides) if not step]
    dim = repeated[0] if repeated else 0
    for index in range(copy.counts[dim]):
        yield from _sound(copy.part(dim, index, 1))
