"""DeepSpeed decoded: every fixture bit for bit, and layouts of every kind that the training side can make."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.state import Presence
from shardscope.engine.model.tensors import DTYPES
from tests.formats.decoding import Found, decode, expected, value
from tests.formats.deepspeed_runs import (
    Array,
    File,
    Group,
    contiguous_map,
    cut_rows,
    half,
    info_of,
    moments,
    partitions,
    replicated_map,
    sub_group,
    weights,
    write_partition,
    write_states,
    write_three,
    write_zero,
)
from tests.formats.looking import FIXTURES, copied

DEEPSPEED = FIXTURES / "deepspeed"
EVERY = sorted(path.name for path in DEEPSPEED.iterdir())
REFUSED = {
    "edited-codegen-unsupported-tp2": (
        "universal.unsupported",
        {"transformer.h.0.attn.qkv_proj.weight", "transformer.h.1.attn.qkv_proj.weight"},
    ),
    "handbuilt-legacy-categories-tp2-dp2": ("universal.average", {"layers.0.drift.weight"}),
}
"""Tensors that no map can be trusted for, and the code that says so."""
WRONG = {
    "uc-from-zero2-w4-bf16-roundrobin": "deepspeed.universal_values",
    "uc-from-autotp2-llama-tied-vocab-zero1-bf16": "deepspeed.universal_shape",
}
"""Folders that the producer's converter wrote wrongly, and the code that says so."""


def widened(dtype: str, data: bytes) -> bytes:
    """Return the numbers in 32 bit, as the producer's tools write them; other types as they are."""
    if dtype == "BF16":
        return (np.frombuffer(data, "<u2").astype("<u4") << np.uint32(16)).tobytes()
    if dtype == "F16":
        return np.frombuffer(data, "<f2").astype("<f4").tobytes()
    return data


def numbers(found: Found, name: str) -> Array:
    """Return a tensor's values."""
    tensor = found.named(name)
    dtype = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}[tensor.dtype]
    return np.frombuffer(value(found, tensor), dtype).reshape(tensor.shape)


def model(found: Found) -> list[LogicalTensor]:
    """Return the tensors of the model."""
    return [tensor for tensor in found.tensors if tensor.component == "model"]


def holds(found: Found, tensors: dict[str, Array], *, states: bool = True) -> None:
    """Assert that these tensors are listed, whole and exact, with the moments that follow from them."""
    for name, array in tensors.items():
        assert found.named(name).shape == array.shape, name
        assert numbers(found, name).tobytes() == array.tobytes(), name
        for state, part in moments(array.reshape(-1)).items() if states else ():
            assert numbers(found, f"{state}::{name}").tobytes() == part.tobytes(), (state, name)


def said(found: Found, code: str) -> dict[str, Any]:
    """Return the parameters of the one blocker of that code."""
    (item,) = (item for item in found.blockers if item.code == code)
    return dict(item.params)


def stop_of(found: Found, code: str) -> tuple[str, ...]:
    """Return what the one blocker of that code stands in the way of."""
    (item,) = (item for item in found.blockers if item.code == code)
    return tuple(item.blocks)


# R025 R075 R080 R081
@pytest.mark.parametrize("fixture", EVERY)
def test_every_fixture_lists_the_names_shapes_and_values_that_it_should(fixture: str) -> None:
    found = decode(DEEPSPEED / fixture / "checkpoint")
    wanted = expected(DEEPSPEED / fixture)
    _, missing = REFUSED.get(fixture, ("", set()))
    assert sorted(tensor.name for tensor in model(found)) == sorted(wanted.keys() - missing)
    wrong = []
    for tensor in model(found):
        dtype, shape, data = wanted[tensor.name]
        assert tensor.shape == shape, tensor.name
        held = value(found, tensor)
        if (held if tensor.dtype == dtype else widened(tensor.dtype, held)) != data:
            wrong.append(tensor.name)
        assert tensor.dtype == dtype or (tensor.role in ("frozen", "parameter") and tensor.dtype == "BF16")
    assert bool(wrong) == (WRONG.get(fixture) == "deepspeed.universal_values")
    assert found.errors == {code for code in (REFUSED.get(fixture, ("",))[0], WRONG.get(fixture)) if code}
    assert "trust.opaque_pickle" not in found.codes
    assert not [entry for facts in found.facts for entry in facts.opaque]


