"""A catalogue of tensors as rows of a table."""

from typing import Final

from shardscope.engine.model.tensors import TensorTable
from shardscope.widgets.figures import size
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.tensor_detail import shape_words
from shardscope.widgets.tensor_marks import TensorMarks
from shardscope.widgets.virtual_table import Column

FILE_FROM: Final = 100
"""Cells of a table that has room for the files; where it is narrower, the foot names the file of the cursor."""
SHAPES: Final = 10_000
"""Distinct shapes that are looked at for the width of their column."""


class TensorRows:
    """Tensors as rows. A row is read when it is drawn."""

    def __init__(self, table: TensorTable, marks: TensorMarks) -> None:
        """Show what `table` holds now; make another when it has grown. `marks` are the tensors that are selected."""
        self._marks = marks
        self.row_count = len(table)
        self._names = table.names
        self._columns = {name: table.column(name) for name in ("dtype", "shape", "file", "begin", "end")}
        self._dtypes = table.dtypes
        self._shapes = table.shapes
        files = table.files
        ends = {file.rpartition(".")[2] for file in files}
        end = f".{ends.pop()}" if len(ends) == 1 else ""
        self._files = [file.removesuffix(end) for file in files]

    def columns(self) -> list[Column]:
        """Return columns that are as wide as what stands in them; names get the room that is left."""
        shapes = (len(shape_words(shape)) for shape in self._shapes[:SHAPES])
        columns = [
            Column("name", 24, grow=3, tail=1),
            Column("dtype", min(12, max([7, *map(len, self._dtypes)]))),
            Column("shape", min(24, max([7, *shapes]))),
            Column("bytes", 10, right=True),
        ]
        if len(self._files) > 1:
            width = min(32, max(map(len, self._files)))
            columns.append(Column("file", width, tail=1, from_room=FILE_FROM))
        return columns

    def cell(self, row: int, column: int) -> Part:
        """Return a column of a row, names as they are."""
        columns = self._columns
        match column:
            case 0:
                name = self._names[row]
                return f"{self._marks.sign((row,))} {name}" if self._marks.count else name
            case 1:
                return self._dtypes[columns["dtype"][row]]
            case 2:
                shape = self._shapes[columns["shape"][row]]
                return shape_words(shape)
            case 3:
                return size(columns["end"][row] - columns["begin"][row])
        return self._files[columns["file"][row]], Tone.MUTED
