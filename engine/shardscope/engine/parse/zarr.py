"""The description of one zarr array: `.zarray` of the zarr storage specification, version 2, and `zarr.json` of version 3.

Megatron Core and TensorStore write bfloat16 as the data type `bfloat16`, which version 2 does not have; TensorStore does the same with
the eight-bit floats.
"""

from math import prod
from typing import Any, Final

from msgspec import Struct

from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.parse.npy import DTYPES_OF_NUMPY

BYTES: Final = (1 << 63) - 1
"""The largest array: sizes of files are signed 64-bit numbers."""
CHUNKS: Final = 1 << 40
RANK: Final = 64

_EXTENDED: Final = {
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}
_NAMED: Final = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    **_EXTENDED,
}
"""Data types of version 3."""
_SHARDING: Final = "sharding_indexed"


class ZarrArray(Struct, frozen=True):
    """What the description of one array declares."""

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
    zstd: bool = False
    """The bytes of a chunk are its elements in C order, packed as zstd: nothing else is done to them."""
    prefix: str = ""
    """What the name of every chunk begins with: `c` in version 3, otherwise nothing."""

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
    packed = isinstance(compressor, dict) and compressor.get("id") == "zstd"
    fill = value.get("fill_value")
    return _bounded(
        ZarrArray(
            shape,
            chunks,
            name,
            big_endian,
            plain,
            separator,
            direct,
            _compressor(compressor),
            None if fill is None else str(fill)[:64],
            zstd=packed and value.get("order") == "C" and not value.get("filters"),
        )
    )


def zarr3_array(value: Any) -> ZarrArray | str:
    """Return what a parsed `zarr.json` of an array declares, or the clause that says why it declares nothing.

    A shard of the sharding codec counts as a chunk: it is one file.
    """
    if not isinstance(value, dict):
        return "it is not an object"
    if value.get("zarr_format") != 3 or isinstance(value["zarr_format"], bool):
        return "its zarr_format is not 3"
    if value.get("node_type") != "array":
        return "its node_type is not array"
    shape = _extents(value.get("shape"), 0)
    chunks = _extents(_configured(value.get("chunk_grid"), "regular").get("chunk_shape"), 1)
    if shape is None:
        return "its shape is no list of sizes"
    if chunks is None or len(chunks) != len(shape):
        return "its chunk_grid is no regular one, with a size for each dimension"
    kind = value.get("data_type")
    name = _NAMED.get(kind) if isinstance(kind, str) else None
    if name is None:
        return "its data_type is not known here"
    encoding = value.get("chunk_key_encoding")
    word = encoding.get("name") if isinstance(encoding, dict) else encoding
    if word not in ("default", "v2"):
        return "its chunk_key_encoding is not known here"
    separator = _configured(encoding, word).get("separator", "/" if word == "default" else ".")
    if separator not in (".", "/"):
        return "its separator is neither a dot nor a slash"
    codecs = value.get("codecs")
    if not isinstance(codecs, list) or not codecs or len(codecs) > RANK:
        return "its codecs are no list"
    names = [each if isinstance(each, str) else _compressor(each, "name") for each in codecs]
    big_endian = _configured(codecs[0], "bytes").get("endian") == "big" and DTYPES[name].bits > 8
    fill = value.get("fill_value")
    return _bounded(
        ZarrArray(
            shape,
            chunks,
            name,
            big_endian,
            plain=False,
            separator=separator,
            direct=names == ["bytes"],
            compressor=None if names == ["bytes"] else _inner(codecs, names),
            fill=None if fill is None else str(fill)[:64],
            zstd=names == ["bytes", "zstd"],
            prefix="c" if word == "default" else "",
        )
    )


def _configured(value: object, name: str) -> dict[str, Any]:
    """Return the configuration of an extension point of that name; empty where it has none, or another name."""
    if not isinstance(value, dict) or value.get("name") != name:
        return {}
    found = value.get("configuration")
    return found if isinstance(found, dict) else {}


def _inner(codecs: list[Any], names: list[str | None]) -> str:
    """Return what a list of codecs ends in, looking into shards."""
    if names[0] == _SHARDING:
        inner = _configured(codecs[0], _SHARDING).get("codecs")
        last = inner[-1] if isinstance(inner, list) and inner else None
        return f"shards of {_compressor(last, 'name') or 'unknown codecs'}"
    return names[-1] or "one without a name"


def _bounded(array: ZarrArray) -> ZarrArray | str:
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


def _compressor(value: object, key: str = "id") -> str | None:
    if value is None:
        return None
    name = value.get(key) if isinstance(value, dict) else None
    return name[:64] if isinstance(name, str) else "one without a name"


def _dtype(value: object) -> tuple[str, bool] | None:
    """Return the name in `DTYPES` and whether the bytes are swapped."""
    if isinstance(value, str) and value in _EXTENDED:
        return _EXTENDED[value], False
    if not isinstance(value, str) or value[:1] not in ("<", ">", "|") or value[1:] not in DTYPES_OF_NUMPY:
        return None
    name = DTYPES_OF_NUMPY[value[1:]]
    return name, value[0] == ">" and DTYPES[name].bits > 8
