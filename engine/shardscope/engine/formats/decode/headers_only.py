"""Formats that are listed from headers: tensors of plain types stand whole in a stretch of a file, so that they can be compared and
looked at. Quantised ones have no elements that geometry could move, and are listed without bytes; `unpacking` finds these by the header.
"""

from functools import partial
from typing import Final

from shardscope.engine.formats.decode.whole import whole
from shardscope.engine.formats.decode.whole_safetensors import listed
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record, Shape
from shardscope.engine.model.facts import ZipEntry
from shardscope.engine.model.piece import row_major
from shardscope.engine.model.source import Entry, Reader
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.parse.gguf import is_big_endian
from shardscope.engine.parse.npy import NpyArray, read_array
from shardscope.engine.parse.npz import SUFFIX, read_arrays
from shardscope.engine.parse.zip import STORED

_HEAD: Final = 8


def decode_gguf(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """Add the tensors of GGUF files."""
    swapped = {entry.text for entry in claim.files if is_big_endian(decoder.probe.peek(entry, _HEAD))}
    for tensor in listed(decoder.probe.tensors, claim.files, swapped):
        decoder.add(tensor)
    return facts


def decode_numpy(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """Add the arrays of files that the safe plane listed. What it had to say about them it has said."""
    known = set(decoder.probe.tensors.files)
    for entry in claim.files:
        if entry.text not in known:
            continue
        before = len(decoder.probe.blockers)
        found = decoder.probe.guarded(entry, partial(_arrays, decoder, entry))
        del decoder.probe.blockers[before:]
        for tensor in found or ():
            decoder.add(tensor)
    return facts


def _arrays(decoder: Decoder, entry: Entry, reader: Reader) -> list[LogicalTensor]:
    """Return the arrays of a file that are no pickles."""
    if entry.name.casefold().endswith(SUFFIX):
        array = read_array(reader)
        record = Record(entry.text, 0, entry.size, entry.size, big_endian=array.big_endian)
        return [] if array.objects else [_tensor(entry.name[: -len(SUFFIX)], array, record)]
    directory = decoder.probe.directory(entry)
    return [
        _tensor(item.name[: -len(SUFFIX)], array, _record(entry, item, array))
        for item, array in (read_arrays(reader, directory) if directory is not None else ())
        if array is not None and not array.objects
    ]


def _record(entry: Entry, item: ZipEntry, array: NpyArray) -> Record:
    return Record(
        entry.text,
        item.data_offset or 0,
        item.compressed,
        item.size,
        coding="plain" if item.method == STORED else "deflate",
        crc=item.crc,
        big_endian=array.big_endian,
    )


def _tensor(name: str, array: NpyArray, record: Record) -> LogicalTensor:
    fits = array.dtype in DTYPES and array.begin + array.bytes <= record.size
    strides = _column_major(array.shape) if array.fortran else None
    fragment = Fragment(0, array.shape, record, array.begin, strides) if fits else None
    note = None if fits else "its elements are not read here"
    return whole(name, array.dtype, array.shape, fragment, note=note)


def _column_major(shape: Shape) -> Shape | None:
    """Return the strides of an array whose first dimension is the fastest; null where that is row-major, too."""
    strides = row_major(shape[::-1])[::-1]
    return None if strides == row_major(shape) else strides
