"""One tensor of a checkpoint looked at: some of its numbers, and on request what all of them come to.

It is read through its shard map, as `diff --values` reads it: only the stretches that were selected, tile by tile, within a budget.
"""

import os
import threading
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.convert.copies.entries import opener_of
from shardscope.engine.decoding import Decoding
from shardscope.engine.looking import slices
from shardscope.engine.looking.slices import Selection, selection
from shardscope.engine.model.blocker import Blocker, Blocks, Fault, Severity
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.format_names import DECODED, FORMAT_TITLES, NOT_CONVERTED
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.peek import Grid, Heat, PeekDocument, Statistics
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.progress import OnProgress, Pace, Progress
from shardscope.engine.model.schemas import PEEK
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import display_name
from shardscope.engine.sides import Side, side_of
from shardscope.engine.source.source import Source

if TYPE_CHECKING:
    from shardscope.engine.convert.proofs.comparing import Tiles
    from shardscope.engine.looking.statistics import Bytes

MEMORY: Final = 64 << 20
LEAST: Final = 1 << 20
"""Bytes of buffers below which no budget goes."""
RUN: Final = 4 << 10
SCATTERED: Final = 256 << 10
"""Bytes of buffers where runs are shorter than `RUN` bytes: each may be a read of its own, and who stops it waits for a tile."""
SCRATCH: Final = 4 << 20
"""Bytes that working on numbers takes beside the tiles, at most."""
NEAR: Final = 10_000
"""Names among which the nearest one is looked for."""
MOST: Final = 64
"""Rows and columns of a grid, and boxes of a heat map in either direction."""


class PeekOptions(Struct, frozen=True):
    """What is looked at."""

    slice: str | None = None
    bits: int | None = None
    """1, 2 or 4: integers are taken apart into such numbers, from the lowest bit on."""
    rank: int | None = None
    """Of several tensors of one name, that of this rank."""
    statistics: bool = False
    histogram: bool = False
    """With statistics."""
    heat: bool = False
    rows: int = 10
    """Of the grid, at most."""
    columns: int = 6
    heat_rows: int = 16
    heat_columns: int = 64
    memory_bytes: int = MEMORY

    @property
    def everything(self) -> bool:
        """Whether each number that was selected has to be read."""
        return self.statistics or self.histogram or self.heat


