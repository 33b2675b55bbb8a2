"""Calls of understood names, turned into facts; and those of all others, which stay names."""

import gc
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from shardscope.engine.model.blocker import Fault, Severity, blocker
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import (
    Bytes,
    DcpChunks,
    Items,
    Long,
    Named,
    Pairs,
    Pickled,
    PickledStorage,
    PickledTensor,
    Plain,
    Record,
)
from shardscope.engine.parse.pickled import read_pickles
from shardscope.engine.parse.pickled.table import TABLE
from shardscope.engine.parse.pickled.tree import Tree
from tests.parse.assembling import (
    Called,
    Outside,
    Ref,
    assembled,
    facts_of,
    instance,
    storage,
    tensor,
    tree_of,
)
from tests.parse.fixture_pickles import fixture_pickles

ODICT = Called(Ref("collections", "OrderedDict"))
STRIDED = Called(Ref("torch.serialization", "_get_layout"), ("torch.strided",))
CPU = Called(Ref("torch", "device"), ("cpu",))


def node(value: object) -> Any:
    tree = tree_of(value)
    return tree.node(tree.root)


def shown(tree: Tree, number: int | None) -> Any:
    """Return a value of facts in plain words."""
    match tree.node(number):
        case Plain(value=value) | Bytes(value=value):
            return value
        case Long(digits=digits):
            return int(digits, 16)
        case Items(kind=kind, items=items):
            return (kind, [shown(tree, each) for each in items])
        case Pairs(keys=keys, values=values):
            return {shown(tree, key): shown(tree, each) for key, each in zip(keys, values, strict=True)}
        case Record(kind=kind, names=names, values=values):
            return (kind, {name: shown(tree, each) for name, each in zip(names, values, strict=True)})
        case Named(module=module, name=name, called=called):
            return f"{module}.{name}" + ("()" if called else "")
        case other:
            return other


def show(value: object) -> Any:
    tree = tree_of(value)
    return shown(tree, tree.root)


def codes(value: object) -> set[str]:
    return {each.code for each in facts_of(value).findings}


# --- plain values and the library


