"""Where a zip keeps its directory: the end record, its zip64 companions, and every way for them to disagree.

Format: PKWARE APPNOTE 6.3.10, sections 4.3.14 to 4.3.16. torch.save always writes the zip64 records.
"""

from struct import Struct as Layout
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Reader

_END: Final = Layout("<4s4H2IH")
_LOCATOR: Final = Layout("<4sIQI")
_END64: Final = Layout("<4sQ2H2I4Q")
_END_MAGIC: Final = b"PK\x05\x06"
_LOCATOR_MAGIC: Final = b"PK\x06\x07"
_END64_MAGIC: Final = b"PK\x06\x06"
_RECORD_MAGIC: Final = b"PK\x01\x02"
_RECORD_BYTES: Final = 46
_REACH: Final = _END.size + 0xFFFF
"""The end record is followed by nothing but a comment of at most 65,535 bytes."""


class End(Struct, frozen=True):
    """What the end records say once they agree."""

    entries: int
    begin: int
    """Where the directory begins in the file."""
    size: int
    zip64: bool
    comment_bytes: int
    notes: tuple[Finding, ...]


class _Claims(Struct):
    """The figures of an end record; the zip64 record has the same with 64 bits."""

    disk: int
    directory_disk: int
    entries_here: int
    entries: int
    size: int
    begin: int


_SATURATED: Final = _Claims(0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
_FIELDS: Final = _Claims.__struct_fields__


def find_end(reader: Reader, limits: Limits) -> End:
    """Find the directory of a zip.

    Raises `Fault` `zip.no_end_record`, `zip.multiple_end_records`, `zip.multi_disk`, `zip.zip64_bad`, `zip.prefix`, `zip.directory_bad`,
    `zip.end_record_mismatch`, `limit.zip_directory_bytes` or `limit.zip_entries`.
    """
    tail_begin = max(0, reader.size - _REACH)
    tail = reader.pread(tail_begin, reader.size - tail_begin)
    candidates = _candidates(tail)
    at = _choose(tail, candidates)
    position = tail_begin + at
    _, *figures, comment_bytes = _END.unpack_from(tail, at)
    claims = _Claims(*figures)
    before, zip64 = position, False
    locator = reader.pread(position - _LOCATOR.size, _LOCATOR.size) if position >= _LOCATOR.size else b""
    if locator.startswith(_LOCATOR_MAGIC):
        zip64 = True
        claims, before = _zip64(reader, claims, locator, position - _LOCATOR.size)
    elif 0xFFFFFFFF in (claims.size, claims.begin):
        raise Fault("zip.zip64_bad", reason="the end record refers to them and they are missing")
    if claims.disk or claims.directory_disk:
        raise Fault("zip.multi_disk")
    if claims.entries_here != claims.entries:
        raise Fault("zip.end_record_mismatch", declared=claims.entries)
    rivals = sum(claims.begin + claims.size <= tail_begin + other < position for other in candidates)
    if rivals:
        raise Fault("zip.multiple_end_records", count=rivals + 1)
    _check_place(reader, claims, before)
    if claims.size > limits.zip_directory_bytes:
        raise Fault("limit.zip_directory_bytes", limit=limits.zip_directory_bytes, found=claims.size)
    if claims.entries * _RECORD_BYTES > claims.size:
        raise Fault("zip.end_record_mismatch", declared=claims.entries)
    if claims.entries > limits.zip_entries:
        raise Fault("limit.zip_entries", limit=limits.zip_entries, found=claims.entries)
    notes = []
    if comment_bytes:
        notes.append(Finding("zip.comment", {"length": comment_bytes}))
    if trailing := len(tail) - at - _END.size - comment_bytes:
        notes.append(Finding("zip.trailing", {"extra": trailing}))
    return End(claims.entries, claims.begin, claims.size, zip64, comment_bytes, tuple(notes))


def _candidates(tail: bytes) -> list[int]:
    """Every place in `tail` where an end record could begin."""
    found = []
    at = tail.find(_END_MAGIC)
    while 0 <= at <= len(tail) - _END.size:
        found.append(at)
        at = tail.find(_END_MAGIC, at + 1)
    return found


def _choose(tail: bytes, candidates: list[int]) -> int:
    """Return the one record whose comment ends with the file; failing that, the last one that ends before it."""

    def end(at: int) -> int:
        return at + _END.size + int.from_bytes(tail[at + 20 : at + 22], "little")

    exact = [at for at in candidates if end(at) == len(tail)]
    if not exact:
        early = [at for at in candidates if end(at) < len(tail)]
        if not early:
            raise Fault("zip.no_end_record", looked=len(tail))
        return early[-1]
    rivals = [at for at in candidates if at > exact[0]]  # within its comment
    if rivals:
        raise Fault("zip.multiple_end_records", count=len(rivals) + 1)
    return exact[0]


def _zip64(reader: Reader, claims: _Claims, locator: bytes, locator_at: int) -> tuple[_Claims, int]:
    """Return the figures of the zip64 end record and where it begins, having compared it with the end record."""
    _, disk, at, disks = _LOCATOR.unpack(locator)
    if disk or disks > 1:
        raise Fault("zip.multi_disk")
    record = reader.pread(at, _END64.size) if at <= locator_at - _END64.size else b""
    if not record.startswith(_END64_MAGIC):
        _explain_shift(reader, at, locator_at - _END64.size)
        raise Fault("zip.zip64_bad", reason="the locator points to no zip64 end record")
    _, size, _, _, *figures = _END64.unpack(record)
    if at + 12 + size != locator_at:
        raise Fault("zip.zip64_bad", reason="the zip64 end record does not end where the locator begins")
    wide = _Claims(*figures)
    for name in _FIELDS:
        narrow = getattr(claims, name)
        if narrow not in (getattr(_SATURATED, name), getattr(wide, name)):
            raise Fault("zip.zip64_bad", reason="the two end records disagree")
    return wide, at


def _explain_shift(reader: Reader, claimed: int, actual: int) -> None:
    """Say so where the records are all in place, but a constant distance behind where they say they are."""
    record = reader.pread(actual, _END64.size) if actual > claimed else b""
    if record.startswith(_END64_MAGIC):
        claims = _Claims(*_END64.unpack(record)[4:])
        if claims.begin + claims.size == claimed:
            raise Fault("zip.prefix", extra=actual - claimed)


def _check_place(reader: Reader, claims: _Claims, before: int) -> None:
    """Check that the directory ends where the end records begin."""
    end = claims.begin + claims.size
    if end > before:
        raise Fault("zip.directory_bad", reason="it reaches beyond the end records")
    if end < before:
        shift = before - end
        here = reader.pread(claims.begin, 4)
        if here != _RECORD_MAGIC and reader.pread(claims.begin + shift, 4) == _RECORD_MAGIC:
            raise Fault("zip.prefix", extra=shift)
        raise Fault("zip.directory_bad", reason=f"{shift:,} bytes lie between it and the end records")
