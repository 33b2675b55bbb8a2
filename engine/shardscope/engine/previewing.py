"""What a file says, in lines that are safe to show: JSON and headers indented, small text, first bytes otherwise.

Nothing is interpreted beyond the safe plane: a pickle shows as bytes. Every line is neutralised and bounded.
"""

import threading
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.blocker import Fault, blocker, human_bytes
from shardscope.engine.model.facts import GgufArray, GgufHeader, GgufText, Nature, SafetensorsHeader
from shardscope.engine.model.file_layout import ByteRange, FileLayout, RangeKind
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import check
from shardscope.engine.model.source import Entry, Kind, Reader
from shardscope.engine.model.tensors import TensorSpec, TensorTable
from shardscope.engine.model.text import display_name, path_text
from shardscope.engine.parse import byte_ranges, gguf, json, safetensors, sniff
from shardscope.engine.parse.gguf_ranges import gguf_ranges
from shardscope.engine.source.read import OpenFile
from shardscope.engine.source.source import Source

LINES: Final = 200_000
"""How many lines a preview has at the most."""
WIDTH: Final = 2_000
"""How many characters of one line are kept; its middle is elided beyond that."""
HOLES: Final = 4_096
"""How many holes of a file are told."""
_HEAD: Final = 4_096
_ROW: Final = 16


class Preview(Struct, frozen=True):
    """A file as lines of text."""

    title: str
    kind: str
    """`json`, `safetensors header`, `text`, `bytes` or `nothing`."""
    lines: tuple[str, ...]
    note: str
    """How much of the file this is."""


def preview(inspection: Inspection, path: bytes, *, cancel: threading.Event | None = None) -> Preview:
    """Return what the file at `path` of the inventory says.

    Raises `Cancelled`. A file that cannot be read, or is no regular file, is a preview that says so.
    """
    entry = inspection.inventory.by_path[path]
    if entry.kind is not Kind.FILE:
        return Preview(entry.text, "nothing", (), f"a {entry.kind.value}, not a regular file")
    limits = inspection.descriptor.limits
    try:
        with (
            Source(inspection.path, limits=limits, hf_cache=inspection.hf_cache) as source,
            source.open(entry) as reader,
        ):
            return _preview(entry, reader, limits, cancel)
    except Fault as fault:
        item = blocker(fault.finding, path_text(entry.path))
        return Preview(entry.text, "nothing", (), f"{item.message} {item.remedy}")


def layout(inspection: Inspection, path: bytes, *, cancel: threading.Event | None = None) -> FileLayout:
    """Return what stands where in the file at `path` of the inventory: headers, tensors, what is between them, and holes.

    Tensors of containers that the safe plane does not look into are placed by the catalogue, where `inspection` has one. Raises
    `Cancelled`. A file that cannot be read, or has no such structure, is one stretch, and what it says is why.
    """
    entry = inspection.inventory.by_path[path]
    if entry.kind is not Kind.FILE:
        return FileLayout(
            entry.text, 0, 0, "unknown", (), says=(f"A {entry.kind.value}, not a regular file.",)
        )
    limits = inspection.descriptor.limits
    try:
        with (
            Source(inspection.path, limits=limits, hf_cache=inspection.hf_cache) as source,
            source.open(entry) as reader,
        ):
            container, ranges, says = _ranges(inspection, entry, reader, limits, cancel)
            holes, more = _holes(reader, cancel)
    except Fault as fault:
        item = blocker(fault.finding, path_text(entry.path))
        whole = (ByteRange(0, entry.size, "unknown"),) if entry.size else ()
        return FileLayout(
            entry.text, entry.size, entry.allocated, "unknown", whole, says=(item.message, item.remedy)
        )
    if more:
        says.append(f"Only the first {HOLES:,} holes are told.")
    return FileLayout(
        entry.text,
        entry.size,
        entry.allocated,
        container,
        tuple(byte_ranges.with_holes(ranges, holes)),
        tuple(holes),
        tuple(says),
    )


