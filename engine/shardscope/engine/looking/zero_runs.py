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

    @property
    def size(self) -> int:
        """Bytes that passed by."""
        return self._at

    def add(self, data: Bytes) -> None:
        """Take in the next bytes."""
        whole = len(data) // PAGE * PAGE
        pages = data[:whole].reshape(-1, PAGE).view("<u8")
        maybe = np.flatnonzero(pages[:, 0] == 0)  # a page of weights seldom begins with eight zeros
        empty = maybe[~pages[maybe].any(axis=1)]
        if len(empty):
            self._add_empty(empty, len(pages))
        elif whole:
            self._ended(self._at)
            self._since = self._at + whole
        if whole < len(data) and data[whole:].any():
            self._ended(self._at + whole)
            self._since = self._at + len(data)
        self._at += len(data)

    def _add_empty(self, empty: np.ndarray[tuple[int], np.dtype[np.int64]], pages: int) -> None:
        """Take in pages of which those are zero, by rising number."""
        cut = np.flatnonzero(np.diff(empty) != 1) + 1
        for run in np.split(empty, cut):
            low, high = int(run[0]), int(run[-1]) + 1
            if low:
                self._ended(self._at)
                self._since = self._at + low * PAGE
            if high < pages:
                self._ended(self._at + high * PAGE)
                self._since = self._at + pages * PAGE

    def finished(self) -> None:
        """Say that no more comes."""
        self._ended(self._at)

    def _ended(self, at: int) -> None:
        if at - self._since > self.length:
            self.begin, self.length = self._since, at - self._since
