"""Tensors and storages, as torch's rebuild functions describe them (`torch/_utils.py`, `torch/serialization.py`)."""

import re
from collections.abc import Sequence
from math import prod
from typing import Final

from msgspec.structs import replace

from shardscope.engine.model.pickled import Named, Node, PickledStorage, PickledTensor, Record
from shardscope.engine.parse.pickle_stream.records import Call, Dict, Persistent, Reference
from shardscope.engine.parse.pickled.facts import Facts
from shardscope.engine.parse.pickled.shapes import Odd, state_fields

STORAGE_KEY: Final = re.compile(r"[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*")
"""torch writes numbers: a count, or the address of the storage."""
HIGHEST: Final = (1 << 63) - 1
MOST_DIMENSIONS: Final = 64

DTYPES: Final = {
    "float64": ("F64", 8), "double": ("F64", 8), "float32": ("F32", 4), "float": ("F32", 4), "float16": ("F16", 2),
    "half": ("F16", 2), "bfloat16": ("BF16", 2), "int64": ("I64", 8), "long": ("I64", 8), "int32": ("I32", 4),
    "int": ("I32", 4), "int16": ("I16", 2), "short": ("I16", 2), "int8": ("I8", 1), "uint8": ("U8", 1),
    "uint16": ("U16", 2), "uint32": ("U32", 4), "uint64": ("U64", 8), "bool": ("BOOL", 1),
    "complex32": ("complex32", 4), "complex64": ("C64", 8), "complex128": ("complex128", 16),
    "float8_e4m3fn": ("F8_E4M3", 1), "float8_e5m2": ("F8_E5M2", 1), "float8_e4m3fnuz": ("F8_E4M3FNUZ", 1),
    "float8_e5m2fnuz": ("F8_E5M2FNUZ", 1), "float8_e8m0fnu": ("F8_E8M0", 1), "float4_e2m1fn_x2": ("float4_e2m1fn_x2", 1),
    "qint8": ("qint8", 1), "quint8": ("quint8", 1), "qint32": ("qint32", 4), "quint4x2": ("quint4x2", 1),
    "quint2x4": ("quint2x4", 1), "bits8": ("bits8", 1), "bits16": ("bits16", 2), "bits1x8": ("bits1x8", 1),
    "bits2x4": ("bits2x4", 1), "bits4x2": ("bits4x2", 1),
    **{f"{kind}{bits}": (f"{kind}{bits}", 1) for kind in ("int", "uint") for bits in range(1, 8)},
}  # fmt: skip
"""torch's dtypes: our name, and the bytes of an element of a storage."""
BYTES: Final = dict(DTYPES.values())

STORAGES: Final = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "QInt8Storage": "qint8", "QUInt8Storage": "quint8", "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4",
}  # fmt: skip
"""Classes of storages in `torch` and `torch.cuda`: a closed list, newer dtypes have `UntypedStorage` (`_utils._rebuild_tensor_v3`)."""

STORAGE_CLASSES: Final = frozenset(
    {(module, name) for module in ("torch", "torch.cuda", "torch.storage") for name in STORAGES}
    | {("torch.storage", "UntypedStorage"), ("torch", "UntypedStorage"), ("torch.storage", "_UntypedStorage")}
)


def integer(value: object) -> int:
    """Return a number that counts or places something. Raises `Odd` for other values."""
    if type(value) is not int or not 0 <= value <= HIGHEST:
        raise Odd
    return value


def boolean(value: object) -> bool:
    """Return a truth value. Raises `Odd` for other values."""
    if type(value) is not bool:
        raise Odd
    return value


def mapping_or_nothing(value: object = None) -> None:
    """Raise `Odd` where a value that nobody needs is neither a mapping nor nothing."""
    if value is not None and type(value) is not Dict:
        raise Odd


def size(value: object) -> tuple[int, ...]:
    """Return a tuple of numbers or a `torch.Size` of one. Raises `Odd` for anything else."""
    if type(value) is Call and is_reference(value.callee, "torch", "Size") and len(value.args) == 1:
        value = value.args[0]
    if type(value) is not tuple or len(value) > MOST_DIMENSIONS:
        raise Odd
    for each in value:
        integer(each)
    return value


def is_reference(value: object, module: str, *names: str) -> bool:
    """Tell whether a value is one of a module's names."""
    return type(value) is Reference and value.module == module and value.name in names


def dtype(value: object) -> str:
    """Return our name of a dtype. Raises `Odd` where it is none of torch's."""
    if type(value) is Reference and value.module == "torch" and value.name in DTYPES:
        return DTYPES[value.name][0]
    raise Odd


def storage(facts: Facts, value: object) -> int:
    """Return the place of a storage among `Pickled.storages`. Raises `Odd` where a persistent id describes none."""
    described = storage_of(value)
    own = described.key, described.view and described.view[0]
    place = facts.storage_places.get(own)
    if place is None:
        if not STORAGE_KEY.fullmatch(described.key):
            facts.stream.note("pickle.storage_key", key=described.key)
        place = facts.storage_places[own] = len(facts.storages)
        facts.storages.append(described)
    elif facts.storages[place] != described:
        facts.stream.note("pickle.storage_conflict", key=described.key)
    return place


