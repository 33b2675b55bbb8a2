"""Where everything is in one file: safetensors and zip archives as stretches of bytes, broken headers included.

What `read_header` refuses because tensors do not tile the data is laid out here all the same: a gap or an overlap is what a
person wants to see. Nothing but headers and directories is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.facts import ZipDirectory, ZipEntry
from shardscope.engine.model.file_layout import ByteRange, RangeKind
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Reader
from shardscope.engine.parse import torch_archive
from shardscope.engine.parse.safetensors import read_columns
from shardscope.engine.parse.zip import SIZES_FOLLOW, descriptor_bytes, read_directory
from shardscope.engine.parse.zip_end import find_end

_LOCAL_BYTES: Final = 30
_LENGTH_BYTES: Final = 8

Named = Mapping[int, Sequence[str]]
"""By where a record begins in the file, the tensors in it."""


def safetensors_ranges(reader: Reader, limits: Limits) -> tuple[list[ByteRange], list[str]]:
    """Return the stretches of a safetensors file, and what is wrong with them. Raises `Fault` where there is no header."""
    data_begin, text_bytes, columns = read_columns(reader, limits)
    end_of_text = _LENGTH_BYTES + text_bytes
    ranges = [
        ByteRange(0, _LENGTH_BYTES, "header", note="8 bytes: the length of the header"),
        ByteRange(_LENGTH_BYTES, end_of_text, "header", note="JSON"),
    ]
    if end_of_text < data_begin:
        ranges.append(ByteRange(end_of_text, data_begin, "padding"))
    begins, ends = columns.begins, columns.ends
    words = [f"{dtype} [{', '.join(map(str, shape))}]" for dtype, shape in columns.kinds]
    at, overlaps, beyond = data_begin, 0, 0
    for place in sorted(range(len(begins)), key=lambda i: (begins[i], ends[i])):
        begin, end = data_begin + begins[place], data_begin + ends[place]
        note = words[columns.kind_of[place]]
        if end < begin:
            note, end = f"{note}, ends {begin - end:,} bytes before it begins", begin
        if begin > at:
            ranges.append(ByteRange(at, min(begin, reader.size), "gap"))
        elif begin < at:
            note += f", overlaps what is before it by {min(at, end) - begin:,} bytes"
            overlaps += 1
        if end > reader.size:
            note += f", {end - max(begin, reader.size):,} bytes of it are missing"
            beyond += 1
        shown = ByteRange(
            min(begin, reader.size), min(end, reader.size), "tensor", columns.names[place], note
        )
        ranges.append(shown)
        at = max(at, end)
    if at < reader.size:
        ranges.append(ByteRange(at, reader.size, "trailing"))
    said = [(overlaps, "tensors overlap others"), (beyond, "tensors reach beyond the end of the file")]
    return [each for each in ranges if each.end > each.begin or each.kind == "tensor"], [
        f"{count:,} {words}." for count, words in said if count
    ]


def zip_ranges(reader: Reader, limits: Limits, named: Named) -> tuple[list[ByteRange], str]:
    """Return the stretches of a zip, and whether it is a `torch archive` or another `zip`. Raises `Fault`."""
    directory = read_directory(reader, limits)
    end = find_end(reader, limits)
    root = _torch_root(reader, directory, limits)
    ranges: list[ByteRange] = []
    entries = sorted(directory.entries, key=lambda entry: entry.header_offset)
    bounds = [*(entry.header_offset for entry in entries), end.begin]
    for entry, bound in zip(entries, bounds[1:], strict=True):
        ranges += _member(reader, entry, bound, root, named)
    behind = end.begin + end.size
    comment = reader.size - end.comment_bytes
    ranges += [
        ByteRange(end.begin, behind, "directory", note=f"{len(entries):,} records"),
        ByteRange(behind, comment, "end"),
        ByteRange(comment, reader.size, "end", note="comment"),
    ]
    return list(_whole(ranges)), "zip" if root is None else "torch archive"


def _torch_root(reader: Reader, directory: ZipDirectory, limits: Limits) -> str | None:
    try:
        return torch_archive.describe(reader, directory, limits).root
    except Fault:
        return None


def _member(
    reader: Reader, entry: ZipEntry, bound: int, root: str | None, named: Named
) -> Iterator[ByteRange]:
    """Yield the header of a record, what fills it up, its bytes and what is between them and the next one."""
    begin, data = entry.header_offset, entry.data_offset
    if data is None:
        yield ByteRange(begin, bound, "unknown", entry.name)
        return
    name_bytes = len(entry.name.encode("utf-8", "surrogateescape"))
    header_end = min(begin + _LOCAL_BYTES + name_bytes, data)
    yield ByteRange(begin, header_end, "local header", entry.name)
    yield ByteRange(header_end, data, "padding", note="extra field")
    at = data + entry.compressed
    tensors = named.get(data, ())
    note = ", ".join(tensors[:2]) + (f" and {len(tensors) - 2:,} more" if len(tensors) > 2 else "")
    if entry.method:
        note = f"deflated from {entry.size:,} bytes" + (f": {note}" if note else "")
    yield ByteRange(data, at, _kind(entry.name, root), entry.name, note)
    if entry.flags & SIZES_FOLLOW:
        length = descriptor_bytes(reader, entry, at, bound - at)
        yield ByteRange(at, at + length, "local header", note="checksum and sizes of the record before it")
        at += length
    yield ByteRange(at, bound, "gap")


def _kind(name: str, root: str | None) -> RangeKind:
    if root is None:
        return "member"
    if name.startswith(f"{root}/data/"):
        return "storage"
    return "pickle" if name.endswith(".pkl") else "member"


def tensor_ranges(stretches: Sequence[ByteRange], size: int) -> list[ByteRange]:
    """Return tensors whose places are known from elsewhere, what is around them being unknown."""
    ordered = sorted(stretches, key=lambda each: (each.begin, each.end))
    return list(_whole(ordered, "unknown", size))


def _whole(
    ranges: Sequence[ByteRange], between: RangeKind = "gap", size: int | None = None
) -> Iterator[ByteRange]:
    """Yield stretches that hold anything, and what is between them."""
    at = 0
    for each in ranges:
        if each.begin > at:
            yield ByteRange(at, each.begin, between)
        if each.end > each.begin:
            yield each
        at = max(at, each.end)
    if size is not None and at < size:
        yield ByteRange(at, size, between)


def with_holes(ranges: Sequence[ByteRange], holes: Sequence[tuple[int, int]]) -> list[ByteRange]:
    """Return the stretches, each with how many of its bytes are holes. Both are ordered by their begin."""
    if not holes:
        return list(ranges)
    found: list[ByteRange] = []
    first = 0
    for each in ranges:
        while first < len(holes) and holes[first][1] <= each.begin:
            first += 1
        hole, at = 0, first
        while at < len(holes) and holes[at][0] < each.end:
            hole += max(0, min(each.end, holes[at][1]) - max(each.begin, holes[at][0]))
            at += 1
        found.append(ByteRange(each.begin, each.end, each.kind, each.name, each.note, hole) if hole else each)
    return found
