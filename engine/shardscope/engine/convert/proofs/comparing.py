"""Copies of the same elements held against each other, byte for byte and tile by tile, whatever their sizes and layouts."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, NamedTuple, Self

import msgspec
import numpy as np

from shardscope.engine.convert.copies.contents import Contents, Opener
from shardscope.engine.convert.copies.rows import first_rows
from shardscope.engine.convert.copies.segments import cuts
from shardscope.engine.convert.copies.tiles import Maker, prepared
from shardscope.engine.convert.copies.work import Written, memory
from shardscope.engine.geometry.execution.move import Bytes, first_difference
from shardscope.engine.geometry.execution.program import byte_count
from shardscope.engine.geometry.execution.stream import compare_replicas
from shardscope.engine.geometry.language.layout import normal_form
from shardscope.engine.geometry.transfer.compose import compose, whole
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.progress import OnProgress, check
from shardscope.engine.model.tensors import DTYPES

_ALIGNED: Final = 64
"""Elements that tiles are multiples of, so that those of less than a byte end with one."""


def compare(
    one: LogicalTensor,
    other: LogicalTensor,
    *,
    opener: Opener,
    budget_bytes: int,
    dtype: str | None = None,
    rows: bool = False,
    layout: Lowered | None = None,
    cancel: threading.Event | None = None,
) -> int | None:
    """Return the first element, counted row by row, in which two tensors of one shape differ; null where none does.

    They are of one type, or both are compared as `dtype`. With `rows` the other one has only the first rows; with a `layout` of one
    rank it is that rank's shard of the first one. Bytes are compared as they would be written, so that two NaNs of the same bits are equal and 0.0 is not -0.0. Raises
    `Fault`: `convert.not_comparable`, and those of `segments.cuts` and `Maker.fill`. Raises `Cancelled`.
    """
    with Beside(opener, budget_bytes) as beside:
        return compared(beside, one, other, dtype=dtype, rows=rows, layout=layout, cancel=cancel)


def compared(
    beside: "Beside",
    one: LogicalTensor,
    other: LogicalTensor,
    *,
    dtype: str | None = None,
    rows: bool = False,
    layout: Lowered | None = None,
    cancel: threading.Event | None = None,
) -> int | None:
    """Return what `compare` does, with files and buffers that serve one pair after the other."""
    if (one.shape != other.shape and not rows and layout is None) or (
        dtype is None and one.dtype != other.dtype
    ):
        raise Fault("convert.not_comparable", tensor=one.name, other=other.name)
    dtype = dtype or one.dtype
    if layout is None:
        layout = first_rows(one.shape, other.shape)
    items = Written(one, dtype, 0, layout), Written(other, dtype, 0)
    for tile in beside.tiles(*items, cancel):
        at = first_difference(tile.first, tile.second)
        if at is not None:
            return tile.element + at * 8 // DTYPES[dtype].bits
    return None


class SideBySide(NamedTuple):
    """The same elements of two tensors, each in its own type. The next tile takes its room."""

    element: int
    """The first one, counted row by row."""
    first: Bytes
    second: Bytes


def differs(tile: SideBySide) -> bool:
    """Tell whether a tile of two tensors of one type has a byte that is not the same."""
    return first_difference(tile.first, tile.second) is not None


class Stretch(NamedTuple):
    """The same elements of some tensors, each in its own type. The next one takes its room."""

    element: int
    """The first one, counted row by row."""
    elements: int
    data: tuple[Bytes, ...]


class Tiles:
    """So many tensors read side by side. Files, buffers and coded records are kept for the next ones; it serves one thread.

    Use it in a `with` block: leaving it verifies every file that is still open (`source.changed`).
    """

    def __init__(self, opener: Opener, budget_bytes: int, lanes: int) -> None:
        self._opener = opener
        self._budget = budget_bytes
        self._lanes = lanes
        self._contents = ExitStack()
        self._plan = (0, 0)
        self._makers: tuple[Maker, ...] = ()
        self._rooms: tuple[Bytes, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._contents.__exit__(kind, error, trace)

    def stretches(self, items: Sequence[Written], cancel: threading.Event | None = None) -> Iterator[Stretch]:
        """Yield tensors of as many elements tile by tile, whatever their layouts and types.

        Raises `Fault`: those of `segments.cuts` and `Maker.fill`. Raises `Cancelled`.
        """
        plan = memory(items, self._budget // self._lanes, 1, digest=False, checks=False)
        self._make_ready(plan.step, plan.records)
        tensors = [prepared(cuts(item.tensor, item.layout), item.dtype) for item in items]
        bits = [DTYPES[item.dtype].bits for item in items]
        step = plan.step * 8 // max(bits) // _ALIGNED * _ALIGNED
        total = items[0].elements
        for low in range(0, total, step):
            check(cancel)
            high = min(low + step, total)
            tiles = []
            for maker, room, tensor, width in zip(self._makers, self._rooms, tensors, bits, strict=True):
                tile = room[: byte_count(high - low, width)]
                begin = low * width // 8
                maker.fill(tensor, begin, begin + len(tile), tile)
                tiles.append(tile)
            yield Stretch(low, high - low, tuple(tiles))

    def _make_ready(self, step: int, records: int) -> None:
        """Make the buffers for tiles of `step` bytes, and room for coded records, unless they are there."""
        if (step, records) == self._plan:
            return
        self._contents.close()
        contents = [self._contents.enter_context(Contents(self._opener, records)) for _ in range(self._lanes)]
        self._makers = tuple(Maker(each, step) for each in contents)
        self._rooms = tuple(np.empty(step, np.uint8) for _ in range(self._lanes))
        self._plan = (step, records)


class Beside(Tiles):
    """Tensors read two and two."""

    def __init__(self, opener: Opener, budget_bytes: int) -> None:
        super().__init__(opener, budget_bytes, 2)

    def tiles(
        self, one: Written, other: Written, cancel: threading.Event | None = None
    ) -> Iterator[SideBySide]:
        """Yield two tensors of as many elements tile by tile. Raises as `stretches`."""
        for element, _, (first, second) in self.stretches((one, other), cancel):
            yield SideBySide(element, first, second)


def compare_copies(
    tensor: LogicalTensor,
    *,
    opener: Opener,
    budget_bytes: int,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> None:
    """Compare everything of a tensor that is stored more than once: further copies of fragments, and what the map says that
    several ranks hold.

    Raises `Fault`: `convert.copies_differ`, `map.replicas_disagree`; otherwise as `compare`.
    """
    for kept, copy in replicas(tensor):
        at = compare(
            shard_of(tensor, kept),
            shard_of(tensor, copy),
            opener=opener,
            budget_bytes=budget_bytes,
            cancel=cancel,
        )
        if at is not None:
            raise Fault(
                "convert.copies_differ",
                tensor=tensor.name,
                offset=at * DTYPES[tensor.dtype].bits // 8,
                first=kept.record.file,
                second=copy.record.file,
            )
    _compare_holders(tensor, opener, budget_bytes, cancel, progress)


def replicas(tensor: LogicalTensor) -> Iterator[tuple[Fragment, Fragment]]:
    """Yield each further copy of a fragment beside the fragment, unless both are the same bytes."""
    fragments = {fragment.label: fragment for fragment in tensor.fragments}
    for copy in tensor.replicas:
        kept = fragments.get(copy.label)
        if kept is None:
            raise Fault("convert.fragment_missing", tensor=tensor.name, rank=copy.label)
        if (kept.record, kept.offset, kept.strides) != (copy.record, copy.offset, copy.strides):
            yield kept, copy


def shard_of(tensor: LogicalTensor, fragment: Fragment) -> LogicalTensor:
    """Return one shard as a tensor of its own."""
    return LogicalTensor(
        name=tensor.name,
        dtype=fragment.dtype or tensor.dtype,
        shape=fragment.shape,
        map=whole(fragment.shape),
        mesh=None,
        fragments=(msgspec.structs.replace(fragment, label=0),),
    )


def _compare_holders(
    tensor: LogicalTensor,
    opener: Opener,
    budget_bytes: int,
    cancel: threading.Event | None,
    progress: OnProgress | None,
) -> None:
    source = normal_form(tensor)
    if not any(len(piece.holders) > 1 for shard in source.ranks for piece in shard.held):
        return
    plan = compose(source, source)
    shards = {
        fragment.label: Written(shard_of(tensor, fragment), tensor.dtype, 0) for fragment in tensor.fragments
    }
    made = {rank: prepared(cuts(item.tensor), item.dtype) for rank, item in shards.items()}
    share = memory(shards.values(), budget_bytes // 2, 1, digest=False, checks=False)
    with Contents(opener, share.records) as contents:
        maker = Maker(contents, share.step)

        def read(rank: int, offset: int, length: int) -> memoryview:
            data = np.empty(length, np.uint8)
            for low in range(offset, offset + length, share.step):
                high = min(low + share.step, offset + length)
                maker.fill(made[rank], low, high, data[low - offset : high - offset])
            return data.data

        compare_replicas(
            plan,
            source,
            dtype=tensor.dtype,
            read=read,
            budget_bytes=budget_bytes // 2,
            cancel=cancel,
            progress=progress,
        )
