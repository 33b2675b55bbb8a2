"""Our maps against deepspeed's own: its affine module, its partition functions fed with marked data, and its converter."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.checking.compare import same
from shardscope.engine.geometry.constructors import attention, cuts, experts
from shardscope.engine.geometry.constructors.cuts import mesh
from shardscope.engine.geometry.constructors.flat import zero3_starts, zero_group
from shardscope.engine.geometry.execution.execute import assemble, slice_
from shardscope.engine.geometry.interchange.deepspeed import (
    read_affine_map,
    read_parameter,
    write_affine_map,
    write_parameter,
)
from shardscope.engine.geometry.interchange.universal import translate
from shardscope.engine.geometry.interchange.universal_info import read_universal
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import Contiguous, Replicate, TensorMap
from tests.geometry.trees import elements_of
from tests.geometry.universal_data import WITH_MAPS, Saved

torch = pytest.importorskip("torch")
affine = pytest.importorskip("deepspeed.checkpoint.affine")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]


def marked(*shape: int) -> Any:
    return torch.arange(math.prod(shape), dtype=torch.int64).reshape(shape)


def on(tensor: TensorMap, ranks: int) -> Lowered:
    return lower(tensor, mesh(tp=ranks))


def holds(lowered: Lowered, shards: Sequence[Any]) -> None:
    assert check(lowered).findings == ()
    assert elements_of(lowered) == {rank: shard.reshape(-1).tolist() for rank, shard in enumerate(shards)}


def both_ways(lowered: Lowered) -> None:
    """What we write, deepspeed accepts as complete, and it cuts and joins random data as we do."""
    theirs = affine.ParamAffineMap.from_dict(write_parameter(lowered, "w"))
    theirs.validate_coverage()
    full = torch.randn(lowered.shape, generator=torch.Generator().manual_seed(3))
    shards = {shard.rank: theirs.extract(full, shard.rank) for shard in lowered.ranks}
    for rank, shard in shards.items():
        assert slice_(lowered, full.numpy(), rank).tobytes() == shard.numpy().tobytes()
    joined = assemble(lowered, {rank: shard.numpy() for rank, shard in shards.items()})
    assert joined.tobytes() == theirs.rebuild(shards).numpy().tobytes() == full.numpy().tobytes()


THEIRS = {
    "replicated": lambda: affine.replicated_map((3, 4), 3),
    "scaled": lambda: affine.replicated_map((3, 4), 3, scale=1 / 3),
    "rows": lambda: affine.contiguous_split_map((9, 4), [5, 0, 4], 0),
    "columns": lambda: affine.contiguous_split_map((3, 9), [5, 4], 1),
    "sub parameters": lambda: affine.sub_param_map((22, 4), [10, 6, 6], [[6, 4], [4, 2], [4, 2]], 0),
    "segments": lambda: affine.segmented_map((48, 8), [(32, False), (16, True)], 0, 4, [[8] * 4]),
    "blocks": lambda: affine.block_gather_map((8, 32), {0: [0, 1, 4, 5], 1: [2, 3, 6, 7]}, 4, 1),
    "scalar": lambda: affine.replicated_map((), 2),
}


# R164 R185
@pytest.mark.parametrize("kind", THEIRS)
def test_a_map_of_deepspeed_is_read_and_written_byte_for_byte(kind: str) -> None:
    theirs = THEIRS[kind]()
    container = {"version": affine.AFFINE_MAP_FORMAT_VERSION, "params": {"^w\\.x$": theirs.to_dict()}}
    maps = read_affine_map(container)

    assert json.dumps(write_affine_map(maps)) == json.dumps(container)
    assert check(maps["w.x"]).findings == ()
    if kind != "scaled":
        both_ways(maps["w.x"])


def test_maps_of_deepspeed_equal_ours() -> None:
    pairs = {
        "replicated": (TensorMap((3, 4), Replicate()), 3),
        "rows": (TensorMap((9, 4), Contiguous("tp", 0, (5, 0, 4))), 3),
        "columns": (TensorMap((3, 9), Contiguous("tp", 1, (5, 4))), 2),
        "sub parameters": (TensorMap((22, 4), cuts.fused("tp", 0, [[6, 4], [4, 2], [4, 2]])), 2),
        "segments": (attention.multi_query((48, 8), [8] * 4), 4),
        "blocks": (attention.shared_query_key((8, 32), 2, 8, dim=1), 2),
    }
    for kind, (tensor, ranks) in pairs.items():
        assert same(read_parameter(THEIRS[kind]().to_dict(), kind), on(tensor, ranks)), kind
        both_ways(on(tensor, ranks))


def fused_shards(block: str, full: Any, ranks: int, **meta: int) -> list[Any]:
    """What deepspeed's own partition function makes of a fused weight."""
    from deepspeed.module_inject.fusedqkv_utils import prepare_tp_fused_qkvw
    from deepspeed.module_inject.tp_shard import AutoTPMeta

    module = type(block, (torch.nn.Module,), {})()
    return [prepare_tp_fused_qkvw(module, full, ranks, rank, AutoTPMeta(**meta)) for rank in range(ranks)]


