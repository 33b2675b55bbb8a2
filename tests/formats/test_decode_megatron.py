"""Megatron saves, decoded: every fixture bit for bit, the runs that no fixture has, and what stands in the way."""

from argparse import Namespace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from shardscope.engine.formats.decode.megatron_flat import unflattened
from shardscope.engine.geometry.constructors.dcp import chunk_list
from shardscope.engine.geometry.execution.execute import assemble
from shardscope.engine.geometry.mapping.apply import apply
from shardscope.engine.geometry.mapping.tables import LayoutTable, NamingTable
from shardscope.engine.mappings import MEGATRON, table
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.evidence import Basis
from shardscope.engine.model.mapping import ModelFacts
from tests.formats.decoding import Found, decode, expected, lowered, value
from tests.formats.megatron_runs import Arrays, Run, cut, model, write
from tests.formats.saved import save

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "megatron"
ALL = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())
MAPPED = sorted(path.parent.name for path in FIXTURES.glob("*/expected_hf.safetensors"))


def named(found: Found, naming: str, vocabulary: int | None = None) -> dict[str, LogicalTensor]:
    """Return the catalogue under a model's names."""
    facts = found.facts[0].model
    assert facts is not None
    if vocabulary is not None:
        facts = msgspec.structs.replace(facts, vocabulary=vocabulary)
    mapped = apply(NamingTable(table(naming), LayoutTable(table(MEGATRON))), facts, found.tensors)
    return {tensor.name: tensor for tensor in mapped.tensors}


def same(found: Found, whole: Arrays) -> None:
    """Assert that decoding found exactly these tensors."""
    assert {tensor.name for tensor in found.tensors} == whole.keys()
    for tensor in found.tensors:
        assert tensor.shape == whole[tensor.name].shape
        assert value(found, tensor) == whole[tensor.name].tobytes(), tensor.name


# --- fixtures


@pytest.mark.parametrize("name", ALL)
def test_every_tensor_of_a_fixture_is_what_the_producer_had(name: str) -> None:
    found = decode(FIXTURES / name / "checkpoint")
    wanted = expected(FIXTURES / name)
    assert {tensor.name for tensor in found.tensors} == wanted.keys()
    for tensor in found.tensors:
        dtype, shape, data = wanted[tensor.name]
        assert (tensor.dtype, tensor.shape) == (dtype, shape)
        assert value(found, tensor) == data, tensor.name
    assert not found.errors


@pytest.mark.parametrize("name", MAPPED)
def test_the_mapping_table_makes_the_tensors_of_the_model(name: str) -> None:
    found = decode(FIXTURES / name / "checkpoint")
    wanted = expected(FIXTURES / name, "expected_hf")
    tensors = named(found, "megatron-llama", vocabulary=97)
    assert tensors.keys() == wanted.keys()
    for key, (dtype, shape, data) in wanted.items():
        tensor = tensors[key]
        assert tensor.shape == shape
        if (
            tensor.dtype != dtype
        ):  # the zarr fixture keeps one norm in bfloat16, of which the other file has all bits
            assert (tensor.dtype, dtype, key) == ("BF16", "F32", "model.norm.weight")
            whole = np.frombuffer(data, "<u4").astype(np.uint64)
            data = ((whole + 0x7FFF + ((whole >> 16) & 1)) >> 16).astype("<u2").tobytes()
        assert value(found, tensor) == data, key


def test_a_mapped_tensor_reads_only_the_fragments_that_hold_it() -> None:
    found = decode(FIXTURES / "torch_dist_tp2_pp2" / "checkpoint")
    tensors = named(found, "megatron-llama", vocabulary=97)
    up = tensors["model.layers.2.mlp.up_proj.weight"]
    assert len(up.fragments) == 2
    assert len(found.named("decoder.layers.mlp.linear_fc1.weight").fragments) == 16


def test_experts_are_mapped_by_their_numbers_in_the_model() -> None:
    found = decode(FIXTURES / "torch_dist_moe_ep2" / "checkpoint")
    fused = np.frombuffer(
        expected(FIXTURES / "torch_dist_moe_ep2")["decoder.layers.mlp.experts.experts.linear_fc1.weight"][2],
        "<f4",
    ).reshape(4, 4, 96, 32)
    tensors = named(found, "megatron-mixtral", vocabulary=97)
    for layer, expert in ((0, 0), (3, 2)):
        for part, rows in (("w1", slice(0, 48)), ("w3", slice(48, 96))):
            name = f"model.layers.{layer}.block_sparse_moe.experts.{expert}.{part}.weight"
            assert value(found, tensors[name]) == fused[layer, expert, rows].tobytes()