@pytest.mark.parametrize(
    "fixture", [name for name in EVERY if (DEEPSPEED / name / "expected_optim.safetensors").exists()]
)
def test_states_of_the_optimizer_are_listed_by_state_and_parameter(fixture: str) -> None:
    found = decode(DEEPSPEED / fixture / "checkpoint")
    listed = {tensor.name: tensor for tensor in found.tensors if tensor.component == "optimizer"}
    aliases = {tensor.name for tensor in model(found) if tensor.alias_of is not None}
    wanted = expected(DEEPSPEED / fixture, "expected_optim")
    assert listed.keys() == {name for name in wanted if name.partition("::")[2] not in aliases}
    for name, tensor in listed.items():
        dtype, shape, data = wanted[name]
        assert (tensor.dtype, value(found, tensor)) == (dtype, data), name
        own = found.named(name.partition("::")[2]).shape
        assert tensor.shape == own
        assert shape in (own, (np.prod(own),)), "a converter may have flattened it"


@pytest.mark.parametrize("fixture", sorted(REFUSED))
def test_what_cannot_be_put_together_is_refused_by_name(fixture: str) -> None:
    code, names = REFUSED[fixture]
    found = decode(DEEPSPEED / fixture / "checkpoint")
    items = [item for item in found.blockers if item.code == code]
    assert {item.params["tensor"] for item in items} == names
    assert all("convert" in item.blocks for item in items)


def test_a_cut_that_is_meant_and_not_said_is_listed_and_has_to_be_agreed_to() -> None:
    found = decode(DEEPSPEED / "edited-codegen-unsupported-tp2" / "checkpoint")
    assert said(found, "deepspeed.cut_by_convention")["count"] == 4
    assert stop_of(found, "deepspeed.cut_by_convention") == ("convert",)
    assert "dimension 0" in (found.named("transformer.h.0.mlp.fc_in.weight").note or "")


# R078
def test_a_writer_whose_mappings_are_of_another_order_is_warned_about_and_read_by_its_shapes() -> None:
    found = decode(DEEPSPEED / "zero2-w4-bf16-roundrobin" / "checkpoint")
    assert said(found, "deepspeed.slice_mappings")["count"] == 26
    assert stop_of(found, "deepspeed.slice_mappings") == ()


@pytest.mark.parametrize("fixture", sorted(WRONG))
def test_a_universal_folder_that_disagrees_with_its_module_copy_blocks_conversion(fixture: str) -> None:
    found = decode(DEEPSPEED / fixture / "checkpoint")
    assert "convert" in stop_of(found, WRONG[fixture])


def test_a_tie_that_the_converter_cut_short_is_listed_as_what_it_is_tied_to() -> None:
    found = decode(DEEPSPEED / "uc-from-autotp2-llama-tied-vocab-zero1-bf16" / "checkpoint")
    params = said(found, "deepspeed.universal_shape")
    assert (params["tensor"], params["found"], params["expected"]) == ("lm_head.weight", "27 x 24", "53 x 24")
    assert found.named("lm_head.weight").alias_of == "model.embed_tokens.weight"


def test_buffers_of_a_universal_folder_keep_their_own_types() -> None:
    found = decode(DEEPSPEED / "uc-from-zero1-w2-bf16" / "checkpoint")
    assert [found.named(name).dtype for name in ("token_counts", "mask", "rope_freqs")] == [
        "I64",
        "BOOL",
        "F32",
    ]
    assert {tensor.component for tensor in found.tensors if tensor.name.startswith("step::")} == {"other"}


# R035 R079 R082
def test_ranks_producer_and_state_are_taken_from_declared_fields() -> None:
    found = decode(DEEPSPEED / "autotp2-llama-gqa3-dp2-zero2-fp32" / "checkpoint")
    (facts,) = found.facts
    (mesh,) = facts.topology.meshes
    assert [(axis.name, axis.size, str(axis.basis)) for axis in mesh.axes] == [
        ("world", 4, "derived"),
        ("tp", 2, "declared"),
        ("pp", 1, "declared"),
        ("dp", 2, "declared"),
        ("zero_stage", 2, "declared"),
    ]
    assert mesh.ranks_seen == ((0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1))
    assert len(facts.topology.rank_files) == 4
    assert [(one.name, one.version) for one in facts.producer] == [("deepspeed", "0.19.8")]
    assert facts.state.weights.presence is Presence.PRESENT
    assert facts.state.optimizer.presence is Presence.PRESENT
    assert facts.state.scheduler.presence is Presence.ABSENT
    assert str(facts.confidence) == "high"


