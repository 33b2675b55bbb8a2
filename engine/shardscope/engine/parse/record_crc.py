"""Recorded checksums held against the bytes: streamed, in bounded memory, whatever the size of a record.

CRC-32 as zip records it (PKWARE APPNOTE 4.4.7), over the decoded bytes. torch.save records one for each storage, unless told not to
(`torch.serialization.set_crc32_options`): an archive whose checksums are all zero has none. Loaders of torch do not compare them.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Record
from shardscope.engine.model.source import Reader

BLOCK: Final = 1 << 20
"""Bytes read at once: they stay in cache."""

OnBytes = Callable[[int], None]
"""Told how many bytes were read since it was last told; may raise to stop."""


def checkable(record: Record) -> bool:
    """Tell whether a record has a checksum that can be compared here."""
    return record.crc is not None and record.coding in ("plain", "deflate")


def check_record(reader: Reader, record: Record, on_bytes: OnBytes | None = None) -> None:
    """Compare the bytes of a record with its checksum.

    Raises `Fault` `torch.record_crc` where they differ or cannot be decoded, and whatever the reader raises.
    """
    found, size = 0, 0
    for block in decoded(reader, record, on_bytes):
        found = zlib.crc32(block, found)
        size += len(block)
    if found != record.crc or size != record.size:
        raise Fault("torch.record_crc", count=1, record=f"byte {record.begin:,}")


def decoded(reader: Reader, record: Record, on_bytes: OnBytes | None = None) -> Iterator[bytes]:
    """Yield the decoded bytes of a plain or deflated record, in blocks of up to `BLOCK`; too many or too few where it is damaged.

    Raises `Fault` `torch.record_crc` where they cannot be inflated.
    """
    if record.coding == "plain":
        yield from _stored(reader, record, on_bytes)
        return
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    left = record.size
    for block in _stored(reader, record, on_bytes):
        waiting = block
        while waiting and left >= 0 and not inflater.eof:
            try:
                data = inflater.decompress(waiting, BLOCK)
            except zlib.error:
                raise Fault("torch.record_crc", count=1, record=f"byte {record.begin:,}") from None
            waiting = inflater.unconsumed_tail
            left -= len(data)
            yield data


def _stored(reader: Reader, record: Record, on_bytes: OnBytes | None) -> Iterator[bytes]:
    at, end = record.begin, record.begin + record.length
    while at < end:
        block = reader.pread(at, min(BLOCK, end - at))
        if not block:
            return
        at += len(block)
        if on_bytes is not None:
            on_bytes(len(block))
        yield block
