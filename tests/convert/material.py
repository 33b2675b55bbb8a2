"""Source files, tensors in them and outputs of them, for tests of copying."""

import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.convert.copies.copying import Copied, copy_file
from shardscope.engine.convert.copies.work import Written
from shardscope.engine.convert.disk.output import OutputFile
from shardscope.engine.convert.plans.header import build
from shardscope.engine.geometry.transfer.compose import whole
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side, row_major
from shardscope.engine.model.shardmap import DeviceMesh, TensorMap
from shardscope.engine.source.source import Source

Array = NDArray[Any]
NUMPY = {
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "F64": "<f8",
    "I64": "<i8",
    "U8": "u1",
    "I32": "<i4",
    "C64": "<c8",
}


@contextmanager
def opened(folder: Path) -> Iterator[Opener]:
    """Give a folder's files by their names."""
    with Source(folder) as source:
        entries = {entry.text: entry for entry in source.walk().entries}
        yield lambda name: source.open(entries[name])


def plain(file: str, begin: int, length: int, *, crc: int | None = None, big: bool = False) -> Record:
    return Record(file, begin, length, length, "plain", crc, big)


def deflated(data: bytes | bytearray) -> bytes:
    made = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


def put(folder: Path, name: str, array: Array, before: int = 0, **options: Any) -> Record:
    """Write an array's bytes to a file of its own, behind some others."""
    data = array.tobytes()
    (folder / name).write_bytes(b"\xee" * before + data + b"\xdd" * 7)
    return plain(name, before, len(data), **options)


def single(
    name: str, dtype: str, shape: Sequence[int], record: Record, offset: int = 0, **options: Any
) -> LogicalTensor:
    """Return a tensor that lies in one record as it is."""
    shape = tuple(shape)
    return LogicalTensor(
        name, dtype, shape, whole(shape), None, (Fragment(0, shape, record, offset, **options),)
    )


def boxes(
    name: str,
    dtype: str,
    shape: Sequence[int],
    parts: Sequence[tuple[Sequence[int], Sequence[int], Record, int]],
) -> LogicalTensor:
    """Return a tensor of boxes: offsets, sizes, record and offset in it of each."""
    shape = tuple(shape)
    strides = row_major(shape)
    ranks, fragments = [], []
    for label, (offsets, sizes, record, begin) in enumerate(parts):
        sizes = tuple(sizes)
        start = sum(o * s for o, s in zip(offsets, strides, strict=True))
        piece = Piece(sizes, Side(start, strides), Side(0, row_major(sizes)), (label,))
        ranks.append(RankShard(label, sizes, (piece,) if prod(sizes) else ()))
        fragments.append(Fragment(label, sizes, record, begin))
    return LogicalTensor(name, dtype, shape, Lowered(shape, tuple(ranks)), None, tuple(fragments))


def mapped(
    name: str, dtype: str, layout: TensorMap, mesh: DeviceMesh, fragments: Sequence[Fragment]
) -> LogicalTensor:
    return LogicalTensor(name, dtype, layout.shape, layout, mesh, tuple(fragments))


def output(path: Path, size: int) -> OutputFile:
    """Return a file as staging makes it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.ftruncate(descriptor, size)

    def unrecorded(*_: Any) -> Any:
        raise AssertionError("the test finishes no file")

    return OutputFile(path.name, size, descriptor, unrecorded)


class Item:
    """What a header needs to know."""

    def __init__(self, tensor: LogicalTensor, dtype: str, shape: tuple[int, ...]) -> None:
        self.name, self.dtype, self.shape = tensor.name, dtype, shape


def convert(
    folder: Path, target: Path, tensors: Sequence[tuple[LogicalTensor, str]], **options: Any
) -> Copied:
    """Write one safetensors file."""
    header = build([Item(tensor, dtype, tensor.shape) for tensor, dtype in tensors])
    items = [
        Written(tensor, dtype, offset)
        for (tensor, dtype), offset in zip(tensors, header.offsets, strict=True)
    ]
    options = {"budget_bytes": 64 << 20, **options}
    with opened(folder) as opener, output(target, header.size) as file:
        return copy_file(items, file, header.data, opener=opener, **options)


def noise(shape: Sequence[int], dtype: str, seed: int = 0) -> Array:
    """Return random bits; of floating-point types, random finite numbers."""
    random = np.random.default_rng(seed)
    if dtype in ("F32", "F16", "F64"):
        return random.standard_normal(tuple(shape)).astype(NUMPY[dtype])
    if dtype == "BF16":
        return (random.standard_normal(tuple(shape)).astype("<f4").view("<u4") >> 16).astype("<u2")
    width = np.dtype(NUMPY[dtype]).itemsize
    return random.integers(0, 256, (*shape, width), np.uint8).view(NUMPY[dtype])[..., 0]
