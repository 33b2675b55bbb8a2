"""What the worker says is checked before it is used: numbers refer to what is there, columns are as long as they say."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shardscope.engine.isolation import frames
from shardscope.engine.isolation.process import Broken
from shardscope.engine.isolation.validation import validated
from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.pickled import (
    Bytes,
    DcpChunks,
    Items,
    Long,
    Named,
    Node,
    Pairs,
    Pickled,
    PickledStorage,
    PickledTensor,
    Plain,
    Record,
    ReferenceUse,
)

CHUNKS = DcpChunks(
    names=["w", "b"],
    dtypes=["bf16", None],
    shapes=[[4], []],
    counts=[2, 1],
    offsets=[[0], [2], []],
    sizes=[[2], [2], []],
    files=["__0_0.distcp"],
    file=[0, 0, -1],
    begin=[0, 4, 0],
    length=[4, 4, 0],
    transforms=[0, 0, 0],
    transform_lists=[[]],
    strays=[],
    properties=[0, None],
    planner=0,
    storage_meta=None,
    version="1",
    extra={"mcore_data": 1},
    writers=2,
    writer=[0, 1, -1],
)
TENSOR = PickledTensor("strided", "f32", [2], [1], 0, 0, state=1, parts={"scale": 0})
GOOD = Pickled(
    nodes=[
        Plain("name"),
        Bytes(b"\xff"),
        Long("-ff"),
        Items("list", [0, 1, 3]),
        Pairs("dict", [0], [3]),
        TENSOR,
        Record("Namespace", ["a"], [4]),
        Named("os", "system", called=True, state=2, items=4),
        CHUNKS,
    ],
    roots=[8, 4],
    storages=[PickledStorage("0", "f32", "cpu", 2)],
    references=[ReferenceUse("os", "system", "called", 1, known=False)],
    ends=[10, 40],
    opcodes=40,
    protocol=2,
    findings=[Finding("limit.pickle_nodes", {"limit": 1, "found": 2})],
)


def test_what_holds_together_passes_as_it_is() -> None:
    assert validated(GOOD, 2, 40) is GOOD


def test_what_holds_together_survives_the_way() -> None:
    answer = frames.answer_of(frames.encode(frames.Read("0" * 32, GOOD)))

    assert isinstance(answer, frames.Read)
    assert answer.pickled == GOOD


NODES: list[Node] = [
    Items("list", [-1]),
    Items("set", [9]),
    Items("tuple", [0, 1 << 62]),
    Pairs("dict", [0], []),
    Pairs("dict", [9], [0]),
    Pairs("dict", [0], [-1]),
    Record("Namespace", ["a", "b"], [0]),
    Record("Namespace", ["a"], [9]),
    Named("a", "b", called=False, state=9),
    Named("a", "b", called=False, items=-1),
    Long(""),
    Long("-"),
    Long("xyz"),
    Long("0x"),
    replace(TENSOR, storage=1),
    replace(TENSOR, storage=-1),
    replace(TENSOR, state=9),
    replace(TENSOR, parts={"scale": 9}),
    replace(CHUNKS, counts=[1, 1]),
    replace(CHUNKS, counts=[4, -1]),
    replace(CHUNKS, counts=[2]),
    replace(CHUNKS, names=["w"]),
    replace(CHUNKS, dtypes=[]),
    replace(CHUNKS, shapes=[[4]]),
    replace(CHUNKS, properties=[0]),
    replace(CHUNKS, properties=[9, None]),
    replace(CHUNKS, offsets=[[0], [2]]),
    replace(CHUNKS, sizes=[[2]]),
    replace(CHUNKS, file=[0, 0]),
    replace(CHUNKS, file=[0, 0, 1]),
    replace(CHUNKS, file=[0, 0, -2]),
    replace(CHUNKS, begin=[]),
    replace(CHUNKS, length=[1]),
    replace(CHUNKS, transforms=[0, 0, 1]),
    replace(CHUNKS, transforms=[0]),
    replace(CHUNKS, planner=9),
    replace(CHUNKS, writer=[0]),
    replace(CHUNKS, writer=[0, 1, 2]),
    replace(CHUNKS, writer=[0, 1, -2]),
    replace(CHUNKS, writers=None),
    replace(CHUNKS, storage_meta=-1),
    replace(CHUNKS, extra={"mcore_data": 9}),
]


@pytest.mark.parametrize("node", NODES, ids=range(len(NODES)))
def test_a_node_that_refers_to_nothing_is_refused(node: Node) -> None:
    with pytest.raises(Broken):
        validated(replace(GOOD, nodes=[*GOOD.nodes[:-1], node], roots=[0, 0]), 2, 40)


@pytest.mark.parametrize(
    "change",
    [
        {"roots": [0]},
        {"roots": [0, 9]},
        {"roots": [-1, 0]},
        {"ends": [40]},
        {"ends": [10, 41]},
        {"ends": [0, 40]},
        {"ends": [20, 10]},
        {"ends": [20, 20]},
        {"opcodes": 41},
        {"opcodes": -1},
        {"references": [ReferenceUse("os", "system", "called", 0, known=False)]},
        {"storages": [PickledStorage("0", "f32", "cpu", -1)]},
        {"findings": [Finding("no.such.code")]},
        {"findings": [Finding("internal.error", {"doing": "x", "kind": "y"})]},
        {"findings": [Finding("limit.pickle_nodes")]},
        {"findings": [Finding("limit.pickle_nodes", {"limit": "many", "found": 2})]},
    ],
    ids=str,
)
def test_a_whole_that_does_not_hold_together_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(Broken):
        validated(msgspec.structs.replace(GOOD, **change), 2, 40)


LOOKED_AT: dict[type, str] = {
    Plain: "value",
    Bytes: "value",
    Long: "digits",
    Items: "kind items",
    Pairs: "kind keys values",
    PickledTensor: "kind dtype shape strides offset storage requires_grad parameter subclass state parts",
    Record: "kind names values",
    Named: "module name called persistent state items others",
    DcpChunks: "names dtypes shapes counts offsets sizes files file begin length transforms transform_lists strays "
    "properties planner storage_meta version extra writers writer",
    PickledStorage: "key dtype location elements view",
    ReferenceUse: "module name use count known",
    Pickled: "nodes roots storages references ends opcodes protocol findings",
}
"""Fields that `validation` was written for."""


@pytest.mark.parametrize("noun", [*get_args(Node), PickledStorage, ReferenceUse, Pickled])
def test_no_field_is_new_to_the_checks(noun: type[msgspec.Struct]) -> None:
    """Who adds a field decides in `isolation/validation.py` whether it refers to anything, and then says so here."""
    assert " ".join(noun.__struct_fields__) == LOOKED_AT[noun]


def test_another_number_of_pickles_is_refused() -> None:
    with pytest.raises(Broken):
        validated(GOOD, 1, 40)


DOCUMENT = frames.encode(frames.Read("0" * 32, GOOD))


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(DOCUMENT) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_answer_is_refused_or_holds_together(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(DOCUMENT)
    for at, value in changes:
        damaged[at] = value
    try:
        answer = frames.answer_of(damaged)
    except msgspec.DecodeError:
        return
    if isinstance(answer, frames.Read):
        try:
            pickled = validated(answer.pickled, 2, 40)
        except Broken:
            return
        assert all(0 <= root < len(pickled.nodes) for root in pickled.roots)
