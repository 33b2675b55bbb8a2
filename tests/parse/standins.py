"""Pickles of classes that are not installed here, made by Python's own pickler with stand-ins for them.

The stand-ins have the module, the name and the state of the real ones (`torch/distributed/checkpoint/metadata.py`), and are in
reach only while something is pickled or, in benchmarks, unpickled by CPython.
"""

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

METADATA = "torch.distributed.checkpoint.metadata"
FILESYSTEM = "torch.distributed.checkpoint.filesystem"
PLANNER = "torch.distributed.checkpoint.planner"


class Size(tuple[int, ...]):
    """`torch.Size`."""

    __slots__ = ()
    __module__ = "torch"

    def __reduce__(self) -> tuple[type, tuple[tuple[int, ...]]]:
        return Size, (tuple(self),)


class Named:
    """Something that pickles as a name: a dtype."""

    def __init__(self, module: str, name: str) -> None:
        self.__module__ = module
        self.name = name

    def __reduce__(self) -> str:
        return self.name


def _get_layout(name: str) -> tuple[str, str]:
    return ("layout", name)


_get_layout.__module__ = "torch.serialization"


class Layout:
    """A layout of torch."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _get_layout, ("torch.strided",)


def standin(module: str, name: str) -> type:
    """Return a class of that module and name, with attributes."""
    return type(name, (), {"__module__": module, "__qualname__": name})


class TensorProperties:
    """`TensorProperties`, whose state is a tuple."""

    __module__ = METADATA

    def __init__(self, *state: object) -> None:
        self.state = state

    def __getstate__(self) -> tuple[object, ...]:
        return self.state

    def __setstate__(self, state: tuple[object, ...]) -> None:
        self.state = state


class _MEM_FORMAT_ENCODING:  # noqa: N801 - torch's name
    __module__ = METADATA

    def __init__(self, value: int) -> None:
        self.value = value

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return type(self), (self.value,)


Metadata, MetadataIndex, TensorStorageMetadata, BytesStorageMetadata, ChunkStorageMetadata, StorageMeta = (
    standin(METADATA, name)
    for name in (
        "Metadata",
        "MetadataIndex",
        "TensorStorageMetadata",
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "StorageMeta",
    )
)
_StorageInfo = standin(FILESYSTEM, "_StorageInfo")
SavePlan, WriteItem, TensorWriteData = (
    standin(PLANNER, name) for name in ("SavePlan", "WriteItem", "TensorWriteData")
)
DTYPES = {name: Named("torch", name) for name in ("float32", "bfloat16", "int64")}

EVERYTHING: dict[str, dict[str, object]] = {
    "torch": {"Size": Size, **DTYPES},
    "torch.serialization": {"_get_layout": _get_layout},
    METADATA: {
        each.__name__: each
        for each in (
            Metadata, MetadataIndex, TensorStorageMetadata, BytesStorageMetadata, ChunkStorageMetadata, StorageMeta,
            TensorProperties, _MEM_FORMAT_ENCODING,
        )
    },
    FILESYSTEM: {"_StorageInfo": _StorageInfo},
    PLANNER: {each.__name__: each for each in (SavePlan, WriteItem, TensorWriteData)},
}  # fmt: skip


@contextmanager
def in_reach() -> Iterator[None]:
    """Put the stand-ins where the pickle module looks for their names."""
    before = dict(sys.modules)
    for name in EVERYTHING:
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            package = ".".join(parts[:length])
            sys.modules[package] = ModuleType(package)
    for name, members in EVERYTHING.items():
        vars(sys.modules[name]).update(members)
    try:
        yield
    finally:
        for name in set(sys.modules) - set(before):
            del sys.modules[name]
        sys.modules.update(before)


def pickled(value: object, protocol: int = 4) -> bytes:
    """Return what Python's pickler makes of a value with stand-ins in it."""
    with in_reach():
        return pickle.dumps(value, protocol)


def made(kind: type, **fields: object) -> object:
    """Return an object of a stand-in with attributes."""
    found = kind()
    vars(found).update(fields)
    return found


def metadata(tensors: int, ranks: int, *, plans: bool = False, width: int = 4_096) -> object:
    """Return the `Metadata` of a checkpoint whose tensors are all cut along their first axis, one chunk for each rank."""
    strided, contiguous = Layout(), _MEM_FORMAT_ENCODING(0)
    described: dict[str, object] = {}
    stored: dict[object, object] = {}
    indices: list[list[object]] = [[] for _ in range(ranks)]
    begins = [0] * ranks
    for number in range(tensors):
        name = f"model.layers.{number // 9}.block{number % 9}.weight"
        rows = 128
        chunks = []
        for rank in range(ranks):
            offsets, sizes = Size((rank * rows, 0)), Size((rows, width))
            chunks.append(made(ChunkStorageMetadata, offsets=offsets, sizes=sizes))
            index = made(MetadataIndex, fqn=name, offset=offsets, index=rank)
            indices[rank].append(index)
            length = rows * width * 2 + 1_500
            stored[index] = made(
                _StorageInfo, relative_path=f"__{rank}_0.distcp", offset=begins[rank], length=length
            )
            begins[rank] += length
        properties = TensorProperties(DTYPES["bfloat16"], strided, False, contiguous, False)
        described[name] = made(
            TensorStorageMetadata, properties=properties, size=Size((rows * ranks, width)), chunks=chunks
        )
    found = made(
        Metadata,
        state_dict_metadata=described,
        planner_data={name: tuple(name.split(".")) for name in described},
        storage_data=stored,
        storage_meta=made(StorageMeta, checkpoint_id="somewhere", save_id="1", load_id=None, modules=[]),
        version="1.0.0",
    )
    if plans:
        all_plans = [
            made(
                SavePlan,
                items=[made(WriteItem, index=index, tensor_data=None) for index in indices[rank]],
            )
            for rank in range(ranks)
        ]
        vars(found)["all_local_plans"] = all_plans
    return found
