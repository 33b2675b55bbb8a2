"""Documents of maps: read strictly, written so that they read back the same."""

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from shardscope.engine.geometry.language.document import lowered_of, read_document, written
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.pieces.budget import Budget, Budgets
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.lowered import LoweredDocument, LoweredTensor
from shardscope.engine.model.schemas import LOWERED, SHARD_MAP
from shardscope.engine.model.shardmap import Contiguous, DeviceMesh, Replicate, ShardMapDocument, TensorMap
from tests.geometry.layouts import LAYOUTS
from tests.geometry.trees import maps, mesh_of

CUT = {"node": "contiguous", "axis": "tp", "dim": 0, "widths": [4, 4]}


def document(tree: object = CUT, **changes: object) -> dict[str, Any]:
    return {
        "schema": SHARD_MAP,
        "meshes": {"dense": {"axes": [{"name": "tp", "size": 2}]}},
        "tensors": {"w": {"shape": [8, 3], "map": tree}},
        **changes,
    }


def fault(value: object) -> tuple[str, dict[str, object]]:
    with pytest.raises(Fault) as caught:
        read_document(value, "map.json")
    return caught.value.finding.code, dict(caught.value.finding.params)


# R146 R185
@settings(max_examples=200, deadline=None)
@given(maps())
def test_a_map_reads_back_from_json_as_it_was_written(drawn: tuple[TensorMap, DeviceMesh]) -> None:
    tensor, mesh = drawn
    before = ShardMapDocument(SHARD_MAP, {tensor.mesh: mesh}, {"w": tensor})
    text = msgspec.json.encode(before)

    assert read_document(json.loads(text), "map.json") == before


# R163
@settings(max_examples=200, deadline=None)
@given(maps())
def test_a_normal_form_reads_back_from_json_as_it_was_written(drawn: tuple[TensorMap, DeviceMesh]) -> None:
    lowered = lower(*drawn)
    text = msgspec.json.encode(LoweredDocument(LOWERED, {"w": written(lowered, "F32")}))
    found = read_document(json.loads(text), "map.json")

    assert isinstance(found, LoweredDocument)
    assert lowered_of(found.tensors["w"]) == lowered


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_read_back_with_their_indices(name: str) -> None:
    text = msgspec.json.encode(written(LAYOUTS[name]))

    assert lowered_of(msgspec.json.decode(text, type=LoweredTensor)) == LAYOUTS[name]


def test_equal_shards_are_written_once() -> None:
    lowered = lower(TensorMap((8,), Contiguous("tp", 0, (4, 4))), mesh_of(dp=512, tp=2))

    assert [len(group.ranks) for group in written(lowered).shards] == [512, 512]
    assert len(msgspec.json.encode(written(lowered))) < 16 * 2 * 1024


# R167
@pytest.mark.parametrize("name", ["shardscope.shardmap/2", "shardscope.lowered/0", "shardscope.shardmap/1.1"])
def test_another_version_is_refused_before_anything_is_looked_at(name: str) -> None:
    code, params = fault({"schema": name, "anything": object()})

    assert (code, params["found"]) == ("map.version", name)


@pytest.mark.parametrize("value", [{}, [], 7, {"schema": 1}, {"schema": "shardscope.descriptor/1"}])
def test_other_json_is_no_map(value: object) -> None:
    assert fault(value)[0] == "map.not_a_map"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (document({"node": "contiguous", "axis": "tp", "dim": -1, "widths": [8]}), "w.map.dim"),
        (document({**CUT, "widths": [4, True]}), "w.map.widths[1]"),
        (document({**CUT, "widths": [4, 4.5]}), "w.map.widths[1]"),
        (document({**CUT, "extra": 1}), "w.map"),
        (document({"node": "mystery"}), "w.map.node"),
        (document({"node": "scale", "numerator": 1, "denominator": 0}), "w.map.denominator"),
        (document({**CUT, "of": {"node": "trim", "dim": 0}}), "w.map.of"),
        (document(meshes={"dense": {"axes": [{"name": "", "size": 2}]}}), "mesh dense.axes[0].name"),
        (document(meshes={"dense": {"axes": [{"name": "tp", "size": 0}]}}), "mesh dense.axes[0].size"),
        (document(extra=1), "the document"),
        (document(tensors=[]), "the document.tensors"),
        ({key: value for key, value in document().items() if key != "meshes"}, "the document"),
        (document(meshes={}), "w"),
        ({"schema": LOWERED, "tensors": {"w": {"shape": [2]}}}, "w"),
        ({"schema": LOWERED, "meshes": {}, "tensors": {}}, "the document"),
    ],
)
def test_a_message_names_the_tensor_and_the_field(value: object, place: str) -> None:
    code, params = fault(value)

    assert (code, params["place"]) == ("map.document", place)


def test_a_mesh_of_more_ranks_than_there_are_is_refused_before_they_are_listed() -> None:
    huge = mesh_of(dp=10**9, tp=10**9)

    with pytest.raises(Fault) as caught:
        lower(TensorMap((8,), Replicate()), huge)
    assert caught.value.finding.params["budget"] == "ranks"


def test_two_axes_of_one_name_are_no_mesh() -> None:
    axes = mesh_of(tp=2).axes * 2

    with pytest.raises(Fault) as caught:
        lower(TensorMap((8,), Replicate()), DeviceMesh(axes))
    assert caught.value.finding.code == "map.invalid"


def test_indices_of_a_document_have_their_budget() -> None:
    tensor = written(LAYOUTS["shuffled"])

    with pytest.raises(Fault) as caught:
        lowered_of(tensor, Budget(Budgets(explicit_bytes=8 * 100)))
    assert caught.value.finding.params["budget"] == "explicit_bytes"
    assert math.prod(tensor.shape) == 800
