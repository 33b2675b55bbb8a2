"""Single elements of an output held against the source by a way of their own: no plan, no tile, no copy.

An element of the full tensor is looked up in the map's pieces one by one, its place in the shard is worked out digit by digit,
and its few bytes are read there. It is slow and simple, which is what it is for: it shares nothing with the code that writes.
"""

import struct
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from shardscope.engine.convert.copies.contents import Contents
from shardscope.engine.geometry.pieces.explicit import unpacked
from shardscope.engine.model.catalogue import Fragment, LogicalTensor
from shardscope.engine.model.piece import ONE, IndexedPiece, Lowered, Piece, RankShard, row_major
from shardscope.engine.model.tensors import DTYPES

PROBES: Final = 48
"""Elements of a tensor that are looked at: its ends, the ends of its shards, and others in between."""


class Probe(Struct, frozen=True):
    """One element, as the source has it."""

    element: int
    """Its address in the full tensor, row by row."""
    at: int
    """Its address in what is written of the tensor."""
    data: bytes
    """As it has to stand in the output, little-endian."""


def probes(
    tensor: LogicalTensor,
    lowered: Lowered,
    dtype: str,
    contents: Contents,
    count: int = PROBES,
    *,
    layout: Lowered | None = None,
) -> Iterator[Probe]:
    """Yield elements of a tensor as an output of `dtype` has to hold them. Elements of less than a byte are not looked at.

    With a `layout` of one rank the output is that rank's shard, and elements are chosen by it. Raises `Fault`: those of reading.
    """
    fragments = {fragment.label: fragment for fragment in tensor.fragments}
    if DTYPES[tensor.dtype].bits % 8 or DTYPES[dtype].bits % 8:
        return
    for element, at in _wanted(layout or lowered, count, own=layout is not None):
        found = place_of(lowered, element)
        if found is None:
            continue
        shard, address, scale = found
        stored, data = _element(tensor, fragments[shard.rank], shard, address, contents)
        yield Probe(element, at, turned(data, stored, dtype, scale))


def _wanted(lowered: Lowered, count: int, *, own: bool) -> Iterator[tuple[int, int]]:
    """Yield addresses in the full tensor, and in the output: in the shard of a layout of its own."""
    for element in chosen(lowered, count):
        if not own:
            yield element, element
        elif (found := place_of(lowered, element)) is not None:
            yield element, found[1]