def storage_of(value: object) -> PickledStorage:
    """Return what a persistent id says of a storage (`torch/serialization.py`, `persistent_load`)."""
    ident = value.id if type(value) is Persistent else None
    if type(ident) is not tuple or len(ident) not in (5, 6) or ident[0] != "storage":
        raise Odd
    _, kind, key, location, elements, *view = ident
    if type(kind) is not Reference or (kind.module, kind.name) not in STORAGE_CLASSES:
        raise Odd
    if type(key) is not str or type(location) is not str:
        raise Odd
    name = STORAGES.get(kind.name)
    found = PickledStorage(
        key, DTYPES[name][0] if name else None, location, integer(elements), _view(view[0] if view else None)
    )
    if found.elements * BYTES.get(found.dtype or "U8", 1) > HIGHEST:
        raise Odd
    return found


def _view(value: object) -> tuple[str, int, int] | None:
    if value is None:
        return None
    if type(value) is not tuple or len(value) != 3 or type(value[0]) is not str:
        raise Odd
    return value[0], integer(value[1]), integer(value[2])


def persistent(facts: Facts, value: Persistent) -> Node:
    """A storage that stands for itself, or an id that is none."""
    try:
        place = storage(facts, value)
    except Odd:
        return facts.persistent(value)
    return Record("Storage", ("place",), (facts.plain(place),))


def nothing_more(call: Call, *arguments: int) -> Sequence[object]:
    """Return the arguments of a call that has so many and is neither filled nor given keywords. Raises `Odd`."""
    if call.kwargs or call.items or call.appends or len(call.args) not in arguments:
        raise Odd
    return call.args


def strided(
    facts: Facts, place: object, offset: object, shape: object, strides: object, own: str | None
) -> PickledTensor:
    """Return a view of a storage, checked to lie within it. Raises `Odd` where it does not."""
    where = storage(facts, place)
    described = facts.storages[where]
    found = own or described.dtype
    if found is None:
        raise Odd
    its_shape, its_strides, begin = size(shape), size(strides), integer(offset)
    if len(its_shape) != len(its_strides) or prod(its_shape) > HIGHEST:
        raise Odd
    item = BYTES[found]
    held = described.elements if described.view is None else described.view[2]
    there = held * (1 if described.dtype is None else BYTES[described.dtype])
    last = begin + sum((length - 1) * stride for length, stride in zip(its_shape, its_strides, strict=True))
    if 0 not in its_shape:
        if (last + 1) * item > there:
            raise Odd
        if prod(its_shape) * item > there:
            facts.stream.note("pickle.tensor_overlap", key=described.key)
    return PickledTensor("strided", found, its_shape, its_strides, begin, where)


def tensor_v1(facts: Facts, call: Call) -> PickledTensor:
    """`_rebuild_tensor(storage, offset, size, stride)`."""
    place, offset, shape, strides = nothing_more(call, 4)
    return strided(facts, place, offset, shape, strides, None)


def tensor_v2(facts: Facts, call: Call) -> PickledTensor:
    """`_rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks, metadata=None)`."""
    place, offset, shape, strides, grad, _, *metadata = nothing_more(call, 6, 7)
    found = strided(facts, place, offset, shape, strides, None)
    return replace(found, requires_grad=boolean(grad), parts=pending(facts, *metadata))


def tensor_v3(facts: Facts, call: Call) -> PickledTensor:
    """`_rebuild_tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None)`."""
    place, offset, shape, strides, grad, _, kind, *metadata = nothing_more(call, 7, 8)
    found = strided(facts, place, offset, shape, strides, dtype(kind))
    return replace(found, requires_grad=boolean(grad), parts=pending(facts, *metadata))


def pending(facts: Facts, metadata: object = None) -> dict[str, int]:
    """Return what a tensor's metadata says is still to be done to its elements: `conj` and `neg` bits (`get_tensor_metadata`)."""
    mapping_or_nothing(metadata)
    return {"metadata": facts.number(metadata)} if metadata else {}


def inner_tensor(facts: Facts, value: object) -> PickledTensor:
    """Return the tensor that another is made of. Raises `Odd` where it is none."""
    if type(value) is not Call:
        raise Odd
    found = facts.called(value)
    if not isinstance(found, PickledTensor):
        raise Odd
    return found


def parameter(facts: Facts, call: Call) -> PickledTensor:
    """`_rebuild_parameter(data, requires_grad, hooks)`, `_rebuild_parameter_with_state(..., state)`."""
    data, grad, _, *state = nothing_more(call, 3, 4)
    return replace(
        inner_tensor(facts, data),
        requires_grad=boolean(grad),
        parameter=True,
        state=facts.number(state[0]) if state else None,
    )


