"""Stretches of written tensors, made of what lies in records: read, turned round, multiplied, cast and put in their place.

All of it happens in tiles of a few hundred kilobytes to two megabytes, which stay in cache from the read to the write.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple, Self

import numpy as np
from msgspec import Struct

from shardscope.engine.convert.copies.casting import Caster, castable, swapped
from shardscope.engine.convert.copies.contents import Contents
from shardscope.engine.convert.copies.segments import Cuts, Origin
from shardscope.engine.geometry.execution.filling import Filling
from shardscope.engine.geometry.execution.move import Bytes, dense, move, parts
from shardscope.engine.geometry.execution.program import Copy, IndexedCopy
from shardscope.engine.geometry.execution.routes import Route
from shardscope.engine.geometry.execution.scale import Element, carry, named, scaled
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import ONE, Side
from shardscope.engine.model.tensors import DTYPES

GRAIN: Final = 4096
"""Tiles begin at multiples of it, counted in bytes of the stored elements."""


FEW_RUNS: Final = 4
"""Runs of bytes that are read one by one; more of them are cheaper read together and put in their places."""


class Change(Struct, frozen=True):
    """What happens to elements between their record and the output."""

    stored: str
    wanted: str
    big_endian: bool

    @property
    def none(self) -> bool:
        """Nothing: bytes stay as they are."""
        return self.stored == self.wanted and (not self.big_endian or DTYPES[self.stored].bits <= 8)


class Group(NamedTuple):
    """Routes whose elements change alike, by rising start."""

    change: Change
    routes: tuple[Route, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    """The furthest end so far, so that it rises too."""

    def within(self, low: int, high: int) -> tuple[Route, ...]:
        """Return the routes that may reach between two addresses, and few others."""
        return self.routes[bisect_right(self.ends, low) : bisect_left(self.starts, high)]


class Prepared(NamedTuple):
    """A tensor whose copies are known."""

    origins: tuple[Origin, ...]
    groups: tuple[Group, ...]
    dtype: str
    """As it is written."""
    padded: bool = False
    """It has elements that no copy makes: they are zero."""

    @property
    def changed(self) -> bool:
        """Whether elements differ from those in the records."""
        return any(
            not group.change.none or any(route.copy.scale != ONE for route in group.routes)
            for group in self.groups
        )

    @property
    def coded(self) -> bool:
        """Whether a record is coded, so that it is best read in rising order."""
        return any(origin.record.coding != "plain" for origin in self.origins)


def prepared(cuts: Cuts, dtype: str) -> Prepared:
    """Return the copies of a tensor that is written as `dtype`.

    Raises `Fault` `convert.cast` where its elements are not converted to that.
    """
    found: dict[Change, list[Route]] = {}
    for route in cuts.routes:
        origin = cuts.origins[route.source_rank]
        if not castable(origin.dtype, dtype):
            raise Fault("convert.cast", stored=origin.dtype, wanted=dtype)
        change = Change(origin.dtype, dtype, origin.record.big_endian)
        found.setdefault(change, []).append(route)
    groups = tuple(
        Group(
            change,
            tuple(routes),
            tuple(route.start for route in routes),
            tuple(accumulate((route.end for route in routes), max)),
        )
        for change, routes in found.items()
    )
    return Prepared(cuts.origins, groups, dtype, cuts.padded)


def _runs(routes: Sequence[Route]) -> list[tuple[Route, Copy]] | None:
    """Return routes that are runs of bytes, and few; null where one is not, or where there are many."""
    found = [
        (route, route.copy)
        for route in routes[: FEW_RUNS + 1]
        if isinstance(route.copy, Copy) and not route.copy.counts and route.copy.scale == ONE
    ]
    return found if len(found) == len(routes) <= FEW_RUNS else None


class _Area(NamedTuple):
    """A stretch of a tensor in bytes of its stored elements, and where the written ones go."""

    low: int
    high: int
    routes: tuple[Route, ...]
    data: Bytes
    stored: int
    wanted: int
    """Bits of an element."""

    def cut(self, low: int, high: int) -> Self:
        """Return a part."""
        first, last = ((at - self.low) * self.wanted // self.stored for at in (low, high))
        return self._replace(low=low, high=high, data=self.data[first:last])


class Maker:
    """Fills stretches of tensors. For one thread."""

    def __init__(self, contents: Contents, step: int) -> None:
        self._contents = contents
        self._buffer = memoryview(bytearray(step))
        self._filling = Filling(self._read, self._carry, step, GRAIN)
        self._casters: dict[tuple[str, str], Caster] = {}
        self._origins: Sequence[Origin] = ()
        self._change: Change | None = None
        self._element: Element | None = None
        self._overflowed = 0

    def fill(self, tensor: Prepared, low: int, high: int, data: Bytes) -> int:
        """Make the bytes `low` to `high` of the written tensor. Returns how many finite numbers became infinite.

        Raises `Fault`: those of `Contents.read_into`, of scaling and of copying.
        """
        self._origins = tensor.origins
        self._overflowed = 0
        if tensor.padded:
            data[:] = 0
        wanted = DTYPES[tensor.dtype].bits
        for group in tensor.groups:
            stored = DTYPES[group.change.stored].bits
            first, last = low * stored // wanted, high * stored // wanted
            routes = group.within(first, last)
            if group.change.none and self._straight(tensor, routes, low, high, data):
                continue
            if routes:
                self._change = group.change
                self._element = named(group.change.stored)
                self._filling.fill([_Area(first, last, routes, data, stored, wanted)])
        return self._overflowed

    def _straight(self, tensor: Prepared, routes: Sequence[Route], low: int, high: int, data: Bytes) -> bool:
        """Read what are runs of bytes right into their place; tell whether that was all there was to do."""
        runs = _runs(routes)
        if runs is None:
            return False
        for route, copy in runs:
            start, end = max(low, route.start), min(high, route.end)
            if start < end:
                origin = tensor.origins[route.source_rank]
                at = origin.base + copy.source.offset + start - route.start
                self._contents.read_into(origin.record, at, data[start - low : end - low].data)
        return True

    def _read(self, number: int, offset: int, length: int) -> memoryview:
        origin = self._origins[number]
        view = self._buffer[:length]
        self._contents.read_into(origin.record, origin.base + offset, view)
        return view

    def _carry(self, copy: Copy | IndexedCopy, source: Bytes, target: Bytes) -> None:
        change, element = self._change, self._element
        if change is None or element is None:
            raise AssertionError("nothing is being filled")
        if change.none:
            carry(copy, source, target, element)
            return
        for gather, scatter in parts(copy):
            here = dense(gather, source)
            if change.big_endian:
                here = swapped(here, change.stored)
            if copy.scale != ONE:
                here = scaled(here, element, copy.scale)
            if change.stored == change.wanted:
                move(scatter, here, target)
            else:
                self._cast(change, scatter, here, target)

    def _cast(self, change: Change, scatter: Copy | IndexedCopy, here: Bytes, target: Bytes) -> None:
        key = (change.stored, change.wanted)
        caster = self._casters.get(key)
        if caster is None:
            caster = self._casters[key] = Caster(*key)
        wider = _widened(scatter, caster.stored_bytes, caster.wanted_bytes)
        if isinstance(wider, Copy) and not wider.counts:
            start = wider.target.offset
            self._overflowed += caster.cast(here, target[start : start + wider.run])
            return
        out = np.empty(wider.size, np.uint8)
        self._overflowed += caster.cast(here, out)
        move(wider, out, target)


def _widened(copy: Copy | IndexedCopy, stored: int, wanted: int) -> Copy | IndexedCopy:
    """Return a copy of elements of `stored` bytes as the same copy of elements of `wanted` bytes."""
    if isinstance(copy, IndexedCopy):
        run, unit = copy.run * wanted // stored, copy.unit * wanted // stored
        return IndexedCopy(run, unit, copy.source, copy.target)
    source, target = (
        Side(side.offset * wanted // stored, tuple([step * wanted // stored for step in side.strides]))
        for side in (copy.source, copy.target)
    )
    return Copy(copy.run * wanted // stored, copy.counts, source, target)
