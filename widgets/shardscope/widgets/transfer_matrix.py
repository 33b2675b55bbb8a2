"""Who gives how many bytes to whom: source ranks down, target ranks across, sums at the ends."""

from collections.abc import Mapping, Sequence
from typing import Final

from shardscope.engine.model.transfer import TransferPlan
from shardscope.widgets.figures import size
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.virtual_table import Column

WIDEST: Final = 256
"""Target ranks that get a column; beyond it pairs are listed one by one."""
CELL: Final = 10


class TransferRows:
    """A transfer plan as rows of a table."""

    def __init__(self, plan: TransferPlan, bits: int) -> None:
        """`bits` are those of an element."""
        self._bits = bits
        self._given = {(one.source_rank, one.target_rank): one.elements for one in plan.traffic}
        self.sources = sorted({source for source, _ in self._given})
        self.targets = sorted({target for _, target in self._given})
        self.is_list = len(self.targets) > WIDEST
        self._pairs: Sequence[tuple[int, int]] = sorted(self._given) if self.is_list else ()
        self._sums: Mapping[int, int] = {
            source: sum(self._given.get((source, target), 0) for target in self.targets)
            for source in ([] if self.is_list else self.sources)
        }

    @property
    def row_count(self) -> int:
        """How many rows there are: one a source rank and their sum, or one a pair."""
        if self.is_list:
            return len(self._pairs)
        return len(self.sources) + 1 if self.sources else 0

    def columns(self) -> list[Column]:
        """Return a column for each target rank, or those of a list of pairs."""
        if self.is_list:
            return [
                Column("from", 8, right=True),
                Column("to", 8, right=True),
                Column("bytes", 12, right=True),
            ]
        targets = [Column(f"to {rank}", CELL, right=True) for rank in self.targets]
        return [Column("from", 8, right=True), *targets, Column("sum", CELL, right=True)]

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row."""
        if self.is_list:
            source, target = self._pairs[row]
            return (str(source), str(target), self._size(self._given[source, target]))[column]
        last = row == len(self.sources)
        if column == 0:
            return ("sum", Tone.MUTED) if last else (str(self.sources[row]), Tone.STRONG)
        if column > len(self.targets):
            total = sum(self._sums.values()) if last else self._sums[self.sources[row]]
            return self._size(total), Tone.STRONG
        target = self.targets[column - 1]
        if last:
            return self._size(
                sum(self._given.get((source, target), 0) for source in self.sources)
            ), Tone.MUTED
        source = self.sources[row]
        given = self._given.get((source, target), 0)
        if not given:
            return "-", Tone.MUTED
        return self._size(given)

    def _size(self, elements: int) -> str:
        return size(-(-elements * self._bits // 8))

    @property
    def pairs(self) -> int:
        """Pairs of a source and a target rank that exchange anything."""
        return len(self._given)

    @property
    def total(self) -> str:
        """All bytes, in words."""
        return self._size(sum(self._given.values()))
