"""What is alike in two files of torch.save that hold tensors of one kind: everything but the elements and their checksums.

A distributed checkpoint has an item for each piece of each tensor, a zip of about 1,500 bytes around the elements, and a
large one has more than 100,000 of them. Items of one dtype and shape are equal byte for byte but for the elements, the
CRC-32 of these (behind them and in the directory), and `.data/serialization_id`, a hash of names and checksums. So one item
is read in full, and each further one is compared with it: what is equal to a checked archive is a checked archive.
"""

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

from msgspec import Struct

from shardscope.engine.model.facts import ZipDirectory, ZipEntry
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Reader
from shardscope.engine.parse.zip import STORED
from shardscope.engine.parse.zip_end import find_end

_RECORD_BYTES: Final = 46
_LENGTHS: Final = Layout("<3H")
_LENGTHS_AT: Final = 28
_CRC_AT: Final = 16
_CRC: Final = 4
_SIZES_FOLLOW: Final = 0x0008
_DESCRIPTOR: Final = b"PK\x07\x08"
_IDENTITY: Final = "/.data/serialization_id"
_LONGEST: Final = 64 << 10
"""Bytes around the elements beyond which a file is no small item."""


class Skeleton(Struct, frozen=True):
    """All of one archive but the elements of its one storage."""

    head: bytes
    """Up to the first byte of the elements."""
    elements: int
    """Bytes of elements."""
    length: int
    """Bytes of the archive."""
    tail_begin: int
    """Where the elements end."""
    layout: Layout
    """Cuts what follows the elements into stretches that are fixed and, between them, stretches that may differ."""
    fixed: tuple[bytes, ...]
    equal: tuple[tuple[int, int], ...]
    """Which of those that may differ have to be equal: both checksums of the elements, both of the identity."""
    crc: int
    """Which of them is the checksum of the elements."""

    def checksum(self, tail: bytes) -> int | None:
        """Return the CRC-32 of the elements of an archive of this skeleton by what follows them; null where it is another."""
        if len(tail) != self.layout.size:
            return None
        parts = self.layout.unpack(tail)
        if parts[::2] != self.fixed:
            return None
        differing = parts[1::2]
        for one, other in self.equal:
            if differing[one] != differing[other]:
                return None
        return int.from_bytes(differing[self.crc], "little")


class _Open(Struct):
    """A stretch that may differ, by its place in the archive."""

    begin: int
    length: int
    group: int
    """0: the checksum of the elements, 1: that of the identity, 2: the identity."""


def skeleton(reader: Reader, directory: ZipDirectory, elements: ZipEntry, limits: Limits) -> Skeleton | None:
    """Return the skeleton of a checked archive around one of its entries; null where it cannot serve to compare others with.

    That is so where a header before the elements has their checksum, where entries are compressed, and where the archive
    is long.
    """
    begin = elements.data_offset
    if begin is None or elements.method != STORED or not elements.flags & _SIZES_FOLLOW:
        return None
    end = begin + elements.size
    if begin > _LONGEST or reader.size - end > _LONGEST:
        return None
    tail = reader.pread(end, reader.size - end)
    spots = _spots(reader, directory, elements, limits)
    if spots is None or spots[0].begin < end:
        return None
    form, fixed, at = "<", [], end
    for spot in spots:
        if spot.begin < at:
            return None
        form += f"{spot.begin - at}s{spot.length}s"
        fixed.append(tail[at - end : spot.begin - end])
        at = spot.begin + spot.length
    form += f"{reader.size - at}s"
    fixed.append(tail[at - end :])
    first = {spot.group: number for number, spot in reversed(list(enumerate(spots)))}
    return Skeleton(
        head=reader.pread(0, begin),
        elements=elements.size,
        length=reader.size,
        tail_begin=end,
        layout=Layout(form),
        fixed=tuple(fixed),
        equal=tuple(
            (number, first[spot.group]) for number, spot in enumerate(spots) if first[spot.group] != number
        ),
        crc=first[0],
    )


def _spots(reader: Reader, directory: ZipDirectory, elements: ZipEntry, limits: Limits) -> list[_Open] | None:
    """Return what may differ, in the order of the archive."""
    records = _records(reader, directory.entries, limits)
    spots: list[_Open] = []
    for group, entry in enumerate((elements, _identity(directory, elements))):
        if entry is None:
            continue
        if entry.data_offset is None or not entry.flags & _SIZES_FOLLOW or entry.method != STORED:
            return None
        behind = entry.data_offset + entry.size
        found = reader.pread(behind, 2 * _CRC)
        crc = entry.crc.to_bytes(_CRC, "little")
        if found == _DESCRIPTOR + crc:
            behind += _CRC
        elif not found.startswith(crc):
            return None
        spots.append(_Open(behind, _CRC, group))
        spots.append(_Open(records[entry.name] + _CRC_AT, _CRC, group))
        if group:
            spots.append(_Open(entry.data_offset, entry.size, 2))
    return sorted(spots, key=lambda spot: spot.begin)


def _identity(directory: ZipDirectory, elements: ZipEntry) -> ZipEntry | None:
    """Return the entry of the identity where it stands behind the elements."""
    found = [entry for entry in directory.entries if entry.name.endswith(_IDENTITY)]
    return found[0] if found and found[0].header_offset > elements.header_offset else None


def _records(reader: Reader, entries: Sequence[ZipEntry], limits: Limits) -> dict[str, int]:
    """Return where the directory has the record of each entry."""
    end = find_end(reader, limits)
    data = reader.pread(end.begin, end.size)
    found: dict[str, int] = {}
    at = 0
    for entry in entries:
        found[entry.name] = end.begin + at
        at += _RECORD_BYTES + sum(_LENGTHS.unpack_from(data, at + _LENGTHS_AT))
    return found