@pytest.mark.parametrize("name", ALL)
def test_what_decoding_answers_is_no_longer_in_the_way(name: str) -> None:
    found = decode(FIXTURES / name / "checkpoint")
    assert "trust.opaque_pickle" not in found.codes
    assert "megatron.model_mapping" not in found.codes
    assert "megatron.names_kept" in found.codes
    assert not [item for item in found.blockers if "convert" in item.blocks]


def test_pipeline_or_experts_is_told_by_the_arguments() -> None:
    experts = decode(FIXTURES / "legacy_tp1_ep2" / "checkpoint").facts[0].topology
    assert [mesh.name for mesh in experts.meshes] == ["dense", "expert", "replica"]
    axis = experts.meshes[1].axes[0]
    assert (axis.name, axis.size, axis.basis) == ("ep", 2, Basis.DECLARED)
    stages = decode(FIXTURES / "legacy_tp2_pp2" / "checkpoint").facts[0].topology
    assert [(axis.name, axis.size) for axis in stages.meshes[0].axes[:2]] == [("world", 4), ("tp", 2)]
    assert stages.meshes[0].extents == (2, 2)
    assert stages.meshes[0].ranks_seen == ((0, 0), (0, 1), (1, 0), (1, 1))


def test_the_optimizer_in_buckets_is_named_and_stays_opaque() -> None:
    found = decode(FIXTURES / "legacy_te_tp2_pp2_bf16" / "checkpoint")
    assert "megatron.optimizer_buckets" in found.codes
    assert {entry.name for entry in found.facts[0].opaque} == {"distrib_optim.pt"}
    assert "megatron.extra_state" in found.codes


# --- rank files of runs that no fixture has


@pytest.mark.parametrize(
    "run",
    [
        Run(),
        Run(tp=2, pp=2, vpp=2, layers=8),
        Run(tp=4, groups=2),
        Run(tp=4, groups=1, bias=True),
        Run(tp=2, pp=2, gated=False),
        Run(tp=2, pp=2, ep=2, experts=4),
        Run(ep=2, experts=4, gated=False),
        Run(tp=2, tied=True),
    ],
    ids=str,
)
def test_rank_files_are_put_together(run: Run, tmp_path: Path) -> None:
    whole = model(run)
    write(tmp_path, run, whole)
    found = decode(tmp_path)
    if run.tied and run.pp == 1:
        del whole["output_layer.weight"]
    same(found, whole)
    assert not found.errors


def test_stages_of_different_lengths_are_counted_in_order(tmp_path: Path) -> None:
    run = Run(pp=2, vpp=2, layers=7)
    whole = model(run)
    write(tmp_path, run, whole, stages=[[0], [1, 2], [3, 4], [5, 6]])
    same(decode(tmp_path), whole)


def test_a_missing_stage_leaves_the_numbers_of_the_others(tmp_path: Path) -> None:
    run = Run(pp=4)
    whole = model(run)
    write(tmp_path, run, whole)
    (tmp_path / "iter_0000010/mp_rank_00_001/model_optim_rng.pt").unlink()
    found = decode(tmp_path)
    layers = {
        tensor.name.split(".")[2] for tensor in found.tensors if tensor.name.startswith("decoder.layers")
    }
    assert layers == {"0", "2", "3"}
    assert {"megatron.model_file_missing", "megatron.layer_missing", "megatron.args_ranks"} <= found.errors


def test_a_missing_stage_of_an_uneven_division_is_refused(tmp_path: Path) -> None:
    run = Run(pp=3, layers=4)
    write(tmp_path, run, model(run), stages=[[0], [1, 2], [3]])
    (tmp_path / "iter_0000010/mp_rank_00_001/model_optim_rng.pt").unlink()
    found = decode(tmp_path)
    assert "megatron.layers_uneven" in found.errors
    assert not found.tensors


