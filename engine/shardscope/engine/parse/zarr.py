"""The description of one zarr array: the document `.zarray` of the zarr storage specification, version 2.

Megatron Core writes bfloat16 as the data type `bfloat16`, which the specification does not have.
"""

from math import prod
from typing import Any, Final

from msgspec import Struct

from shardscope.engine.model.tensors import DTYPES

BYTES: Final = (1 << 63) - 1
"""The largest array: sizes of files are signed 64-bit numbers."""
CHUNKS: Final = 1 << 40
RANK: Final = 64

_DTYPES: Final = {
    "b1": "BOOL",
    "i1": "I8",
    "i2": "I16",
    "i4": "I32",
    "i8": "I64",
    "u1": "U8",
    "u2": "U16",
    "u4": "U32",
    "u8": "U64",
    "f2": "F16",
    "f4": "F32",
    "f8": "F64",
    "c8": "C64",
}


class ZarrArray(Struct, frozen=True):
    """What one `.zarray` declares."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    """Shape of one chunk; those at the far edges are stored in full."""
    dtype: str
    """A name of `DTYPES`."""
    big_endian: bool
    plain: bool
    """C order, no compressor, no filter, chunk names with dots: as Megatron Core writes."""
    separator: str
    """Between the numbers in the name of a chunk."""
    direct: bool
    """The bytes of a chunk are its elements in C order: no compressor, no filter."""
    compressor: str | None = None
    """What the description calls it."""
    fill: str | None = None
    """The value of chunks that are absent, in words; null where none is given."""

    @property
    def grid(self) -> tuple[int, ...]:
        """How many chunks there are along each dimension."""
        return tuple(-(-extent // chunk) for extent, chunk in zip(self.shape, self.chunks, strict=True))

    @property
    def bytes(self) -> int:
        """Bytes of the array without padding."""
        return prod(self.shape) * DTYPES[self.dtype].bits // 8

    @property
    def chunk_bytes(self) -> int:
        """Bytes of one chunk as it is stored without compression."""
        return prod(self.chunks) * DTYPES[self.dtype].bits // 8


def zarr_array(value: Any) -> ZarrArray | str:
    """Return what a parsed `.zarray` declares, or the clause that says why it declares nothing."""
    if not isinstance(value, dict):
        return "it is not an object"
    if value.get("zarr_format") != 2 or isinstance(value["zarr_format"], bool):
        return "its zarr_format is not 2"
    shape = _extents(value.get("shape"), 0)
    chunks = _extents(value.get("chunks"), 1)
    if shape is None:
        return "its shape is no list of sizes"
    if chunks is None or len(chunks) != len(shape):
        return "its chunks are no list of sizes, one for each dimension"
    dtype = _dtype(value.get("dtype"))
    if dtype is None:
        return "its dtype is not known here"
    separator = value.get("dimension_separator", ".")
    if separator not in (".", "/"):
        return "its dimension_separator is neither a dot nor a slash"
    name, big_endian = dtype
    compressor = value.get("compressor")
    direct = value.get("order") == "C" and compressor is None and not value.get("filters")
    plain = direct and separator == "." and not big_endian
    fill = value.get("fill_value")
    array = ZarrArray(
        shape,
        chunks,
        name,
        big_endian,
        plain,
        separator,
        direct,
        _compressor(compressor),
        None if fill is None else str(fill)[:64],
    )
    if max(array.bytes, array.chunk_bytes) > BYTES:
        return "its bytes do not fit in 64 bits"
    if prod(array.grid) > CHUNKS:
        return "it has more chunks than a save can have"
    return array


def _extents(value: object, least: int) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) > RANK:
        return None
    if not all(isinstance(item, int) and not isinstance(item, bool) and item >= least for item in value):
        return None
    return tuple(value)


def _compressor(value: object) -> str | None:
    if value is None:
        return None
    name = value.get("id") if isinstance(value, dict) else None
    return name[:64] if isinstance(name, str) else "one without a name"


def _dtype(value: object) -> tuple[str, bool] | None:
    """Return the name in `DTYPES` and whether the bytes are swapped."""
    if value == "bfloat16":
        return "BF16", False
    if not isinstance(value, str) or value[:1] not in ("<", ">", "|") or value[1:] not in _DTYPES:
        return None
    name = _DTYPES[value[1:]]
    return name, value[0] == ">" and DTYPES[name].bits > 8
