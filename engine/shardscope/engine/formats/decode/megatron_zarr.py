"""Arrays of the zarr backend: every chunk file is the shard of a rank, and its place in the grid is its offset.

Chunks at the far edges are stored in full; what lies beyond the array is stepped over.
"""

from itertools import product
from math import prod

from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.megatron_zarr import Key, is_optimizer, place_of, read_array
from shardscope.engine.geometry.constructors.dcp import chunk_list
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.piece import row_major
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.source import Entry
from shardscope.engine.model.text import counted
from shardscope.engine.parse.zarr import ZarrArray

_MOST_CHUNKS = 1 << 16


def zarr_tensors(decoder: Decoder, keys: list[Key]) -> list[LogicalTensor]:
    """Return the arrays of a save as tensors. What the safe plane has to say about their chunks it has said."""
    silent = len(decoder.probe.blockers)
    found = []
    lost: list[tuple[Key, ZarrArray, int]] = []
    for key in keys:
        if key.array is None or (array := read_array(decoder.probe, key)) is None:
            continue
        try:
            found.append(_tensor(key, array, lost))
        except Fault as fault:
            decoder.probe.note(fault.finding, key.array)
    # A description that is none was reported where it was first read.
    fresh = decoder.probe.blockers[silent:]
    decoder.probe.blockers[silent:] = [item for item in fresh if item.code != "megatron.zarray_invalid"]
    if lost:
        key, array, count = lost[0]
        decoder.probe.report(
            "megatron.chunk_fill", key.array, arrays=len(lost), tensor=key.name, count=count, value=array.fill
        )
    return found


def _tensor(key: Key, array: ZarrArray, lost: list[tuple[Key, ZarrArray, int]]) -> LogicalTensor:
    """Return an array as a tensor. One that lacks chunks that would be filled in goes to `lost`."""
    total = prod(array.grid)
    if total > _MOST_CHUNKS:
        raise Fault("map.budget", budget="ranks", limit=_MOST_CHUNKS, found=total)
    places = list(product(*map(range, array.grid)))
    boxes = [_box(array, place) for place in places]
    mapped, mesh = (
        chunk_list(array.shape, boxes) if boxes else chunk_list(array.shape, [((0,) * len(array.shape),) * 2])
    )
    files = {place: entry for entry in key.files if (place := place_of(entry.name, array.grid)) is not None}
    readable = array.direct and array.separator == "."
    fragments = tuple(
        _fragment(array, files[place], number, boxes[number][1])
        for number, place in enumerate(places)
        if readable and place in files and files[place].size == array.chunk_bytes
    )
    lacking = sum(place not in files for place in places)
    if lacking and array.fill is not None and array.separator == ".":
        lost.append((key, array, lacking))
    optimizer = is_optimizer(key.name)
    return LogicalTensor(
        name=key.name,
        dtype=array.dtype,
        shape=array.shape,
        map=mapped,
        mesh=mesh,
        fragments=fragments,
        component="optimizer" if optimizer else "model",
        role="state" if optimizer else "parameter",
        note=_note(array, len(places) - len(fragments)),
    )


def _box(array: ZarrArray, place: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return offsets and sizes of a chunk, as far as it lies in the array."""
    offsets = tuple(at * size for at, size in zip(place, array.chunks, strict=True))
    edges = zip(offsets, array.chunks, array.shape, strict=True)
    return offsets, tuple(min(size, extent - begin) for begin, size, extent in edges)


def _fragment(array: ZarrArray, entry: Entry, label: int, sizes: tuple[int, ...]) -> Fragment:
    record = Record(entry.text, 0, entry.size, entry.size, big_endian=array.big_endian)
    strides = None if sizes == array.chunks else row_major(array.chunks)
    return Fragment(label, sizes, record, 0, strides)


def _note(array: ZarrArray, lacking: int) -> str | None:
    if array.compressor is not None:
        return f"its chunks are compressed with {shown(array.compressor, 40)} and are not read"
    if not array.direct:
        return "its chunks are filtered or in another order, and are not read"
    return f"{counted(lacking, 'chunk')} missing or of another size" if lacking else None
