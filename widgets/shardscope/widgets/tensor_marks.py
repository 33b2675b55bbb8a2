"""The tensors that a person has selected: a byte for each of the catalogue, and what they come to."""

from collections.abc import Iterable, Sequence
from typing import Final

from shardscope.engine.model.tensors import TensorTable
from shardscope.widgets.figures import size

ALL: Final = "*"
SOME: Final = "+"
NONE: Final = " "
"""The signs of a row: selected, partly selected, not."""
LOOKED: Final = 4_096
"""Rows of a branch that are looked at for its sign."""


class TensorMarks:
    """Which rows of a catalogue are selected, with their count and bytes."""

    def __init__(self, table: TensorTable) -> None:
        """Begin with none."""
        self._begins, self._ends = table.column("begin"), table.column("end")
        self._names = table.names
        self._flags = bytearray()
        self._length = len(table)
        self.count = 0
        self.bytes = 0

    def __contains__(self, row: object) -> bool:
        return isinstance(row, int) and bool(self.count) and bool(self._flags[row])

    def toggle(self, rows: Sequence[int]) -> None:
        """Select all of `rows`, or none of them where all are selected already."""
        wanted = not all(row in self for row in rows)
        self.set(rows, wanted)

    def set(self, rows: Iterable[int], wanted: bool) -> None:
        """Select `rows`, or take their selection away."""
        if not self._flags:
            self._flags = bytearray(self._length)
        flags = self._flags
        for row in rows:
            if flags[row] != wanted:
                flags[row] = wanted
                step = 1 if wanted else -1
                self.count += step
                self.bytes += step * (self._ends[row] - self._begins[row])

    def clear(self) -> None:
        """Select nothing."""
        self._flags = bytearray()
        self.count = self.bytes = 0

    def sign(self, rows: Sequence[int]) -> str:
        """Return whether all, some or none of `rows` are selected; of very many the first ones are looked at."""
        looked = rows[:LOOKED]
        found = sum(row in self for row in looked)
        if found == len(rows):
            return ALL
        return SOME if found else NONE

    def names(self) -> list[str]:
        """Return the exact names of what is selected, in the order of the catalogue."""
        return [self._names[row] for row, flag in enumerate(self._flags) if flag]

    @property
    def words(self) -> str:
        """How much is selected; empty where nothing is."""
        return f"{self.count:,} selected, {size(self.bytes)}" if self.count else ""
