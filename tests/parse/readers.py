"""Readers for tests: bytes in memory, and files that remember how much was asked of them."""

import os
from types import TracebackType
from typing import Self


class MemoryReader:
    """A file that is a bytes object. `reads` lists every range that was read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.reads: list[tuple[int, int]] = []

    def pread(self, offset: int, length: int) -> bytes:
        assert offset >= 0
        assert length >= 0
        piece = self.data[offset : offset + length]
        self.reads.append((offset, len(piece)))
        return piece


class FileReader:
    """A file on disk, sparse ones included. `bytes_read` counts what was read."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._descriptor).st_size
        self.bytes_read = 0

    def pread(self, offset: int, length: int) -> bytes:
        piece = os.pread(self._descriptor, length, offset)
        self.bytes_read += len(piece)
        return piece

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
