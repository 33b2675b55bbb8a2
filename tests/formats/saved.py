"""Files as torch.save writes them, from plain values and numpy arrays: opcodes and records by hand, with no framework.

The fixtures of real producers prove that decoding is right; these make the topologies that no fixture has.
"""

import struct
import zipfile
from argparse import Namespace
from io import BytesIO
from pathlib import Path

import numpy as np

_STORAGES = {
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "int64": "LongStorage",
    "uint8": "ByteStorage",
}


class Same:
    """A tensor that shares the storage of the one before it under the same number."""

    def __init__(self, number: int, array: np.ndarray) -> None:
        self.number = number
        self.array = array


def save(path: Path, value: object) -> None:
    """Write `value` as a zip of torch.save; arrays become tensors over storages of their own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    storages: dict[str, bytes] = {}
    data = b"\x80\x02" + _written(value, storages) + b"."
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        root = path.stem
        archive.writestr(f"{root}/data.pkl", data)
        archive.writestr(f"{root}/byteorder", "little")
        for key, content in storages.items():
            archive.writestr(f"{root}/data/{key}", content)
        archive.writestr(f"{root}/version", "3\n")


def _written(value: object, storages: dict[str, bytes]) -> bytes:
    match value:
        case None:
            return b"N"
        case bool():
            return b"\x88" if value else b"\x89"
        case int():
            return b"\x8a" + _long(value)
        case float():
            return b"G" + struct.pack(">d", value)
        case str():
            text = value.encode()
            return b"X" + struct.pack("<I", len(text)) + text
        case dict():
            inner = b"".join(
                _written(key, storages) + _written(item, storages) for key, item in value.items()
            )
            return b"}(" + inner + b"u"
        case list():
            return b"](" + b"".join(_written(item, storages) for item in value) + b"e"
        case tuple():
            return b"(" + b"".join(_written(item, storages) for item in value) + b"t"
        case Namespace():
            return b"cargparse\nNamespace\n)\x81" + _written(vars(value), storages) + b"b"
        case BytesIO():
            return b"c_io\nBytesIO\n)R"
        case Same():
            return _tensor(value.array, str(value.number), storages)
        case np.ndarray():
            return _tensor(value, str(len(storages)), storages)
    raise TypeError(type(value))


def _tensor(array: np.ndarray, key: str, storages: dict[str, bytes]) -> bytes:
    storages.setdefault(key, np.ascontiguousarray(array).tobytes())
    kind = f"ctorch\n{_STORAGES[str(array.dtype)]}\n".encode()
    storage = (
        b"("
        + _written("storage", {})
        + kind
        + _written(key, {})
        + _written("cpu", {})
        + _written(array.size, {})
        + b"tQ"
    )
    strides = tuple(step // array.itemsize for step in np.empty(array.shape, array.dtype).strides)
    arguments = _written(0, {}) + _written(array.shape, {}) + _written(strides, {}) + b"\x89}"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + arguments + b"tR"


def _long(value: int) -> bytes:
    if value == 0:
        return b"\x00"
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return bytes((len(data),)) + data
