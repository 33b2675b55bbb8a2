"""The members of a tar, by their headers: no content is read, and nothing is extracted.

Format: POSIX.1-1988 ustar and POSIX.1-2001 pax, with the GNU extensions for long names and large numbers. A header of 512 bytes
precedes each member, whose bytes are padded to a multiple of 512.
"""

import re
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.source import Reader
from shardscope.engine.model.text import path_text

_BLOCK: Final = 512
_PAX: Final = (b"x", b"g")
_LONG_NAME: Final = b"L"
_LONG_LINK: Final = b"K"
_FILE: Final = (b"0", b"\0", b"7")
_SPARSE: Final = b"S"
_OCTAL: Final = re.compile(rb"[0-7]{1,12}")
_PAX_RECORD: Final = re.compile(rb"(\d{1,7}) (path|size)=")
_LONGEST: Final = 1 << 16
"""Bytes of an extended header beyond which it is no name and no size."""


class Member(Struct, frozen=True):
    """One member."""

    name: str
    """Exact; may hold surrogates: neutralise before showing."""
    begin: int
    """Where its bytes begin."""
    size: int
    file: bool
    """A regular file whose bytes are all there; false for folders, links, devices and sparse files."""


def read_members(reader: Reader, most: int) -> list[Member]:
    """Return the members of a tar, up to its end or `most` of them.

    Raises `Fault` `tar.header` where a header does not hold together, `tar.truncated` where a member is cut off and
    `limit.zip_entries` where there are more.
    """
    found: list[Member] = []
    at = 0
    name: str | None = None
    wide: int | None = None
    while at + _BLOCK <= reader.size:
        header = reader.pread(at, _BLOCK)
        if not header.strip(b"\0"):
            break
        kind = header[156:157]
        size = _checked_size(header, at)
        begin = at + _BLOCK
        if kind in (*_PAX, _LONG_NAME, _LONG_LINK):
            if size > _LONGEST:
                raise Fault("tar.header", begin=at, reason="an extended header is too long for a name")
            data = reader.pread(begin, size)
            if kind == _LONG_NAME:
                name = path_text(data.partition(b"\0")[0])
            elif kind == b"x":
                name, wide = _pax(data, name, wide)
        else:
            size = size if wide is None else wide
            if begin + size > reader.size:
                raise Fault("tar.truncated", missing=begin + size - reader.size)
            if len(found) == most:
                raise Fault("limit.zip_entries", limit=most, found=most + 1)
            sparse = kind == _SPARSE
            found.append(Member(name or _name(header), begin, size, kind in _FILE and not sparse))
            name = wide = None
        at = begin + -(-size // _BLOCK) * _BLOCK
    return found


def _checked_size(header: bytes, at: int) -> int:
    """Return the size that a header declares, its checksum compared first."""
    recorded = _number(header[148:156])
    if recorded != sum(header[:148]) + 8 * 0x20 + sum(header[156:]):
        raise Fault("tar.header", begin=at, reason="its checksum does not match")
    size = _number(header[124:136])
    if size is None:
        raise Fault("tar.header", begin=at, reason="its size is no number")
    return size


def _number(field: bytes) -> int | None:
    """Return an octal number, or one that GNU writes in binary where octal digits do not suffice."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big") if field[1:4] == b"\0\0\0" else None
    digits = field.strip(b"\0 ")
    return int(digits, 8) if _OCTAL.fullmatch(digits) else None


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return path_text(prefix + b"/" + name if prefix else name)


def _pax(data: bytes, name: str | None, wide: int | None) -> tuple[str | None, int | None]:
    """Return the path and the size that records of an extended header give: `length key=value` and a newline, each."""
    at = 0
    while at < len(data):
        length = data[at:].partition(b" ")[0]
        if not length.isdigit() or len(length) > 7 or not 0 < int(length) <= len(data) - at:
            break
        record = data[at : at + int(length)]
        match = _PAX_RECORD.match(record)
        value = record[match.end() : -1] if match else b""
        if match and match[2] == b"path":
            name = path_text(value)
        elif match and value.isdigit() and len(value) < 20:
            wide = int(value)
        at += int(length)
    return name, wide
