"""Calls of understood names, turned into facts, and graphs of facts: sharing, cycles, limits."""

from collections.abc import Callable

import pytest

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import (
    Long,
    Plain,
)
from shardscope.engine.parse.pickled import read_pickles
from shardscope.engine.parse.pickled.tree import Tree
from tests.parse.assembling import (
    STRIDED,
    Called,
    Ref,
    assembled,
    codes,
    facts_of,
    instance,
    node,
    show,
    tensor,
)


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
