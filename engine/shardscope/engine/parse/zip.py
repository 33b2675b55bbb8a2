"""The central directory of a zip, read exactly: no entry's content, and no way for two readers to see two archives.

Format: PKWARE APPNOTE 6.3.10, sections 4.3.7 and 4.3.12. Python's own `zipfile` opens archives whose counts, sizes, names or
offsets lie; here each lie has a code. torch.save writes entries that are stored, with sizes of zero before the data
(they follow it in a descriptor) and an impossible date, both of which are fine.
"""

import re
from struct import Struct as Layout
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.facts import ZipDirectory, ZipEntry
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Reader
from shardscope.engine.model.text import UNSAFE
from shardscope.engine.parse.zip_end import End, find_end

STORED: Final = 0
DEFLATED: Final = 8

_RECORD: Final = Layout("<4s6H3I5H2I")
_LOCAL: Final = Layout("<4s5H3I2H")
_FIELD: Final = Layout("<HH")
_MAGIC: Final = b"PK\x01\x02"
_LOCAL_MAGIC: Final = b"PK\x03\x04"
ENCRYPTED: Final = 0x0001 | 0x0040 | 0x2000
"""Encrypted, strongly encrypted, local headers masked."""
SIZES_FOLLOW: Final = 0x0008
_UTF8: Final = 0x0800
_ZIP64: Final = 0x0001
_UNICODE_PATH: Final = 0x7075
_UNIX: Final = 3
_LINK: Final = 0xA
_DESCRIPTOR_BYTES: Final = 24
_DESCRIPTOR_MAGIC: Final = b"PK\x07\x08"
_LONG_NAME: Final = 1_024
_UNSAFE_PATH: Final = re.compile(rb"[\\\0]|^/|^[A-Za-z]:|(?:^|/)\.\.(?:/|$)")
_ODD_PATH: Final = re.compile(rb"^$|//|(?:^|/)\.(?:/|$)")


class _Record(Struct):
    """One record of the directory as it stands there."""

    raw_name: bytes
    entry: ZipEntry


def read_directory(reader: Reader, limits: Limits) -> ZipDirectory:
    """Read and check the directory of a zip, and the header before each entry to know where its bytes begin.

    Raises `Fault` with the `zip.*` code of what makes the archive ambiguous or impossible, or `limit.zip_*`. What is only
    odd, or stands in the way of single entries, is in `notes`.
    """
    end = find_end(reader, limits)
    notes = _Notes()
    records = _records(reader.pread(end.begin, end.size), end, reader.size, notes)
    entries = _place(reader, records, end.begin, notes)
    return ZipDirectory(
        entries=entries,
        zip64=end.zip64,
        comment_bytes=end.comment_bytes,
        notes=(*end.notes, *notes.findings()),
    )


