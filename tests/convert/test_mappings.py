"""Mapping tables in a conversion: vLLM's workers and Meta's releases become what transformers loads, or are refused by name."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from shardscope.engine import materialize, prepare
from shardscope.engine.converting.preparing import Prepared
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.plan import PlanOptions

HF = Path(__file__).resolve().parents[1] / "fixtures" / "hf"
VLLM = HF / "vllm_sharded_state_tp2"
META = HF / "meta_consolidated_mp2"
LAYER = "model.layers.0."


def prepared(source: Path, **options: Any) -> Prepared:
    return prepare(
        source, PlanOptions(**options), decoding=Decoding(Intent("convert", "command line"), "all")
    )


def converted(source: Path, target: Path, **options: Any) -> dict[str, np.ndarray]:
    materialize(source, target, prepared(source, **options), confirm=lambda _: True)
    return load_file(target / "model.safetensors")


def assert_equal(found: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray]) -> None:
    assert found.keys() == truth.keys()
    for name, value in truth.items():
        assert found[name].shape == value.shape, name
        assert found[name].tobytes() == value.tobytes(), name


def refusal(source: Path, **options: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        prepared(source, **options)
    return caught.value


def workers(
    folder: Path, ranks: int, *, heads: int, groups: int, vocabulary: int, tied: bool = False
) -> dict[str, np.ndarray]:
    """Write a small Llama as the memory of vLLM's workers; return what transformers calls it.

    As `QKVParallelLinear`, `MergedColumnParallelLinear`, `RowParallelLinear` and `VocabParallelEmbedding` (rows padded to a multiple
    of 64) load it, and as `_filter_subtensors` leaves out what shares its memory.
    """
    rng = np.random.default_rng(heads * ranks + groups)
    size, hidden, ffn = 4, 16, 24

    def made(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    model = {
        "model.embed_tokens.weight": made(vocabulary, hidden),
        LAYER + "self_attn.q_proj.weight": made(heads * size, hidden),
        LAYER + "self_attn.k_proj.weight": made(groups * size, hidden),
        LAYER + "self_attn.v_proj.weight": made(groups * size, hidden),
        LAYER + "self_attn.q_proj.bias": made(heads * size),
        LAYER + "self_attn.k_proj.bias": made(groups * size),
        LAYER + "self_attn.v_proj.bias": made(groups * size),
        LAYER + "self_attn.o_proj.weight": made(hidden, heads * size),
        LAYER + "mlp.gate_proj.weight": made(ffn, hidden),
        LAYER + "mlp.up_proj.weight": made(ffn, hidden),
        LAYER + "mlp.down_proj.weight": made(hidden, ffn),
        LAYER + "input_layernorm.weight": made(hidden),
        LAYER + "post_attention_layernorm.weight": made(hidden),
        "model.norm.weight": made(hidden),
    }
    if not tied:
        model["lm_head.weight"] = made(vocabulary, hidden)

    def rows(name: str, rank: int, count: int) -> np.ndarray:
        return (
            model[name].reshape(count, -1)[rank]
            if model[name].ndim == 1
            else np.split(model[name], count)[rank]
        )

    padded = -(-vocabulary // 64) * 64
    folder.mkdir()
    for rank in range(ranks):
        own: dict[str, np.ndarray] = {}
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            if name in model:
                filled = np.concatenate([model[name], np.zeros((padded - vocabulary, hidden), np.float32)])
                own[name] = np.split(filled, ranks)[rank]
        if tied:
            own["lm_head.weight"] = own.pop("model.embed_tokens.weight")
        place, units = (rank // (ranks // groups), groups) if groups < ranks else (rank, ranks)
        for kind in ("weight", "bias"):
            own[f"{LAYER}self_attn.qkv_proj.{kind}"] = np.concatenate(
                [
                    rows(f"{LAYER}self_attn.q_proj.{kind}", rank, ranks),
                    rows(f"{LAYER}self_attn.k_proj.{kind}", place, units),
                    rows(f"{LAYER}self_attn.v_proj.{kind}", place, units),
                ]
            )
        own[LAYER + "mlp.gate_up_proj.weight"] = np.concatenate(
            [
                rows(LAYER + "mlp.gate_proj.weight", rank, ranks),
                rows(LAYER + "mlp.up_proj.weight", rank, ranks),
            ]
        )
        for name in ("self_attn.o_proj.weight", "mlp.down_proj.weight"):
            own[LAYER + name] = np.ascontiguousarray(np.split(model[LAYER + name], ranks, axis=1)[rank])
        for name in (
            LAYER + "input_layernorm.weight",
            LAYER + "post_attention_layernorm.weight",
            "model.norm.weight",
        ):
            own[name] = model[name]
        own |= {
            f"{LAYER}self_attn.attn._{part}_scale": np.array(1, np.float32)
            for part in ("q", "k", "v", "prob")
        }
        save_file(own, folder / f"model-rank-{rank}-part-0.safetensors")
    config = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "num_hidden_layers": 1,
        "hidden_size": hidden,
        "head_dim": size,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "vocab_size": vocabulary,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return model


# --- vLLM


# R077
def test_the_workers_of_vllm_become_what_was_loaded_into_them(tmp_path: Path) -> None:
    found = converted(VLLM / "checkpoint", tmp_path / "out", mapping="vllm-llama")
    assert_equal(found, load_file(VLLM / "expected.safetensors"))


# R077
@pytest.mark.parametrize(
    ("ranks", "heads", "groups", "vocabulary", "tied"),
    [
        (2, 4, 2, 100, False),
        (4, 8, 2, 65, False),
        (4, 4, 1, 128, True),
        (1, 4, 2, 70, True),
        (8, 8, 4, 64, False),
    ],
)
def test_shared_heads_padded_vocabularies_and_dropped_aliases(
    ranks: int, heads: int, groups: int, vocabulary: int, tied: bool, tmp_path: Path
) -> None:
    model = workers(tmp_path / "in", ranks, heads=heads, groups=groups, vocabulary=vocabulary, tied=tied)
    assert_equal(converted(tmp_path / "in", tmp_path / "out", mapping="vllm-llama"), model)


def test_the_plan_says_by_what_it_put_parts_together_and_what_it_took_for_granted() -> None:
    plan = prepared(VLLM / "checkpoint", mapping="vllm-llama").plan
    layout, mapping = plan.decisions
    assert (layout.kind, layout.choice, layout.option) == (
        "layout",
        "parts of 2 ranks put together",
        "--mapping",
    )
    assert layout.evidence == (
        "the table vllm-sharded; declared: 4 heads, 2 key and value heads, 96 vocabulary rows"
    )
    assert "inferred: no kernel has changed the layout" in mapping.evidence
    assert (layout.tensors, mapping.tensors) == (15, 21)
    assert not plan.notes
    assert not plan.blockers


def test_what_only_an_engine_needs_is_left_out_by_name(tmp_path: Path) -> None:
    workers(tmp_path / "in", 2, heads=4, groups=2, vocabulary=64)
    (left,) = prepared(tmp_path / "in", mapping="vllm-llama").plan.left_out
    assert (left.what, left.tensors) == ("no weights", 4)
    assert "_scale" in left.why


def test_without_a_mapping_nothing_is_put_together_and_the_fitting_table_is_named(tmp_path: Path) -> None:
    fault = refusal(VLLM / "checkpoint")
    assert fault.finding.code == "vllm.geometry"
    assert fault.finding.params["fitting"] == "the declared facts fit the mapping table vllm-llama"


# R077
@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (None, "mapping.fact_missing", "number of attention heads"),
        ({"vocab_size": None}, "mapping.fact_missing", "size of the vocabulary without its padding"),
        ({"vocab_size": 300}, "mapping.size", "known slices"),
        ({"head_dim": 4}, "mapping.shards", "a rank of 2 would hold 16 slices of its sections, and holds 32"),
        ({"num_key_value_heads": 4}, "mapping.shards", "holds 32"),
        ({"architectures": ["Phi3ForCausalLM"]}, "mapping.unfit", "Phi3ForCausalLM"),
        ({"num_local_experts": 8}, "mapping.unfit", "number of experts"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_and_names_what_is_missing(
    change: dict[str, Any] | None, code: str, says: str, tmp_path: Path
) -> None:
    source = shutil.copytree(VLLM / "checkpoint", tmp_path / "in")
    config = source / "config.json"
    if change is None:
        config.unlink()
    else:
        config.write_text(json.dumps(json.loads(config.read_text()) | change))
    finding = refusal(source, mapping="vllm-llama").finding
    assert finding.code == code
    assert any(says in str(value) for value in finding.params.values())


def test_a_rank_that_is_not_there_is_missed(tmp_path: Path) -> None:
    workers(tmp_path / "in", 4, heads=4, groups=4, vocabulary=64)
    (tmp_path / "in" / "model-rank-3-part-0.safetensors").unlink()
    assert refusal(tmp_path / "in", mapping="vllm-llama").finding.code == "mapping.shards"


@pytest.mark.parametrize(
    ("added", "code"),
    [
        ({"model.layers.0.mlp.experts.w13_weight": np.zeros(4, np.float32)}, "mapping.unplaced"),
        ({LAYER + "self_attn.q_norm.weight": np.zeros(4, np.float32)}, "mapping.shards"),
    ],
)
def test_a_tensor_without_a_place_or_on_one_rank_alone_refuses_the_whole(
    added: dict[str, np.ndarray], code: str, tmp_path: Path
) -> None:
    source = shutil.copytree(VLLM / "checkpoint", tmp_path / "in")
    save_file(added, source / "model-rank-0-part-2.safetensors")
    assert refusal(source, mapping="vllm-llama").finding.code == code


def test_copies_of_a_norm_that_differ_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    source = shutil.copytree(VLLM / "checkpoint", tmp_path / "in")
    file = source / "model-rank-1-part-1.safetensors"
    held = load_file(file)
    held["model.norm.weight"] = held["model.norm.weight"] + 1
    save_file(held, file)
    with pytest.raises(Fault) as caught:
        converted(source, tmp_path / "out", mapping="vllm-llama")
    assert caught.value.finding.code == "map.replicas_disagree"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


# --- Meta


def pairs_first(weight: np.ndarray, heads: int) -> np.ndarray:
    """Return rows in the order of transformers: `permute` of `convert_llama_weights_to_hf.py`."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).transpose(0, 2, 1, 3).reshape(rows, columns)


