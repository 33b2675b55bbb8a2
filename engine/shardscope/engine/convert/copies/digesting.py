"""The SHA-256 of a file while others write it: read back behind the writers, from the first byte on.

A thread of its own keeps as close behind them as it can, so that what it reads is still in memory; it hashes what the file
holds, whichever way it came there.
"""

import heapq
import os
import threading
from typing import Final

TILE: Final = 1 << 20


class Chase:
    """Hashes a file of `size` bytes as far as it has been written without a gap."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._size = size
        self._turn = threading.Condition()
        self._apart: list[tuple[int, int]] = []
        self._written = 0
        self._given_up = False
        self.hashed = 0
        """Bytes so far."""
        self.sha256: str | None = None
        """Of the whole file, once all of it was hashed."""

    def mark(self, offset: int, length: int) -> None:
        """Say that some bytes are written and will not change."""
        with self._turn:
            heapq.heappush(self._apart, (offset, offset + length))
            before = self._written
            while self._apart and self._apart[0][0] <= self._written:
                self._written = max(self._written, heapq.heappop(self._apart)[1])
            if self._written > before:
                self._turn.notify()

    def give_up(self) -> None:
        """End `run` without a digest: nothing more will be written."""
        with self._turn:
            self._given_up = True
            self._turn.notify()

    def run(self) -> None:
        """Hash until the end. Raises `OSError` where the file cannot be read back."""
        import hashlib

        digest = hashlib.sha256()
        tile = memoryview(bytearray(min(TILE, max(1, self._size))))
        while self.hashed < self._size:
            with self._turn:
                while self._written == self.hashed and not self._given_up:
                    self._turn.wait()
                if self._given_up:
                    return
                ready = self._written
            while self.hashed < ready and not self._given_up:
                count = os.preadv(self._descriptor, [tile[: ready - self.hashed]], self.hashed)
                if not count:
                    raise OSError("the output is shorter than what was written to it")
                digest.update(tile[:count])
                self.hashed += count
        self.sha256 = digest.hexdigest()
