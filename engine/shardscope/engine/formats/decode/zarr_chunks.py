"""Arrays that are stored chunk by chunk: every chunk file is a fragment, and its place in the grid is its offset.

Chunks at the far edges are stored in full; what lies beyond the array is stepped over.
"""

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Final

from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.orbax import is_item
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.zarr_tree import array_of, found_below, place_in
from shardscope.engine.geometry.constructors.dcp import chunk_list
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record, Role
from shardscope.engine.model.decoded import Component
from shardscope.engine.model.piece import row_major
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted, display_name, path_text
from shardscope.engine.parse.zarr import ZarrArray

_MOST_CHUNKS: Final = 1 << 16

Coordinate = tuple[int, ...]


def chunked(
    name: str,
    array: ZarrArray,
    files: Mapping[Coordinate, Entry],
    *,
    component: Component = "model",
    role: Role = "parameter",
) -> LogicalTensor:
    """Return an array as a tensor. `files` are its chunks by their places; those that cannot be read are left out of it.

    Raises `Fault` `map.budget`.
    """
    total = prod(array.grid)
    if total > _MOST_CHUNKS:
        raise Fault("map.budget", budget="ranks", limit=_MOST_CHUNKS, found=total)
    places = list(product(*map(range, array.grid)))
    boxes = [_box(array, place) for place in places]
    mapped, mesh = (
        chunk_list(array.shape, boxes) if boxes else chunk_list(array.shape, [((0,) * len(array.shape),) * 2])
    )
    fragments = tuple(
        _fragment(array, files[place], number, boxes[number][1])
        for number, place in enumerate(places)
        if place in files and _is_readable(array, files[place])
    )
    return LogicalTensor(
        name=name,
        dtype=array.dtype,
        shape=array.shape,
        map=mapped,
        mesh=mesh,
        fragments=fragments,
        component=component,
        role=role,
        note=_note(array, len(places) - len(fragments)),
    )


def _is_readable(array: ZarrArray, entry: Entry) -> bool:
    return array.zstd or (array.direct and entry.size == array.chunk_bytes)


def _box(array: ZarrArray, place: Coordinate) -> tuple[Coordinate, Coordinate]:
    """Return offsets and sizes of a chunk, as far as it lies in the array."""
    offsets = tuple(at * size for at, size in zip(place, array.chunks, strict=True))
    edges = zip(offsets, array.chunks, array.shape, strict=True)
    return offsets, tuple(min(size, extent - begin) for begin, size, extent in edges)


def _fragment(array: ZarrArray, entry: Entry, label: int, sizes: Coordinate) -> Fragment:
    record = Record(
        entry.text,
        0,
        entry.size,
        array.chunk_bytes,
        coding="zstd" if array.zstd else "plain",
        big_endian=array.big_endian,
    )
    strides = None if sizes == array.chunks else row_major(array.chunks)
    return Fragment(label, sizes, record, 0, strides)


def _note(array: ZarrArray, lacking: int) -> str | None:
    if array.compressor is not None and not array.zstd:
        return f"its chunks are compressed with {display_name(array.compressor, 40)} and are not read"
    if not array.direct and not array.zstd:
        return "its chunks are filtered or in another order, and are not read"
    return f"{counted(lacking, 'chunk')} missing or of another size" if lacking else None


def decode_zarr(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """Add the arrays of a group."""
    _add(decoder, claim.folder, list(claim.files))
    return facts


def decode_orbax(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """Add the arrays of every item that is stored as zarr."""
    opaque = {entry.path for entry in facts.opaque}
    for path in (claim.folder, *claim.owned):
        if is_item(decoder.probe, path):
            files = [
                entry
                for entry in claim.files
                if entry.path not in opaque and (not path or entry.path.startswith(path + b"/"))
            ]
            _add(decoder, path, files)
    return facts


def _add(decoder: Decoder, base: bytes, files: list[Entry]) -> None:
    before = len(decoder.probe.blockers)
    for found in found_below(decoder.probe, base, files):
        array = array_of(decoder.probe, found)
        if array is None:
            continue
        begin = len(found.path) + 1 if found.path else 0
        chunks = {
            place: entry
            for entry in found.chunks
            if (place := place_in(path_text(entry.path[begin:]), array)) is not None
        }
        try:
            decoder.add(chunked(found.name, array, chunks))
        except Fault as fault:
            decoder.probe.note(fault.finding, found.entry)
    fresh = decoder.probe.blockers[before:]
    decoder.probe.blockers[before:] = [item for item in fresh if item.code == "map.budget"]
