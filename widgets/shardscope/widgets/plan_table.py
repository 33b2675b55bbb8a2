"""The table of a plan: its files, its tensors, what is renamed. Rows are made as they come in sight."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, Literal

from shardscope.engine.model.plan import Plan, PlannedFile, PlannedTensor
from shardscope.widgets.figures import plural, size
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.virtual_table import Column

View = Literal["files", "tensors", "renames"]
VIEWS: Final[tuple[View, ...]] = ("files", "tensors", "renames")


class PlanFiles:
    """One row a file of the output, then one a file that is carried along."""

    columns: Final = (
        Column("bytes", 10, right=True),
        Column("what", 14),
        Column("rank", 6, right=True, from_room=60),
        Column("file", 24, grow=1, tail=0.6),
    )

    def __init__(self, plan: Plan) -> None:
        self.files = plan.files
        self.carried = plan.carried

    @property
    def row_count(self) -> int:
        """Files that are written."""
        return len(self.files) + len(self.carried)

    def cell(self, row: int, column: int) -> Part:
        """Return what stands in a column of a row."""
        if row >= len(self.files):
            item = self.carried[row - len(self.files)]
            return (size(item.bytes), ("carried along", Tone.MUTED), "", item.name)[column]
        file = self.files[row]
        rank = "" if file.rank is None else str(file.rank)
        return (size(file.bytes), plural(len(file.tensors), "tensor"), rank, file.name)[column]


class PlanTensors:
    """One row a tensor of some files: from what, as what, where to."""

    columns: tuple[Column, ...] = (
        Column("bytes", 10, right=True),
        Column("type", 11),
        Column("shape", 16, right=True),
        Column("name", 24, grow=3, tail=0.7),
        Column("in the source", 18, grow=2, tail=0.7, from_room=96),
        Column("file", 18, grow=1, tail=0.7, from_room=120),
    )

    def __init__(self, files: Sequence[PlannedFile], only: Sequence[int] | None = None) -> None:
        """`only` are the tensors to show, counted through all files; all of them when left out."""
        self._files = files
        self._starts = [0, *accumulate(len(file.tensors) for file in files)]
        self._only = only

    @property
    def row_count(self) -> int:
        """Tensors that are written; ranks have shards of the same ones."""
        return self._starts[-1] if self._only is None else len(self._only)

    def at(self, row: int) -> tuple[PlannedTensor, PlannedFile]:
        """Return the tensor of a row, and the file that it is written to."""
        number = row if self._only is None else self._only[row]
        place = bisect_right(self._starts, number) - 1
        file = self._files[place]
        return file.tensors[number - self._starts[place]], file

    def cell(self, row: int, column: int) -> Part:
        """Return what stands in a column of a row."""
        item, file = self.at(row)
        match column:
            case 0:
                return size(item.bytes)
            case 1:
                return (
                    item.dtype
                    if item.dtype == item.stored_dtype
                    else (f"{item.stored_dtype} > {item.dtype}", Tone.CAUTION)
                )
            case 2:
                return "x".join(map(str, item.shape)) or "scalar"
            case 3:
                return item.name
            case 4:
                return item.source if item.source != item.name else ("the same", Tone.MUTED)
            case _:
                return file.name


class PlanRenames(PlanTensors):
    """One row a tensor that gets another name."""

    columns = (
        Column("in the source", 24, grow=1, tail=0.7),
        Column("in the output", 24, grow=1, tail=0.7),
    )

    def cell(self, row: int, column: int) -> Part:
        """Return the old name or the new one."""
        item, _ = self.at(row)
        return (item.source, Tone.MUTED) if column == 0 else item.name