class _Notes:
    """Counts of what is worth a word, in the order in which it was met."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.method = 0

    def add(self, code: str, count: int = 1) -> None:
        self.counts[code] = self.counts.get(code, 0) + count

    def findings(self) -> list[Finding]:
        findings = []
        for code, count in self.counts.items():
            match code:
                case "zip.method":
                    findings.append(Finding(code, {"count": count, "method": self.method}))
                case "zip.unclaimed":
                    findings.append(Finding(code, {"extra": count}))
                case _:
                    findings.append(Finding(code, {"count": count}))
        return findings


def _records(data: bytes, end: End, file_size: int, notes: _Notes) -> list[_Record]:
    records = []
    names: set[bytes] = set()
    at = 0
    for _ in range(end.entries):
        if at == len(data):
            raise Fault("zip.end_record_mismatch", declared=end.entries)
        record, at = _record(data, at, file_size, notes)
        if record.raw_name in names:
            raise Fault("zip.duplicate", entry=record.entry.name)
        names.add(record.raw_name)
        records.append(record)
    if at < len(data):
        if data.startswith(_MAGIC, at):
            raise Fault("zip.end_record_mismatch", declared=end.entries)
        raise Fault("zip.directory_bad", reason="other bytes follow its last record")
    return records


def _record(data: bytes, at: int, file_size: int, notes: _Notes) -> tuple[_Record, int]:
    if len(data) - at < _RECORD.size:
        raise Fault("zip.directory_bad", reason="its last record is cut off")
    (
        magic,
        made,
        _,
        flags,
        method,
        _,
        _,
        crc,
        stored,
        size,
        name_len,
        extra_len,
        comment_len,
        disk,
        _,
        attributes,
        offset,
    ) = _RECORD.unpack_from(data, at)
    if magic != _MAGIC:
        raise Fault("zip.directory_bad", reason=f"byte {at:,} of it begins no record")
    name_at = at + _RECORD.size
    extra_at = name_at + name_len
    after = extra_at + extra_len + comment_len
    if after > len(data):
        raise Fault("zip.directory_bad", reason="a name or an extra field runs beyond its end")
    raw_name = data[name_at:extra_at]
    extra = _extra_fields(data[extra_at : extra_at + extra_len]) if extra_len else {}
    wide = extra.get(_ZIP64)
    size, stored, offset, disk = _widened(wide, size, stored, offset, disk, notes)
    if disk:
        raise Fault("zip.multi_disk")
    name = raw_name.decode("utf-8", "surrogateescape")
    if _UNSAFE_PATH.search(raw_name):
        raise Fault("zip.path_unsafe", entry=name)
    entry = ZipEntry(name, method, flags, crc, stored, size, offset, None)
    _check_sizes(entry, file_size)
    if _is_odd_name(raw_name, name, flags) or (name.endswith("/") and size) or _UNICODE_PATH in extra:
        notes.add("zip.name_odd")
    if flags & ENCRYPTED:
        notes.add("zip.encrypted")
    if method == DEFLATED:
        notes.add("zip.compressed")
    elif method != STORED:
        notes.method = notes.method or method
        notes.add("zip.method")
    if made >> 8 == _UNIX and attributes >> 28 == _LINK:
        notes.add("zip.symlink")
    return _Record(raw_name, entry), after


def _extra_fields(data: bytes) -> dict[int, bytes]:
    """Return extra fields by their number; up to three stray bytes at the end are padding."""
    fields: dict[int, bytes] = {}
    at = 0
    while len(data) - at >= _FIELD.size:
        number, length = _FIELD.unpack_from(data, at)
        at += _FIELD.size
        if at + length > len(data):
            raise Fault("zip.directory_bad", reason="an extra field claims more bytes than there are")
        if number == _ZIP64 and number in fields:
            raise Fault("zip.zip64_bad", reason="an entry has its 64-bit sizes twice")
        fields[number] = data[at : at + length]
        at += length
    return fields


def _widened(
    wide: bytes | None, size: int, stored: int, offset: int, disk: int, notes: _Notes
) -> tuple[int, int, int, int]:
    """Return the figures of an entry, those that do not fit the record taken from its zip64 field, in the order it has."""
    figures = [size, stored, offset, disk]
    at = 0
    for i, (saturated, width) in enumerate(((0xFFFFFFFF, 8), (0xFFFFFFFF, 8), (0xFFFFFFFF, 8), (0xFFFF, 4))):
        if figures[i] == saturated:
            if wide is None:
                raise Fault("zip.zip64_bad", reason="an entry refers to 64-bit sizes that it does not have")
            if at + width > len(wide):
                raise Fault("zip.zip64_bad", reason="the 64-bit sizes of an entry are cut off")
            figures[i] = int.from_bytes(wide[at : at + width], "little")
            at += width
    if wide and not at:
        notes.add("zip.zip64_unneeded")
    size, stored, offset, disk = figures
    return size, stored, offset, disk


def _check_sizes(entry: ZipEntry, file_size: int) -> None:
    stored, size = entry.compressed, entry.size
    wrong = stored > file_size
    if entry.method == STORED:
        wrong |= stored != size
    elif entry.method == DEFLATED:  # at best 1,032 to 1; at worst stored blocks with five bytes of frame each
        wrong |= size > 1_032 * stored + 64 or stored > size + size // 1_000 + 64
    if wrong and not entry.flags & ENCRYPTED:
        raise Fault("zip.size_lie", entry=entry.name, size=size, stored=stored)


def _is_odd_name(raw: bytes, name: str, flags: int) -> bool:
    if len(raw) > _LONG_NAME or _ODD_PATH.search(raw.removesuffix(b"/")) or raw == b"/":
        return True
    if raw.isascii():
        return UNSAFE.search(name) is not None
    return (
        not flags & _UTF8 or UNSAFE.search(name) is not None
    )  # surrogates stand for bytes that are not UTF-8


def _place(reader: Reader, records: list[_Record], limit: int, notes: _Notes) -> tuple[ZipEntry, ...]:
    """Return the entries in the order of the directory, each with the place of its bytes, which must not be shared."""
    order = sorted(range(len(records)), key=lambda i: records[i].entry.header_offset)
    _check_start(reader, records, order, limit)
    entries = [record.entry for record in records]
    neighbours = [(entries[i].header_offset, entries[i].name) for i in order[1:]]
    spans = list(
        zip(order, [*neighbours, (limit, "the directory")], strict=False)
    )  # none where there are no entries
    for i, (bound, other) in spans:  # all of the directory first, without a read
        if entries[i].header_offset + _header_bytes(records[i]) + entries[i].compressed > bound:
            raise Fault("zip.overlap", entry=entries[i].name, other=other)
    for i, (bound, other) in spans:
        entry, data_offset = entries[i], _data_offset(reader, records[i])
        if data_offset > limit:
            raise Fault("zip.entry_range", entry=entry.name)
        unclaimed = bound - data_offset - entry.compressed
        if unclaimed < 0:
            raise Fault("zip.overlap", entry=entry.name, other=other)
        if entry.flags & ENCRYPTED:  # what follows them may be masked too
            unclaimed -= min(unclaimed, _DESCRIPTOR_BYTES)
        elif entry.flags & SIZES_FOLLOW:
            unclaimed -= descriptor_bytes(reader, entry, data_offset + entry.compressed, unclaimed)
        if unclaimed:
            notes.add("zip.unclaimed", unclaimed)
        entries[i] = replace(entry, data_offset=data_offset)
    return tuple(entries)


def descriptor_bytes(reader: Reader, entry: ZipEntry, at: int, room: int) -> int:
    """Return the length of the checksum and sizes that follow an entry's bytes, which say once more where those end.

    The length of an entry's own extra field stands nowhere else: without this a changed byte in it would move the bytes.
    """
    found = reader.pread(at, min(room, _DESCRIPTOR_BYTES))
    for width in (4, 8):
        expected = b"".join(
            figure.to_bytes(size, "little")
            for figure, size in ((entry.crc, 4), (entry.compressed, width), (entry.size, width))
            if figure < 1 << 8 * size
        )
        for start in (_DESCRIPTOR_MAGIC, b""):
            if len(expected) == 4 + 2 * width and found.startswith(start + expected):
                return len(start) + len(expected)
    raise Fault("zip.local_mismatch", entry=entry.name, reason="its sizes do not follow its bytes")


def _check_start(reader: Reader, records: list[_Record], order: list[int], limit: int) -> None:
    """Check that every header lies before the directory and that the first one begins the file."""
    for i in order:
        if records[i].entry.header_offset + _header_bytes(records[i]) > limit:
            raise Fault("zip.entry_range", entry=records[i].entry.name)
    first = records[order[0]].entry if order else None
    if first is not None and first.header_offset:
        if reader.pread(first.header_offset, 4) == _LOCAL_MAGIC:
            raise Fault("zip.prefix", extra=first.header_offset)
        raise Fault("zip.local_mismatch", entry=first.name, reason="no header stands there")


def _header_bytes(record: _Record) -> int:
    """The least that an entry's own header takes: its extra field is known only once it is read."""
    return _LOCAL.size + len(record.raw_name)


