"""Typed facts of one pickle: all that leaves the worker that reads its opcodes.

A pickle is a graph: nodes refer to each other by number, what the writer shared stays shared and a cycle stays a cycle, so
that nothing is ever expanded. Values keep their types; objects of classes in the closed table of understood references become
`Record`s with named fields, tensors become `PickledTensor`s over storages, and everything else stays `Named`: a module and a
name that nothing here resolves. Readers (`parse/pickled/tree`) are iterative and visit a node once.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from shardscope.engine.model.blocker import Finding

Number = int
"""Of a node, in `Pickled.nodes`."""


class Plain(Struct, frozen=True, array_like=True, tag="v", gc=False):
    """A value that is itself. Integers are those of 64 bits; longer ones are `Long`."""

    value: bool | int | float | str | None


class Bytes(Struct, frozen=True, array_like=True, tag="b", gc=False):
    """A run of bytes. A node of its own: on the wire text and bytes must differ by type."""

    value: bytes


class Long(Struct, frozen=True, array_like=True, tag="l", gc=False):
    """An integer beyond 64 bits, in hexadecimal."""

    digits: str


class Items(Struct, frozen=True, array_like=True, tag="i"):
    """A list, a tuple, a set or a frozenset; of sets the order is the stream's, and repetitions are kept."""

    kind: Literal["list", "tuple", "set", "frozenset"]
    items: Sequence[Number]


class Pairs(Struct, frozen=True, array_like=True, tag="p"):
    """A mapping as the pairs of the stream: never hashed, later ones win."""

    kind: Literal["dict", "OrderedDict", "defaultdict", "Counter"]
    keys: Sequence[Number]
    values: Sequence[Number]


class PickledTensor(Struct, frozen=True, array_like=True, tag="t"):
    """A tensor as torch's rebuild functions describe it (`torch/_utils.py`): a view of a storage."""

    kind: Literal["strided", "meta", "sparse", "quantized", "nested", "wrapper"]
    dtype: str
    """A name of `model.tensors.DTYPES` where there is one, otherwise torch's own (`complex128`, `qint8`)."""
    shape: Sequence[int]
    strides: Sequence[int]
    """In elements; empty unless strided, quantised or meta."""
    offset: int
    """In elements of `dtype`, from the start of the storage."""
    storage: int | None
    """Its place in `Pickled.storages`; null where the tensor has no bytes of its own."""
    requires_grad: bool = False
    parameter: bool = False
    subclass: str | None = None
    """The class behind `_rebuild_from_type_v2` or a wrapper: `module.name`."""
    state: Number | None = None
    """Python attributes that were saved with it."""
    parts: dict[str, Number] = {}
    """Tensors and values that make up one of another kind: `indices`, `values`, `scale`, `zero_point`, ..."""


class Record(Struct, frozen=True, array_like=True, tag="r"):
    """An object of an understood class, by the names of its fields."""

    kind: str
    """The table's own word: `Namespace`, `DTensor`, `DeviceMesh`, `ShardedTensor`, `fragment_address`, ..."""
    names: Sequence[str]
    values: Sequence[Number]


class Named(Struct, frozen=True, array_like=True, tag="n", gc=False):
    """A reference that stays opaque, or the object that a call to it would make."""

    module: str
    name: str
    called: bool
    persistent: bool = False
    """It is a persistent id that is no storage; module and name are then what it says of itself."""
    state: Number | None = None
    """Of an object: the state that the stream gives it (BUILD), where that is one mapping: the attributes of a module."""
    items: Number | None = None
    """Of an object: what the stream puts into it by key, as a mapping: it may be a state dict of a class of its own."""
    others: Number | None = None
    """Of an object: what else the stream gives it, as one sequence, where that is more than plain values: the arguments of the call
    (the fields of a named tuple), then states that are no mapping, then elements that are appended."""


class DcpChunks(Struct, frozen=True, array_like=True, tag="c"):
    """`.metadata` of PyTorch's distributed checkpoints, in columns (`torch/distributed/checkpoint/metadata.py`).

    Row i of the chunk columns is chunk i of all tensors, tensors in order of `names`, each with its own count of chunks.
    """

    names: Sequence[str]
    dtypes: Sequence[str | None]
    """By tensor; null for items of bytes."""
    shapes: Sequence[Sequence[int]]
    counts: Sequence[int]
    """Chunks by tensor; items of bytes have one without offsets."""
    offsets: Sequence[Sequence[int]]
    """By chunk: where it lies in its tensor."""
    sizes: Sequence[Sequence[int]]
    files: Sequence[str]
    """Relative paths as recorded, each once."""
    file: Sequence[int]
    """By chunk: its place in `files`; -1 where no storage is recorded for it."""
    begin: Sequence[int]
    """By chunk: its first byte in that file."""
    length: Sequence[int]
    transforms: Sequence[int]
    """By chunk: its place in `transform_lists`."""
    transform_lists: Sequence[Sequence[str]]
    """Each list of `transform_descriptors` once; the first is empty."""
    strays: Sequence[str]
    """Names in `storage_data` that no chunk answers to."""
    properties: Sequence[Number | None]
    """By tensor: a record with `layout`, `requires_grad`, `memory_format`, `pin_memory`; shared by equal ones."""
    planner: Number | None
    """`planner_data`."""
    storage_meta: Number | None
    version: str | None
    extra: dict[str, Number]
    """Attributes beyond those: `mcore_data`, and `all_local_plans` as a list of one record for each rank."""
    writers: int | None = None
    """Ranks that took part in saving, where `all_local_plans` says so."""
    writer: Sequence[int] = ()
    """By chunk: the lowest rank whose plan has it, -1 for none; empty where there are no plans."""


Node = Plain | Bytes | Long | Items | Pairs | PickledTensor | Record | Named | DcpChunks


class PickledStorage(Struct, frozen=True, array_like=True, gc=False):
    """A storage by its persistent id."""

    key: str
    dtype: str | None
    """Of its elements; null where it counts bytes (`UntypedStorage`)."""
    location: str
    """`cpu`, `cuda:3`: the device that it was saved from."""
    elements: int
    view: tuple[str, int, int] | None = None
    """Very old streams: it is a view of the storage `key`, which has `elements`: a key of its own, its offset and its size."""


class ReferenceUse(Struct, frozen=True):
    """How a module and a name turned up in a pickle. Listed whole: the evidence of what a loader would have run."""

    module: str
    name: str
    use: Literal["called", "named"]
    count: int
    known: bool
    """In the closed table. Others are foreign."""


class Pickled(Struct, frozen=True):
    """What one stream of pickles says."""

    nodes: Sequence[Node]
    roots: Sequence[Number]
    """One for each pickle of the stream."""
    storages: Sequence[PickledStorage]
    references: Sequence[ReferenceUse]
    ends: Sequence[int]
    """Where each pickle ends, in bytes of the stream."""
    opcodes: int
    protocol: int
    """The highest."""
    findings: Sequence[Finding] = ()
    """What deserves a word and stops nothing: a foreign call, a repeated key, ..."""