NAMES = {
    "attention.wo": "self_attn.o_proj",
    "attention.wv": "self_attn.v_proj",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def in_hf(weights: Mapping[str, np.ndarray], heads: int, groups: int) -> dict[str, np.ndarray]:
    found = {
        "model.embed_tokens.weight": weights["tok_embeddings.weight"],
        "model.norm.weight": weights["norm.weight"],
        "lm_head.weight": weights["output.weight"],
    }
    for layer in (0, 1):
        for old, new in NAMES.items():
            found[f"model.layers.{layer}.{new}.weight"] = weights[f"layers.{layer}.{old}.weight"]
        for old, new, count in (("wq", "q_proj", heads), ("wk", "k_proj", groups)):
            rows = pairs_first(weights[f"layers.{layer}.attention.{old}.weight"], count)
            found[f"model.layers.{layer}.self_attn.{new}.weight"] = rows
    return found


# R077
def test_a_release_of_meta_becomes_what_transformers_makes_of_it(tmp_path: Path) -> None:
    found = converted(META / "checkpoint", tmp_path / "out", mapping="meta-llama")
    assert_equal(found, in_hf(load_file(META / "expected.safetensors"), 4, 2))
    assert_equal(found, load_file(META / "expected_hf.safetensors"))


def test_a_release_of_mistral_does_too(tmp_path: Path) -> None:
    weights = load_file(META / "expected.safetensors")
    weights.pop("rope.freqs")
    source = tmp_path / "in"
    source.mkdir()
    save_file(weights, source / "consolidated.safetensors")
    shutil.copy(META / "checkpoint" / "params.json", source)
    assert_equal(converted(source, tmp_path / "out", mapping="meta-llama"), in_hf(weights, 4, 2))


def test_what_is_inferred_of_a_release_is_shown() -> None:
    plan = prepared(META / "checkpoint", mapping="meta-llama").plan
    (mapping,) = (item for item in plan.decisions if item.kind == "mapping")
    assert "inferred: the rows of query and key stand in pairs" in mapping.evidence
    assert [item.code for item in plan.notes] == ["consolidated.cut_inferred"]
    assert [(item.what, item.tensors) for item in plan.left_out] == [("no weights", 1)]


def test_heads_that_are_not_declared_are_asked_for(tmp_path: Path) -> None:
    source = shutil.copytree(META / "checkpoint", tmp_path / "in")
    params = json.loads((source / "params.json").read_text())
    weights = load_file(META / "expected.safetensors")
    for file in source.glob("*.pth"):
        file.unlink()
    save_file(weights, source / "consolidated.safetensors")
    (source / "params.json").write_text(json.dumps({key: params[key] for key in ("dim", "n_layers")}))
    finding = refusal(source, mapping="meta-llama").finding
    assert finding.code == "mapping.fact_missing"
    assert finding.params["fact"] in ("number of attention heads", "number of query groups")


# --- whatever has names of its own


# R077
@pytest.mark.parametrize(
    ("fixture", "codes"),
    [
        ("hf/meta_consolidated_mp2", {"consolidated.cut_inferred", "convert.load_names"}),
        ("hf/mistral_consolidated", {"consolidated.names"}),
        ("megatron/legacy_tp2_pp2", {"megatron.names_kept"}),
        ("hf/llama_single_bf16", set()),
    ],
)
def test_a_plan_without_a_mapping_says_once_that_loaders_do_not_know_the_names(
    fixture: str, codes: set[str]
) -> None:
    plan = prepared(HF.parent / fixture / "checkpoint").plan
    found = {item.code for item in plan.notes}
    assert found & {"convert.load_names", "consolidated.names", "megatron.names_kept"} == codes - {
        "consolidated.cut_inferred"
    }
    assert codes <= found


def test_the_note_names_the_table_that_fits() -> None:
    plan = prepared(META / "checkpoint").plan
    (note,) = (item for item in plan.notes if item.code == "convert.load_names")
    assert "the declared facts fit the mapping table meta-llama" in note.remedy


def test_a_mapping_answers_what_the_note_asks() -> None:
    plan = prepared(
        HF.parent / "megatron/legacy_tp2_pp2/checkpoint", mapping="megatron-llama", vocab_size=97
    ).plan
    assert "megatron.names_kept" not in {item.code for item in plan.notes}
