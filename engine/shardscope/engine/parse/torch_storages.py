"""Where the bytes of storages lie in a file of torch.save, for each of its containers.

The zip has a record `data/<key>` for each storage. The stream from before 1.6 (`torch/serialization.py`, `_legacy_save`) is
five pickles: magic number, protocol, system info, the object, the keys of the storages; then for each of these keys a count of
elements in 8 bytes and the elements themselves, up to the end of the file. Whatever machine wrote it, the numbers of a stream
are little-endian (`torch/csrc/serialization.cpp`, `THPStorage_writeFileRaw`); those of a zip are as its `byteorder` says.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.facts import ZipDirectory, ZipEntry
from shardscope.engine.model.pickled import Pickled, PickledStorage
from shardscope.engine.model.source import Reader
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.parse.pickled.tree import Tree
from shardscope.engine.parse.zip import DEFLATED, ENCRYPTED, STORED

LEGACY_PICKLES: Final = 5
LEGACY_OBJECT: Final = 3
"""Which of them is the object."""
_COUNT_BYTES: Final = 8
_OTHER_BITS: Final = {
    "complex32": 32,
    "complex128": 128,
    "qint8": 8,
    "quint8": 8,
    "qint32": 32,
    "bits16": 16,
    **dict.fromkeys(
        ("quint4x2", "quint2x4", "float4_e2m1fn_x2", "bits8", "bits1x8", "bits2x4", "bits4x2"), 8
    ),
    **{f"{kind}{bits}": 8 for kind in ("int", "uint") for bits in range(1, 8)},
}
"""Element types of torch that safetensors does not have. Of those below a byte storages count bytes."""


class Stretch(Struct, frozen=True, gc=False):
    """Where the bytes of one storage lie."""

    begin: int
    length: int
    """Bytes in the file."""
    size: int
    """Bytes of the storage."""
    deflated: bool = False
    crc: int | None = None


class Places(Struct, frozen=True):
    """The storages of one file, in the order of the pickle. Storages of one key share one stretch."""

    stretches: tuple[Stretch | None, ...]
    """Null where the bytes are nowhere that can be read."""
    missing: tuple[str, ...] = ()
    """Keys of storages that have no record, or none that can be read."""
    resized: tuple[tuple[str, int, int], ...] = ()
    """Keys of storages whose record has another size than the pickle says: key, bytes there, bytes expected."""
    unwritten: tuple[str, ...] = ()
    """Keys of records that were reserved and never written."""


def bits_of(dtype: str | None) -> int | None:
    """Return the bits of an element, 8 for the bytes of an untyped storage (null); null where the type is not known."""
    if dtype is None:
        return 8
    known = DTYPES.get(dtype)
    return known.bits if known is not None else _OTHER_BITS.get(dtype)


def storage_bytes(storage: PickledStorage) -> int | None:
    """Return how many bytes a storage has to have; null where its type is not known."""
    bits = bits_of(storage.dtype)
    return None if bits is None else -(-storage.elements * bits // 8)


def in_zip(
    directory: ZipDirectory, root: str, storages: Sequence[PickledStorage], *, crc_recorded: bool
) -> Places:
    """Return where each storage lies in an archive.

    `torch.serialization.skip_data` reserves records and leaves them unwritten: their checksum is then 0 beside those of others.
    """
    entries: Mapping[str, ZipEntry] = {entry.name: entry for entry in directory.entries}
    by_key: dict[str, Stretch | None] = {}
    stretches: list[Stretch | None] = []
    missing: dict[str, None] = {}
    resized: dict[str, tuple[str, int, int]] = {}
    unwritten: dict[str, None] = {}
    for storage in storages:
        if storage.key not in by_key:
            entry = entries.get(f"{root}/data/{storage.key}")
            by_key[storage.key] = _readable(entry, crc_recorded=crc_recorded)
            if entry is None or by_key[storage.key] is None:
                missing[storage.key] = None
            elif crc_recorded and not entry.crc and entry.size:
                unwritten[storage.key] = None
        place = by_key[storage.key]
        expected = storage_bytes(storage)
        if place is not None and expected is not None and place.size != expected:
            resized[storage.key] = (storage.key, place.size, expected)
            place = None
        stretches.append(place)
    return Places(tuple(stretches), tuple(missing), tuple(resized.values()), tuple(unwritten))


def _readable(entry: ZipEntry | None, *, crc_recorded: bool) -> Stretch | None:
    if entry is None or entry.data_offset is None or entry.flags & ENCRYPTED:
        return None
    if entry.method not in (STORED, DEFLATED):
        return None
    unwritten = bool(entry.size) and not entry.crc
    crc = entry.crc if crc_recorded and not unwritten else None
    return Stretch(entry.data_offset, entry.compressed, entry.size, entry.method == DEFLATED, crc)


def in_stream(reader: Reader, pickled: Pickled) -> Places:
    """Return where each storage lies behind the pickles of a legacy stream.

    Raises `Fault` `torch.stream_cut`, `torch.stream_keys` or `torch.stream_rest` where keys, counts and the end of the file do not
    agree.
    """
    keys = Tree(pickled, LEGACY_PICKLES - 1)
    by_key: dict[str, list[int]] = {}
    for number, storage in enumerate(pickled.storages):
        by_key.setdefault(storage.key, []).append(number)
    places: list[Stretch | None] = [None] * len(pickled.storages)
    listed = keys.items(keys.root)
    at = pickled.ends[LEGACY_PICKLES - 1]
    for item in listed:
        key = keys.text(item)
        numbers = by_key.pop(key, None) if key is not None else None
        if numbers is None:
            raise Fault("torch.stream_keys", listed=len(listed), used=len(pickled.storages))
        first = pickled.storages[numbers[0]]
        count = int.from_bytes(reader.pread(at, _COUNT_BYTES), "little", signed=True)
        size = storage_bytes(first)
        if size is None:
            raise Fault("torch.dtype_unknown", dtype=str(first.dtype))
        if count != first.elements or count < 0:
            raise Fault("torch.stream_count", key=first.key, found=count, expected=first.elements)
        at += _COUNT_BYTES
        if at + size > reader.size:
            raise Fault("torch.stream_cut", missing=at + size - reader.size)
        whole = Stretch(at, size, size)
        for number in numbers:
            places[number] = _viewed(pickled.storages[number], whole)
        at += size
    if by_key:
        raise Fault("torch.stream_keys", listed=len(listed), used=len(pickled.storages))
    if at != reader.size:
        raise Fault("torch.stream_rest", extra=reader.size - at)
    return Places(tuple(places))


def _viewed(storage: PickledStorage, whole: Stretch) -> Stretch | None:
    """Return the part of a storage that very old streams name as a storage of its own: offset and size count elements."""
    if storage.view is None:
        return whole
    bits = bits_of(storage.dtype) or 8
    _, offset, size = storage.view
    begin, length = offset * bits // 8, size * bits // 8
    if min(offset, size) < 0 or begin + length > whole.size:
        return None
    return Stretch(whole.begin + begin, length, length)
