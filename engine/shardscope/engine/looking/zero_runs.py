"""The longest stretch of zeros in bytes that pass by: what a hole or a write that stopped leaves behind."""

from typing import Final

import numpy as np

from shardscope.engine.looking.statistics import Bytes

PAGE: Final = 4 << 10
"""Bytes that are zero together or not at all, so that looking is quick."""


class ZeroRun:
    """Looks at tiles in order. Stretches are counted in pages, from the start of each tile."""

    def __init__(self) -> None:
        self.begin = self.length = 0
        """Of the longest one."""
        self._at = self._since = 0

    def add(self, data: Bytes) -> None:
        """Take in the next bytes."""
        whole = len(data) // PAGE * PAGE
        used = np.flatnonzero(data[:whole].reshape(-1, PAGE).view("<u8").any(axis=1)) * PAGE
        ends = [(int(at), PAGE) for at in used]
        if whole < len(data) and data[whole:].any():
            ends.append((whole, len(data) - whole))
        for low, length in ends:
            self._ended(self._at + low)
            self._since = self._at + low + length
        self._at += len(data)

    def finished(self) -> None:
        """Say that no more comes."""
        self._ended(self._at)

    def _ended(self, at: int) -> None:
        if at - self._since > self.length:
            self.begin, self.length = self._since, at - self._since
