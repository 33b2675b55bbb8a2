"""Tensors as headers describe them, a million of them in columns.

A struct for each of a million tensors costs half a gigabyte; five columns cost a fifth of that. `TensorTable` is the
catalogue that the engine fills and every screen reads; `TensorSpec` is one row of it, made when asked for.
"""

from array import array
from collections.abc import Iterator, Sequence
from math import prod
from operator import sub
from typing import Final

from msgspec import Struct

from shardscope.engine.model.facts import SafetensorsHeader
from shardscope.engine.model.ggml import BLOCK_TYPES


class DType(Struct, frozen=True):
    """One element type of the safetensors format (reference implementation, `dtype.rs`)."""

    name: str
    bits: int
    kind: str
    """`float`, `int`, `uint`, `bool`, `complex` or `scale`."""

    def bytes_of(self, shape: Sequence[int]) -> int:
        """Return the bytes of an array of this type. A last byte that is not filled counts."""
        return -(-prod(shape) * self.bits // 8)


DTYPES: Final[dict[str, DType]] = {
    row[0]: DType(*row)
    for row in (
        ("BOOL", 8, "bool"),
        ("F4", 4, "float"),
        ("F6_E2M3", 6, "float"),
        ("F6_E3M2", 6, "float"),
        ("U8", 8, "uint"),
        ("I8", 8, "int"),
        ("F8_E5M2", 8, "float"),
        ("F8_E4M3", 8, "float"),
        ("F8_E8M0", 8, "scale"),
        ("F8_E4M3FNUZ", 8, "float"),
        ("F8_E5M2FNUZ", 8, "float"),
        ("I16", 16, "int"),
        ("U16", 16, "uint"),
        ("F16", 16, "float"),
        ("BF16", 16, "float"),
        ("I32", 32, "int"),
        ("U32", 32, "uint"),
        ("F32", 32, "float"),
        ("C64", 64, "complex"),
        ("F64", 64, "float"),
        ("I64", 64, "int"),
        ("U64", 64, "uint"),
    )
}
"""The closed set of dtypes, by name. Shapes of sub-byte dtypes count elements, not bytes."""


def array_bytes(dtype: str, shape: Sequence[int]) -> int | None:
    """Return the bytes of an array: of a type of safetensors, or of whole blocks of ggml; null where the type is neither."""
    if (block := BLOCK_TYPES.get(dtype)) is not None:
        return prod(shape) // block.block * block.bytes
    known = DTYPES.get(dtype)
    return None if known is None else known.bytes_of(shape)


class TensorSpec(Struct, frozen=True):
    """One tensor of one file."""

    name: str
    """Exact, as the header gives it: neutralise before showing."""
    dtype: str
    """A name of `DTYPES`, or the unknown word that the file uses."""
    shape: tuple[int, ...]
    bytes: int
    file: str
    """The file's relative path, neutralised."""
    begin: int
    """First byte in the file (absolute, header included)."""
    end: int
    """One past the last byte in the file."""


class TensorTable(Sequence[TensorSpec]):
    """A catalogue of tensors in columns: append rows file by file, then read by index.

    Names, one reference each; dtypes, shapes and files are stored once and referred to by number.
    """

    __slots__ = (
        "_begin",
        "_dtype",
        "_dtypes",
        "_end",
        "_file",
        "_files",
        "_shape",
        "_shapes",
        "names",
        "regular",
    )

    def __init__(self) -> None:
        self.names: list[str] = []
        """The exact names, in order of appearance."""
        self.regular = True
        """Every tensor has the bytes that its dtype and shape ask for: figures of a kind are figures of its tensors."""
        self._dtype = array("I")
        self._shape = array("L")
        self._file = array("L")
        self._begin = array("Q")
        self._end = array("Q")
        self._dtypes: dict[str, int] = {}
        self._shapes: dict[tuple[int, ...], int] = {}
        self._files: dict[str, int] = {}

    def append(self, file: str, name: str, dtype: str, shape: tuple[int, ...], begin: int, end: int) -> None:
        """Add one tensor of `file` at the absolute bytes `begin` to `end`."""
        known = DTYPES.get(dtype)
        self.regular &= known is not None and prod(shape) * known.bits == 8 * (end - begin)
        self.names.append(name)
        self._dtype.append(self._dtypes.setdefault(dtype, len(self._dtypes)))
        self._shape.append(self._shapes.setdefault(shape, len(self._shapes)))
        self._file.append(self._files.setdefault(file, len(self._files)))
        self._begin.append(begin)
        self._end.append(end)

    def extend(self, file: str, header: SafetensorsHeader) -> None:
        """Add every tensor of one header of `file`."""
        number = self._files.setdefault(file, len(self._files))
        count = len(header.names)
        if not count:
            return
        dtypes = [self._dtypes.setdefault(dtype, len(self._dtypes)) for dtype, _ in header.kinds]
        shapes = [self._shapes.setdefault(shape, len(self._shapes)) for _, shape in header.kinds]
        self.regular &= all(dtype in DTYPES for dtype, _ in header.kinds)
        self.names.extend(header.names)  # whole arrays: extending by an iterator takes twice the time
        self._file.extend(array("L", [number]) * count)
        if len(set(dtypes)) == 1:
            self._dtype.extend(array("I", dtypes[:1]) * count)
        else:
            self._dtype.extend(array("I", list(map(dtypes.__getitem__, header.kind_of))))
        if shapes == list(range(len(shapes))):  # the files of a model begin alike
            self._shape.extend(array("L", header.kind_of))
        else:
            self._shape.extend(array("L", list(map(shapes.__getitem__, header.kind_of))))
        ends = array("Q", header.ends)
        self._begin.append(header.data_begin)
        self._begin.extend(ends[:-1])
        self._end.extend(ends)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # the overloads of Sequence say nothing new
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        begin, end = self._begin[index], self._end[index]
        return TensorSpec(
            name=self.names[index],
            dtype=self.dtypes[self._dtype[index]],
            shape=self.shapes[self._shape[index]],
            bytes=end - begin,
            file=self.files[self._file[index]],
            begin=begin,
            end=end,
        )

    def __iter__(self) -> Iterator[TensorSpec]:
        return (self[i] for i in range(len(self)))

    def sizes(self) -> list[int]:
        """Return the bytes of every tensor, in order."""
        return list(map(sub, self._end, self._begin))

    @property
    def dtypes(self) -> list[str]:
        """The distinct dtypes, by number."""
        return list(self._dtypes)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The distinct shapes, by number."""
        return list(self._shapes)

    @property
    def files(self) -> list[str]:
        """The distinct files, by number."""
        return list(self._files)

    def column(self, name: str) -> Sequence[int]:
        """Return a column of numbers: `dtype`, `shape`, `file` (indices), `begin` or `end`."""
        column: Sequence[int] = getattr(self, f"_{name}")
        return column


class DTypeShare(Struct, frozen=True):
    """How much of the checkpoint is of one dtype."""

    dtype: str
    count: int
    elements: int | None
    """Null where the dtype is unknown and its elements cannot be counted."""
    bytes: int


class TensorSummary(Struct, frozen=True):
    """The catalogue in a few figures. `count` is null where no tensor could be listed without decoding."""

    count: int | None
    elements: int | None
    logical_bytes: int | None
    dtypes: tuple[DTypeShare, ...] = ()
    largest: tuple[TensorSpec, ...] = ()
    """The five largest, largest first."""
    files_examined: int = 0
    files_opaque: int = 0