def test_plain_values_keep_their_types() -> None:
    assert show([None, True, 1, 1.5, "a", b"a", 1 << 70, -(1 << 70), ("t",), {"s"}]) == (
        "list",
        [None, True, 1, 1.5, "a", b"a", 1 << 70, -(1 << 70), ("tuple", ["t"]), ("set", ["s"])],
    )
    assert isinstance(node((1 << 63) - 1), Plain)
    assert isinstance(node(1 << 63), Long)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Called(Ref("collections", "OrderedDict"), items=[("a", 1)]), {"a": 1}),
        (Called(Ref("collections", "OrderedDict"), ([["a", 1], ("b", 2)],)), {"a": 1, "b": 2}),
        (Called(Ref("collections", "defaultdict"), (Ref("builtins", "int"),), items=[("a", 1)]), {"a": 1}),
        (Called(Ref("collections", "Counter"), ({"a": 1},)), {"a": 1}),
        (Called(Ref("collections", "deque"), ([],), appends=[1]), ("list", [1])),
        (Called(Ref("__builtin__", "set"), ([1, 2],)), ("set", [1, 2])),
        (Called(Ref("builtins", "frozenset"), ([1],)), ("frozenset", [1])),
        (Called(Ref("__builtin__", "bytearray"), ("\xff", "latin-1")), b"\xff"),
        (Called(Ref("builtins", "bytearray"), (b"\xff",)), b"\xff"),
        (Called(Ref("__builtin__", "bytes")), b""),
        (Called(Ref("_codecs", "encode"), ("\xff\x00", "latin1")), b"\xff\x00"),
        (
            Called(Ref("builtins", "bytearray"), (Called(Ref("_codecs", "encode"), ("a", "latin1")),)),
            b"a",
        ),
        (Called(Ref("builtins", "complex"), (1.0, 2.0)), ("complex", {"real": 1.0, "imag": 2.0})),
        (
            Called(Ref("builtins", "slice"), (0, 4, None)),
            ("slice", {"start": 0, "stop": 4, "step": None}),
        ),
        (instance("argparse", "Namespace", {"lr": 0.1}), ("Namespace", {"lr": 0.1})),
        (instance("types", "SimpleNamespace", {"a": 1}), ("Namespace", {"a": 1})),
        (Called(Ref("pathlib", "PosixPath"), ("/", "a", "b")), "/a/b"),
        (Called(Ref("pathlib._local", "PosixPath"), ("a", "b")), "a/b"),
        (Called(Ref("pathlib", "PosixPath")), "."),
        (instance("uuid", "UUID", {"int": 1 << 100}), ("UUID", {"int": 1 << 100})),
        (
            Called(Ref("datetime", "datetime"), (b"\x07\xe8\x01\x01\x00\x00\x00\x00\x00\x00",)),
            ("datetime", {"packed": b"\x07\xe8\x01\x01\x00\x00\x00\x00\x00\x00"}),
        ),
        (
            instance("_io", "BytesIO", (b"abc", 1, None)),
            ("BytesIO", {"value": b"abc", "position": 1}),
        ),
        (Called(Ref("_io", "BytesIO"), (b"abc",)), ("BytesIO", {"value": b"abc", "position": 0})),
        (Called(Ref("io", "BytesIO")), ("BytesIO", {"value": b"", "position": 0})),
        (Called(Ref("builtins", "bytearray"), ([1, 2],)), b"\x01\x02"),
        (Called(Ref("pathlib", "PosixPath"), ("a", "b", "c")), "a/b/c"),
        (Called(Ref("argparse", "Namespace"), kwargs={"lr": 1}), ("Namespace", {"lr": 1})),
        (instance("argparse", "Namespace", {"a": 1}, ({"a": 2}, {"b": 3})), ("Namespace", {"a": 2, "b": 3})),
        (
            Called(Ref("copyreg", "__newobj__"), (Ref("datetime", "timedelta"), 1, 2, 3)),
            ("timedelta", {"days": 1, "seconds": 2, "microseconds": 3}),
        ),
        (
            Called(Ref("copy_reg", "_reconstructor"), (Ref("builtins", "dict"), Ref("builtins", "dict"), {"a": 1})),
            {"a": 1},
        ),
        (Called(Ref("torch", "Size"), ((2, 3),)), ("tuple", [2, 3])),
        (Called(Ref("torch", "device"), ("cuda", 1)), ("device", {"type": "cuda", "index": 1})),
        (STRIDED, "torch.strided"),
        (Ref("torch", "float32"), "torch.float32"),
        (
            Called(Ref("copyreg", "_reconstructor"), (Ref("argparse", "Namespace"), Ref("builtins", "object"), None), [{"a": 1}]),
            ("Namespace", {"a": 1}),
        ),
        (
            Called(
                Ref("deepspeed.runtime.zero.config", "ZeroStageEnum"),
                (2,),
            ),
            ("ZeroStageEnum", {"value": 2}),
        ),
        (
            Called(Ref("builtins", "getattr"), (Ref("peft.utils.peft_types", "PeftType"), "LORA")),
            ("PeftType", {"name": "LORA"}),
        ),
        (
            instance("deepspeed.utils.tensor_fragment", "fragment_address", {"numel": 4, "start": 8}),
            ("fragment_address", {"numel": 4, "start": 8}),
        ),
    ],
)  # fmt: skip
def test_what_a_call_comes_to(value: object, wanted: object) -> None:
    assert show(value) == wanted
    assert codes(value) == set()
    assert all(each.known for each in facts_of(value).references)


@pytest.mark.parametrize(
    ("code", "raw", "value"),
    [("f8", b"\0\0\0\0\0\0\xf8?", 1.5), ("i8", b"\xff" * 8, -1), ("u1", b"\x07", 7), ("b1", b"\x01", True), ("f2", b"\0<", 1.0)],
)  # fmt: skip
@pytest.mark.parametrize("core", ["core", "_core"])
def test_a_scalar_of_numpy_is_its_value(code: str, raw: bytes, value: object, core: str) -> None:
    order = "|" if len(raw) == 1 else "<"
    dtype = Called(Ref("numpy", "dtype"), (code, False, True), [(3, order, None, None, None, -1, -1, 0)])
    assert show(Called(Ref(f"numpy.{core}.multiarray", "scalar"), (dtype, raw))) == value


