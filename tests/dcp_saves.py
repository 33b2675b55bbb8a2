"""Distributed saves of any size, written as torch writes them and without it: items around zeros, and the metadata over them."""

import io
import pickle
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from struct import pack

from tests.parse import standins
from tests.parse.standins import made

ALIGNED = 64
_STORAGES = {
    dtype: standins.Named("torch", name)
    for dtype, name in (
        ("float32", "FloatStorage"),
        ("bfloat16", "BFloat16Storage"),
        ("int64", "LongStorage"),
    )
}
WIDTHS = {"float32": 4, "bfloat16": 2, "int64": 8}


class _Stored:
    """A storage, which pickles as a persistent id."""

    def __init__(self, dtype: str, elements: int) -> None:
        self.ident = ("storage", _STORAGES[dtype], "0", "cpu", elements)


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: object) -> object:
        return obj.ident if isinstance(obj, _Stored) else None


def _rebuild_tensor_v2(*arguments: object) -> object:
    return arguments


_rebuild_tensor_v2.__module__ = "torch._utils"


class _Tensor:
    def __init__(self, dtype: str, shape: Sequence[int], strides: Sequence[int], elements: int) -> None:
        self.arguments: tuple[object, ...] = (
            _Stored(dtype, elements),
            0,
            tuple(shape),
            tuple(strides),
            False,
            {},
        )

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _rebuild_tensor_v2, self.arguments


def tensor_pickle(dtype: str, shape: Sequence[int], strides: Sequence[int] | None = None) -> bytes:
    """Return `data.pkl` of a file of torch.save that holds one tensor."""
    elements = 1
    row = []
    for extent in reversed(shape):
        row.append(elements)
        elements *= extent
    standins.EVERYTHING["torch._utils"] = {"_rebuild_tensor_v2": _rebuild_tensor_v2}
    standins.EVERYTHING["torch"] |= {storage.name: storage for storage in _STORAGES.values()}
    out = io.BytesIO()
    with standins.in_reach():
        _Pickler(out, 2).dump(_Tensor(dtype, shape, strides or row[::-1], elements))
    return out.getvalue()


class Item:
    """A file of torch.save by the layout of torch 2.13, without the elements: what stands before them, and behind."""

    def __init__(
        self, pickled: bytes, size: int, crc: int | None = None, *, identity: str = "1" * 40
    ) -> None:
        self.size = size
        crc = zlib.crc32(bytes(size)) if crc is None else crc
        out = bytearray()
        directory = bytearray()
        small = {
            "data.pkl": pickled,
            ".format_version": b"1",
            ".storage_alignment": b"64",
            "byteorder": b"little",
        }
        behind = {"version": b"3\n", ".data/serialization_id": identity.encode()}
        shift = 0

        def record(name: str, length: int, checksum: int) -> None:
            raw = f"archive/{name}".encode()
            at = len(out) + shift
            padding = -(at + 30 + len(raw) + 4) % ALIGNED
            out.extend(pack("<4s5H3I2H", b"PK\x03\x04", 0, 0x0808, 0, 0, 0, 0, 0, 0, len(raw), 4 + padding))
            out.extend(raw + b"FB" + pack("<H", padding) + b"Z" * padding)
            directory.extend(
                pack(
                    "<4s6H3I5H2I",
                    b"PK\x01\x02", 0, 0, 0x0808, 0, 0, 0, checksum, length, length, len(raw), 0, 0, 0, 0, 0, at,
                )
            )  # fmt: skip
            directory.extend(raw)

        def descriptor(length: int, checksum: int) -> None:
            out.extend(pack("<4s3I", b"PK\x07\x08", checksum, length, length))

        for name, data in small.items():
            record(name, len(data), zlib.crc32(data))
            out.extend(data)
            descriptor(len(data), zlib.crc32(data))
        record("data/0", size, crc)
        self.head = bytes(out)
        shift = size
        descriptor(size, crc)
        for name, data in behind.items():
            record(name, len(data), zlib.crc32(data))
            out.extend(data)
            descriptor(len(data), zlib.crc32(data))
        begin = len(out) + shift
        count = len(small) + len(behind) + 1
        out.extend(directory)
        end = len(out) + shift
        out.extend(
            pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 0x031E, 45, 0, 0, count, count, len(directory), begin)
        )
        out.extend(pack("<4sIQI", b"PK\x06\x07", 0, end, 1))
        out.extend(pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, len(directory), begin, 0))
        self.tail = bytes(out[len(self.head) :])

    @property
    def length(self) -> int:
        """Bytes of the whole file."""
        return len(self.head) + self.size + len(self.tail)


Kind = tuple[str, tuple[int, ...]]
"""Dtype and shape of a chunk."""


def write_save(
    folder: Path,
    tensors: Mapping[str, Kind],
    ranks: int,
    *,
    edit: Callable[[object], None] | None = None,
) -> None:
    """Write a save whose tensors are all cut along their first axis, one chunk of the given kind for each rank. Elements are zeros."""
    folder.mkdir(parents=True, exist_ok=True)
    items = {kind: item_of(kind) for kind in set(tensors.values())}
    for rank in range(ranks):
        with (folder / f"__{rank}_0.distcp").open("wb") as file:
            for kind in tensors.values():
                file.write(items[kind].head)
                file.seek(items[kind].size, 1)  # a hole reads as zeros
                file.write(items[kind].tail)
    (folder / ".metadata").write_bytes(metadata_pickle(tensors, ranks, items, edit=edit))


def item_of(kind: Kind) -> Item:
    """Return the item of a chunk of zeros."""
    dtype, shape = kind
    size = WIDTHS[dtype]
    for extent in shape:
        size *= extent
    return Item(tensor_pickle(dtype, shape), size)


def metadata_pickle(
    tensors: Mapping[str, Kind],
    ranks: int,
    items: Mapping[Kind, Item],
    *,
    edit: Callable[[object], None] | None = None,
) -> bytes:
    """Return `.metadata` over such items; `edit` may change it before it is pickled."""
    strided, contiguous = standins.Layout(), standins._MEM_FORMAT_ENCODING(0)
    described: dict[str, object] = {}
    stored: dict[object, object] = {}
    begin = 0
    for name, (dtype, shape) in tensors.items():
        chunks = []
        length = items[dtype, shape].length
        for rank in range(ranks):
            offsets = standins.Size((rank * shape[0], *(0 for _ in shape[1:])))
            chunks.append(made(standins.ChunkStorageMetadata, offsets=offsets, sizes=standins.Size(shape)))
            index = made(standins.MetadataIndex, fqn=name, offset=offsets, index=rank)
            stored[index] = made(
                standins._StorageInfo, relative_path=f"__{rank}_0.distcp", offset=begin, length=length
            )
        begin += length
        properties = standins.TensorProperties(standins.DTYPES[dtype], strided, False, contiguous, False)
        described[name] = made(
            standins.TensorStorageMetadata,
            properties=properties,
            size=standins.Size((shape[0] * ranks, *shape[1:])),
            chunks=chunks,
        )
    found = made(
        standins.Metadata,
        state_dict_metadata=described,
        planner_data={name: tuple(name.split(".")) for name in described},
        storage_data=stored,
        storage_meta=made(
            standins.StorageMeta, checkpoint_id="somewhere", save_id="1", load_id=None, modules=[]
        ),
        version="1.0.0",
    )
    if edit is not None:
        edit(found)
    return standins.pickled(found)
