"""The arrays of an `.npz` file: a zip of `.npy` records, of each of which only the header is read.

A record is stored, or deflated (`numpy.savez_compressed`): then so much of it is unpacked as a header can have, and no more.
"""

import zlib
from collections.abc import Iterator
from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.facts import ZipDirectory, ZipEntry
from shardscope.engine.model.source import Reader
from shardscope.engine.parse.npy import LONGEST, NpyArray, read_array
from shardscope.engine.parse.part import Part
from shardscope.engine.parse.zip import DEFLATED, ENCRYPTED, STORED

SUFFIX: Final = ".npy"
_UNPACKED: Final = LONGEST + 16
_PACKED: Final = 2 * LONGEST


class _Start:
    """The first bytes of a record of `size` bytes."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data = data
        self.size = size

    def pread(self, offset: int, length: int) -> bytes:
        """Return what is there of a stretch."""
        return self._data[offset : offset + length]


def read_arrays(reader: Reader, directory: ZipDirectory) -> Iterator[tuple[ZipEntry, NpyArray | None]]:
    """Yield every array record with what it says of itself; null where it cannot be read.

    Raises `Fault` `npy.malformed` for a record that is no array though its name says so.
    """
    for record in directory.entries:
        if record.name.endswith(SUFFIX):
            yield record, _array(reader, record)


def _array(reader: Reader, record: ZipEntry) -> NpyArray | None:
    if record.data_offset is None or record.flags & ENCRYPTED:
        return None
    if record.method == STORED:
        return read_array(Part(reader, record.data_offset, record.size))
    if record.method != DEFLATED:
        return None
    packed = reader.pread(record.data_offset, min(record.compressed, _PACKED))
    try:
        data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, _UNPACKED)
    except zlib.error:
        raise Fault("npy.malformed", reason="one of its records cannot be unpacked") from None
    return read_array(_Start(data, record.size))
