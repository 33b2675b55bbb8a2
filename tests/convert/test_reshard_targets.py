"""Resharding to a document of maps, states that move with their parameters, and the layouts of others."""

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from shardscope.engine import inspect, read_shard_map, verify
from shardscope.engine.converting.resharding import transfers
from shardscope.engine.geometry.language.document import written
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.mapping.targets import Numbers
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.lowered import LoweredDocument
from shardscope.engine.model.schemas import LOWERED, SHARD_MAP
from shardscope.engine.model.shardmap import (
    Contiguous,
    DeviceMesh,
    FlatRange,
    Node,
    Replicate,
    Scale,
    ShardMapDocument,
    TensorMap,
)
from shardscope.engine.shardmaps.reading import ShardMaps
from tests.convert.reshards import (
    FIXTURES,
    Arrays,
    aim,
    assert_equal,
    header_of,
    llama,
    planned,
    ranks_of,
    resharded,
    whole,
)
from tests.convert.targets import fault
from tests.geometry.trees import PADDING, maps, mesh_of, shown

Two = tuple[TensorMap, DeviceMesh]


def document(mesh: DeviceMesh, **tensors: TensorMap) -> ShardMaps:
    return ShardMaps("target.json", ShardMapDocument(SHARD_MAP, {"dense": mesh}, tensors))