def test_the_comparison_with_the_module_says_how_much_it_saw() -> None:
    found = decode(DEEPSPEED / "zero2-w4-bf16" / "checkpoint")
    says = [item.says for item in found.facts[0].evidence if str(item.kind) == "payload"]
    assert says == ["fp32 weights and the module's rounded copies agree: compared 27,256 of 27,256 bytes"]


def flip(path: Path, inside: bytes, at: int = 0) -> None:
    """Change one bit of a run of bytes that the file has once."""
    data = bytearray(path.read_bytes())
    assert data.count(inside) == 1
    data[data.index(inside) + at] ^= 0x40
    path.write_bytes(data)


def test_a_changed_master_is_found_out_by_the_module_and_padding_is_not_looked_at(tmp_path: Path) -> None:
    tensors = weights(1, a=(5, 3), b=(7,))
    root = write_zero(tmp_path / "run", {(0, 0): [Group(dict(tensors))]}, dp=3, strip=False)
    last = root / "global_step5" / "zero_pp_rank_2_mp_rank_00_optim_states.pt"
    clean = decode(root)
    holds(clean, tensors)
    assert clean.errors == set()
    parts = partitions(Group(dict(tensors)), 3, strip=False)
    flip(last, parts[2].tobytes(), at=parts[2].nbytes - 1)  # padding
    assert decode(root).errors == set()
    flip(last, parts[2].tobytes()[:-4], at=3)
    changed = decode(root)
    assert changed.errors == {"deepspeed.masters_differ"}
    assert said(changed, "deepspeed.masters_differ")["first"] == "b"
    assert "convert" in stop_of(changed, "deepspeed.masters_differ")