def test_an_array_of_numpy_is_its_parts() -> None:
    dtype = Called(Ref("numpy", "dtype"), ("f4", False, True), [(3, "<", None, None, None, -1, -1, 0)])
    empty = Called(Ref("_codecs", "encode"), ("b", "latin1"))
    array = Called(
        Ref("numpy._core.multiarray", "_reconstruct"),
        (Ref("numpy", "ndarray"), (0,), empty),
        [(1, (2,), dtype, False, b"\0" * 8)],
    )
    wanted = (
        "numpy.ndarray",
        {
            "shape": ("tuple", [2]),
            "dtype": ("numpy.dtype", {"code": "<f4"}),
            "fortran": False,
            "data": b"\0" * 8,
        },
    )
    assert show(array) == wanted
    frombuffer = Called(Ref("numpy._core.numeric", "_frombuffer"), (b"\0" * 8, dtype, (2,), "C"))
    assert show(frombuffer) == wanted


def test_tensors_of_other_devices_are_made_of_an_array_or_of_a_tensor() -> None:
    dtype = Called(Ref("numpy", "dtype"), ("f4", False, True))
    array = Called(
        Ref("numpy.core.multiarray", "_reconstruct"),
        (Ref("numpy", "ndarray"), (0,), b"b"),
        [(1, (2,), dtype, False, b"\0" * 8)],
    )
    found = node(
        Called(
            Ref("torch._utils", "_rebuild_device_tensor_from_numpy"),
            (array, Ref("torch", "float32"), "xla:0", False),
        )
    )
    assert (found.kind, found.dtype, found.shape, found.storage, list(found.parts)) == (
        "strided", "F32", (2,), None, ["data"],
    )  # fmt: skip
    found = node(
        Called(
            Ref("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"),
            (tensor(), Ref("torch", "float32"), "hpu", True),
        )
    )
    assert (found.shape, found.storage, found.requires_grad) == ((2, 2), 0, True)


def test_a_scalar_of_another_kind_keeps_its_bytes() -> None:
    dtype = Called(Ref("numpy", "dtype"), ("c16", False, True), [(3, "<", None, None, None, -1, -1, 0)])
    kind, fields = show(Called(Ref("numpy.core.multiarray", "scalar"), (dtype, b"\0" * 16)))
    assert (kind, fields["data"]) == ("numpy.scalar", b"\0" * 16)


def test_a_structured_dtype_keeps_its_state() -> None:
    state = (3, "|", None, ("a",), {"a": 1}, 4, 1, 0)
    kind, fields = show(Called(Ref("numpy", "dtype"), ("V4", False, True), [state]))
    assert kind == "numpy.dtype"
    assert fields["state"] == ("tuple", [3, "|", None, ("tuple", ["a"]), {"a": 1}, 4, 1, 0])


# --- tensors


def test_a_tensor_is_a_view_of_a_storage() -> None:
    found = facts_of({"w": tensor(grad=True), "t": tensor(strides=(1, 2))})
    tree = Tree(found)
    assert tree.tensor(0, "w") == PickledTensor("strided", "F32", (2, 2), (2, 1), 0, 0, requires_grad=True)
    assert tree.tensor(0, "t") == PickledTensor("strided", "F32", (2, 2), (1, 2), 0, 0)
    assert found.storages == [PickledStorage("0", "F32", "cpu", 4)]


@pytest.mark.parametrize(
    ("name", "ours"),
    [("float8_e4m3fn", "F8_E4M3"), ("uint16", "U16"), ("float4_e2m1fn_x2", "float4_e2m1fn_x2"), ("int4", "int4")],
)  # fmt: skip
def test_newer_dtypes_view_bytes(name: str, ours: str) -> None:
    found = node(
        Called(
            Ref("torch._utils", "_rebuild_tensor_v3"),
            (storage("0", 8, "UntypedStorage"), 0, (2,), (1,), False, ODICT, Ref("torch", name)),
        )
    )
    assert (found.dtype, found.shape, found.storage) == (ours, (2,), 0)


def test_parameters_and_subclasses_are_their_tensor() -> None:
    parameter = Called(Ref("torch._utils", "_rebuild_parameter"), (tensor(), True, ODICT))
    found = node(parameter)
    assert (found.parameter, found.requires_grad, found.shape) == (True, True, (2, 2))

    stateful = Called(
        Ref("torch._utils", "_rebuild_parameter_with_state"), (tensor(), False, ODICT, {"tag": "hello"})
    )
    tree = tree_of(stateful)
    assert tree.value(tree.tensor(0).state, "tag") == "hello"  # type: ignore[union-attr]

    inner = tensor()
    typed = Called(
        Ref("torch._tensor", "_rebuild_from_type_v2"),
        (inner.callee, Ref("torch", "Tensor"), inner.args, {"note": 1}),
    )
    tree = tree_of(typed)
    found = tree.tensor(0)
    assert found is not None
    assert (found.subclass, found.kind, found.parts) == (None, "strided", {})
    assert tree.value(found.state, "note") == 1
    assert all(each.known for each in tree.pickled.references)


