"""The journal of a staging folder: one line of JSON for each finished file, on the disk before the next one begins.

A process that ends while it writes leaves a last line without its end, which is not read. What a line says has to be
verified against the file by its digest: the line may have reached the disk before the bytes did.
"""

import os
import threading
from typing import Final

import msgspec

from shardscope.engine.convert.disk.names import JOURNAL
from shardscope.engine.convert.disk.steps import At
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.staging import FileRecord, JournalHead
from shardscope.engine.model.text import path_text

_JOURNAL_BYTES: Final = 256 << 20
_CUT_BYTES: Final = 64 << 10


class Journal:
    """A journal that is being written, by any number of threads; `begun` is one that an earlier run began. Raises `OSError`."""

    def __init__(self, folder: int, plan: str | None, at: At, *, begun: bool = False) -> None:
        self._at = at
        self._turn = threading.Lock()
        at("journal.create")
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        new = 0 if begun else os.O_CREAT | os.O_EXCL
        self._descriptor = os.open(JOURNAL, flags | new, 0o666, dir_fd=folder)
        try:
            if begun:
                self._cut()
            else:
                self._append(JournalHead("shardscope.journal/1", plan))
        except BaseException:
            os.close(self._descriptor)
            raise

    def record(self, finished: FileRecord) -> None:
        """Add a finished file, durably."""
        self._append(finished)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _cut(self) -> None:
        """Remove a torn last line, so that the next one begins a line."""
        end = os.fstat(self._descriptor).st_size
        while end:
            begin = max(0, end - _CUT_BYTES)
            found = os.pread(self._descriptor, end - begin, begin).rfind(b"\n")
            if found >= 0:
                os.ftruncate(self._descriptor, begin + found + 1)
                return
            end = begin

    def _append(self, entry: JournalHead | FileRecord) -> None:
        line = msgspec.json.encode(entry) + b"\n"
        with self._turn:
            self._at("journal.append")
            while line:
                line = line[os.write(self._descriptor, line) :]
            os.fdatasync(self._descriptor)


def read_journal(folder: int) -> tuple[JournalHead, tuple[FileRecord, ...]] | None:
    """Return what the journal of a staging folder says; null where it has none, or not even its first line.

    A file that is recorded twice counts as it was recorded last. Raises `Fault` `stage.journal_damaged`, `OSError`.
    """
    try:
        descriptor = os.open(
            JOURNAL, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder
        )
    except FileNotFoundError:
        return None
    try:
        if os.fstat(descriptor).st_size > _JOURNAL_BYTES:
            raise Fault("stage.journal_damaged", file=path_text(JOURNAL), line=1)
        with open(descriptor, "rb", closefd=False) as file:
            lines = file.read(_JOURNAL_BYTES).split(b"\n")[:-1]  # what follows the last line's end is torn
    finally:
        os.close(descriptor)
    if not lines:
        return None
    number = 1
    try:
        head = msgspec.json.decode(lines[0], type=JournalHead)
        records: dict[str, FileRecord] = {}
        for line in lines[1:]:
            number += 1
            record = msgspec.json.decode(line, type=FileRecord)
            records[record.file] = record
    except msgspec.MsgspecError as error:
        raise Fault("stage.journal_damaged", file=path_text(JOURNAL), line=number) from error
    return head, tuple(records.values())