def typed(facts: Facts, call: Call) -> PickledTensor:
    """`torch._tensor._rebuild_from_type_v2(func, type, args, state)`: a subclass, or a tensor with attributes."""
    func, kind, args, state = nothing_more(call, 4)
    if type(func) is not Reference or type(kind) is not Reference or type(args) is not tuple:
        raise Odd
    inner = inner_tensor(facts, Call(func, args))
    name = f"{kind.module}.{kind.name}"
    return replace(
        inner,
        subclass=inner.subclass or (None if name in PLAIN_CLASSES else name),
        parameter=inner.parameter or name == "torch.nn.parameter.Parameter",
        state=facts.number(state),
        parts=inner.parts | _parts(facts, name, state),
    )


PLAIN_CLASSES: Final = ("torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter")

STATE_NAMES: Final = {
    "torch.distributed._shard.sharded_tensor.api.ShardedTensor": (
        "local_shards", "metadata", "process_group", "sharding_spec", "init_rrefs",
    ),
}  # fmt: skip
"""What the states of wrappers mean that are tuples (`ShardedTensor.__getstate__`)."""


def _parts(facts: Facts, name: str, state: object) -> dict[str, int]:
    """Return the parts of a wrapper's state by name."""
    if name in STATE_NAMES and type(state) is tuple:
        return dict(zip(STATE_NAMES[name], facts.numbers(state), strict=False))
    if name in PLAIN_CLASSES:
        return {}
    try:
        fields = state_fields(Call(Reference("", ""), (), states=[state]))
    except Odd:
        return {}
    return {field: facts.number(value) for field, value in fields.items()}


def wrapper(facts: Facts, call: Call) -> PickledTensor:
    """`_rebuild_wrapper_subclass(cls, dtype, size, stride, offset, layout, device, requires_grad)`: data is in its state."""
    kind, its_dtype, shape, strides, _, _, _, grad = nothing_more(call, 8)
    if type(kind) is not Reference:
        raise Odd
    return PickledTensor(
        "wrapper",
        dtype(its_dtype),
        size(shape),
        size(strides),
        0,
        None,
        requires_grad=boolean(grad),
        subclass=f"{kind.module}.{kind.name}",
    )


def meta(facts: Facts, call: Call) -> PickledTensor:
    """`_rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad)`."""
    kind, shape, strides, grad = nothing_more(call, 4)
    return PickledTensor(
        "meta", dtype(kind), size(shape), size(strides), 0, None, requires_grad=boolean(grad)
    )


def quantized(facts: Facts, call: Call) -> PickledTensor:
    """`_rebuild_qtensor(storage, offset, size, stride, quantizer, requires_grad, hooks)`."""
    place, offset, shape, strides, quantizer, grad, _ = nothing_more(call, 7)
    if type(quantizer) is not tuple or not 3 <= len(quantizer) <= 4:
        raise Odd
    names = ("scheme", "scale", "zero_point", "axis")
    return replace(
        strided(facts, place, offset, shape, strides, None),
        kind="quantized",
        requires_grad=boolean(grad),
        parts=dict(zip(names, facts.numbers(quantizer), strict=False)),
    )


SPARSE_PARTS: Final = {
    "torch.sparse_coo": ("indices", "values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def sparse(facts: Facts, call: Call) -> PickledTensor:
    """`_rebuild_sparse_tensor(layout, data)`: index tensors, values, size (and whether it is coalesced)."""
    its_layout, data = nothing_more(call, 2)
    names = SPARSE_PARTS.get(layout_name(its_layout))
    if names is None or type(data) is not tuple or not len(names) < len(data) <= len(names) + 2:
        raise Odd
    values = inner_tensor(facts, data[len(names) - 1])
    parts = dict(zip((*names, "size", "coalesced"), facts.numbers(data), strict=False))
    return PickledTensor(
        "sparse",
        values.dtype,
        size(data[len(names)]),
        (),
        0,
        None,
        parts=parts | {"layout": facts.number(its_layout)},
    )


def layout_name(value: object) -> str:
    """Return the name behind `torch.serialization._get_layout(name)`."""
    if (
        type(value) is Call
        and is_reference(value.callee, "torch.serialization", "_get_layout")
        and len(value.args) == 1
    ):
        return value.args[0] if type(value.args[0]) is str else ""
    return f"{value.module}.{value.name}" if type(value) is Reference else ""


def layout(facts: Facts, call: Call) -> Node:
    """`torch.serialization._get_layout(name)`: a name of torch."""
    module, _, name = layout_name(call).rpartition(".")
    if module != "torch":
        raise Odd
    return Named(module, name, called=False)


def nested(facts: Facts, call: Call) -> PickledTensor:
    """`_rebuild_nested_tensor(buffer, sizes, strides, storage_offsets)`: ragged, so without a shape."""
    parts = nothing_more(call, 4)
    buffer = inner_tensor(facts, parts[0])
    names = ("buffer", "sizes", "strides", "offsets")
    return PickledTensor(
        "nested", buffer.dtype, (), (), 0, None, parts=dict(zip(names, facts.numbers(parts), strict=True))
    )