def wrapped(module: str, name: str, state: object) -> Called:
    kind = Ref(module, name)
    args = (kind, Ref("torch", "float32"), (11, 6), (6, 1), 0, STRIDED, CPU, False)
    return Called(
        Ref("torch._tensor", "_rebuild_from_type_v2"),
        (Ref("torch._utils", "_rebuild_wrapper_subclass"), kind, args, state),
    )


def test_a_distributed_tensor_has_its_parts_by_name() -> None:
    placement = instance("torch.distributed.tensor.placement_types", "Shard", {"dim": 0})
    meta = instance(
        "torch.distributed.tensor._dtensor_spec", "TensorMeta",
        args=(Called(Ref("torch", "Size"), ((11, 6),)), (6, 1), Ref("torch", "float32")),
    )  # fmt: skip
    mesh = instance("torch.distributed.device_mesh", "DeviceMesh", {"_mesh_dim_names": ("fsdp",)})
    spec = instance(
        "torch.distributed.tensor._dtensor_spec",
        "DTensorSpec",
        {"mesh": mesh, "placements": (placement,), "tensor_meta": meta},
    )
    tree = tree_of(
        wrapped("torch.distributed.tensor", "DTensor", (None, {"_local_tensor": tensor(), "_spec": spec}))
    )
    found = tree.tensor(0)

    assert found is not None
    assert (found.kind, found.dtype, found.shape) == ("wrapper", "F32", (11, 6))
    assert found.subclass == "torch.distributed.tensor.DTensor"
    assert tree.tensor(found.parts["_local_tensor"]) == PickledTensor("strided", "F32", (2, 2), (2, 1), 0, 0)
    assert tree.value(found.parts["_spec"], "placements", 0, "dim") == 0
    assert tree.integers(found.parts["_spec"], "tensor_meta", "shape") == (11, 6)
    assert tree.text(found.parts["_spec"], "mesh", "_mesh_dim_names", 0) == "fsdp"
    assert tree.pickled.findings == []


def test_a_sharded_tensor_has_the_parts_of_its_state() -> None:
    group = Called(
        Called(
            Ref("__builtin__", "getattr"),
            (Ref("torch.distributed._shard.sharded_tensor.api", "ShardedTensor"), "ProcessGroupState"),
        ),
        (),
        [{"global_rank": 1, "global_world_size": 2}],
        new=True,
    )
    state: tuple[object, ...] = ([], None, group, None, False)
    tree = tree_of(wrapped("torch.distributed._shard.sharded_tensor.api", "ShardedTensor", state))
    found = tree.tensor(0)

    assert found is not None
    assert list(found.parts) == ["local_shards", "metadata", "process_group", "sharding_spec", "init_rrefs"]
    assert tree.integer(found.parts["process_group"], "global_world_size") == 2
    assert all(each.known for each in tree.pickled.references)  # `getattr` too: it names a nested class
    assert tree.pickled.findings == []


def test_tensors_of_other_kinds_name_their_parts() -> None:
    indices, values = tensor(size=(1, 2), strides=(2, 1)), tensor(size=(2,), strides=(1,))
    sparse = Called(
        Ref("torch._utils", "_rebuild_sparse_tensor"),
        (
            Called(Ref("torch.serialization", "_get_layout"), ("torch.sparse_coo",)),
            (indices, values, Called(Ref("torch", "Size"), ((9,),)), False),
        ),
    )
    tree = tree_of(sparse)
    found = tree.tensor(0)
    assert found is not None
    assert (found.kind, found.dtype, found.shape) == ("sparse", "F32", (9,))
    assert set(found.parts) == {"indices", "values", "size", "coalesced", "layout"}

    quantizer = (Ref("torch", "per_tensor_affine"), 0.1, 3)
    place = storage("0", 6, "QInt8Storage")
    found = node(
        Called(Ref("torch._utils", "_rebuild_qtensor"), (place, 0, (2, 3), (3, 1), quantizer, False, ODICT))
    )
    assert (found.kind, found.dtype, set(found.parts)) == (
        "quantized",
        "qint8",
        {"scheme", "scale", "zero_point"},
    )

    found = node(
        Called(
            Ref("torch._utils", "_rebuild_meta_tensor_no_storage"),
            (Ref("torch", "bfloat16"), (3, 2), (2, 1), False),
        )
    )
    assert found == PickledTensor("meta", "BF16", (3, 2), (2, 1), 0, None)

    found = node(Called(Ref("torch._utils", "_rebuild_nested_tensor"), (values, indices, indices, indices)))
    assert (found.kind, found.dtype, set(found.parts)) == (
        "nested",
        "F32",
        {"buffer", "sizes", "strides", "offsets"},
    )


