"""The checksums that containers record for their records, held against the bytes: a pass of its own, in bounded memory.

Loaders do not look at them, so that a damaged byte of a checkpoint goes unnoticed. A record is read by the copies of several tensors
in any order, or only in part; here it is read once, from its first byte to its last.
"""

import zlib
from collections.abc import Callable, Iterable
from typing import Final

from shardscope.engine.convert.copies.contents import Contents
from shardscope.engine.convert.copies.decompress import damaged
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Record

TILE: Final = 1 << 20


def checkable(record: Record) -> bool:
    """Tell whether there is anything to check: a checksum, or a size that decoding has to come to."""
    return record.crc is not None or record.coding != "plain"


def check_records(records: Iterable[Record], contents: Contents, on_tile: Callable[[int], object]) -> None:
    """Read each record whole and compare it with its checksum. `on_tile` is told of each tile's bytes, and stops the work by raising.

    Raises `Fault`: `torch.record_crc`, `convert.record_damaged`, and those of reading.
    """
    tile = memoryview(bytearray(TILE))
    for record in records:
        if not checkable(record):
            continue
        found = 0
        for offset in range(0, record.size, TILE):
            view = tile[: record.size - offset]
            contents.read_into(record, offset, view)
            if record.crc is not None:
                found = zlib.crc32(view, found)
            on_tile(len(view))
        if record.coding != "plain" and contents.more(record):
            raise damaged(record, f"it decodes to more than the {record.size:,} bytes that are recorded")
        if record.crc is not None and found != record.crc:
            raise Fault("torch.record_crc", file=record.file, count=1, record=record_name(record))


def record_name(record: Record) -> str:
    """Return what tells a record from others of its file."""
    return f"at byte {record.begin:,}"
