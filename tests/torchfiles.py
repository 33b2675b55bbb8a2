"""Files as torch.save writes them, put together byte by byte: their pickles are opcodes that this module writes itself."""

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

MAGIC = 0x1950A86A20F9469CFC6C
STORAGES = {
    "F64": "DoubleStorage",
    "F32": "FloatStorage",
    "F16": "HalfStorage",
    "BF16": "BFloat16Storage",
    "I64": "LongStorage",
    "I32": "IntStorage",
    "I8": "CharStorage",
    "U8": "ByteStorage",
    "BOOL": "BoolStorage",
}
WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I8": 1, "U8": 1, "BOOL": 1}


class Tensor(msgspec.Struct):
    """A view of a storage, as `_rebuild_tensor_v2` describes it."""

    key: str
    elements: int
    """Of the storage."""
    shape: Sequence[int]
    strides: Sequence[int] | None = None
    offset: int = 0
    dtype: str = "F32"
    view: tuple[str, int, int] | None = None
    """Of a storage in a very old stream."""
    legacy: bool = False
    metadata: dict[str, bool] | None = None
    """Bits of a view: `conj`, `neg`."""


class Called(msgspec.Struct):
    """A call to a name, and the state that is given to what it returns."""

    module: str
    name: str
    args: tuple[Any, ...] = ()
    state: Any = None


class Keyed(msgspec.Struct):
    """A mapping with keys that Python's dicts could not have twice, or not at all."""

    pairs: Sequence[tuple[Any, Any]]


def pickled(value: Any) -> bytes:
    """Return a pickle of protocol 2."""
    return b"\x80\x02" + _opcodes(value) + b"."


def _opcodes(value: Any) -> bytes:
    match value:
        case None:
            return b"N"
        case bool():
            return b"\x88" if value else b"\x89"
        case int() if -(1 << 31) <= value < 1 << 31:
            return b"J" + struct.pack("<i", value)
        case int():
            data = value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)
            return b"\x8a" + bytes([len(data)]) + data
        case float():
            return b"G" + struct.pack(">d", value)
        case str():
            data = value.encode()
            return b"X" + struct.pack("<I", len(data)) + data
        case tuple():
            return b"(" + b"".join(map(_opcodes, value)) + b"t"
        case list():
            return b"](" + b"".join(map(_opcodes, value)) + b"e"
        case Keyed():
            return b"}(" + b"".join(_opcodes(part) for pair in value.pairs for part in pair) + b"u"
        case dict():
            return b"}(" + b"".join(_opcodes(part) for pair in value.items() for part in pair) + b"u"
        case Tensor():
            return _tensor(value)
        case Called():
            made = _reference(value.module, value.name) + _opcodes(value.args) + b"R"
            return made if value.state is None else made + _opcodes(value.state) + b"b"
    raise TypeError(type(value))


def _reference(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _tensor(tensor: Tensor) -> bytes:
    shape = tuple(tensor.shape)
    strides = tensor.strides
    if strides is None:
        strides = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * shape[axis + 1]
    kind = _reference("torch", STORAGES[tensor.dtype])
    ident = (
        b"(" + _opcodes("storage") + kind + _opcodes(tensor.key) + _opcodes("cpu") + _opcodes(tensor.elements)
    )
    if tensor.legacy:
        ident += _opcodes(tensor.view)
    storage = ident + b"tQ"
    hooks = _reference("collections", "OrderedDict") + b")R"
    args = [storage, _opcodes(tensor.offset), _opcodes(shape), _opcodes(tuple(strides)), b"\x89", hooks]
    if tensor.metadata is not None:
        args.append(_opcodes(tensor.metadata))
    return _reference("torch._utils", "_rebuild_tensor_v2") + b"(" + b"".join(args) + b"tR"


class Record(msgspec.Struct):
    """One record of an archive. `hole` more bytes of zeros follow its data, and take no place on disk."""

    name: str
    data: bytes = b""
    hole: int = 0
    crc: int | None = None
    """Null computes it, which needs a record without a hole."""
    flags: int = 0x0808
    method: int = 0


def write_archive(path: Path, records: Sequence[Record]) -> Path:
    """Write an archive with the sizes behind each record's bytes, as torch does; 64-bit ones where it needs them."""
    with path.open("wb") as file:
        rows = []
        for record in records:
            begin = file.tell()
            name = record.name.encode()
            extra = b"FB" + struct.pack("<H", pad := -(begin + 34 + len(name)) % 64) + b"Z" * pad
            file.write(
                struct.pack(
                    "<4s5H3I2H",
                    b"PK\x03\x04",
                    0,
                    record.flags,
                    record.method,
                    0,
                    0,
                    0,
                    0,
                    0,
                    len(name),
                    len(extra),
                )
            )
            file.write(name + extra + record.data)
            file.seek(record.hole, 1)
            size = len(record.data) + record.hole
            crc = zlib.crc32(record.data) if record.crc is None else record.crc
            form = "<4sIQQ" if size > 0xFFFFFFFF or begin > 0xFFFFFFFF else "<4sIII"
            file.write(struct.pack(form, b"PK\x07\x08", crc, size, size))
            rows.append((name, record, begin, size, crc))
        start = file.tell()
        for name, record, begin, size, crc in rows:
            wide = [figure for figure in (size, size, begin) if figure >= 0xFFFFFFFF]
            extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
            low, at = min(size, 0xFFFFFFFF), min(begin, 0xFFFFFFFF)
            file.write(
                struct.pack(
                    "<4s6H3I5H2I",
                    b"PK\x01\x02",
                    0,
                    0,
                    record.flags,
                    record.method,
                    0,
                    0,
                    crc,
                    low,
                    low,
                    len(name),
                    len(extra),
                    0,
                    0,
                    0,
                    0,
                    at,
                )
            )
            file.write(name + extra)
        end = file.tell()
        count, length = len(rows), end - start
        if start > 0xFFFFFFFF:
            file.write(
                struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, length, start)
            )
            file.write(struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1))
        few = min(count, 0xFFFF)
        file.write(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, few, few, length, min(start, 0xFFFFFFFF), 0))
    return path


def save(
    path: Path,
    value: Any,
    storages: Mapping[str, bytes],
    *,
    root: str = "archive",
    byteorder: str | None = "little",
) -> Path:
    """Write a file as torch.save does: structure, byte order, storages by their key, version."""
    records = [Record(f"{root}/data.pkl", pickled(value))]
    if byteorder is not None:
        records.append(Record(f"{root}/byteorder", byteorder.encode()))
    records += [Record(f"{root}/data/{key}", data) for key, data in storages.items()]
    records.append(Record(f"{root}/version", b"3\n"))
    return write_archive(path, records)


def legacy(value: Any, storages: Mapping[str, tuple[int, bytes]], keys: Sequence[str] | None = None) -> bytes:
    """Return the stream from before 1.6: five pickles, then each storage behind its number of elements."""
    sizes = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    listed = list(storages) if keys is None else list(keys)
    head = b"".join(pickled(item) for item in (MAGIC, 1001, sizes, value, listed))
    return head + b"".join(struct.pack("<q", count) + data for count, data in storages.values())


def floats(*values: float) -> bytes:
    """Return little-endian 32-bit numbers."""
    return struct.pack(f"<{len(values)}f", *values)