def _data_offset(reader: Reader, record: _Record) -> int:
    """Return where an entry's bytes begin, having compared its own header with the directory."""
    entry = record.entry
    header = reader.pread(entry.header_offset, _header_bytes(record))
    if not header.startswith(_LOCAL_MAGIC):
        raise Fault("zip.local_mismatch", entry=entry.name, reason="no header stands there")
    _, _, flags, method, _, _, crc, stored, size, name_len, extra_len = _LOCAL.unpack_from(header)
    if flags != entry.flags:
        raise Fault("zip.local_mismatch", entry=entry.name, reason="the flags differ")
    if method != entry.method:
        raise Fault("zip.local_mismatch", entry=entry.name, reason="the compression method differs")
    if name_len != len(record.raw_name) or header[_LOCAL.size :] != record.raw_name:
        raise Fault("zip.local_mismatch", entry=entry.name, reason="the name differs")
    if not flags & (SIZES_FOLLOW | ENCRYPTED):
        for local, central in ((crc, entry.crc), (stored, entry.compressed), (size, entry.size)):
            if local not in (central, 0xFFFFFFFF):
                raise Fault("zip.local_mismatch", entry=entry.name, reason="the sizes or the checksum differ")
    return entry.header_offset + _header_bytes(record) + int(extra_len)
