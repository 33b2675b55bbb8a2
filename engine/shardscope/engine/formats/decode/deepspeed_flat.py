"""Flat buffers cut back into parameters: which stretch of which rank's partition is which part of a parameter.

`param_shapes` is in the order of the buffer, round robin included, and is all that decides: neither the padding that a rank
says it has nor `param_slice_mappings` is believed (deepspeed `utils/zero_to_fp32.py` walks the same way). What lies behind
the last element of a parameter is padding, in stage 3 of uninitialised memory, and is part of no stretch.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.formats.decode.deepspeed_partitions import WEIGHT, Group
from shardscope.engine.geometry.constructors.flat import FlatBuffer, Stretch, zero3_starts, zero_group
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment

Shape = tuple[int, ...]

_MOST_STRETCHES: Final = 1 << 24
"""Of one sub-group: its parameters on all ranks."""


class Run(Struct, frozen=True, gc=False):
    """A stretch of a flattened shard."""

    rank: int
    """The data-parallel rank that keeps it."""
    start: int
    count: int
    fragment: Fragment | None
    """Null where the rank's file is not there."""


class Shard(Struct, frozen=True):
    """What the ranks of one data-parallel group keep of one tensor: the whole of it, or its tensor-parallel part."""

    shape: Shape
    dtype: str
    runs: tuple[Run, ...]

    @property
    def elements(self) -> int:
        """Of the shard."""
        return prod(self.shape)


class Column(Struct, frozen=True):
    """One parameter group over the ranks that it is partitioned among, in order."""

    ranks: tuple[int, ...]
    groups: tuple[Group | None, ...]
    """Null where the rank's file is not there."""

    @property
    def states(self) -> tuple[str, ...]:
        """What is stored of each parameter: the weights first."""
        found = dict.fromkeys(state for group in self.groups if group for state in group.flats)
        return (WEIGHT, *(state for state in found if state != WEIGHT))


class Cut(Struct, frozen=True):
    """A column cut into parameters."""

    shards: dict[str, dict[str, Shard]]
    """By state, then by parameter."""
    misplaced: tuple[str, ...] = ()
    """Parameters that `param_slice_mappings` puts elsewhere than `param_shapes` does."""


def cut_partitions(column: Column, shapes: Mapping[str, Shape]) -> Cut:
    """Return the parameters of one group of stage 1 or 2.

    Raises `Fault`: `deepspeed.partition_short` or `deepspeed.partition_rest` where partitions and shapes do not fit each other.
    """
    ranks = len(column.ranks)
    lengths = [_length(group) for group in column.groups]
    paddings = next((group.paddings for group in column.groups if group is not None), None)
    if paddings is not None and len(paddings) != len(shapes):
        paddings = None if not any(paddings) else paddings  # zero_group refuses what does not fit
    buffer = zero_group(tuple(shapes.values()), ranks, paddings=paddings)
    buffer = replace(
        buffer, partition=max(lengths)
    )  # only the last ranks are shorter: their padding is taken off
    held, padded = buffer.partition * ranks, 2 * ranks + 16 * len(shapes)
    if held < buffer.used:
        raise Fault("deepspeed.partition_short", used=buffer.used, held=held, ranks=ranks)
    whole = all(group is not None for group in column.groups)
    if whole and sum(lengths) > buffer.used + padded:
        raise Fault("deepspeed.partition_rest", used=buffer.used, held=sum(lengths), ranks=ranks)
    places = {name: _touched(buffer, number) for number, name in enumerate(shapes)}
    return Cut(_shards(column, shapes, places), _misplaced(column, places))


