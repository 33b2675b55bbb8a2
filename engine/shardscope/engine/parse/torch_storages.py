"""Where the bytes of storages lie in a file of torch.save, for each of its containers.

The zip has a record `data/<key>` for each storage. The stream from before 1.6 (`torch/serialization.py`, `_legacy_save`) is
five pickles: magic number, protocol, system info, the object, the keys of the storages; then for each of these keys a count of
elements in 8 bytes and the elements themselves, up to the end of the file.
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

LEGACY_PICKLES: Final = 5
_COUNT_BYTES: Final = 8
_OTHER_BITS: Final = {
    "complex32": 32,
    "complex128": 128,
    "qint8": 8,
    "quint8": 8,
    "qint32": 32,
    "quint4x2": 4,
    "quint2x4": 2,
}
"""Element types of torch that safetensors does not have."""


class Stretch(Struct, frozen=True, gc=False):
    """Where the bytes of one storage lie."""

    begin: int
    length: int
    """Bytes in the file."""
    size: int
    """Bytes of the storage."""
    deflated: bool = False
    crc: int | None = None


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
) -> tuple[list[Stretch | None], list[str]]:
    """Return where each storage lies in an archive, and the keys of those that have no record there or none that can be read."""
    entries: Mapping[str, ZipEntry] = {entry.name: entry for entry in directory.entries}
    places: list[Stretch | None] = []
    missing: list[str] = []
    for storage in storages:
        entry = entries.get(f"{root}/data/{storage.key}")
        if entry is None or entry.data_offset is None or entry.method not in (0, 8) or entry.flags & 1:
            places.append(None)
            missing.append(storage.key)
            continue
        crc = entry.crc if crc_recorded else None
        places.append(Stretch(entry.data_offset, entry.compressed, entry.size, bool(entry.method), crc))
    return places, missing


def in_stream(reader: Reader, pickled: Pickled) -> list[Stretch | None]:
    """Return where each storage lies behind the pickles of a legacy stream.

    Raises `Fault` `torch.stream_cut` or `torch.stream_keys` where keys, counts and the end of the file do not agree.
    """
    keys_tree = Tree(pickled, LEGACY_PICKLES - 1)
    by_key = {storage.key: number for number, storage in enumerate(pickled.storages)}
    places: list[Stretch | None] = [None] * len(pickled.storages)
    at = pickled.ends[LEGACY_PICKLES - 1]
    listed = [keys_tree.value(item) for item in keys_tree.items(keys_tree.root)]
    for key in listed:
        number = by_key.get(key) if isinstance(key, str) else None
        if number is None or places[number] is not None:
            raise Fault("torch.stream_keys", listed=len(listed), used=len(by_key))
        count = int.from_bytes(reader.pread(at, _COUNT_BYTES), "little")
        size = storage_bytes(pickled.storages[number])
        if size is None or count != pickled.storages[number].elements:
            raise Fault(
                "torch.storage_size", key=str(key), size=count, expected=pickled.storages[number].elements
            )
        at += _COUNT_BYTES
        if at + size > reader.size:
            raise Fault("torch.stream_cut", missing=at + size - reader.size)
        places[number] = Stretch(at, size, size)
        at += size
    if len(listed) != len(by_key):
        raise Fault("torch.stream_keys", listed=len(listed), used=len(by_key))
    if at != reader.size:
        raise Fault("torch.stream_rest", extra=reader.size - at)
    return places