def test_partitions_of_missing_ranks_are_named_and_what_lies_elsewhere_is_whole(tmp_path: Path) -> None:
    root = copied("deepspeed/zero2-w4-bf16", tmp_path / "run")
    for rank in (1, 3):
        (root / "global_step3" / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").unlink()
    found = decode(root)
    params = said(found, "deepspeed.partitions_absent")
    assert (params["missing"], params["total"], params["ranks"]) == (2, 4, "mp 0 dp 1, mp 0 dp 3")
    assert found.facts[0].topology.meshes[0].ranks_missing == ((0, 0, 1), (0, 0, 3))
    wanted = expected(DEEPSPEED / "zero2-w4-bf16")
    assert {tensor.name for tensor in model(found)} == wanted.keys()
    whole = [
        tensor
        for tensor in model(found)
        if tensor.mesh is not None and len(tensor.fragments) == len(tensor.mesh.ranks or (0,))
    ]
    assert 0 < len(whole) < len(wanted)
    for tensor in whole:
        assert widened(tensor.dtype, value(found, tensor)) == wanted[tensor.name][2], tensor.name


# R080
@pytest.mark.parametrize("dp", [1, 2, 3, 5])
def test_stage_3_keeps_uninitialised_padding_out_of_every_fragment(tmp_path: Path, dp: int) -> None:
    tensors = weights(2, a__weight=(5, 7), b=(1,), c=(11,), d__weight=(3, 2, 2))
    frozen = {"adapter": np.arange(13, dtype=np.float16)}
    items = list(tensors.items())
    root = write_three(
        tmp_path / "run",
        {0: [dict(items[:2]), dict(items[2:])]},
        dp=dp,
        frozen=frozen,
        buffers={"steps": np.arange(4)},
        tied={"head": "a.weight"},
    )
    found = decode(root)
    holds(found, tensors)
    assert numbers(found, "adapter").tobytes() == frozen["adapter"].tobytes()
    assert numbers(found, "steps").tolist() == [0, 1, 2, 3]
    assert found.named("head").alias_of == "a.weight"
    assert [found.named(name).role for name in ("adapter", "steps", "a.weight")] == [
        "frozen",
        "buffer",
        "parameter",
    ]
    for tensor in found.tensors:
        stored = sum(int(np.prod(fragment.shape)) for fragment in tensor.fragments)
        assert stored == np.prod(tensor.shape)
    assert found.errors == set()


@pytest.mark.parametrize("strip", [True, False])
@pytest.mark.parametrize("dp", [1, 2, 4, 7])
def test_partitions_are_cut_by_shapes_whatever_they_say_of_their_padding(
    tmp_path: Path, dp: int, strip: bool
) -> None:
    tensors = weights(3, a=(5, 3), b=(2,), c=(3, 3, 3), d=(1,))
    names = list(tensors)
    groups = [
        Group({name: tensors[name] for name in names[:3]}, paddings=[1, 6, 0]),
        Group({name: tensors[name] for name in names[3:]}),
    ]
    root = write_zero(tmp_path / "run", {(0, 0): groups}, dp=dp, strip=strip, stage=2)
    found = decode(root)
    holds(found, tensors)
    assert found.errors == set()


def test_what_is_only_in_the_module_is_listed_in_its_precision_and_said_to_be(tmp_path: Path) -> None:
    tensors = weights(4, a=(4, 3))
    extra = {"adapter": np.arange(6, dtype=np.float16)}
    root = write_zero(
        tmp_path / "run",
        {(0, 0): [Group(dict(tensors))]},
        dp=2,
        extra=extra,
        buffers={"count": np.arange(3)},
        tied={"head": "a"},
    )
    found = decode(root)
    assert numbers(found, "adapter").tobytes() == extra["adapter"].tobytes()
    assert (found.named("adapter").role, found.named("count").role) == ("frozen", "buffer")
    assert said(found, "deepspeed.module_precision")["count"] == 1
    assert found.named("head").alias_of == "a"
    assert found.named("head").fragments == found.named("a").fragments


def test_names_that_share_their_bytes_in_a_module_are_aliases_unrecorded(tmp_path: Path) -> None:
    found = decode(copied("deepspeed/zero0-w2-bf16", tmp_path / "run"))
    assert found.named("head.weight").alias_of == "embed.weight"
    assert any(tensor.component == "optimizer" for tensor in found.tensors)


# R040 R082
@pytest.mark.parametrize("dp", [1, 2, 3])
def test_stages_tensor_parallel_ranks_and_partitions_come_together_in_one_map(
    tmp_path: Path, dp: int
) -> None:
    first = weights(5, embed__weight=(7, 6), column__weight=(5, 6), row__weight=(4, 9), norm=(6,))
    second = weights(6, last__weight=(9, 2)) | {"embed.weight": first["embed.weight"]}
    widths = {
        "embed.weight": ((4, 3), 0),
        "column.weight": ((3, 2), 0),
        "row.weight": ((5, 4), 1),
        "last.weight": ((5, 4), 0),
    }
    maps = {
        name: contiguous_map((first | second)[name].shape, cut, dim) for name, (cut, dim) in widths.items()
    }
    maps["norm"] = replicated_map((6,), 2)
    ranks = {}
    for stage, tensors in enumerate((first, second)):
        for tp in range(2):
            held = {
                name: cut_rows(array, *widths[name])[tp] if name in widths else array
                for name, array in tensors.items()
            }
            ranks[(stage, tp)] = [Group(held)]
    root = write_zero(tmp_path / "run", ranks, dp=dp, info=info_of(maps))
    found = decode(root)
    holds(found, first | second)
    assert found.errors == set()
    embed = found.named("embed.weight")
    assert {fragment.label // (2 * dp) for fragment in embed.fragments} == {0, 1}
    assert len(found.facts[0].topology.meshes[0].ranks_seen) == 4 * dp


def test_copies_on_stages_that_disagree_are_noticed_when_they_are_put_together(tmp_path: Path) -> None:
    tied = weights(7, embed__weight=(4, 2))
    other = {"embed.weight": tied["embed.weight"] + np.float32(1)}
    root = write_zero(tmp_path / "run", {(0, 0): [Group(tied)], (1, 0): [Group(other)]}, dp=2)
    found = decode(root)
    with pytest.raises(Exception, match=r"map\.replicas_disagree"):
        value(found, found.named("embed.weight"))


def test_stage_3_under_tensor_parallelism(tmp_path: Path) -> None:
    tensors = weights(8, up__weight=(7, 4), down__weight=(4, 7), norm=(5,))
    widths = {"up.weight": ((4, 3), 0), "down.weight": ((4, 3), 1)}
    maps = {name: contiguous_map(tensors[name].shape, *row) for name, row in widths.items()}
    maps["norm"] = replicated_map((5,), 2)
    shards = [
        {
            name: cut_rows(array, *widths[name])[tp] if name in widths else array
            for name, array in tensors.items()
        }
        for tp in range(2)
    ]
    root = write_three(tmp_path / "run", {0: [shards[0]], 1: [shards[1]]}, dp=3, info=info_of(maps))
    found = decode(root)
    holds(found, tensors)
    assert found.errors == set()


def test_nothing_is_joined_where_nothing_is_said(tmp_path: Path) -> None:
    shards = [{"a.weight": weights(9 + tp, a=(3, 2))["a"]} for tp in range(2)]
    root = write_zero(tmp_path / "run", {(0, tp): [Group(shards[tp])] for tp in range(2)}, dp=1)
    found = decode(root)
    assert said(found, "deepspeed.cut_unknown")["first"] == "a.weight"
    assert found.tensors == []


def test_tensor_parallel_ranks_that_describe_parameters_differently_are_of_two_saves(tmp_path: Path) -> None:
    root = write_zero(
        tmp_path / "run",
        {(0, tp): [Group({"a": np.ones(3, np.float32)})] for tp in range(2)},
        dp=1,
        info=info_of({"a": replicated_map((3,), 2)}),
    )
    assert decode(root).errors == set()
    write_states(
        root / "global_step5" / "mp_rank_01_model_states.pt",
        half({"a": np.ones(3, np.float32)}),
        [{"a": (3,)}],
        stage=1,
        dp=1,
        tp=2,
        info=info_of({"a": contiguous_map((6,), (3, 3))}),
    )
    assert "deepspeed.info_differs" in decode(root).errors


def expert_save(tmp_path: Path, *, data_first: bool) -> tuple[Path, dict[str, Array]]:
    """Write four data-parallel ranks, two of which hold the same two of four native experts."""
    dp, ep = 4, 2
    dense = weights(10, embed__weight=(5, 3))
    prefix = "moe.deepspeed_moe.experts.deepspeed_experts."
    experts = {f"{prefix}{number}.up.weight": weights(11 + number, w=(3, 5))["w"] for number in range(4)}
    root = tmp_path / "run"
    tag = root / "global_step5"
    local = [
        {
            f"{prefix}{number}.up.weight": experts[f"{prefix}{2 * rank + number}.up.weight"]
            for number in range(2)
        }
        for rank in range(ep)
    ]
    write_states(
        tag / "mp_rank_00_model_states.pt",
        half(dense),
        [{k: v.shape for k, v in dense.items()}, {k: v.shape for k, v in local[0].items()}],
        stage=2,
        dp=dp,
        config={"use_data_before_expert_parallelism": data_first},
        num_experts=[4],
    )
    for number in range(4):
        name = f"{prefix}{number}.up.weight"
        file_path = tag / f"layer_0_expert_{number}_mp_rank_00_model_states.pt"
        file = File()
        file.write(file_path, {name: file.tensor(experts[name].astype(np.float16))})
    cut_dense = partitions(Group(dense), dp)
    cut_experts = [partitions(Group(held), dp // ep) for held in local]
    for rank in range(dp):
        ep_rank, position = (rank // 2, rank % 2) if data_first else (rank % 2, rank // 2)
        write_partition(
            tag / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt",
            [cut_dense[rank], cut_experts[ep_rank][position]],
            2,
            [dp, dp // ep],
            moe=[False, True],
        )
    (root / "latest").write_text("global_step5")
    return root, dense | experts


# R038
@pytest.mark.parametrize("data_first", [False, True])
def test_experts_are_cut_among_the_ranks_that_hold_the_same_ones(tmp_path: Path, data_first: bool) -> None:
    root, tensors = expert_save(tmp_path, data_first=data_first)
    found = decode(root)
    holds(found, tensors)
    assert found.errors == set()
    meshes = {mesh.name: mesh for mesh in found.facts[0].topology.meshes}
    assert [(axis.name, axis.size) for axis in meshes["expert parallel"].axes] == [("ep", 2), ("edp", 2)]


def packed_save(tmp_path: Path, stage: int, held: list[list[int]]) -> tuple[Path, dict[str, Array]]:
    """Write packed experts (AutoEP) on two expert-parallel ranks of two data-parallel ranks each."""
    dp, among = 4, 2
    whole = weights(20, layer__experts__w1=(4, 3, 2))
    name = "layer.experts.w1"
    root = tmp_path / "run"
    tag = root / "global_step5"
    local = [{name: np.ascontiguousarray(whole[name][experts])} for experts in held]
    layers = [
        {
            "moe_layer_id": 0,
            "num_experts": 4,
            "num_local_experts": 2,
            "ep_size": 2,
            "expert_key_prefix": "layer.experts",
            "expert_placement": {
                "version": 1,
                "num_experts": 4,
                "ep_size": 2,
                "ranks": [{"rank": rank, "experts": experts} for rank, experts in enumerate(held)],
            },
        }
    ]
    dense = weights(21, norm=(5,))
    shapes = [{k: v.shape for k, v in dense.items()}, {k: v.shape for k, v in local[0].items()}]
    if stage == 0:
        write_states(
            tag / "mp_rank_00_model_states.pt", half(dense), None, stage=0, dp=dp, ds_autoep_layers=layers
        )
    elif stage == 3:
        for rank in range(dp):
            write_states(
                tag / f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt",
                {k: np.empty(0, np.float16) for k in (*dense, name)},
                shapes,
                stage=3,
                dp=dp,
                ds_autoep_layers=layers,
            )
    else:
        write_states(
            tag / "mp_rank_00_model_states.pt",
            half(dense),
            shapes,
            stage=stage,
            dp=dp,
            ds_autoep_layers=layers,
        )
    if stage < 3:
        for number in range(4):
            file = File()
            expert = [one for ranks in held for one in ranks][number]  # files count places, not experts
            tensor = file.tensor(whole[name][expert].astype(np.float16))
            file.write(
                tag / f"layer_0_expert_{number}_mp_rank_00_model_states.pt", {f"{name}.{number}": tensor}
            )
    cut = sub_group if stage == 3 else lambda group, ranks: partitions(Group(dict(group)), ranks)
    for rank in range(dp if stage else 0):
        place = {"partition_count": among, "partition_rank": rank // 2}
        write_partition(
            tag / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt",
            [cut(dense, dp)[rank], cut(local[rank % 2], among)[rank // 2]],
            stage,
            [dp, among],
            moe=[False, True],
            ranks_of=[{}, place],
        )
    (root / "latest").write_text("global_step5")
    return root, dense | whole


@pytest.mark.parametrize("held", [[[0, 1], [2, 3]], [[3, 0], [1, 2]]])
@pytest.mark.parametrize("stage", [1, 3])
def test_packed_experts_are_put_where_their_placement_says(
    tmp_path: Path, stage: int, held: list[list[int]]
) -> None:
    root, tensors = packed_save(tmp_path, stage, held)
    found = decode(root)
    holds(found, tensors)
    assert not [
        name for name in (tensor.name for tensor in model(found)) if name[-1].isdigit() and ".w1." in name
    ]
    assert found.errors == set()


@pytest.mark.parametrize("held", [[[0, 1], [2, 3]], [[3, 0], [1, 2]]])
def test_packed_experts_without_partitions_come_from_the_files_of_single_experts(
    tmp_path: Path, held: list[list[int]]
) -> None:
    root, tensors = packed_save(tmp_path, 0, held)
    found = decode(root)
    name = "layer.experts.w1"
    assert numbers(found, name).tobytes() == tensors[name].astype(np.float16).tobytes()
    assert found.errors == set()
    assert len(found.named(name).fragments) == 4


def one(tmp_path: Path, **changes: Any) -> Path:
    """Write the smallest save of stage 1."""
    tensors = weights(30, a=(4, 3), b=(5,))
    return write_zero(tmp_path / "run", {(0, 0): [Group(tensors)]}, dp=2, **changes)


def partition(root: Path, rank: int, parts: list[Array], stage: int | None = 1, **changes: Any) -> None:
    """Write one partition again."""
    write_partition(
        root / "global_step5" / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt",
        parts,
        stage,
        [2] * len(parts),
        **changes,
    )


ZEROS = np.zeros


# R066 R078
@pytest.mark.parametrize(
    ("parts", "changes", "code"),
    [
        ([ZEROS(3, np.float32)], {}, "deepspeed.partition_short"),
        ([ZEROS(300, np.float32)], {}, "deepspeed.partition_rest"),
        ([ZEROS(9, np.float32)] * 2, {}, "deepspeed.groups_differ"),
        ([ZEROS(9, np.float32)], {"elastic": True}, "deepspeed.elastic"),
        ([ZEROS(9, np.float32)], {"stage": 3}, "deepspeed.stages_differ"),
        ([ZEROS(9, np.float32)], {"stage": 2}, "deepspeed.stages_differ"),
    ],
)
def test_partitions_that_do_not_fit_are_refused_with_their_code(
    tmp_path: Path, parts: list[Array], changes: dict[str, Any], code: str
) -> None:
    root = one(tmp_path)
    partition(root, 0, parts, **changes)
    if code in ("deepspeed.partition_rest", "deepspeed.groups_differ"):
        partition(root, 1, parts, **changes)
    found = decode(root)
    assert code in found.errors
    assert (
        not model(found)
        or code == "deepspeed.elastic"
        or all(not tensor.fragments or True for tensor in found.tensors)
    )


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"dp_world_size": 3}, "deepspeed.degrees_differ"),
        ({"checkpoint_parallel_dimensions": {"pp_degree": 0, "tp_degree": 1}}, "deepspeed.degrees_differ"),
        (
            {"checkpoint_parallel_dimensions": {"pp_degree": 1 << 40, "tp_degree": 1 << 40}},
            "deepspeed.degrees_differ",
        ),
        ({"param_shapes": [{"a": (4, -3)}]}, "deepspeed.shapes_malformed"),
        (
            {"ds_config": {"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "nvme"}}}},
            "deepspeed.on_nvme",
        ),
    ],
)
def test_model_states_that_contradict_the_files_are_refused_with_their_code(
    tmp_path: Path, more: dict[str, Any], code: str
) -> None:
    found = decode(one(tmp_path, **more))
    assert code in found.errors
    assert not [tensor for tensor in found.tensors if tensor.name == "a" and tensor.dtype == "F32"]


def test_offloaded_tensors_and_mixed_stages_are_left_alone(tmp_path: Path) -> None:
    root = one(tmp_path)
    (root / "global_step5" / "offloaded_tensors").mkdir()
    (root / "global_step5" / "offloaded_tensors" / "rank00.bin").write_bytes(b"x")
    found = decode(root)
    assert found.tensors == []
    assert "deepspeed.offloaded" in found.errors
    mixed = one(tmp_path / "mixed")
    write_states(
        mixed / "global_step5" / "zero_pp_rank_0_mp_rank_00_model_states.pt", {}, [{}], stage=3, dp=2
    )
    found = decode(mixed)
    assert found.tensors == []
    assert "deepspeed.stages_mixed" in found.errors


def test_files_of_other_content_are_named_for_what_they_are_not(tmp_path: Path) -> None:
    root = one(tmp_path)
    file = File()
    file.write(
        root / "global_step5" / "mp_rank_00_model_states.pt", {"something": file.tensor(ZEROS(3, np.float32))}
    )
    assert "deepspeed.not_states" in decode(root).errors
    root = one(tmp_path / "other")
    file = File()
    file.write(root / "global_step5" / "zero_pp_rank_1_mp_rank_00_optim_states.pt", {"something": 1})
    found = decode(root)
    assert {"deepspeed.not_partition", "deepspeed.partitions_absent"} <= found.errors


def test_a_factor_is_taken_out_of_parameters_and_never_out_of_moments() -> None:
    found = decode(DEEPSPEED / "handbuilt-scaled-bias-tp2" / "checkpoint")
    assert "exp_avg::o_proj.bias" not in {tensor.name for tensor in found.tensors}
    assert "exp_avg::o_proj.weight" in {tensor.name for tensor in found.tensors}
    assert said(found, "deepspeed.scaled_states")["first"] == "o_proj.bias"


def test_every_dtype_of_a_fragment_is_one_of_the_table() -> None:
    found = decode(DEEPSPEED / "zero3-w3-fp32" / "checkpoint")
    assert {tensor.dtype for tensor in found.tensors} <= set(DTYPES)


def test_partitions_in_another_precision_are_listed_in_it_and_have_no_witness(tmp_path: Path) -> None:
    root = one(tmp_path)
    for rank in range(2):
        partition(root, rank, [np.arange(10, dtype=np.float16)[: 10 - rank]])
    found = decode(root)
    assert found.named("a").dtype == "F16"
    assert found.errors == set()
    assert not [item for item in found.facts[0].evidence if str(item.kind) == "payload"]


# R026
def test_many_tensors_that_are_refused_alike_are_named_up_to_a_bound(tmp_path: Path) -> None:
    names = [f"w{number}" for number in range(40)]
    info = info_of({}, parameter_to_average_patterns=[r"w\d+"])
    held = {name: np.ones(2, np.float32) for name in names}
    root = write_zero(tmp_path / "run", {(0, tp): [Group(held)] for tp in range(2)}, dp=1, info=info)
    found = decode(root)
    items = [item for item in found.blockers if item.code == "universal.average"]
    assert 0 < len(items) < len(names)
    assert said(found, "deepspeed.refused_alike")["count"] == len(names) - len(items)


def test_rows_of_padding_of_a_single_rank_are_cut_off_and_told(tmp_path: Path) -> None:
    tensors = weights(50, embed__weight=(8, 3), norm=(3,))
    info = {
        "universal_checkpoint_version": 0.2,
        "vocabulary_parameter_patterns": [r"embed\.weight"],
        "original_vocab_size": 5,
    }
    found = decode(write_zero(tmp_path / "run", {(0, 0): [Group(tensors)]}, dp=3, info=info))
    holds(found, {"embed.weight": tensors["embed.weight"][:5].copy(), "norm": tensors["norm"]})
    assert found.named("embed.weight").stored_shape == (8, 3)


def test_a_model_parallel_rank_that_is_not_there_leaves_nothing_half_joined(tmp_path: Path) -> None:
    maps = {"a": contiguous_map((6, 2), (3, 3)), "b": replicated_map((2,), 2)}
    held = {"a": np.ones((3, 2), np.float32), "b": np.ones(2, np.float32)}
    root = write_zero(tmp_path / "run", {(0, tp): [Group(held)] for tp in range(2)}, dp=1, info=info_of(maps))
    (root / "global_step5" / "mp_rank_01_model_states.pt").unlink()
    found = decode(root)
    assert "deepspeed.shard_absent" in found.errors
    assert model(found) == []


def test_the_file_of_a_last_expert_is_missed_by_the_rows_of_the_router(tmp_path: Path) -> None:
    tag = tmp_path / "run" / "global_step5"
    prefix = "moe.deepspeed_moe.experts.deepspeed_experts."
    dense = weights(10, moe__deepspeed_moe__gate__wg__weight=(3, 5))
    write_states(tag / "mp_rank_00_model_states.pt", half(dense), [], stage=0, dp=1, num_experts=[3])
    for number in range(3):
        file = File()
        name = f"{prefix}{number}.up.weight"
        file.write(
            tag / f"layer_0_expert_{number}_mp_rank_00_model_states.pt",
            {name: file.tensor(weights(number, w=(3, 5))["w"].astype(np.float16))},
        )
    assert "deepspeed.experts_missing" not in decode(tag).errors
    (tag / "layer_0_expert_2_mp_rank_00_model_states.pt").unlink()
    found = decode(tag)
    (missing,) = (item for item in found.blockers if item.code == "deepspeed.experts_missing")
    assert (missing.params["count"], missing.params["total"], missing.params["first"]) == (1, 3, 2)


@pytest.mark.parametrize("stage", [0, 1])
def test_a_gap_between_layers_stays_in_doubt_where_no_file_names_parameters(
    tmp_path: Path, stage: int
) -> None:
    tag = tmp_path / "run" / "global_step5"
    held = {f"{layer}.w": weights(layer, w=(2, 3))["w"] for layer in (0, 2)}
    shapes = [{name: array.shape for name, array in held.items()}] if stage else None
    write_states(tag / "mp_rank_00_model_states.pt", None, shapes, stage=stage, dp=1)
    for name, array in held.items():
        file = File()
        path = tag / f"layer_{int(name[0]):02}-model_states.pt"
        file.write(path, {"w": file.tensor(array.astype(np.float16))})
    if stage:
        write_partition(
            tag / "zero_pp_rank_0_mp_rank_00_optim_states.pt", [partitions(Group(held), 1)[0]], 1, [1]
        )
    found = decode(tag)
    assert {tensor.name for tensor in found.tensors} >= set(held)
    assert ("deepspeed.layer_gap" in found.codes) is (stage == 0)