def cut_sub_group(column: Column, shapes: Mapping[str, Shape]) -> Cut:
    """Return the parameters of one sub-group of stage 3: each cut evenly among all ranks, rounded up.

    Raises `Fault` `deepspeed.partition_short` where shapes say more than the partitions hold, `map.budget` where there are more
    stretches than anything real has.
    """
    ranks = len(column.ranks)
    if ranks * len(shapes) > _MOST_STRETCHES:
        raise Fault("map.budget", budget="pieces", limit=_MOST_STRETCHES, found=ranks * len(shapes))
    starts = zero3_starts(tuple(shapes.values()), ranks)
    for group in column.groups:
        length = _length(group)
        if group is not None and length < starts[-1]:
            raise Fault("deepspeed.partition_short", used=starts[-1], held=length, ranks=ranks)
    places = {}
    for name, start in zip(shapes, starts, strict=False):
        size = prod(shapes[name])
        each = -(-size // ranks)
        places[name] = [
            (position, Stretch(start, position * each, min(each, size - position * each)))
            for position in range(ranks)
            if position * each < size
        ]
    return Cut(_shards(column, shapes, places))


def expert_ranks(ranks: int, among: int, *, data_first: bool) -> tuple[tuple[int, ...], ...]:
    """Return for each expert-parallel rank the data-parallel ranks that hold its experts, `among` of them, in order.

    deepspeed `utils/groups.py`: ranks with the same experts stand apart by the expert-parallel degree, or side by side
    (`data_first`). Raises `Fault` `deepspeed.experts_indivisible`.
    """
    if among < 1 or ranks % among:
        raise Fault("deepspeed.experts_indivisible", ranks=ranks, among=among)
    size = ranks // among
    if data_first:
        return tuple(tuple(range(rank * among, (rank + 1) * among)) for rank in range(size))
    return tuple(tuple(range(rank, ranks, size)) for rank in range(size))


def evenly(fragments: Mapping[int, Fragment], shape: Shape, dtype: str, ranks: int) -> Shard:
    """Return a frozen parameter of stage 3: a flat part on each rank, rounded up.

    Raises `Fault` `deepspeed.partition_short` where a part is shorter than it has to be.
    """
    size = prod(shape)
    each = -(-size // ranks)
    runs = []
    for rank in range(ranks):
        count = max(0, min(each, size - rank * each))
        fragment = fragments.get(rank)
        if fragment is not None and prod(fragment.shape) < count:
            raise Fault(
                "deepspeed.partition_short", used=each * ranks, held=prod(fragment.shape) * ranks, ranks=ranks
            )
        if count:
            part = None if fragment is None else replace(fragment, shape=(count,))
            runs.append(Run(rank, rank * each, count, part))
    return Shard(shape, dtype, tuple(runs))


def whole(fragment: Fragment, shape: Shape, dtype: str) -> Shard:
    """Return a shard that one file holds as it is."""
    return Shard(shape, dtype, (Run(0, 0, prod(shape), fragment),))


def _touched(buffer: FlatBuffer, number: int) -> list[tuple[int, Stretch]]:
    """Return the stretches of one parameter on the ranks that hold any of it."""
    begin, size = buffer.starts[number], prod(buffer.shapes[number])
    if not size:
        return []
    first, last = begin // buffer.partition, (begin + size - 1) // buffer.partition
    return [(position, buffer.stretch(number, position)) for position in range(first, last + 1)]


def _length(group: Group | None) -> int:
    return group.flats[WEIGHT].length if group is not None and WEIGHT in group.flats else 0


def _shards(
    column: Column, shapes: Mapping[str, Shape], places: Mapping[str, Sequence[tuple[int, Stretch]]]
) -> dict[str, dict[str, Shard]]:
    return {
        state: {
            name: shard
            for name, shape in shapes.items()
            if (shard := _shard(column, state, shape, places[name])) is not None
        }
        for state in column.states
    }


def _shard(column: Column, state: str, shape: Shape, places: Sequence[tuple[int, Stretch]]) -> Shard | None:
    """Return one state of one parameter; null where a rank that is there does not have it."""
    runs = []
    dtype = "F32"
    for position, stretch in places:
        group = column.groups[position]
        flat = None if group is None else group.flats.get(state)
        if group is not None and (flat is None or stretch.at + stretch.count > flat.length):
            if state != WEIGHT:
                return None  # a rank that has not stepped yet, or states that are not one number for each element
            held = 0 if flat is None else flat.length
            raise Fault("deepspeed.partition_short", used=stretch.at + stretch.count, held=held, ranks=1)
        fragment = None
        if flat is not None:
            dtype = flat.dtype
            fragment = flat.cut(stretch.at, stretch.count)
        runs.append(Run(column.ranks[position], stretch.start, stretch.count, fragment))
    return Shard(shape, dtype, tuple(runs))


def _misplaced(column: Column, places: Mapping[str, Sequence[tuple[int, Stretch]]]) -> tuple[str, ...]:
    expected: list[dict[str, tuple[int, int]]] = [{} for _ in column.groups]
    for name, stretches in places.items():
        for position, stretch in stretches:
            expected[position][name] = (stretch.at, stretch.count)
    found: dict[str, None] = {}
    for group, own in zip(column.groups, expected, strict=True):
        if group is None or group.slices is None:
            continue
        said = {name: place for name, place in group.slices.items() if place[1]}
        found.update(dict.fromkeys(name for name, place in own.items() if said.get(name) != place))
        found.update(dict.fromkeys(name for name in said if name not in own))
    return tuple(found)