def test_storages_of_one_key_are_one() -> None:
    found = facts_of([tensor(), tensor(place=storage("1")), tensor()])
    assert [each.key for each in found.storages] == ["0", "1"]
    conflict = facts_of([tensor(), tensor(place=storage(elements=8))])
    assert [each.elements for each in conflict.storages] == [4]
    assert [each.code for each in conflict.findings] == ["pickle.storage_conflict"]


def test_a_view_of_old_streams_bounds_its_tensors() -> None:
    view = storage("0", 100, "FloatStorage", "cpu", ("7", 10, 4))
    found = facts_of([tensor(place=view), tensor(place=storage("0", 100))])
    assert [each.view for each in found.storages] == [("7", 10, 4), None]
    assert codes([tensor(place=view, size=(5,), strides=(1,))]) == {"pickle.arguments"}


@pytest.mark.parametrize(
    "value",
    [
        tensor(offset=-1),
        tensor(offset=1),
        tensor(offset=1 << 64),
        tensor(size=(3, 3), strides=(3, 1)),
        tensor(size=(-1,), strides=(1,)),
        tensor(size=(2.0, 2)),
        tensor(size=(True, 2)),
        tensor(size=[2, 2]),
        tensor(strides=(1,)),
        tensor(strides=(-1, 1)),
        tensor(size=(1,) * 65, strides=(1,) * 65),
        tensor(size=(1 << 40, 1 << 40), strides=(0, 0)),
        tensor(grad=None),
        tensor(place=Outside(("storage",))),
        tensor(place=Outside(("storage", Ref("torch", "Float3Storage"), "0", "cpu", 4))),
        tensor(place=storage(elements=-4)),
        tensor(place=storage(elements=1 << 62)),
        tensor(place=1),
        Called(Ref("torch._utils", "_rebuild_tensor_v2")),
        Called(Ref("torch._utils", "_rebuild_parameter"), (None, True, ODICT)),
        Called(Ref("torch._utils", "_rebuild_tensor_v2"), tensor().args, items=[(0, 1)]),
        Called(Ref("torch", "Size"), ("ab",)),
        Called(Ref("torch", "device"), (1,)),
        Called(Ref("collections", "OrderedDict"), ("ab",)),
        Called(Ref("collections", "OrderedDict"), states=[5]),
        Called(Ref("argparse", "Namespace"), (1,)),
        Called(Ref("_codecs", "encode"), ("a", "rot13")),
        Called(Ref("_codecs", "encode"), ("\u20ac", "latin1")),
        Called(Ref("builtins", "bytearray"), ("\u20ac", "latin1")),
        Called(Ref("builtins", "bytearray"), (7,)),
        Called(Ref("builtins", "set"), (7,)),
        Called(Ref("builtins", "set"), items=[(1, 2)]),
        Called(Ref("collections", "OrderedDict"), ([["a"]],)),
        Called(Ref("collections", "OrderedDict"), ({}, {})),
        Called(Ref("collections", "OrderedDict"), appends=[1]),
        Called(Ref("collections", "OrderedDict"), states=[{1: 2}]),
        Called(Ref("pathlib", "PosixPath"), (b"a",)),
        Called(Ref("copyreg", "_reconstructor"), (1, 2, 3)),
        Called(Ref("copyreg", "_reconstructor"), (Ref("argparse", "Namespace"),)),
        Called(Ref("torch._utils", "_rebuild_tensor_v2"), (*tensor().args, 7)),
        Called(Ref("torch._utils", "_rebuild_sparse_tensor"), (STRIDED, ())),
        Called(Ref("torch._utils", "_rebuild_qtensor"), (storage(), 0, (2,), (1,), None, False, ODICT)),
        Called(Ref("torch._utils", "_rebuild_wrapper_subclass"), (1, 2, 3, 4, 5, 6, 7, 8)),
        Called(Ref("torch._tensor", "_rebuild_from_type_v2"), (1, 2, 3, 4)),
        Called(Ref("torch.serialization", "_get_layout"), ("os.system",)),
        tensor(place=Outside(("storage", Ref("torch", "FloatStorage"), 0, "cpu", 4))),
        tensor(place=storage("0", 4, "FloatStorage", "cpu", (1, 2, 3))),
        tensor(place=storage("0", 4, "UntypedStorage")),
        Called(Ref("builtins", "bytearray"), ([256],)),
        Called(Ref("numpy._core.multiarray", "_reconstruct"), (1, 2, 3)),
        Called(Ref("numpy._core.multiarray", "scalar"), (Called(Ref("numpy", "dtype"), ("f8",)), b"1")),
        instance("_io", "BytesIO", (1, 2, 3)),
    ],
)  # fmt: skip
def test_other_arguments_leave_the_object_opaque_and_say_so(value: Called) -> None:
    found = facts_of({"odd": value, "good": tensor(place=storage("9"))})
    tree = Tree(found)

    assert isinstance(tree.node(tree.get(0, "odd")), Named)
    assert tree.tensor(0, "good") is not None
    said = [blocker(each, "file") for each in found.findings if each.code == "pickle.arguments"]
    assert said
    assert all(each.severity is Severity.ERROR for each in said)


