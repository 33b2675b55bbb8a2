"""Tensors and storages as torch.save writes them, turned into facts."""

import pytest

from shardscope.engine.model.blocker import Severity, blocker
from shardscope.engine.model.pickled import (
    Named,
    PickledStorage,
    PickledTensor,
)
from shardscope.engine.parse.pickled.tree import Tree
from tests.parse.assembling import (
    CPU,
    ODICT,
    STRIDED,
    Called,
    Outside,
    Ref,
    codes,
    facts_of,
    instance,
    node,
    storage,
    tensor,
    tree_of,
)


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
