"""`.metadata` of PyTorch's distributed checkpoints in columns: what it says, and what it refuses."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import DcpChunks, Items, Pickled
from shardscope.engine.parse.pickled import read_pickles
from shardscope.engine.parse.pickled.tree import Tree
from tests.parse import standins
from tests.parse.assembling import Called, Ref, facts_of, instance
from tests.parse.fixture_pickles import FIXTURES

METADATA = "torch.distributed.checkpoint.metadata"
FILESYSTEM = "torch.distributed.checkpoint.filesystem"
STRIDED = Called(Ref("torch.serialization", "_get_layout"), ("torch.strided",))
FORMAT = Called(Ref(METADATA, "_MEM_FORMAT_ENCODING"), (0,))


def chunks_of(found: Pickled) -> DcpChunks:
    root = found.nodes[found.roots[0]]
    assert isinstance(root, DcpChunks)
    return root


def fixture(name: str) -> Pickled:
    data = (FIXTURES / name / ".metadata").read_bytes()
    return read_pickles(data, DecodeLimits())


def size(*lengths: object) -> Called:
    return Called(Ref("torch", "Size"), (lengths,))


def parts(**changes: object) -> dict[str, Any]:
    """Return the parts of a metadata with one tensor in one chunk."""
    found: dict[str, Any] = {
        "dtype": Ref("torch", "float32"),
        "shape": size(4, 2),
        "offsets": size(0, 0),
        "sizes": size(4, 2),
        "index_offset": size(0, 0),
        "name": "w",
        "index_name": "w",
        "path": "__0_0.distcp",
        "begin": 0,
        "length": 100,
        "more": {},
        "state": None,
    }
    return found | changes


def metadata(**changes: object) -> Called:
    it = parts(**changes)
    properties = instance(METADATA, "TensorProperties", (it["dtype"], STRIDED, False, FORMAT, False))
    chunk = instance(METADATA, "ChunkStorageMetadata", {"offsets": it["offsets"], "sizes": it["sizes"]})
    tensor = instance(
        METADATA,
        "TensorStorageMetadata",
        {"properties": properties, "size": it["shape"], "chunks": it.get("chunks", [chunk])},
    )
    described = Called(Ref("collections", "OrderedDict"), items=[(it["name"], tensor)])
    index = instance(
        METADATA, "MetadataIndex", {"fqn": it["index_name"], "offset": it["index_offset"], "index": 0}
    )
    info = instance(
        FILESYSTEM,
        "_StorageInfo",
        {"relative_path": it["path"], "offset": it["begin"], "length": it["length"], **it["more"]},
    )
    stored = Called(Ref("collections", "OrderedDict"), items=[(index, info)])
    state = {"state_dict_metadata": described, "planner_data": None, "storage_data": stored}
    return instance(METADATA, "Metadata", it["state"] or state)


def test_a_metadata_becomes_columns() -> None:
    found = facts_of(metadata())
    assert msgspec.structs.replace(chunks_of(found), properties=()) == DcpChunks(
        names=["w"], dtypes=["F32"], shapes=[(4, 2)], counts=[1], offsets=[(0, 0)], sizes=[(4, 2)],
        files=["__0_0.distcp"], file=[0], begin=[0], length=[100], transforms=[0], transform_lists=[()], strays=[],
        properties=(), planner=None, storage_meta=None, version=None, extra={},
    )  # fmt: skip
    tree = Tree(found)
    (properties,) = chunks_of(found).properties
    assert tree.value(properties, "requires_grad") is False
    assert tree.integer(properties, "memory_format", "value") == 0
    assert found.findings == []


@pytest.mark.parametrize(("ranks", "tensors"), [(1, 1), (4, 30)])
def test_chunks_of_all_tensors_have_their_storage(ranks: int, tensors: int) -> None:
    found = read_pickles(standins.pickled(standins.metadata(tensors, ranks)), DecodeLimits())
    chunks = chunks_of(found)

    assert len(chunks.names) == tensors
    assert chunks.counts == [ranks] * tensors
    assert chunks.shapes[0] == (128 * ranks, 4_096)
    assert chunks.files == [f"__{rank}_0.distcp" for rank in range(ranks)]
    assert chunks.file == list(range(ranks)) * tensors
    assert chunks.offsets[:ranks] == [(128 * rank, 0) for rank in range(ranks)]
    assert chunks.begin[-1] == (tensors - 1) * (128 * 4_096 * 2 + 1_500)
    assert chunks.dtypes == ["BF16"] * tensors
    assert len(set(chunks.properties)) == 1  # one record for equal ones
    assert chunks.version == "1.0.0"
    tree = Tree(found)
    assert tree.text(chunks.planner, chunks.names[0], 0) == "model"
    assert tree.text(chunks.storage_meta, "checkpoint_id") == "somewhere"
    assert found.findings == []


def test_plans_say_how_many_ranks_there_were_and_which_wrote_what() -> None:
    found = read_pickles(standins.pickled(standins.metadata(5, 3, plans=True)), DecodeLimits())
    chunks = chunks_of(found)

    assert chunks.writers == 3
    assert chunks.writer == [0, 1, 2] * 5
    tree = Tree(found)
    plans = chunks.extra["all_local_plans"]
    assert [tree.integer(plan, "writes") for plan in tree.items(plans)] == [5, 5, 5]


def test_plans_of_another_shape_are_no_reason_to_refuse() -> None:
    state = {"state_dict_metadata": {}, "storage_data": {}, "all_local_plans": [1, 2]}
    found = facts_of(metadata(state=state))
    chunks = chunks_of(found)
    assert chunks.writers is None
    assert isinstance(found.nodes[chunks.extra["all_local_plans"]], Items)
    assert [each.code for each in found.findings] == ["pickle.arguments"]


def test_what_is_stored_elsewhere_is_a_stray() -> None:
    assert chunks_of(facts_of(metadata(index_name="other"))).strays == ["other"]
    moved = chunks_of(facts_of(metadata(index_offset=size(1, 0))))
    assert (moved.strays, moved.file) == (["w"], [-1])


def test_an_index_without_an_offset_means_the_only_chunk() -> None:
    assert chunks_of(facts_of(metadata(index_offset=None))).file == [0]


def test_items_of_bytes_have_a_chunk_without_a_dtype() -> None:
    item = instance(METADATA, "BytesStorageMetadata")
    index = instance(METADATA, "MetadataIndex", {"fqn": "b"})
    info = instance(FILESYSTEM, "_StorageInfo", {"relative_path": "f", "offset": 7, "length": 9})
    stored = Called(Ref("collections", "OrderedDict"), items=[(index, info)])
    found = chunks_of(facts_of(metadata(state={"state_dict_metadata": {"b": item}, "storage_data": stored})))
    assert (found.dtypes, found.counts, found.begin, found.length) == ([None], [1], [7], [9])


def test_transforms_are_listed_once() -> None:
    found = chunks_of(facts_of(metadata(more={"transform_descriptors": ["stream.zstd/1"]})))
    assert found.transform_lists == [(), ("stream.zstd/1",)]
    assert found.transforms == [1]


@pytest.mark.parametrize(
    "changes",
    [
        {"offsets": size(-1, 0)},
        {"offsets": size(0)},
        {"offsets": size("a", 0)},
        {"offsets": None},
        {"sizes": size(4, 2.0)},
        {"sizes": size(True, 2)},
        {"sizes": size(1 << 63, 2)},
        {"shape": size(1 << 64, 2)},
        {"shape": size(*[1] * 65)},
        {"shape": "4"},
        {"dtype": "float32"},
        {"dtype": Ref("os", "system")},
        {"dtype": Ref("torch", "Tensor")},
        {"name": 7},
        {"index_name": 7},
        {"index_offset": size(-1, 0)},
        {"path": None},
        {"path": 7},
        {"begin": -1},
        {"begin": 1.0},
        {"begin": 1 << 63},
        {"length": -1},
        {"length": None},
        {"length": True},
        {"chunks": None},
        {"chunks": (1,)},
        {"chunks": [1]},
        {"chunks": [Called(Ref("os", "system"))]},
        {
            "chunks": [
                instance("my.metadata", "ChunkStorageMetadata", {"offsets": size(0, 0), "sizes": size(4, 2)})
            ]
        },
        {"more": {"transform_descriptors": "zstd"}},
        {"more": {"transform_descriptors": ["a"] * 17}},
        {"more": {"transform_descriptors": [1]}},
        {"state": {"state_dict_metadata": None}},
        {"state": {"state_dict_metadata": Called(Ref("my.collections", "OrderedDict"))}},
        {"state": {"state_dict_metadata": {"w": Called(Ref("os", "system"))}}},
        {"state": {"state_dict_metadata": {}, "storage_data": [1]}},
        {"state": {"state_dict_metadata": {}, "storage_data": {1: 2}}},
        {"state": {"state_dict_metadata": {}, "version": 1}},
    ],
)
def test_a_field_that_torch_does_not_write_refuses_the_whole(changes: dict[str, object]) -> None:  # R044 R045
    """Half of the chunks would look like a checkpoint with holes."""
    with pytest.raises(Fault) as caught:
        facts_of(metadata(**changes))
    assert caught.value.finding.code == "pickle.metadata_field"


def test_a_name_twice_refuses_the_whole() -> None:
    item = instance(METADATA, "BytesStorageMetadata")
    twice = Called(Ref("collections", "OrderedDict"), items=[("b", item), ("b", item)])
    with pytest.raises(Fault) as caught:
        facts_of(metadata(state={"state_dict_metadata": twice, "storage_data": {}}))
    assert caught.value.finding.code == "pickle.metadata_field"


@pytest.mark.parametrize(
    ("name", "look"),
    [
        ("dcp/fsdp2_flat_world2/checkpoint", lambda found: found.version == "1.0.0" and not found.strays),
        ("dcp/metadata_torch22_names/checkpoint", lambda found: found.version is None),
        ("dcp/metadata_no_planner_data/checkpoint", lambda found: found.planner is None),
        (
            "dcp/fsdp2_zstd_world2/checkpoint",
            lambda found: found.transform_lists[1] == ("stream.zstd/1",),
        ),
        ("dcp/model_optim_world2/checkpoint", lambda found: None in found.dtypes),
        ("dcp/bad_hole/checkpoint", lambda found: len(found.names) > 5),
        ("dcp/bad_metadata_canary/checkpoint", lambda found: len(found.names) > 5),
        ("megatron/torch_dist_tp2_pp2/checkpoint/iter_0000010", lambda found: found.writers == 4),
        ("megatron/torch_dist_moe_ep2/checkpoint/iter_0000010", lambda found: found.writers == 2),
    ],
)
def test_metadata_of_fixtures(name: str, look: Callable[[DcpChunks], bool]) -> None:
    found = chunks_of(fixture(name))
    assert look(found)
    assert len(found.offsets) == len(found.sizes) == len(found.file) == sum(found.counts)
    assert -1 not in found.file


def test_a_rank_that_wrote_a_chunk_has_its_file() -> None:
    found = chunks_of(fixture("megatron/torch_dist_tp2_pp2/checkpoint/iter_0000010"))
    by_file: dict[str, set[int]] = {}
    for file, writer in zip(found.file, found.writer, strict=True):
        by_file.setdefault(found.files[file], set()).add(writer)
    assert -1 not in found.writer
    ranks = {file: int(file.removeprefix("__").split("_")[0]) for file in by_file}
    assert all(min(writers) <= ranks[file] for file, writers in by_file.items())