def one(folder: Path, value: Any) -> Path:
    folder.mkdir()
    save_file({"w": value}, folder / "model.safetensors", {"format": "pt"})
    return folder


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(target=maps(), lowered=st.booleans())
def test_ranks_hold_what_a_map_means(target: Two, lowered: bool) -> None:
    """Against an evaluator of trees that knows nothing of pieces."""
    tensor, mesh = target
    held = shown(tensor, mesh)
    seen = {int(n) for shard in held.values() for n in shard.elements.reshape(-1)} - {PADDING}
    assume(len(seen) == math.prod(tensor.shape) and all(shard.scale == 1 for shard in held.values()))
    value = np.random.default_rng(0).standard_normal(tensor.shape, dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        source = one(root / "hf", value)
        made = document(mesh, w=tensor)
        if lowered:
            normal = LoweredDocument(LOWERED, {"w": written(lower(tensor, mesh))})
            made = ShardMaps("target.json", normal)
        try:
            resharded(source, root / "out", aim(maps=made))
        except Fault as fault:
            assume(fault.finding.code == "reshard.layout")  # padding between the elements
            return

        found = {int(p.stem[5:]): load_file(p)["w"] for p in (root / "out").glob("rank-*")}
        assert found.keys() == held.keys()
        for rank, shard in held.items():
            at = shard.elements
            assert found[rank].shape == at.shape
            truth = np.where(
                at == PADDING,
                np.float32(0),
                value.reshape(-1)[np.maximum(at, 0).reshape(-1)].reshape(at.shape),
            )
            assert np.array_equal(found[rank], truth)
        assert_equal(whole(root / "out", root / "back"), {"w": value})


def test_a_target_can_be_taken_out_of_an_output_again(tmp_path: Path) -> None:
    llama(tmp_path / "hf")
    resharded(tmp_path / "hf", tmp_path / "one", aim(Numbers(tp=2, pp=2)))
    bundle = json.loads((tmp_path / "one/shardscope-bundle.json").read_text())
    maps = {
        "schema": SHARD_MAP,
        "meshes": bundle["meshes"],
        "tensors": {
            name: {key: tensor[key] for key in ("shape", "map", "mesh")}
            for name, tensor in bundle["tensors"].items()
        },
    }
    (tmp_path / "target.json").write_text(json.dumps(maps))

    resharded(tmp_path / "hf", tmp_path / "two", aim(maps=read_shard_map(tmp_path / "target.json")))

    for rank, held in ranks_of(tmp_path / "one").items():
        assert_equal(ranks_of(tmp_path / "two")[rank], held)


@pytest.mark.parametrize(
    ("code", "tensors"),
    [
        ("reshard.unmapped", {}),
        ("reshard.shape", {"w": TensorMap((6, 5), Replicate())}),
        ("reshard.shape", {"w": TensorMap((6, 4), Replicate(), dtype="BF16")}),
        ("reshard.loses", {"w": TensorMap((6, 4), FlatRange("tp", (0, 12), (12, 23)))}),
        ("reshard.scaled", {"w": TensorMap((6, 4), Scale(2))}),
        ("map.invalid", {"w": TensorMap((6, 4), Contiguous("tp", 0, (3, 4)))}),
    ],
)
def test_maps_that_do_not_fit_are_refused(tmp_path: Path, code: str, tensors: dict[str, TensorMap]) -> None:
    source = one(tmp_path / "hf", np.ones((6, 4), np.float32))
    with fault(code):
        planned(source, aim(maps=document(mesh_of(tp=2), **tensors)))


def test_maps_of_other_tensors_are_refused_unless_a_part_was_asked_for(tmp_path: Path) -> None:
    source = one(tmp_path / "hf", np.ones((6, 4), np.float32))
    node: Node = Contiguous("tp", 0, (3, 3))
    maps_ = document(mesh_of(tp=2), w=TensorMap((6, 4), node), v=TensorMap((6, 4), node))

    with fault("reshard.absent"):
        planned(source, aim(maps=maps_), component="all")
    assert len(planned(source, aim(maps=maps_), include=("w",)).plan.files) == 2


def test_a_normal_form_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    source = one(tmp_path / "hf", np.ones((6, 4), np.float32))
    good = written(lower(TensorMap((6, 4), Contiguous("tp", 0, (3, 3))), mesh_of(tp=2)))
    bad = msgspec.structs.replace(
        good, shards=(good.shards[0], msgspec.structs.replace(good.shards[1], shape=(2, 4)))
    )
    with pytest.raises(Fault) as caught:
        planned(source, aim(maps=ShardMaps("t.json", LoweredDocument(LOWERED, {"w": bad}))))
    assert caught.value.finding.code.startswith("map.")


# --- optimizer states


@pytest.fixture
def training(tmp_path: Path) -> tuple[Path, Arrays]:
    """A bundle of parameters and the states of Adam, as an export would write it."""
    random = np.random.default_rng(4)
    held: Arrays = {}
    shapes = {"net.0.weight": (10, 6), "net.0.bias": (10,), "head.weight": (7, 10)}
    tensors: dict[str, Any] = {}
    for name, shape in shapes.items():
        held[name] = random.standard_normal(shape, dtype=np.float32)
        tensors[name] = {"component": "model"}
        for state in ("exp_avg", "exp_avg_sq"):
            held[f"state.{name}.{state}"] = random.standard_normal(shape, dtype=np.float32)
            tensors[f"state.{name}.{state}"] = {"component": "optimizer", "role": "state"}
        held[f"state.{name}.step"] = np.array(7, np.float32)
        tensors[f"state.{name}.step"] = {"component": "optimizer", "role": "state"}
    for name, value in held.items():
        tensors[name] |= {
            "dtype": "F32",
            "shape": list(value.shape),
            "fragments": [{"rank": 0, "file": "all.safetensors", "key": name}],
        }
    folder = tmp_path / "training"
    folder.mkdir()
    save_file(held, folder / "all.safetensors")
    (folder / "shardscope-bundle.json").write_text(
        json.dumps({"schema": "shardscope.bundle/1", "tensors": tensors})
    )
    return folder, held


@pytest.mark.parametrize("sharding", ["none", "zero1", "zero2", "zero3", "fsdp"])
def test_states_move_with_their_parameters(
    training: tuple[Path, Arrays], tmp_path: Path, sharding: Any
) -> None:
    source, held = training
    done = resharded(source, tmp_path / "out", aim(Numbers(dp=3, sharding=sharding)), component="all")
    ranks = ranks_of(tmp_path / "out")

    assert any("no exact resume" in item.choice for item in done.plan.decisions)
    for rank in range(3):
        assert ranks[rank]["state.head.weight.step"] == 7
        weight, state = (ranks[rank][name] for name in ("head.weight", "state.head.weight.exp_avg"))
        if sharding in ("zero1", "zero2"):
            assert np.array_equal(weight, held["head.weight"])
        else:
            assert weight.shape == state.shape
    if sharding in ("zero1", "zero2"):  # one buffer of each kind of state, cut in three, as DeepSpeed cuts it
        # 60 + 10 + 2 of padding + 70 elements, to a multiple of six, in three
        sizes = [
            sum(
                ranks[rank][f"state.{name}.exp_avg"].size
                for name in ("net.0.weight", "net.0.bias", "head.weight")
            )
            for rank in range(3)
        ]
        assert sizes == [48, 46, 46]
        assert np.array_equal(
            ranks[1]["state.net.0.weight.exp_avg"], held["state.net.0.weight.exp_avg"].reshape(-1)[48:]
        )
    assert_equal(whole(tmp_path / "out", tmp_path / "back", component="all"), held)


@pytest.mark.parametrize("lowered", [False, True])
def test_maps_of_parameters_carry_their_states(
    training: tuple[Path, Arrays], tmp_path: Path, lowered: bool
) -> None:
    source, held = training
    maps_ = document(
        mesh_of(tp=2),
        **{
            "net.0.weight": TensorMap((10, 6), Contiguous("tp", 0, (4, 6))),
            "net.0.bias": TensorMap((10,), Contiguous("tp", 0, (4, 6))),
            "head.weight": TensorMap((7, 10), Contiguous("tp", 1, (5, 5))),
        },
    )
    if lowered:
        normal = {name: written(maps_.lowered(name)) for name in maps_.names}
        maps_ = ShardMaps("target.json", LoweredDocument(LOWERED, normal))
    resharded(source, tmp_path / "out", aim(maps=maps_), component="all")

    ranks = ranks_of(tmp_path / "out")
    assert np.array_equal(ranks[1]["state.net.0.weight.exp_avg"], held["state.net.0.weight.exp_avg"][4:])
    assert np.array_equal(
        ranks[0]["state.head.weight.exp_avg_sq"], held["state.head.weight.exp_avg_sq"][:, :5]
    )


def test_a_state_of_nobody_is_refused(training: tuple[Path, Arrays], tmp_path: Path) -> None:
    source, _ = training
    document_ = json.loads((source / "shardscope-bundle.json").read_text())
    del document_["tensors"]["head.weight"]
    (source / "shardscope-bundle.json").write_text(json.dumps(document_))
    numbers = Numbers(tp=2)
    with fault("reshard.state"):
        planned(source, aim(numbers, cuts="hf-llama"), component="optimizer")


def test_states_of_deepspeed_know_their_parameters(tmp_path: Path) -> None:
    source = FIXTURES / "deepspeed/zero2-w4-bf16/checkpoint"
    done = planned(source, aim(Numbers(dp=2, sharding="zero1")), component="optimizer", decode=True).plan
    (partition,) = [item for item in done.decisions if item.kind == "partition"]
    assert partition.tensors == len({item.name for file in done.files for item in file.tensors})
    assert done.target is not None
    assert done.target.maps is not None
    one_, two = (done.target.maps.tensors[f"{kind}::pos"].map for kind in ("exp_avg", "exp_avg_sq"))
    assert one_ == two  # a buffer of each kind


# --- layouts of others


def test_dcp_safetensors_are_boxes_with_their_offsets_and_replicas_once(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf", vocabulary=32)
    resharded(
        tmp_path / "hf", tmp_path / "out", aim(Numbers(tp=2, dp=2, sharding="fsdp"), layout="dcp-safetensors")
    )
    files = sorted(path.name for path in (tmp_path / "out").glob("*.safetensors"))

    assert files == [f"shard-{n:05d}-model-00001-of-00001.safetensors" for n in (1, 2, 3, 4)]
    metadata = header_of(tmp_path / "out" / files[1])["__metadata__"]
    sharding = json.loads(metadata["DCP_SHARDING_INFO"])
    assert metadata["DCP_VERSION"] == "1.0"
    assert sharding["lm_head.weight"] == {"saved_offsets": [16, 0], "global_shape": [32, 16]}
    assert "model.norm.weight" not in sharding  # the first tensor-parallel rank has it
    assert inspect(tmp_path / "out").descriptor.classification.format == "torch_dcp_safetensors"
    assert_equal(whole(tmp_path / "out", tmp_path / "back"), full)
    assert verify(tmp_path / "out", tmp_path / "hf").same


def test_dcp_safetensors_go_into_files_of_the_size_that_was_asked_for(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf")
    resharded(
        tmp_path / "hf", tmp_path / "out", aim(Numbers(tp=2), layout="dcp-safetensors"), max_shard_bytes=4000
    )
    names = [path.name for path in (tmp_path / "out").glob("shard-00001-*")]

    assert len(names) > 1
    assert all(f"of-{len(names):05d}" in name for name in names)
    assert_equal(whole(tmp_path / "out", tmp_path / "back"), full)


@pytest.mark.parametrize("numbers", [Numbers(tp=4), Numbers(dp=2, sharding="zero3")])
def test_what_is_no_box_is_refused_by_layouts_of_boxes(tmp_path: Path, numbers: Numbers) -> None:
    llama(tmp_path / "hf", vocabulary=30)
    with fault("reshard.layout"):
        planned(tmp_path / "hf", aim(numbers, layout="dcp-safetensors"))


@pytest.mark.parametrize("tied", [False, True])
def test_vllms_workers_get_what_vllm_itself_would_have_written(tmp_path: Path, tied: bool) -> None:
    from tests.convert.test_mappings import workers

    truth = tmp_path / "truth"
    model = workers(truth, 2, heads=4, groups=2, vocabulary=60, tied=tied)
    (tmp_path / "hf").mkdir()
    save_file(model, tmp_path / "hf/model.safetensors", {"format": "pt"})
    (tmp_path / "hf/config.json").write_text((truth / "config.json").read_text())

    resharded(
        tmp_path / "hf",
        tmp_path / "out",
        aim(Numbers(tp=2, vocabulary_multiple=64), layout="vllm"),
        fuse="vllm-llama",
    )

    for rank in range(2):
        found = load_file(tmp_path / f"out/model-rank-{rank}-part-0.safetensors")
        parts = sorted(truth.glob(f"model-rank-{rank}-part-*.safetensors"))
        wanted = {name: value for part in parts for name, value in load_file(part).items()}
        assert_equal(found, {name: value for name, value in wanted.items() if "_scale" not in name})
    assert inspect(tmp_path / "out").descriptor.classification.format == "vllm_sharded_state"
    assert verify(tmp_path / "out", tmp_path / "hf").same
    assert_equal(whole(tmp_path / "out", tmp_path / "back", mapping="vllm-llama"), model)


def test_a_part_that_is_missing_is_never_fused_over(tmp_path: Path) -> None:
    full = llama(tmp_path / "hf")
    del full["model.layers.0.self_attn.k_proj.weight"]
    save_file(full, tmp_path / "hf/model.safetensors", {"format": "pt"})
    with fault("reshard.fuse"):
        planned(tmp_path / "hf", aim(Numbers(tp=2), layout="vllm"), fuse="vllm-llama")
    with fault("mapping.unfit"):
        planned(
            FIXTURES / "hf/mixtral_moe_sharded/checkpoint",
            aim(Numbers(tp=2), layout="vllm"),
            fuse="vllm-llama",
        )
    with fault("reshard.target"):
        planned(
            FIXTURES / "hf/llama_sharded/checkpoint",
            aim(Numbers(tp=2, dp=2), layout="vllm"),
            fuse="vllm-llama",
        )


# --- transfer plans


def test_copies_are_listed_by_pairs_of_ranks_and_make_every_shard(tmp_path: Path) -> None:
    llama(tmp_path / "hf", vocabulary=32)
    resharded(tmp_path / "hf", tmp_path / "tp4", aim(Numbers(tp=4)))
    prepared = planned(tmp_path / "tp4", aim(Numbers(tp=2)))
    found = transfers(prepared)

    assert [(pair.source_rank, pair.target_rank) for pair in found.pairs] == [
        (0, 0), (0, 1), (1, 0), (2, 1), (3, 1),
    ]  # fmt: skip
    total = sum(item.bytes for file in prepared.plan.files for item in file.tensors)
    assert sum(pair.bytes for pair in found.pairs) == total
    for pair in found.pairs:
        for run in pair.runs:
            some = found.tensors[run.tensor].segments[run.first : run.first + run.count]
            assert some
            assert {(one.source_rank, one.target_rank) for one in some} == {
                (pair.source_rank, pair.target_rank)
            }
    files = {item.file for item in found.stored["lm_head.weight"]}
    assert files == {f"rank-{rank:05d}.safetensors" for rank in range(4)}
    assert found.dtypes["lm_head.weight"] == "F32"


@pytest.mark.parametrize(
    "name",
    ["torch/zip_views", "torch/zip_shared_storage", "torch/zip_deflated", "fsdp2", "megatron/dist_zarr_tp2"],
)
def test_what_producers_wrote_is_cut_anew_and_is_the_same(tmp_path: Path, name: str) -> None:
    """Strided views, compressed records, fragments of DTensors and chunks, in flattened stretches."""
    name = "torch/fsdp2_tp_dtensor_torch_save_dp2_tp2" if name == "fsdp2" else name
    source = FIXTURES / name / "checkpoint"
    done = resharded(source, tmp_path / "out", aim(Numbers(dp=3, sharding="zero3")), decode=True)
    resharded(tmp_path / "out", tmp_path / "two", aim(Numbers(dp=2, sharding="fsdp")))

    decoding = Decoding(Intent("convert", "command line"), "all")
    assert verify(tmp_path / "two", tmp_path / "out").same
    assert verify(tmp_path / "two", source, decoding_against=decoding).same
    assert len({item.name for file in done.plan.files for item in file.tensors}) > 1