# R169 R182
@pytest.mark.parametrize(("ranks", "scale"), [(2, 1), (2, 32), (4, 1), (4, 8)])
def test_codegen_equals_what_its_partition_does(ranks: int, scale: int) -> None:
    rows = 12 * ranks * scale
    lowered = on(attention.codegen((rows, 8), ranks, 4 * ranks), ranks)

    holds(lowered, fused_shards("CodeGenBlock", marked(rows, 8), ranks, num_kv_heads=4 * ranks))
    assert max(len(shard.pieces) for shard in lowered.ranks) <= 11
    both_ways(lowered)
    from deepspeed.module_inject.fusedqkv_utils import codegen_block_layout

    size, ids = codegen_block_layout(rows, ranks, 4 * ranks)
    theirs = affine.block_gather_map((rows, 8), ids, size, 0)
    assert same(read_parameter(theirs.to_dict(), "w"), lowered)
    if ranks == 2:
        assert {len(pieces) for pieces in theirs.pieces_by_rank.values()} == {11}


# R169 R194
@pytest.mark.parametrize(("heads", "ranks"), [(8, 4), (6, 4), (1, 2)])
def test_gptbigcode_equals_what_its_partition_does(heads: int, ranks: int) -> None:
    from deepspeed.module_inject.tp_shard import AutoTPMeta, get_shard_size_list

    meta = {"num_kv_heads": heads, "n_embd": 24}
    widths = get_shard_size_list(24, ranks, AutoTPMeta(**meta))
    lowered = on(attention.multi_query((40, 8), widths), ranks)

    assert tuple(widths) == cuts.grains(24, ranks, 24 // heads)
    holds(lowered, fused_shards("GPTBigCodeBlock", marked(40, 8), ranks, **meta))
    both_ways(lowered)


@pytest.mark.parametrize(("heads", "ranks"), [(8, 4), (12, 3), (8, 2)])
def test_bloom_and_glm_equal_what_their_partitions_do(heads: int, ranks: int) -> None:
    rows = 3 * heads * 4
    full = marked(rows, 8)
    contiguous = on(TensorMap((rows, 8), Contiguous("tp", 0, cuts.even(rows, ranks))), ranks)
    three = on(TensorMap((rows, 8), cuts.fused("tp", 0, [cuts.even(rows // 3, ranks)] * 3)), ranks)

    holds(contiguous, fused_shards("BloomBlock", full, ranks, num_kv_heads=heads))
    holds(three, fused_shards("GLMBlock", full, ranks, num_kv_heads=heads))
    # The same cut, seen from a tensor [all queries, all keys, all values].
    apart = full.reshape(3, heads, 4, 8).transpose(0, 1).reshape(rows, 8)
    seen = on(attention.head_interleaved((rows, 8), ranks, heads), ranks)
    holds(seen, fused_shards("BloomBlock", apart, ranks, num_kv_heads=heads))


# R169
@pytest.mark.parametrize(("heads", "ranks"), [(8, 2), (8, 4), (12, 3)])
def test_yuan_equals_what_its_partition_does(heads: int, ranks: int) -> None:
    from deepspeed.module_inject.fusedqkv_utils import shard_value_with_share_qk
    from deepspeed.module_inject.tp_shard import AutoTPMeta

    meta = AutoTPMeta(num_kv_heads=heads)
    for dim, shape in ((0, (heads * 4, 8)), (1, (8, heads * 4))):
        lowered = on(attention.shared_query_key(shape, ranks, heads, dim=dim), ranks)
        full = marked(*shape).double()  # it makes parameters, which have to be floating point
        shards = [shard_value_with_share_qk(full, None, r, ranks, dim == 0, meta)[0] for r in range(ranks)]
        holds(lowered, [shard.detach().long() for shard in shards])
        both_ways(lowered)


def test_placements_of_experts_lower_alike() -> None:
    from deepspeed.checkpoint import autoep_affine as theirs

    for held in ([[0, 1], [2, 3]], [[3, 0], [1, 2, 3]], [[0], [0], [0]]):
        count = len({expert for one in held for expert in one})
        descriptor = theirs.make_autoep_placement_descriptor(count, held)
        placement = experts.read_placement(descriptor)
        lowered = experts.placed(placement, (count, 3, 2))

        assert experts.write_placement(placement) == descriptor
        assert same(
            read_parameter(theirs.autoep_placement_to_affine_map(descriptor, (count, 3, 2)).to_dict(), "w"),
            lowered,
        )
        both_ways(lowered)
    legacy = theirs.legacy_uniform_autoep_placement_descriptor(8, 2, 4)
    assert experts.write_placement(experts.uniform_placement(8, 4)) == legacy


CASES: dict[str, tuple[dict[str, Any], list[tuple[int, ...]]]] = {
    "replicated": ({"tp_replicated_parameter_patterns": ["w"]}, [(3, 4)] * 2),
    "row": ({"parameter_with_row_parallelism_patterns": [r"\w$"]}, [(3, 5), (3, 4)]),
    "halves": ({"parameter_with_2_sub_params_cat_dim_0": ["w"]}, [(6, 4)] * 3),
    "widths": (
        {
            "parameter_with_sub_params": [{"patterns": ["w"], "shape": ((10, 6, 6), 4), "partition_dim": 0}],
            "sub_param_shard_widths": {"w": [[6, 4], [4, 2], [4, 2]]},
        },
        [(14, 4), (8, 4)],
    ),
    "count": (
        {
            "universal_checkpoint_version": 0.3,
            "parameter_with_sub_params": [{"patterns": ["w"], "shape": (3, -1), "partition_dim": 0}],
        },
        [(6, 4)] * 2,
    ),
    "sizes": (
        {
            "universal_checkpoint_version": 0.2,
            "parameter_with_sub_params": [{"patterns": ["w"], "shape": (4, (6, 4)), "partition_dim": 1}],
        },
        [(4, 5)] * 2,
    ),
    "vocabulary": ({"vocabulary_parameter_patterns": ["w"], "original_vocab_size": 10}, [(6, 4)] * 2),
    "vocabulary by columns": (
        {
            "vocabulary_parameter_patterns": ["w"],
            "original_vocab_size": 5,
            "parameter_with_row_parallelism_patterns": ["w"],
        },
        [(6, 2)] * 2,
    ),
    "vocabulary as it is": (
        {"vocabulary_parameter_patterns": ["w"], "original_vocab_size": 99},
        [(6, 4)] * 2,
    ),
    "column": ({}, [(5, 4), (3, 4)]),
}


# R164 R168
@pytest.mark.parametrize("kind", CASES)
def test_categories_are_joined_as_deepspeed_joins_them(kind: str, tmp_path: Path) -> None:
    from deepspeed.checkpoint import ds_to_universal

    keys, shapes = CASES[kind]
    said = {"universal_checkpoint_version": 0.4, **keys}
    generator = torch.Generator().manual_seed(len(kind))
    shards = [torch.randn(shape, generator=generator) for shape in shapes]
    if kind == "replicated":
        shards = [shards[0]] * len(shards)
    for rank, shard in enumerate(shards):
        for state in ("fp32", "exp_avg", "exp_avg_sq"):
            flat = shard.reshape(-1)
            ds_to_universal.dump_param_fragment(
                str(tmp_path / "s"), rank, 0, state, flat, "w", 0, flat.numel()
            )
    (tmp_path / "o").mkdir()
    ds_to_universal.merge_tp_slices(
        said, str(tmp_path / "o"), str(tmp_path / "s"), len(shards), ("w", [shard.shape for shard in shards])
    )
    joined = torch.load(tmp_path / "o" / "w" / "fp32.pt", weights_only=False)["param"]
    made = translate(read_universal(said), "w", shapes, unmatched_dim=0)

    assert made.lowered is not None
    assert made.lowered.shape == tuple(joined.shape)
    held = {rank: shard.numpy() for rank, shard in enumerate(shards)}
    assert assemble(made.lowered, held).tobytes() == joined.contiguous().numpy().tobytes()


@pytest.mark.parametrize("name", WITH_MAPS)
def test_maps_of_real_saves_work_both_ways(name: str) -> None:
    for tensor, lowered in read_affine_map(Saved(name).info["affine_map"]).items():
        entry = write_parameter(lowered, tensor)
        theirs = affine.ParamAffineMap.from_dict(entry)
        assert json.dumps(theirs.to_dict()) == json.dumps(entry)
        if not any(piece.scale != (1, 1) for shard in lowered.ranks for piece in shard.pieces):
            both_ways(lowered)


def test_round_robin_is_the_order_of_deepspeed() -> None:
    from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer

    for count in range(9):
        for ranks in (1, 2, 3, 5):
            reorder = DeepSpeedZeroOptimizer._round_robin_reorder
            order, _ = reorder(None, list(range(count)), ranks)
            assert zero_group([(2,)] * count, ranks, round_robin=True).order == tuple(order)


FIXTURES = Path(__file__).parents[1] / "fixtures" / "deepspeed"
ZERO = sorted(path.name for path in FIXTURES.glob("zero[123]-w*"))


# R170
@pytest.mark.parametrize("name", ZERO)
def test_partitions_of_real_saves_lie_where_the_buffers_say(name: str) -> None:
    from safetensors.torch import load_file

    folder = FIXTURES / name
    tag = folder / "checkpoint" / (folder / "checkpoint" / "latest").read_text().strip()
    models = sorted(tag.glob("*model_states.pt"))
    optims = sorted(
        tag.glob("*optim_states.pt"), key=lambda path: int(path.name.split("pp_rank_")[1].split("_")[0])
    )
    expected = load_file(folder / "expected.safetensors")
    groups = torch.load(models[0], weights_only=False)["param_shapes"]
    states = [torch.load(path, weights_only=False)["optimizer_state_dict"] for path in optims]
    ranks, found = len(states), 0
    for number, group in enumerate(groups):
        shapes = [tuple(shape) for shape in group.values()]
        if "fp32_flat_groups" in states[0]:
            starts = zero3_starts(shapes, ranks)
            for position, tensor in enumerate(group):
                parts = [
                    state["fp32_flat_groups"][number][starts[position] : starts[position + 1]]
                    for state in states
                ]
                joined = torch.cat(parts)[: math.prod(shapes[position])].reshape(shapes[position])
                assert torch.equal(joined.float(), expected[tensor].float()), tensor
                found += 1
            continue
        paddings = states[0].get("param_alignment_paddings")
        buffer = zero_group(shapes, ranks, paddings=paddings[number] if paddings else None)
        flats = [state["single_partition_of_fp32_groups"][number] for state in states]
        for rank, flat in enumerate(flats):
            assert flat.numel() in (buffer.partition, buffer.partition - buffer.tail(rank))
        for position, tensor in enumerate(group):
            lowered = lower(buffer.parameter(position), mesh(dp=ranks))
            held = [buffer.stretch(position, rank) for rank in range(ranks)]
            shards = {
                rank: flats[rank][one.at : one.at + one.count].detach().numpy()
                for rank, one in enumerate(held)
            }
            assert assemble(lowered, shards).tobytes() == expected[tensor].float().numpy().tobytes(), tensor
            found += 1
    assert found