def _ranges(
    inspection: Inspection, entry: Entry, reader: Reader, limits: Limits, cancel: threading.Event | None
) -> tuple[str, list[ByteRange], list[str]]:
    """Return the container of a file, its stretches, and what is wrong with them."""
    nature = sniff.sniff(reader.pread(0, _HEAD), reader.size).nature
    says: list[str] = []
    try:
        if nature is Nature.SAFETENSORS or entry.name.casefold().endswith(".safetensors"):
            return "safetensors", *byte_ranges.safetensors_ranges(reader, limits)
        if nature is Nature.GGUF:
            return "gguf", gguf_ranges(gguf.read_header(reader, limits), reader.size), says
        if nature is Nature.ZIP:
            ranges, container = byte_ranges.zip_ranges(reader, limits, _by_record(inspection, entry, cancel))
            return container, ranges, says
    except Fault as fault:
        item = blocker(fault.finding, path_text(entry.path))
        says = [item.message, item.remedy]
    stretches = _known(inspection, entry, cancel)
    if stretches:
        return "tensors", byte_ranges.tensor_ranges(stretches, reader.size), []
    if says and entry.name.endswith(".distcp"):
        says = ["It holds one archive after another; where each begins is known once .metadata is decoded."]
    if not says and reader.size:
        says = [f"Its first bytes are those of {nature.value}: nothing in it is placed here."]
    kind: RangeKind = "pickle" if nature in (Nature.PICKLE, Nature.TORCH_LEGACY) else "unknown"
    whole = [ByteRange(0, reader.size, kind, note=nature.value)] if reader.size else []
    return "unknown", whole, says


def _by_record(inspection: Inspection, entry: Entry, cancel: threading.Event | None) -> dict[int, list[str]]:
    """Return the tensors of a file by the first byte of the record that holds them, where decoding has found them."""
    found: dict[int, list[str]] = {}
    tensors = () if inspection.catalogue is None else inspection.catalogue.tensors
    for number, tensor in enumerate(tensors):
        if number % 256 == 0:
            check(cancel)
        for each in (*tensor.fragments, *tensor.replicas):
            if each.record.file == entry.text:
                found.setdefault(each.record.begin, []).append(display_name(tensor.name, 160))
    return found


def _known(inspection: Inspection, entry: Entry, cancel: threading.Event | None) -> list[ByteRange]:
    """Return the records and tensors of a file as other readers have placed them."""
    found: dict[int, ByteRange] = {}
    tensors = () if inspection.catalogue is None else inspection.catalogue.tensors
    for number, tensor in enumerate(tensors):
        if number % 256 == 0:
            check(cancel)
        for each in (*tensor.fragments, *tensor.replicas):
            record = each.record
            if record.file == entry.text and record.begin not in found:
                note = f"{each.dtype or tensor.dtype} {list(each.shape)}"
                end = record.begin + record.length
                found[record.begin] = ByteRange(record.begin, end, "tensor", tensor.name, note)
    if inspection.catalogue is None:
        for spec in _rows_of(inspection.tensors, entry.text, cancel):
            note = f"{spec.dtype} {list(spec.shape)}"
            found[spec.begin] = ByteRange(spec.begin, spec.end, "tensor", spec.name, note)
    return list(found.values())


def _rows_of(table: TensorTable, file: str, cancel: threading.Event | None) -> Iterator[TensorSpec]:
    if file not in table.files:
        return
    own = table.files.index(file)
    for row, number in enumerate(table.column("file")):
        if row % 8_192 == 0:
            check(cancel)
        if number == own:
            yield table[row]


def _holes(reader: OpenFile, cancel: threading.Event | None) -> tuple[list[tuple[int, int]], bool]:
    """Return the stretches that were never stored, and whether there are more of them than are told."""
    holes: list[tuple[int, int]] = []
    at = 0
    while at < reader.size:
        check(cancel)
        if hole := reader.hole_at(at):
            if len(holes) == HOLES:
                return holes, True
            holes.append((at, min(reader.size, at + hole)))
            at += hole
        else:
            at += max(1, reader.data_at(at))
    return holes, False


