"""The header of a GGUF file: magic, version, two counts, metadata, and what each tensor is and where it lies.

Format: `docs/gguf.md` of ggml; where that is silent, `src/gguf.cpp`. Version 1 had lengths and counts of four bytes, 2 and 3 have
eight. Version 3 allows big-endian files: the magic stays, and the version read the wrong way round has its low half empty.
"""

import struct
from collections import Counter
from typing import Final, Literal

from msgspec import Struct

from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.facts import GgufHead, GgufHeader, GgufValue
from shardscope.engine.model.ggml import GGML_TYPES
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Reader
from shardscope.engine.parse.gguf_values import LONGEST_KEY, Cursor
from shardscope.engine.parse.names import note_names

MAGIC: Final = b"GGUF"
ALIGNMENT: Final = 32
"""Where the metadata does not name another one."""
RANK: Final = 4
LONGEST_NAME: Final = 63
"""Bytes of a name that ggml has room for."""
_LARGEST_ALIGNMENT: Final = 1 << 20
_HEAD: Final = 24
_TENSOR: Final = 24
"""Bytes that the description of a tensor takes at least: name length, dimensions, type, offset."""
_PAIR: Final = 13
"""Bytes that a key with its value takes at least: key length, type, one byte."""


def read_head(reader: Reader) -> GgufHead:
    """Return the head; nothing beyond its 24 bytes is read.

    Raises `Fault` `gguf.magic`, `gguf.truncated`, `gguf.version` or `gguf.counts`.
    """
    data = reader.pread(0, _HEAD)
    if data[:4] != MAGIC:
        raise Fault("gguf.magic")
    if len(data) < 8:
        raise Fault("gguf.truncated", size=reader.size)
    order: Literal["<", ">"] = ">" if is_big_endian(data) else "<"
    (version,) = struct.unpack_from(f"{order}I", data, 4)
    if not 1 <= version <= 3:
        raise Fault("gguf.version", version=version)
    wide = version > 1
    head_bytes = _HEAD if wide else 16
    if len(data) < head_bytes:
        raise Fault("gguf.truncated", size=reader.size)
    tensors, pairs = struct.unpack_from(f"{order}{'QQ' if wide else 'II'}", data, 8)
    if head_bytes + tensors * _TENSOR + pairs * _PAIR > reader.size:
        raise Fault("gguf.counts", tensors=tensors, pairs=pairs, size=reader.size)
    notes = (Finding("gguf.big_endian"),) if order == ">" else ()
    return GgufHead(version, order == ">", tensors, pairs, notes)


def is_big_endian(head: bytes) -> bool:
    """Tell whether a file is written for big-endian machines, by its first eight bytes."""
    (version,) = struct.unpack_from("<I", head, 4) if len(head) >= 8 else (1,)
    return head[:4] == MAGIC and version != 0 and not version & 0xFFFF