def test_an_expanded_tensor_deserves_a_word() -> None:
    assert codes(tensor(size=(1 << 40,), strides=(0,))) == {"pickle.tensor_overlap"}
    assert codes(tensor(size=(0, 1 << 62), strides=(1, 1))) == set()


def test_a_storage_alone_is_a_record_of_its_place() -> None:
    found = facts_of([storage("3")])
    tree = Tree(found)
    assert tree.integer(0, 0, "place") == 0
    assert found.storages[0].key == "3"


@pytest.mark.parametrize("key", ["../../x", "\x1b[2J", "", "a/b", "a..b"])
def test_a_key_that_torch_does_not_write_deserves_a_word(key: str) -> None:
    assert codes(tensor(place=storage(key))) == {"pickle.storage_key"}


# --- everything else


def test_a_name_outside_of_the_table_stays_a_name() -> None:
    found = facts_of([Ref("os", "system"), Called(Ref("os", "system"), ("true",)), tensor()])
    tree = Tree(found)

    assert tree.node(tree.get(0, 0)) == Named("os", "system", called=False)
    assert tree.node(tree.get(0, 1)) == Named("os", "system", called=True)
    assert tree.tensor(0, 2) is not None
    assert [(each.use, each.count) for each in found.references if not each.known] == [("called", 1)]
    said = [blocker(each, "file") for each in found.findings]
    assert [(each.code, each.severity) for each in said] == [("pickle.foreign_call", Severity.WARNING)]
    assert "os.system" in said[0].message


def test_foreign_calls_are_listed_up_to_a_bound_and_counted() -> None:
    found = facts_of([Called(Ref("m", f"f{number}")) for number in range(50)])
    said = [each.code for each in found.findings]
    assert said == ["pickle.foreign_call"] * 20 + ["pickle.foreign_calls_more"]
    assert found.findings[-1].params == {"count": 30}
    assert len(found.references) == 50


@pytest.mark.parametrize(
    "value",
    [
        Called(Ref("builtins", "getattr"), (ODICT, "keys")),
        Called(Ref("builtins", "getattr"), (Ref("torch", "Tensor"), "__reduce__")),
        Called(Called(Ref("builtins", "getattr"), (Ref("os", "path"), "join")), ("a",)),
        Called(Ref("torch", "float32")),
        Called(Ref("torch", "FloatStorage"), (4,)),
        Called(Called(Ref("functools", "partial"), (Ref("builtins", "print"),))),
    ],
)
def test_ways_around_the_table_are_foreign(value: Called) -> None:
    found = facts_of(value)
    assert isinstance(Tree(found).node(0), Named)
    assert "pickle.foreign_call" in {each.code for each in found.findings}