def _preview(entry: Entry, reader: Reader, limits: Limits, cancel: threading.Event | None) -> Preview:
    head = reader.pread(0, _HEAD)
    nature = sniff.sniff(head, reader.size).nature
    name = entry.name.casefold()
    try:
        if nature is Nature.SAFETENSORS or name.endswith(".safetensors"):
            header = safetensors.read_header(reader, limits)
            lines = _bounded(_header_lines(header), cancel)
            return Preview(entry.text, "safetensors header", lines, _header_note(header))
        if nature is Nature.GGUF:
            found = gguf.read_header(reader, limits)
            note = f"{len(found.names):,} tensors, header of {human_bytes(found.data_begin)}, no tensor byte read"
            return Preview(entry.text, "gguf header", _bounded(_gguf_lines(found), cancel), note)
        if nature is Nature.JSON or name.endswith(".json"):
            document = json.read_json(reader, limits)
            lines = _bounded(_json_lines(document.value), cancel)
            return Preview(
                entry.text, "json", lines, f"{document.nodes:,} values, {human_bytes(document.bytes)}"
            )
    except Fault as fault:
        item = blocker(fault.finding, path_text(entry.path))
        return Preview(
            entry.text, "bytes", _hex(head), f"{item.message} First {human_bytes(len(head))} shown."
        )
    part = (
        "whole"
        if len(head) == reader.size
        else f"first {human_bytes(len(head))} of {human_bytes(reader.size)}"
    )
    if nature in {Nature.TEXT, Nature.HTML, Nature.LFS_POINTER}:
        text = head.decode("utf-8", "backslashreplace")
        return Preview(
            entry.text, "text", _bounded(iter(text.splitlines()), cancel), f"{nature.value}, {part}"
        )
    return Preview(entry.text, "bytes", _hex(head), f"{nature.value}, {part}")


def _bounded(lines: Iterator[str], cancel: threading.Event | None) -> tuple[str, ...]:
    shown: list[str] = []
    for line in lines:
        if len(shown) >= LINES:
            shown.append(f"… more than {LINES:,} lines; the rest is not shown")
            break
        if len(shown) % 1024 == 0:
            check(cancel)
        shown.append(display_name(line, WIDTH))
    return tuple(shown)


def _header_note(header: SafetensorsHeader) -> str:
    return f"{len(header.names):,} tensors, header of {human_bytes(header.header_bytes)}, no tensor byte read"


def _header_lines(header: SafetensorsHeader) -> Iterator[str]:
    if header.metadata:
        yield "__metadata__"
        for key, value in header.metadata.items():
            yield f"  {key}: {value}"
    rows = zip(header.names, header.dtypes, header.shapes, header.begins, header.ends, strict=True)
    for name, dtype, shape, begin, end in rows:
        yield f"{name}  {dtype} {list(shape)}  bytes {begin:,} .. {end:,}"


def _gguf_lines(header: GgufHeader) -> Iterator[str]:
    for key, value in header.metadata.items():
        match value:
            case GgufArray():
                yield f"{key}: {value.count:,} of {value.kind}"
            case GgufText():
                yield f"{key}: a text of {value.bytes:,} bytes"
            case _:
                yield f"{key}: {value}"
    rows = zip(header.names, header.dtypes, header.shapes, header.begins, header.ends, strict=True)
    for name, dtype, shape, begin, end in rows:
        yield f"{name}  {dtype} {list(shape)}  bytes {begin:,} .. {end:,}"


def _json_lines(value: Any) -> Iterator[str]:
    """Yield a JSON value indented by two, one member a line, iteratively: depth is bounded by the limits, not by us."""
    if not isinstance(value, dict | list):
        yield _scalar(value)
        return
    stack: list[tuple[Iterator[tuple[str, Any]], str, str]] = []

    def opened(item: dict[str, Any] | list[Any]) -> tuple[Iterator[tuple[str, Any]], str, str]:
        if isinstance(item, dict):
            return ((f"{_scalar(key)}: ", member) for key, member in item.items()), "{", "}"
        return (("", member) for member in item), "[", "]"

    members, start, end = opened(value)
    yield start
    stack.append((members, start, end))
    while stack:
        indent = "  " * len(stack)
        members, _, end = stack[-1]
        label, member = next(members, (None, None))
        if label is None:
            stack.pop()
            yield "  " * len(stack) + end
        elif isinstance(member, dict | list) and member:
            inner = opened(member)
            yield f"{indent}{label}{inner[1]}"
            stack.append(inner)
        else:
            yield f"{indent}{label}{_scalar(member)}"


def _scalar(value: Any) -> str:
    """Return a JSON scalar (or an empty container) as JSON text, whatever surrogates it holds."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, float | int) and not isinstance(value, bool):
        return str(value)
    return msgspec.json.encode(value).decode()


def _hex(head: bytes) -> tuple[str, ...]:
    """Return bytes as rows of offset, hexadecimal and the printable ASCII among them."""
    rows = []
    for offset in range(0, min(len(head), 1024), _ROW):
        part = head[offset : offset + _ROW]
        shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        rows.append(f"{offset:08x}  {part.hex(' '):<47}  {shown}")
    return tuple(rows)