def chosen(lowered: Lowered, count: int) -> list[int]:
    """Return addresses of the full tensor: first and last, the first and last of every shard's first pieces, and a spread."""
    total = lowered.elements
    if not total:
        return []
    found = {0, total - 1}
    for shard in lowered.ranks[: count // 4]:
        for piece in shard.pieces[:1]:
            last = piece.source.offset + sum(
                (extent - 1) * stride
                for extent, stride in zip(piece.shape, piece.source.strides, strict=True)
            )
            found |= {piece.source.offset, last}
    step = max(1, total // count)
    found.update(range(step // 2, total, step))
    return sorted(found)[: 2 * count]


def place_of(lowered: Lowered, element: int) -> tuple[RankShard, int, tuple[int, int]] | None:
    """Return the first shard that holds an element, its address there, and the factor of the piece."""
    for shard in lowered.ranks:
        for piece in shard.pieces:
            digits = _digits(piece, element - piece.source.offset)
            if digits is not None:
                at = sum(digit * stride for digit, stride in zip(digits, piece.dest.strides, strict=True))
                return shard, piece.dest.offset + at, piece.scale
        for indexed in shard.indexed:
            address = _indexed(indexed, element)
            if address is not None:
                return shard, address, indexed.scale
    return None


def _digits(piece: Piece, rest: int) -> list[int] | None:
    """Return the index in a piece of what lies `rest` behind its start in the full tensor; null where nothing does.

    Larger strides are taken first; each digit is as large as it can be, and one less where that leaves no way.
    """
    order = sorted(range(len(piece.shape)), key=lambda dim: -piece.source.strides[dim])
    digits = [0] * len(piece.shape)
    reach = [0] * (len(order) + 1)
    for place in range(len(order) - 1, -1, -1):
        dim = order[place]
        reach[place] = reach[place + 1] + (piece.shape[dim] - 1) * piece.source.strides[dim]

    def fill(place: int, left: int) -> bool:
        if not 0 <= left <= reach[place]:
            return False
        if place == len(order):
            return left == 0
        dim = order[place]
        stride = piece.source.strides[dim]
        most = min(piece.shape[dim] - 1, left // stride) if stride else 0
        for digit in range(most, max(-1, most - 2), -1):
            digits[dim] = digit
            if fill(place + 1, left - digit * stride):
                return True
        return False

    return digits if fill(0, rest) else None


def _indexed(piece: IndexedPiece, element: int) -> int | None:
    pairs = zip(unpacked(piece.source), unpacked(piece.dest), strict=True)
    return next((dest for source, dest in pairs if source == element), None)


def byte_of(fragment: Fragment, shard: RankShard, address: int, width: int) -> int:
    """Return where an element of a shard begins in the decoded record of its fragment, `width` bytes of which it has."""
    if fragment.strides is not None:
        steps = row_major(shard.shape)
        rest, at = address, 0
        for extent, step, stride in zip(shard.shape, steps, fragment.strides, strict=True):
            digit = rest // step if extent else 0
            rest -= digit * step
            at += digit * stride
        address = at
    return fragment.offset + address * width


def _element(
    tensor: LogicalTensor, fragment: Fragment, shard: RankShard, address: int, contents: Contents
) -> tuple[str, bytes]:
    dtype = fragment.dtype or tensor.dtype
    width = DTYPES[dtype].bits // 8
    data = bytearray(width)
    contents.read_into(fragment.record, byte_of(fragment, shard, address, width), memoryview(data))
    if fragment.record.big_endian:
        parts = 2 if DTYPES[dtype].kind == "complex" else 1
        half = width // parts
        data = bytearray(b"".join(data[n * half : (n + 1) * half][::-1] for n in range(parts)))
    return dtype, bytes(data)


def turned(data: bytes, stored: str, dtype: str, scale: tuple[int, int] = ONE) -> bytes:
    """Return one element in another type and divided by the factor of its piece: full = shard / factor."""
    if stored == dtype and scale == ONE:
        return data
    value = _number(data, stored)
    if scale != ONE:
        value = value * scale[1] / scale[0]
    return _encoded(value, dtype)


def _number(data: bytes, dtype: str) -> float:
    if dtype == "BF16":
        (value,) = struct.unpack("<f", b"\0\0" + data)
    else:
        (value,) = struct.unpack({"F16": "<e", "F32": "<f", "F64": "<d"}[dtype], data)
    return float(value)


def _encoded(value: float, dtype: str) -> bytes:
    """Return a number in a type, rounded to nearest even; what is too large becomes infinite."""
    infinite = float("inf") if value > 0 else float("-inf")
    match dtype:
        case "F64":
            return struct.pack("<d", value)
        case "F32" | "F16":
            code = "<f" if dtype == "F32" else "<e"
            try:
                return struct.pack(code, value)
            except OverflowError:
                return struct.pack(code, infinite)
        case "BF16":
            return _bfloat16(value, infinite)
    raise ValueError(f"no float: {dtype}")


def _bfloat16(value: float, infinite: float) -> bytes:
    if value != value:
        return b"\xc0\x7f"
    try:
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
    except OverflowError:
        (bits,) = struct.unpack("<I", struct.pack("<f", infinite))
    kept, rest = int(bits) >> 16, int(bits) & 0xFFFF
    kept += rest > 0x8000 or (rest == 0x8000 and kept & 1)
    return kept.to_bytes(2, "little")


def same(one: bytes, other: bytes, dtype: str) -> bool:
    """Tell whether two elements are the same: by their bytes, and all NaNs of a cast are one."""
    if one == other:
        return True
    if dtype not in ("F16", "BF16", "F32", "F64"):
        return False
    first, second = _number(one, dtype), _number(other, dtype)
    return first != first and second != second