def test_tied_embeddings_on_two_stages_are_copies(tmp_path: Path) -> None:
    run = Run(tp=2, pp=2, tied=True)
    whole = model(run)
    write(tmp_path, run, whole)
    found = decode(tmp_path)
    embedding, output = found.named("embedding.word_embeddings.weight"), found.named("output_layer.weight")
    assert output.alias_of == embedding.name
    assert len(embedding.replicas) == 2
    assert value(found, embedding) == whole[embedding.name].tobytes()
    assert "lm_head.weight" not in named(found, "megatron-llama", vocabulary=23)

    def other(at: tuple[int, int, int], content: dict[str, object]) -> None:
        part = content["model"]
        assert isinstance(part, dict)
        if at == (1, 1, 0):
            part["output_layer.weight"] = part["output_layer.weight"] + 1

    write(tmp_path, run, whole, change=other)
    found = decode(tmp_path)
    with pytest.raises(AssertionError):
        value(found, found.named("embedding.word_embeddings.weight"))


def test_experts_without_a_cut_of_their_own_stand_on_the_diagonal(tmp_path: Path) -> None:
    run = Run(tp=2, ep=2, experts=4, layers=1)
    whole = model(run)

    def uncut(at: tuple[int, int, int], content: dict[str, object]) -> None:
        part, args = content["model"], content["args"]
        assert isinstance(part, dict)
        assert isinstance(args, Namespace)
        args.expert_tensor_parallel_size = 1
        for name in [name for name in part if "local_experts" in name]:
            words = name.split(".")
            words[6] = str(int(words[6]) + 2 * at[2])
            part[name] = whole[".".join(words)]

    write(tmp_path, run, whole, change=uncut)
    for folder in ("mp_rank_00_001", "mp_rank_01_000"):
        (tmp_path / "iter_0000010" / folder / "model_optim_rng.pt").unlink()
        (tmp_path / "iter_0000010" / folder).rmdir()
    found = decode(tmp_path)
    same(found, whole)
    assert not found.errors
    assert [mesh.missing_count for mesh in found.facts[0].topology.meshes] == [0, 0, 0]


@pytest.mark.parametrize(
    ("version", "order"), [(0.0, "parts_first"), (1.0, "parts_last"), (None, "parts_first")]
)
@pytest.mark.parametrize("tp", [1, 2])
def test_older_orders_of_query_key_and_value(
    version: float | None, order: str, tp: int, tmp_path: Path
) -> None:
    run = Run(tp=tp, layers=1, groups=4, gated=False, version=version)
    whole = model(run)
    random = np.random.default_rng(7)
    parts = random.standard_normal((3, run.heads, run.head_size, run.hidden)).astype(np.float32)

    def old(at: tuple[int, int, int], content: dict[str, object]) -> None:
        share = run.heads // tp
        mine = parts[:, at[0] * share : (at[0] + 1) * share]
        axes = (0, 1, 2, 3) if order == "parts_first" else (1, 2, 0, 3)
        part = content["model"]
        assert isinstance(part, dict)
        content["model"] = {
            "language_model": {
                "embedding": {
                    "word_embeddings": {"weight": part["embedding.word_embeddings.weight"]},
                    "position_embeddings": {"weight": whole["decoder.layers.0.input_layernorm.weight"][None]},
                },
                "transformer": {
                    "layers.0.attention.query_key_value.weight": mine.transpose(axes).reshape(-1, run.hidden),
                    "layers.0.mlp.dense_h_to_4h.weight": part["decoder.layers.0.mlp.linear_fc1.weight"],
                },
            },
        }

    write(tmp_path, run, whole, change=old)
    found = decode(tmp_path)
    assert not found.errors
    tensors = named(found, "megatron-gpt2", vocabulary=20)
    fused = parts.reshape(3 * run.hidden, run.hidden).T
    assert tensors["transformer.h.0.attn.c_attn.weight"].shape == fused.shape
    assert value(found, tensors["transformer.h.0.attn.c_attn.weight"]) == fused.tobytes()
    up = whole["decoder.layers.0.mlp.linear_fc1.weight"]
    assert value(found, tensors["transformer.h.0.mlp.c_fc.weight"]) == up.T.tobytes()
    words = whole["embedding.word_embeddings.weight"][:20]
    assert value(found, tensors["transformer.wte.weight"]) == words.tobytes()
    assert found.facts[0].model is not None
    assert found.facts[0].model.qkv == order


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_queries_keys_and_values_come_apart_whatever_the_cut(groups: int, tmp_path: Path) -> None:
    run = Run(tp=4, layers=1, groups=groups, bias=True)
    whole = model(run)
    write(tmp_path, run, whole)
    found = decode(tmp_path)
    tensors = named(found, "megatron-llama", vocabulary=24)
    for kind in ("weight", "bias"):
        fused = whole[f"decoder.layers.0.self_attention.linear_qkv.{kind}"]
        share = run.heads // groups
        by_group = fused.reshape(groups, share + 2, run.head_size, -1)
        for letter, part in (
            ("q", by_group[:, :share]),
            ("k", by_group[:, share]),
            ("v", by_group[:, share + 1]),
        ):
            tensor = tensors[f"model.layers.0.self_attn.{letter}_proj.{kind}"]
            assert value(found, tensor) == part.tobytes()