def read_header(reader: Reader, limits: Limits) -> GgufHeader:
    """Return the head, the metadata and the description of every tensor; not a byte of the data is read.

    Raises `Fault`: those of `read_head` and of `gguf_values.Cursor`, `gguf.key_twice`, `gguf.alignment`, `gguf.name_twice`,
    `gguf.shape`, `gguf.block`, `gguf.misaligned`, `gguf.overlap`, `limit.tensors`. Types that are not known, data that is cut
    off, gaps and names that no loader takes are notes: the listing is sound.
    """
    head = read_head(reader)
    if head.tensors > limits.tensors:
        raise Fault("limit.tensors", limit=limits.tensors, found=head.tensors)
    wide = head.version > 1
    cursor = Cursor(reader, _HEAD if wide else 16, limits, big_endian=head.big_endian, wide=wide)
    metadata = _metadata(cursor, head.pairs)
    alignment = _alignment(metadata)
    rows = [_row(cursor) for _ in range(head.tensors)]
    data_begin = -(-cursor.at // alignment) * alignment
    notes = [*head.notes, *_texts(cursor, [row.name for row in rows])]
    begins, ends = _places(rows, data_begin, alignment, reader.size, notes)
    return GgufHeader(
        head=head,
        header_end=cursor.at,
        alignment=alignment,
        data_begin=data_begin,
        metadata=metadata,
        names=[row.name for row in rows],
        dtypes=[row.dtype for row in rows],
        shapes=[row.shape for row in rows],
        begins=begins,
        ends=ends,
        notes=tuple(notes),
    )


class _Row(Struct, frozen=True, gc=False):
    """The description of one tensor as it stands in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size: int | None
    """Null where the type is not known."""


def _metadata(cursor: Cursor, pairs: int) -> dict[str, GgufValue]:
    metadata: dict[str, GgufValue] = {}
    for _ in range(pairs):
        key = cursor.text(LONGEST_KEY, "a key")
        if key in metadata:
            raise Fault("gguf.key_twice", key=key)
        metadata[key] = cursor.value()
    return metadata


def _alignment(metadata: dict[str, GgufValue]) -> int:
    value = metadata.get("general.alignment", ALIGNMENT)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if (
        not isinstance(value, int)
        or not whole
        or value <= 0
        or value & (value - 1)
        or value > _LARGEST_ALIGNMENT
    ):
        found = f"{value:,}" if isinstance(value, int) and whole else "no whole number"
        raise Fault("gguf.alignment", found=found)
    return value


def _row(cursor: Cursor) -> _Row:
    name = cursor.text(LONGEST_KEY, "the name of a tensor")
    rank = cursor.number("I", 4)
    if rank > RANK:
        raise Fault("gguf.shape", tensor=name, reason=f"it has {rank:,} dimensions, and {RANK} are possible")
    shape = tuple(cursor.length() for _ in range(rank))[::-1]
    number = cursor.number("I", 4)
    offset = cursor.number("Q", 8)
    elements = 1
    for extent in shape:
        elements *= extent
        if extent >> 63 or elements >> 63:
            raise Fault("gguf.shape", tensor=name, reason="its elements do not fit in 63 bits")
    kind = GGML_TYPES.get(number)
    if kind is None:
        return _Row(name, f"ggml {number}", shape, offset, None)
    fastest = shape[-1] if shape else 1
    if fastest % kind.block:
        raise Fault("gguf.block", tensor=name, dtype=kind.name, block=kind.block, found=fastest)
    return _Row(name, kind.name, shape, offset, elements // kind.block * kind.bytes)


def _texts(cursor: Cursor, names: list[str]) -> list[Finding]:
    """Return what is to say about texts and names. Raises `Fault` `gguf.name_twice`."""
    notes = note_names(names)
    if len(set(names)) < len(names):
        counts = Counter(names)
        raise Fault("gguf.name_twice", tensor=next(name for name in names if counts[name] > 1))
    long = [name for name in names if len(name.encode()) > LONGEST_NAME]
    if long:
        notes.append(Finding("gguf.name_long", {"count": len(long), "bound": LONGEST_NAME}))
    if cursor.lossy:
        notes.append(Finding("gguf.not_utf8", {"count": cursor.lossy}))
    return notes


def _places(
    rows: list[_Row], data_begin: int, alignment: int, size: int, notes: list[Finding]
) -> tuple[list[int], list[int]]:
    """Return where each tensor begins and ends, in the order of the file.

    Tensors follow one another, each padded to the alignment; llama.cpp refuses any other place. A tensor of an unknown type is taken
    to reach to the next one. Adds to `notes`. Raises `Fault` `gguf.misaligned` or `gguf.overlap`.
    """
    order = sorted(range(len(rows)), key=lambda row: (rows[row].offset, rows[row].size or 0))
    ends = [0] * len(rows)
    reached, before, gaps, unknown = 0, "", 0, 0
    for place, number in enumerate(order):
        row = rows[number]
        if row.offset % alignment:
            raise Fault("gguf.misaligned", tensor=row.name, offset=row.offset, alignment=alignment)
        if row.offset < reached:
            raise Fault("gguf.overlap", tensor=row.name, other=before, early=reached - row.offset)
        gaps += row.offset - -(-reached // alignment) * alignment
        length = row.size
        if length is None:
            unknown += 1
            following = order[place + 1] if place + 1 < len(order) else None
            until = max(row.offset, size - data_begin) if following is None else rows[following].offset
            length = until - row.offset
        reached, before = row.offset + length, row.name
        ends[number] = data_begin + reached
    if reached >> 63:
        raise Fault("gguf.shape", tensor=before, reason="it ends beyond 63 bits")
    if unknown:
        first = next(row.dtype for row in rows if row.size is None)
        notes.append(Finding("gguf.type_unknown", {"count": unknown, "dtype": first}))
    if gaps:
        notes.append(Finding("gguf.gap", {"extra": gaps}))
    notes += _end_notes(data_begin + reached, size, alignment, bool(rows))
    return [data_begin + row.offset for row in rows], ends


def _end_notes(end: int, size: int, alignment: int, tensors: bool) -> list[Finding]:
    if tensors and end > size:
        return [Finding("gguf.data_cut_off", {"missing": end - size, "expected": end, "found": size})]
    padded = -(-end // alignment) * alignment
    return [Finding("gguf.overlong", {"extra": size - padded})] if size > padded else []
