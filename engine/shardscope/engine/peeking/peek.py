"""One tensor of a checkpoint looked at: some of its numbers, and on request what all of them come to.

It is read through its shard map, as `diff --values` reads it: only the stretches that were selected, tile by tile, within a budget.
"""

import os
import threading
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.inspecting.sides import Side, side_of
from shardscope.engine.looking import slices
from shardscope.engine.looking.slices import Selection, selection
from shardscope.engine.model.blocker import Blocker, Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.format_names import DECODED, FORMAT_TITLES, NOT_CONVERTED
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.peek import Grid, PeekDocument
from shardscope.engine.model.progress import OnProgress
from shardscope.engine.model.schemas import PEEK
from shardscope.engine.peeking.gathering import Wanted, gather
from shardscope.engine.peeking.unpacking import described, of_blocks, unpacked
from shardscope.engine.peeking.windows import check_readable, elements, opened, word_of

if TYPE_CHECKING:
    from shardscope.engine.convert.proofs.comparing import Tiles

MEMORY: Final = 64 << 20
NEAR: Final = 10_000
"""Names among which the nearest one is looked for."""
MOST: Final = 64
"""Rows and columns of a grid, and boxes of a heat map in either direction."""


class PeekOptions(Struct, frozen=True):
    """What is looked at."""

    slice: str | None = None
    bits: int | None = None
    """1, 2 or 4: integers are taken apart into such numbers, from the lowest bit on."""
    logical: bool = False
    """Of a packed weight, the numbers that it stands for. Blocks of ggml are always taken apart."""
    rank: int | None = None
    """Of several tensors of one name, that of this rank."""
    statistics: bool = False
    histogram: bool = False
    """With statistics."""
    heat: bool = False
    profiles: bool = False
    """Root mean squares by index of each dimension."""
    rows: int = 10
    """Of the grid, at most."""
    columns: int = 6
    heat_rows: int = 16
    heat_columns: int = 64
    memory_bytes: int = MEMORY

    @property
    def everything(self) -> bool:
        """Whether each number that was selected has to be read."""
        return self.statistics or self.histogram or self.heat or self.profiles

    @property
    def figures(self) -> Wanted:
        """What all of them are to come to."""
        return Wanted(
            bits=self.bits,
            statistics=self.statistics,
            histogram=self.histogram,
            heat=self.heat,
            profiles=self.profiles,
            heat_rows=self.heat_rows,
            heat_columns=self.heat_columns,
        )


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
    if wanted.logical:
        tensor: LogicalTensor = unpacked(side, name)
    else:
        tensor = tensor_of(side, name, wanted.rank, decoded=decoding is not None)
    return look(side, tensor, wanted, cancel=cancel, progress=progress)


def tensor_of(side: Side, name: str, rank: int | None = None, *, decoded: bool = False) -> LogicalTensor:
    """Return the tensor of a name; `decoded`: what needs decoding was decoded, as far as it could be.

    Blocks of ggml come as the numbers that they stand for (`unpacking.of_blocks`).
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
        if opaque and not decoded and _is_decoded(side):
            raise Fault("peek.opaque", tensor=name, files=opaque)
        near = get_close_matches(name[:256], (each.name for each in tensors[:NEAR]), n=1)
        raise Fault("peek.no_tensor", tensor=name, count=len(tensors), nearest=near[0] if near else "none")
    if len(found) > 1 and found[0].part_of is not None:
        raise Fault("peek.several", tensor=name, count=len(found), rank=found[0].part_of)
    return of_blocks(side, found[0]) or found[0]


def in_the_way(side: Side) -> tuple[Blocker, ...]:
    """Return the errors of inspection on account of which a tensor may not be listed."""
    return tuple(item for item in side.found.descriptor.blockers if item.in_the_way)


def opaque_files(side: Side) -> int:
    """Return how many files may hold tensors that are not listed. Raises `Fault` `peek.unread` where decoding would not help."""
    opaque = side.found.descriptor.tensors.files_opaque
    if opaque and not side.catalogue.tensors and not _is_decoded(side):
        name = side.found.descriptor.classification.format
        raise Fault("peek.unread", format=FORMAT_TITLES[name], files=opaque)
    return opaque


def _is_decoded(side: Side) -> bool:
    """Tell whether decoding could list tensors of opaque files."""
    return side.found.descriptor.classification.format not in NOT_CONVERTED - DECODED


def look(
    side: Side,
    tensor: LogicalTensor,
    options: PeekOptions,
    *,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> PeekDocument:
    """Look at one tensor of a side. Raises as `peek`."""
    chosen = selection(options.slice, tensor.shape, tensor.name)
    check_readable(tensor, options.bits)
    if options.bits is not None and (options.heat or options.profiles):
        raise Fault("peek.bits", tensor=tensor.name, dtype=tensor.dtype, bits=options.bits)
    with opened(side, tensor, chosen, options.memory_bytes) as tiles:
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
            packing=described(tensor),
            grid=_grid(tensor, chosen, options, tiles),
        )
        if options.everything:
            known = gather(tensor, chosen, options.figures, tiles, cancel=cancel, progress=progress)
            found = replace(
                found,
                statistics=known.statistics,
                landmarks=known.landmarks,
                heat=known.heat,
                profiles=known.profiles,
            )
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
        word, width = word_of(tensor.dtype, options.bits), len(shown[1])
        every = [word(element) for element in elements(tensor, layout, tiles)]
        words = tuple(tuple(every[at : at + width]) for at in range(0, len(every), width))
    leading = tuple(
        each.start for dim, each in enumerate(chosen.indices) if dim not in kept and chosen.elements
    )
    return Grid(leading, *shown, len(rows) - len(shown[0]), len(columns) - len(shown[1]), words)