def test_what_is_put_into_an_opaque_object_stays_in_reach() -> None:
    module = Called(
        Ref("__main__", "Net"), (), [{"_parameters": {"w": tensor()}}], items=[("k", tensor())], new=True
    )
    tree = tree_of(module)
    root = tree.node(0)
    assert isinstance(root, Named)
    assert tree.tensor(root.state, "_parameters", "w") is not None
    assert tree.tensor(root.items, "k") is not None


def test_an_id_of_something_else_keeps_no_source() -> None:
    source = Outside(("module", Ref("__main__", "Net"), "/home/someone/train.py", "class Net: secret"))
    found = facts_of([source])
    assert Tree(found).node(1) == Named("module", "__main__.Net", called=False, persistent=True)
    assert b"secret" not in msgspec.msgpack.encode(found)
    assert b"someone" not in msgspec.msgpack.encode(found)
    assert codes([Outside(7)]) == {"pickle.persistent_id"}


@pytest.mark.parametrize("key", [[], {}, {1}, ([],), ((1, ([],)),)])
def test_a_key_that_none_can_be_refuses_the_pickle(key: object) -> None:
    with pytest.raises(Fault) as caught:
        facts_of(Called(Ref("collections", "OrderedDict"), items=[(key, 1)]))
    assert caught.value.finding.code == "pickle.key"


def test_keys_that_come_twice_are_counted() -> None:
    twice = Called(
        Ref("collections", "OrderedDict"),
        items=[("a", 1), ("a", 2), (1, 1), (1.0, 1), (True, 1), (math.nan, 1), (math.nan, 1), ("1", 1)],
    )
    found = facts_of(twice)
    assert [(each.code, each.params) for each in found.findings] == [("pickle.duplicate_key", {"count": 3})]


def test_nested_files_of_torch_are_kept_and_not_read() -> None:
    found = facts_of(Called(Ref("torch.storage", "_load_from_bytes"), (b"\x80\x02N.",)))
    assert [each.code for each in found.findings] == ["pickle.nested"]


# --- graphs


def test_what_is_shared_is_one_fact_and_a_cycle_is_a_cycle() -> None:
    found = read_pickles(b"\x80\x02]q\x00h\x00ah\x00\x85q\x01ah\x01.", DecodeLimits())
    tree = Tree(found)
    assert len(found.nodes) == 2
    outer = tree.items(found.roots[0])
    assert list(tree.items(outer[0])) == [outer[0], found.roots[0]]


def test_sixty_levels_of_doubling_are_sixty_facts() -> None:
    body = b")q\x00" + b"".join(
        b"0h" + bytes([at]) + b"h" + bytes([at]) + b"\x86q" + bytes([at + 1]) for at in range(60)
    )
    assert len(read_pickles(body + b".", DecodeLimits()).nodes) == 61


def test_depth_is_bounded_along_the_way_that_is_walked() -> None:  # R045
    deep = b")" + b"\x85" * 999 + b"."
    assert len(read_pickles(deep, DecodeLimits()).nodes) == 1_000
    for body in (
        b")" + b"\x85" * 1_001 + b".",
        b"]" + b"q\x00" + b")" + b"\x85q\x01h\x00h\x01a0" * 1_001 + b"\x85.",
    ):
        with pytest.raises(Fault) as caught:
            read_pickles(body, DecodeLimits())
        assert caught.value.finding.code == "limit.pickle_depth"


@pytest.mark.parametrize(
    "repeated",
    [
        lambda: b"cargparse\nNamespace\n)\x81}X" + (1_000).to_bytes(4, "little") + b"a" * 1_000 + b"Nsq\x00bh\x00",
        lambda: b"c_codecs\nencode\nX" + (1_000).to_bytes(4, "little") + b"a" * 1_000 + b"X\x06\x00\x00\x00latin1\x86q\x00R0Nh\x00",
    ],
)  # fmt: skip
def test_large_arguments_of_many_calls_are_counted_each_time(repeated: Callable[[], bytes]) -> None:
    """A few bytes a call must not come to a copy of the argument each."""
    head = repeated()
    many = {
        b"cargparse": b"cargparse\nNamespace\n)\x81h\x00b",
        b"c_codecs\n": b"c_codecs\nencode\nh\x00R",
    }[head[:9]]
    data = head + b"](" + many * 3_000 + b"e."
    assert len(data) < 200_000
    read_pickles(data, DecodeLimits())
    with pytest.raises(Fault) as caught:
        read_pickles(data, DecodeLimits(pickle_built_bytes=2_000_000))
    assert caught.value.finding.code == "limit.pickle_built_bytes"