# --- what stands in the way


def test_private_fields_of_the_arguments_are_nowhere(tmp_path: Path) -> None:
    run = Run(tp=2, pp=2)
    write(tmp_path, run, model(run))
    found = decode(tmp_path)
    said = msgspec.json.encode([found.tensors, found.blockers, [_plain(facts) for facts in found.facts]])
    assert b"someone" not in said
    assert b"secret" not in said


def _plain(facts: object) -> object:
    return [
        repr(getattr(facts, name))
        for name in ("evidence", "producer", "topology", "state", "model", "components")
    ]


def test_without_arguments_a_second_number_means_nothing(tmp_path: Path) -> None:
    run = Run(pp=2)
    write(tmp_path, run, model(run), change=lambda _, content: content.pop("args"))
    found = decode(tmp_path)
    assert "megatron.args_missing" in found.errors
    assert not found.tensors


def test_without_arguments_a_single_rank_needs_no_table(tmp_path: Path) -> None:
    run = Run()
    whole = model(run)
    write(tmp_path, run, whole, change=lambda _, content: content.pop("args"))
    same(decode(tmp_path), whole)


def test_without_arguments_slices_of_a_gated_layer_are_refused(tmp_path: Path) -> None:
    run = Run(tp=2)
    write(tmp_path, run, model(run), change=lambda _, content: content.pop("args"))
    found = decode(tmp_path)
    assert "mapping.fact_missing" in found.errors


def test_files_of_two_runs_are_refused(tmp_path: Path) -> None:
    run = Run(tp=2)

    def other(at: tuple[int, int, int], content: dict[str, object]) -> None:
        if at[0] == 1:
            content["args"] = run.args(num_query_groups=1)

    write(tmp_path, run, model(run), change=other)
    found = decode(tmp_path)
    assert "megatron.args_differ" in found.errors
    assert not found.tensors


def test_a_gate_that_the_shapes_deny_is_refused(tmp_path: Path) -> None:
    run = Run(tp=2, gated=False)

    def claimed(_: tuple[int, int, int], content: dict[str, object]) -> None:
        content["args"] = run.args(swiglu=True)

    write(tmp_path, run, model(run), change=claimed)
    found = decode(tmp_path)
    assert "megatron.shard_shape" in found.errors
    assert not [tensor for tensor in found.tensors if "linear_fc1" in tensor.name]


def test_a_name_that_no_table_knows_is_not_guessed(tmp_path: Path) -> None:
    run = Run(tp=2)

    def more(_: tuple[int, int, int], content: dict[str, object]) -> None:
        part = content["model"]
        assert isinstance(part, dict)
        part["vision.patches.weight"] = np.ones((2, 2), np.float32)

    write(tmp_path, run, model(run), change=more)
    found = decode(tmp_path)
    (blocker,) = [item for item in found.blockers if item.code == "megatron.name_unknown"]
    assert "vision.patches.weight" in blocker.message
    assert "convert" in blocker.blocks
    assert "vision.patches.weight" not in {tensor.name for tensor in found.tensors}


