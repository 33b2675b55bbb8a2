"""The bytes of records, whichever file they lie in and however they are coded, for one thread.

Files are opened when they are first needed and held against the inventory when they are closed. How many are open, and how many
coded records keep their place, is bounded.
"""

from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from shardscope.engine.convert.copies.decompress import Decoded
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Record
from shardscope.engine.source.read import OpenFile

OPEN_FILES: Final = 64
"""Files that a thread holds open."""
OPEN_RECORDS: Final = 32
"""Coded records in which a thread keeps its place."""

Opener = Callable[[str], OpenFile]
"""Opens a file of the source by its name in records (`Source.open` of its entry)."""


class Contents:
    """Use it in a `with` block: leaving it verifies every file that is still open (`source.changed`)."""

    def __init__(self, opener: Opener, open_records: int = OPEN_RECORDS) -> None:
        self._opener = opener
        self._open_records = open_records
        self._files: OrderedDict[str, OpenFile] = OrderedDict()
        self._decoded: OrderedDict[tuple[str, int], Decoded] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._decoded.clear()
        failed: Fault | None = None
        while self._files:
            _, file = self._files.popitem()
            try:
                file.__exit__(kind, error, trace)
            except Fault as fault:
                failed = failed or fault
        if failed is not None:  # it changed under the reader, which explains what else was seen
            raise failed

    def file(self, name: str) -> OpenFile:
        """Return a file, open. It may be closed once `OPEN_FILES` others were asked for."""
        found = self._files.get(name)
        if found is not None:
            self._files.move_to_end(name)
            return found
        while len(self._files) >= OPEN_FILES:
            oldest, other = self._files.popitem(last=False)
            for key in [key for key in self._decoded if key[0] == oldest]:
                del self._decoded[key]
            other.__exit__(None, None, None)
        found = self._opener(name)
        self._files[name] = found
        return found

    def read_into(self, record: Record, offset: int, buffer: memoryview) -> None:
        """Fill `buffer` with the decoded bytes of a record from `offset` on.

        Raises `Fault`: `convert.short_record`, `convert.record_damaged`, `convert.zstd_missing`, and those of reading.
        """
        end = offset + len(buffer)
        if offset < 0 or end > record.size or (record.coding == "plain" and end > record.length):
            raise _short(record, min(record.size, record.length), end)
        if record.coding == "plain":
            found = self.file(record.file).pread_into(record.begin + offset, buffer)
        else:
            found = self._open_record(record).read_into(offset, buffer)
        if found < len(buffer):
            raise _short(record, offset + found, end)

    def more(self, record: Record) -> bool:
        """Tell whether a coded record decodes to more than its size."""
        return self._open_record(record).read_into(record.size, memoryview(bytearray(1))) > 0

    def _open_record(self, record: Record) -> Decoded:
        key = (record.file, record.begin)
        file = self.file(record.file)
        found = self._decoded.get(key)
        if found is None:
            while len(self._decoded) >= self._open_records:
                self._decoded.popitem(last=False)
            found = self._decoded[key] = Decoded(file, record)
        self._decoded.move_to_end(key)
        return found


def _short(record: Record, found: int, expected: int) -> Fault:
    return Fault(
        "convert.short_record", file=record.file, offset=record.begin, found=found, expected=expected
    )