def peek(
    path: str | os.PathLike[str],
    name: str,
    options: PeekOptions | None = None,
    *,
    decoding: Decoding | None = None,
    limits: Limits | None = None,
    hf_cache: bool = False,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> PeekDocument:
    """Look at one tensor of a checkpoint, by its exact name.

    Raises `Fault`: those of `inspect`, `peek.*`, and those of maps and of reading; `Cancelled`.
    """
    bounds, wanted = limits or Limits(), options or PeekOptions()
    side = side_of(
        path, limits=bounds, hf_cache=hf_cache, decoding=decoding, cancel=cancel, progress=progress
    )
    tensor = tensor_of(side, name, wanted.rank, decoded=decoding is not None)
    return look(side, tensor, wanted, cancel=cancel, progress=progress)


def tensor_of(side: Side, name: str, rank: int | None = None, *, decoded: bool = False) -> LogicalTensor:
    """Return the tensor of a name; `decoded`: what needs decoding was decoded, as far as it could be.

    Raises `Fault`: `peek.no_tensor`, `peek.opaque`, `peek.unread`, `peek.several`; where it is not there, errors of inspection first.
    """
    tensors = side.catalogue.tensors
    found = [each for each in tensors if each.name == name]
    if rank is not None:
        found = [each for each in found if each.part_of in (rank, None)]
    if not found:
        for item in in_the_way(side):
            raise Fault(item.code, **{"file": item.subject, **item.params})
        opaque = opaque_files(side)
        if opaque and not decoded:
            raise Fault("peek.opaque", tensor=name, files=opaque)
        near = get_close_matches(name[:256], (each.name for each in tensors[:NEAR]), n=1)
        raise Fault("peek.no_tensor", tensor=name, count=len(tensors), nearest=near[0] if near else "none")
    if len(found) > 1 and found[0].part_of is not None:
        raise Fault("peek.several", tensor=name, count=len(found), rank=found[0].part_of)
    return found[0]


def in_the_way(side: Side) -> tuple[Blocker, ...]:
    """Return the errors of inspection on account of which a tensor may not be listed."""
    return tuple(
        item
        for item in side.found.descriptor.blockers
        if item.severity is Severity.ERROR and {Blocks.INSPECT, Blocks.LOAD} & set(item.blocks)
    )


def opaque_files(side: Side) -> int:
    """Return how many files may hold tensors that are not listed. Raises `Fault` `peek.unread` where decoding would not help."""
    opaque = side.found.descriptor.tensors.files_opaque
    name = side.found.descriptor.classification.format
    if opaque and not side.catalogue.tensors and name in NOT_CONVERTED - DECODED:
        raise Fault("peek.unread", format=FORMAT_TITLES[name], files=opaque)
    return opaque


def look(
    side: Side,
    tensor: LogicalTensor,
    options: PeekOptions,
    *,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> PeekDocument:
    """Look at one tensor of a side. Raises as `peek`."""
    from shardscope.engine.convert.proofs.comparing import Tiles

    chosen = selection(options.slice, tensor.shape, tensor.name)
    if tensor.unwritable is not None:
        raise Fault("peek.unreadable", tensor=tensor.name, why=tensor.unwritable)
    kind = DTYPES[tensor.dtype].kind
    if options.bits is not None and (kind not in ("int", "uint") or options.heat):
        raise Fault("peek.bits", tensor=tensor.name, dtype=tensor.dtype, bits=options.bits)
    budget = max(LEAST, options.memory_bytes - SCRATCH)
    if chosen.run * DTYPES[tensor.dtype].bits // 8 < RUN:
        budget = SCATTERED
    with (
        Source(side.path, limits=Limits(), hf_cache=side.found.hf_cache) as source,
        Tiles(opener_of(source, side.found.inventory), budget, 1) as tiles,
    ):
        found = PeekDocument(
            schema=PEEK,
            format=side.found.descriptor.classification.format,
            name=tensor.name,
            dtype=tensor.dtype,
            shape=tensor.shape,
            part_of=tensor.part_of,
            slice=options.slice,
            bits=options.bits,
            selected=chosen.shape,
            elements=chosen.elements,
            fragments=len(tensor.fragments),
            files=tuple(dict.fromkeys(each.record.file for each in tensor.fragments)),
            grid=_grid(tensor, chosen, options, tiles),
        )
        if options.everything:
            statistics, heat = _everything(tensor, chosen, options, tiles, cancel, Pace(progress))
            found = replace(found, statistics=statistics, heat=heat)
    return found


def _grid(tensor: LogicalTensor, chosen: Selection, options: PeekOptions, tiles: "Tiles") -> Grid:
    """Return the edges of the last two dimensions of what was selected, at the first index of those before."""
    kept = chosen.kept[-2:]
    lines = [chosen.indices[dim] for dim in kept]
    rows = lines[0] if len(lines) == 2 else range(1)
    columns = lines[-1] if lines else range(1)
    down, across = slices.edges(rows, options.rows), slices.edges(columns, options.columns)
    shown = (tuple(n for part in down for n in part), tuple(n for part in across for n in part))
    words: tuple[tuple[str, ...], ...] = ()
    if chosen.elements and shown[0] and shown[1]:
        layout = slices.corners(chosen, down, across)
        words = _words(tensor, layout, (len(shown[0]), len(shown[1])), options.bits, tiles)
    leading = tuple(
        each.start for dim, each in enumerate(chosen.indices) if dim not in kept and chosen.elements
    )
    return Grid(leading, *shown, len(rows) - len(shown[0]), len(columns) - len(shown[1]), words)


def _words(
    tensor: LogicalTensor, layout: Lowered, shape: tuple[int, int], bits: int | None, tiles: "Tiles"
) -> tuple[tuple[str, ...], ...]:
    from shardscope.engine.convert.copies.work import Written
    from shardscope.engine.diffing.numbers import in_words, singles
    from shardscope.engine.looking.statistics import apart

    def word(element: "Bytes") -> str:
        return in_words(element, tensor.dtype) if bits is None else " ".join(map(str, apart(element, bits)))

    words: list[str] = []
    for stretch in tiles.stretches([Written(tensor, tensor.dtype, 0, layout)]):
        words += map(word, singles(stretch.data[0], tensor.dtype, stretch.elements))
    return tuple(tuple(words[row * shape[1] : (row + 1) * shape[1]]) for row in range(shape[0]))


def _everything(
    tensor: LogicalTensor,
    chosen: Selection,
    options: PeekOptions,
    tiles: "Tiles",
    cancel: threading.Event | None,
    pace: Pace,
) -> tuple[Statistics | None, Heat | None]:
    """Return what all numbers that were selected come to, in one pass."""
    from shardscope.engine.convert.copies.work import Written
    from shardscope.engine.looking.heat import Heating
    from shardscope.engine.looking.statistics import summing

    sums = summing(tensor.dtype, histogram=options.histogram, bits=options.bits)
    heating = Heating(tensor.dtype, chosen.shape, options.heat_rows, options.heat_columns)
    each = DTYPES[tensor.dtype].bits / 8
    said = Progress("peek", 0, int(chosen.elements * each), "bytes", display_name(tensor.name, 120))
    if chosen.elements:
        for stretch in tiles.stretches([Written(tensor, tensor.dtype, 0, slices.layout(chosen))], cancel):
            if options.statistics or options.histogram:
                sums.add(stretch.data[0], stretch.elements)
            if options.heat:
                heating.add(stretch.element, stretch.data[0], stretch.elements)
            if pace.due():
                pace.report(replace(said, done=int((stretch.element + stretch.elements) * each)))
    pace.report(replace(said, done=said.total or 0))
    return (
        sums.statistics() if options.statistics or options.histogram else None,
        heating.heat() if options.heat else None,
    )