def test_a_slice_that_a_rank_lacks_is_missed(tmp_path: Path) -> None:
    run = Run(tp=2)

    def less(at: tuple[int, int, int], content: dict[str, object]) -> None:
        part = content["model"]
        assert isinstance(part, dict)
        if at[0] == 1:
            del part["decoder.layers.2.mlp.linear_fc2.weight"]

    write(tmp_path, run, model(run), change=less)
    found = decode(tmp_path)
    (blocker,) = [item for item in found.blockers if item.code == "megatron.shard_missing"]
    assert "mp_rank_01" in blocker.message
    assert "decoder.layers.2.mlp.linear_fc2.weight" not in {tensor.name for tensor in found.tensors}


def test_experts_and_layers_that_do_not_add_up_are_refused(tmp_path: Path) -> None:
    run = Run(ep=2, experts=4, layers=1)
    write(
        tmp_path / "a",
        run,
        model(run),
        change=lambda _, content: content.update(args=run.args(num_experts=3)),
    )
    assert "megatron.experts_uneven" in decode(tmp_path / "a").errors
    write(
        tmp_path / "b", run, model(run), change=lambda _, content: content.update(args=run.args(num_layers=2))
    )
    assert "megatron.layers_uneven" in decode(tmp_path / "b").errors


def test_files_without_a_model_are_said_to_be_so(tmp_path: Path) -> None:
    run = Run()
    write(tmp_path, run, model(run), change=lambda _, content: content.pop("model"))
    assert "megatron.model_empty" in decode(tmp_path).errors


def test_what_fails_for_many_tensors_is_said_once(tmp_path: Path) -> None:
    run = Run(tp=2)
    whole = model(run)

    def short(at: tuple[int, int, int], content: dict[str, object]) -> None:
        part = content["model"]
        assert isinstance(part, dict)
        if at[0] == 1:
            for layer in range(run.layers):
                part[f"decoder.layers.{layer}.mlp.linear_fc2.weight"] = np.ones((3, 3), np.float32)

    write(tmp_path, run, whole, change=short)
    (blocker,) = [item for item in decode(tmp_path).blockers if item.code == "megatron.shard_shape"]
    assert blocker.params["count"] == run.layers
    assert "different shapes" in blocker.message


def test_arguments_beyond_all_measure_cost_nothing(tmp_path: Path) -> None:
    run = Run(layers=1)

    def vast(_: tuple[int, int, int], content: dict[str, object]) -> None:
        sizes = {"pipeline_model_parallel_size": 1 << 30, "num_layers": 1 << 30, "num_experts": 1 << 30}
        content["args"] = run.args(**sizes)

    write(tmp_path, run, model(run), change=vast)
    found = decode(tmp_path)
    assert "megatron.args_ranks" in found.errors
    assert not found.tensors


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    run = Run(version=4.0)
    write(tmp_path, run, model(run))
    found = decode(tmp_path)
    assert "megatron.version_unknown" in found.errors
    assert not found.tensors


def test_an_optimizer_by_number_is_named(tmp_path: Path) -> None:
    run = Run(layers=1)

    def state(_: tuple[int, int, int], content: dict[str, object]) -> None:
        content["optimizer"] = {
            "optimizer": {"state": {0: {"exp_avg": np.ones(4, np.float32)}}},
            "grad_scaler": {},
        }
        content["opt_param_scheduler"] = {"num_steps": 10}

    whole = model(run)
    write(tmp_path, run, whole, change=state)
    found = decode(tmp_path)
    same(found, whole)
    assert "megatron.optimizer_numbered" in found.codes
    scope = found.facts[0].state
    assert (scope.optimizer.presence, scope.scheduler.presence, scope.scaler.presence) == ("present",) * 3
    assert scope.rng.presence == "absent"
    assert "iteration 10" in scope.progress.reason


# --- distributed saves


def test_a_folder_of_another_tensor_parallelism_is_noticed(tmp_path: Path) -> None:
    import shutil

    shutil.copytree(FIXTURES / "torch_dist_tp2_pp2" / "checkpoint", tmp_path / "c")
    save(tmp_path / "c/iter_0000010/common.pt", {"args": Run(tp=4).args(), "iteration": 10})
    found = decode(tmp_path / "c")
    assert "megatron.tensor_parallel_differs" in found.errors