def test_facts_are_bounded() -> None:  # R045
    with pytest.raises(Fault) as caught:
        facts_of([str(number) for number in range(200)], DecodeLimits(pickle_nodes=100))
    assert caught.value.finding.code == "limit.pickle_nodes"


def test_pickles_one_after_another_have_a_root_each() -> None:
    first, second = assembled([1]), assembled({"a": 2})
    found = read_pickles(first + second + b"rest", DecodeLimits(), pickles=2)
    assert found.ends == [len(first), len(first) + len(second)]
    assert Tree(found, 1).value(found.roots[1], "a") == 2
    assert found.findings == []
    with pytest.raises(Fault) as caught:
        read_pickles(first + second[:-3], DecodeLimits(), pickles=2)
    assert caught.value.finding.code == "pickle.truncated"


def test_all_pickles_can_be_read() -> None:
    assert len(read_pickles(assembled(1) * 3, DecodeLimits(), pickles=None).roots) == 3


def test_bytes_behind_a_single_pickle_deserve_a_word() -> None:
    found = read_pickles(assembled(1) + b"more", DecodeLimits())
    assert [(each.code, each.params) for each in found.findings] == [("pickle.trailing", {"count": 4})]


# --- fixtures


def test_every_pickle_of_every_fixture_is_read_and_passes_the_wire() -> None:
    foreign: set[str] = set()
    count = 0
    for found in fixture_pickles():
        if found.file.endswith("zip_truncated/checkpoint/model.pt"):
            continue
        pickled = read_pickles(found.data, DecodeLimits(), pickles=found.pickles)
        assert [
            each.code for each in pickled.findings if each.code in ("pickle.arguments", "pickle.key")
        ] == []
        foreign |= {f"{each.module}.{each.name}" for each in pickled.references if not each.known}
        wire = msgspec.msgpack.encode(pickled)
        assert msgspec.msgpack.encode(msgspec.msgpack.decode(wire, type=Pickled)) == wire
        count += 1
    assert count > 1_000
    assert foreign == {"posix.mkdir", "__main__.Net", "torch.nn.modules.linear.Linear"}


def test_a_canary_does_not_run(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # R032
    monkeypatch.chdir(tmp_path)
    canaries = [found for found in fixture_pickles() if b"PICKLE_WAS_EXECUTED" in found.data]
    assert len(canaries) == 2
    for found in canaries:
        pickled = read_pickles(found.data, DecodeLimits())
        assert [each.params["reference"] for each in pickled.findings] == ["posix.mkdir"]
        kinds = {type(each) for each in pickled.nodes}
        assert kinds & {PickledTensor, DcpChunks}  # what is around it is read
    assert list(tmp_path.iterdir()) == []


def test_the_table_is_closed_and_made_of_pairs() -> None:
    assert all(module and name for module, name in TABLE.calls)
    assert not TABLE.calls.keys() & TABLE.names
    for key in (
        ("os", "system"),
        ("builtins", "eval"),
        ("builtins", "exec"),
        ("builtins", "print"),
        ("subprocess", "Popen"),
    ):
        assert not TABLE.knows(key)


def test_reading_leaves_the_collector_as_it_was() -> None:
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            read_pickles(b"N.", DecodeLimits())
            with pytest.raises(Fault):
                read_pickles(b"N", DecodeLimits())
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


def test_the_decoder_imports_little() -> None:
    """The worker starts for each decoding: what is imported is waited for."""
    script = (
        "import sys; from shardscope.engine.model.limits import DecodeLimits; "
        "from shardscope.engine.parse.pickled import read_pickles; read_pickles(b'N.', DecodeLimits()); "
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert (
        loaded & {"numpy", "textual", "orjson", "asyncio", "pickle", "pickletools", "humanize", "json"}
        == set()
    )
    ours = {name for name in loaded if name.startswith("shardscope.")}
    rooms = ("shardscope.engine.model", "shardscope.engine.parse.pickle")
    assert {name for name in ours if not name.startswith(rooms)} == {
        "shardscope.engine",
        "shardscope.engine.parse",
    }