def test_without_arguments_the_random_states_tell_the_grid(tmp_path: Path) -> None:
    import shutil

    shutil.copytree(FIXTURES / "dist_zarr_tp2" / "checkpoint", tmp_path / "c")
    save(tmp_path / "c/iter_0000010/common.pt", {"iteration": 10})
    found = decode(tmp_path / "c")
    assert "megatron.common_args" in found.codes
    (mesh,) = found.facts[0].topology.meshes
    assert [(axis.name, axis.size, axis.basis) for axis in mesh.axes] == [
        ("tp", 2, Basis.INFERRED),
        ("pp", 1, Basis.INFERRED),
    ]
    assert len(found.tensors) == 9


def _zarr(folder: Path, array: np.ndarray, chunks: tuple[int, ...], **more: object) -> None:
    """Write one array, edge chunks in full."""
    folder.mkdir(parents=True)
    grid = [range(-(-extent // chunk)) for extent, chunk in zip(array.shape, chunks, strict=True)]
    padded = np.zeros([len(places) * chunk for places, chunk in zip(grid, chunks, strict=True)], array.dtype)
    padded[tuple(slice(0, extent) for extent in array.shape)] = array
    for i in grid[0]:
        for j in grid[1]:
            part = padded[i * chunks[0] : (i + 1) * chunks[0], j * chunks[1] : (j + 1) * chunks[1]]
            (folder / f"{i}.{j}").write_bytes(np.ascontiguousarray(part).tobytes())
    described = {
        "zarr_format": 2, "shape": list(array.shape), "chunks": list(chunks), "dtype": array.dtype.str, "order": "C",
        "compressor": None, "filters": None, "fill_value": None,
    }  # fmt: skip
    (folder / ".zarray").write_bytes(msgspec.json.encode(described | more))


def _zarr_save(root: Path) -> Path:
    step = root / "iter_0000010"
    step.mkdir(parents=True)
    (step / "metadata.json").write_text('{"sharded_backend": "zarr", "sharded_backend_version": 1}')
    save(step / "common.pt", {"args": Run(tp=2).args(), "iteration": 10})
    return step


@pytest.mark.parametrize("order", ["<", ">"])
def test_chunks_at_the_edge_of_an_array_are_stepped_over(order: str, tmp_path: Path) -> None:
    step = _zarr_save(tmp_path)
    array = np.arange(35, dtype=np.float32).reshape(5, 7)
    _zarr(step / "decoder.final_layernorm.weight", array.astype(f"{order}f4"), (2, 3))
    found = decode(tmp_path)
    tensor = found.named("decoder.final_layernorm.weight")
    assert len(tensor.fragments) == 9
    assert value(found, tensor) == array.tobytes()


def test_a_chunk_that_would_be_filled_in_is_lost(tmp_path: Path) -> None:
    step = _zarr_save(tmp_path)
    _zarr(step / "w", np.ones((4, 4), np.float32), (2, 2), fill_value=0.0)
    (step / "w" / "1.0").unlink()
    found = decode(tmp_path)
    assert {"megatron.chunk_missing", "megatron.chunk_fill"} <= found.errors
    tensor = found.named("w")
    assert len(tensor.fragments) == 3
    assert tensor.note == "1 chunk missing or of another size"


def test_a_compressor_is_named_and_not_read(tmp_path: Path) -> None:
    step = _zarr_save(tmp_path)
    _zarr(step / "w", np.ones((2, 2), np.float32), (2, 2), compressor={"id": "blosc"})
    found = decode(tmp_path)
    tensor = found.named("w")
    assert tensor.fragments == ()
    assert tensor.note is not None
    assert "blosc" in tensor.note
    (blocker,) = [item for item in found.blockers if item.code == "megatron.zarr_encoding"]
    assert "convert" in blocker.blocks


def test_flattened_state_of_older_versions_gets_its_shape_back() -> None:
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    shards = [part for half in np.split(whole, 2) for part in np.split(half, 2, axis=1)]
    chunks: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    held: dict[int, np.ndarray] = {}
    for number, part in enumerate(shards):
        flat = part.reshape(-1)
        for begin, end in ((0, 2), (2, 6)):
            held[len(chunks)] = flat[begin:end]
            chunks.append(((number // 2, number % 2, begin), (1, 1, end - begin)))
    mapped, mesh = chunk_list((2, 2, 6), chunks)
    fragments = tuple(
        Fragment(label, (1, 1, part.size), Record("a", 0, 8, 8), 0) for label, part in held.items()
    )
    stored = LogicalTensor("optimizer.state.exp_avg.w", "F32", (2, 2, 6), mapped, mesh, fragments)
    (tensor,) = unflattened(None, [stored], {stored.name: (4, 6)}, "")  # type: ignore[arg-type]  # nothing is reported
    assert tensor.shape == (4, 6)
    assert np.array_equal(assemble(lowered(tensor), held), whole)


def test_flattened_state_that_does_not_fit_is_refused() -> None:
    class Report:
        probe = None

        def __init__(self) -> None:
            self.probe = self
            self.codes: list[str] = []

        def note(self, finding: object, _: object) -> None:
            self.codes.append(finding.code)  # type: ignore[attr-defined]

    mapped, mesh = chunk_list((2, 6), [((0, 0), (2, 6))])
    stored = LogicalTensor("w", "F32", (2, 6), mapped, mesh, ())
    for shape in ((4, 6), (12,), (12, 1, 1)):
        report = Report()
        assert unflattened(report, [stored], {"w": shape}, "") == []  # type: ignore[arg-type]
        assert report.codes == ["megatron.flat_unknown"]


# --- applying a table


def test_nothing_is_left_out_of_a_mapping(tmp_path: Path) -> None:
    run = Run(ep=2, experts=4, layers=1)
    write(tmp_path, run, model(run))
    found = decode(tmp_path)
    with pytest.raises(Fault) as caught:
        named(found, "megatron-llama", vocabulary=24)
    assert caught.value.finding.code == "mapping.unplaced"
    assert caught.value.finding.params["count"] == 9


def test_a_vast_leading_axis_is_not_walked() -> None:
    shape = (1 << 40, 4)
    mapped, mesh = chunk_list(shape, [((0, 0), shape)])
    stacked = LogicalTensor("decoder.layers.input_layernorm.weight", "F32", shape, mapped, mesh, ())
    with pytest.raises(Fault) as caught:
        apply(
            NamingTable(table("megatron-llama"), LayoutTable(table(MEGATRON))),
            ModelFacts(gated=True, qkv="grouped"),
            [stacked],
        )
    assert caught.value.finding.code == "map.budget"


def test_a_vocabulary_without_its_true_size_is_asked_for(tmp_path: Path) -> None:
    run = Run(layers=1)
    write(tmp_path, run, model(run))
    with pytest.raises(Fault) as caught:
        named(decode(tmp_path), "megatron-llama")
    assert caught.value.finding.code == "mapping.fact_missing"
    with pytest.raises(Fault) as caught:
        named(decode(tmp_path), "megatron-llama", vocabulary=25)
    assert caught.value.finding.code == "mapping.size"


def test_slices_are_as_the_reference_cuts_them() -> None:
    whole = np.arange(8)[:, None]
    assert cut("x.mlp.linear_fc1.weight", whole, 1, 2, gated=True)[:, 0].tolist() == [2, 3, 6, 7]


def test_a_strange_name_on_one_of_several_stages_is_not_taken_for_a_copy(tmp_path: Path) -> None:
    run = Run(pp=2)

    def more(at: tuple[int, int, int], content: dict[str, object]) -> None:
        part = content["model"]
        assert isinstance(part, dict)
        part["decoder.layers.0xmlp.weight"] = np.full((2, 2), at[1], np.float32)

    whole = model(run)
    write(tmp_path, run, whole, change=more)
    found = decode(tmp_path)
    same(found, whole)
    assert "megatron.name_unknown" in found.errors


def test_two_names_for_one_tensor_are_not_chosen_between(tmp_path: Path) -> None:
    run = Run(layers=1)

    def more(_: tuple[int, int, int], content: dict[str, object]) -> None:
        part = content["model"]
        assert isinstance(part, dict)
        part["language_model.encoder.layers.0.input_norm.weight"] = np.ones(run.hidden, np.float32)

    write(tmp_path, run, model(run), change=more)
    found = decode(tmp_path)
    (blocker,) = [item for item in found.blockers if item.code == "megatron.shard_shape"]
    assert "twice" in blocker.message
    assert "decoder.layers.0.input_layernorm.weight" not in {tensor.name for tensor in found.tensors}
