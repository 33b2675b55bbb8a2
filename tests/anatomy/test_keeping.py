"""Which layers keep keys and values, by lists, periods and patterns of configurations, and what their cache comes to."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.anatomy import counting, layers
from shardscope.engine.anatomy.memory import memory
from shardscope.engine.model.anatomy import Memory, Other, Sizes
from shardscope.engine.parse.attention_layers import read_layers
from shardscope.engine.parse.model_sizes import read_metadata, read_params, read_sizes
from tests.anatomy.models import item

BASE = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 12,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 97,
}
ONE = 2 * 2 * 16 * 2
"""Bytes that a token adds to a layer of `BASE`."""


def figures(config: dict[str, Any], context: int = 100, **options: Any) -> Memory:
    counts = counting.parameters((), {}, frozenset(), None)
    return memory(0, counts, read_sizes(config), context=context, **options)


@pytest.mark.parametrize(
    ("part", "windowed", "without"),
    [
        ({}, None, None),
        ({"sliding_window": 8}, None, None),
        ({"model_type": "mistral", "sliding_window": 8}, 12, 0),
        ({"model_type": "mistral", "sliding_window": None}, None, None),
        ({"model_type": "gemma2", "sliding_window": 8}, 6, 0),
        ({"model_type": "gemma3_text", "sliding_window": 8}, 10, 0),
        ({"model_type": "gemma3_text", "sliding_window": 8, "sliding_window_pattern": 3}, 8, 0),
        ({"model_type": "exaone4", "sliding_window": 8, "sliding_window_pattern": "LLG"}, 8, 0),
        ({"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": False, "max_window_layers": 9}, 0, 0),
        ({"model_type": "qwen2", "sliding_window": 8, "use_sliding_window": True, "max_window_layers": 9}, 3, 0),
        ({"model_type": "qwen2_moe", "sliding_window": 8, "use_sliding_window": True, "max_window_layers": 9}, None, None),
        ({"model_type": "jamba", "attn_layer_period": 4, "attn_layer_offset": 2}, 0, 9),
        ({"model_type": "bamba", "attn_layer_indices": [3, 7]}, 0, 10),
        ({"model_type": "recurrent_gemma", "block_types": ["recurrent", "recurrent", "attention"], "attention_window_size": 8}, 4, 8),
        ({"model_type": "mamba2"}, 0, 12),
        ({"model_type": "qwen3_next", "full_attention_interval": 4}, 0, 9),
        ({"model_type": "mllama_text_model", "cross_attention_layers": [3, 8]}, 0, 2),
        ({"model_type": "llama4_text", "attention_chunk_size": 8, "no_rope_layers": []}, 9, 0),
        ({"model_type": "llama4_text", "attention_chunk_size": 8, "no_rope_layers": [1, 0] * 6}, 6, 0),
        ({"hybrid_override_pattern": "M-M*-M-M*E-M"}, 0, 10),
        ({"layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"]}, 0, 3),
        ({"layer_types": ["sliding_attention", "chunked_attention", "hybrid_sliding", "hybrid"]}, 3, 0),
        ({"layer_types": [["full_attention"]] * 12}, None, None),
        ({"num_kv_shared_layers": 5}, None, 5),
        ({"layer_types": ["sliding_attention", "full_attention"] * 6, "num_kv_shared_layers": 4}, 4, 4),
    ],
)  # fmt: skip
def test_the_kinds_of_layers_are_read(
    part: dict[str, Any], windowed: int | None, without: int | None
) -> None:
    found = read_layers(part, 12)
    assert (found.windowed, found.without, found.known) == (windowed, without, True)


@pytest.mark.parametrize(
    ("more", "total", "formula"),
    [
        ({"model_type": "mistral", "sliding_window": 10}, 12 * ONE * 10, "128 bytes x 12 layers x 10 tokens"),
        ({"model_type": "mistral", "sliding_window": 200}, 12 * ONE * 100, "100 tokens x 1,536 bytes"),
        ({"model_type": "gemma2", "sliding_window": 10}, ONE * (6 * 100 + 6 * 10), "128 bytes x (6 layers x 100 tokens + 6 layers x 10 tokens)"),
        ({"model_type": "jamba", "attn_layer_period": 4, "attn_layer_offset": 2}, 3 * ONE * 100, "100 tokens x 384 bytes"),
        ({"num_kv_shared_layers": 4}, 8 * ONE * 100, "100 tokens x 1,024 bytes"),
        ({"layer_types": ["sliding_attention", "full_attention"] * 6, "sliding_window": 10, "global_head_dim": 32,
          "num_global_key_value_heads": 1, "attention_k_eq_v": True}, 6 * ONE * 10 + 6 * ONE * 100,
         "128 bytes x 6 layers x 10 tokens + 128 bytes x 6 layers x 100 tokens"),
        ({"layer_types": ["sliding_attention", "full_attention"] * 6, "sliding_window": 10, "swa_num_key_value_heads": 4},
         6 * ONE * 100 + 6 * 2 * ONE * 10, "128 bytes x 6 layers x 100 tokens + 256 bytes x 6 layers x 10 tokens"),
        ({"per_layer_config": {"3": {"head_dim": 32}, "07": {"head_dim": 32}, "x": {"head_dim": 64}, "99": {"head_dim": 1}},
          "layer_types": ["full_attention"] * 12}, (10 * ONE + 2 * 2 * ONE) * 100, "100 tokens x 1,792 bytes"),
    ],
)  # fmt: skip
def test_a_cache_is_the_sum_of_what_its_layers_keep(more: dict[str, Any], total: int, formula: str) -> None:
    found = figures(BASE | more).cache
    assert found is not None
    assert (found.bytes, found.formula) == (total, formula)


def test_sequences_and_devices_multiply_and_divide_it() -> None:
    config = BASE | {"model_type": "gemma2", "sliding_window": 10, "global_head_dim": 32}
    found = figures(config, batch=3, devices=2).cache
    assert found is not None
    assert found.name == "3 x 100 tokens"
    assert found.bytes == 3 * (6 * ONE // 2 * 10 + 6 * ONE * 100)
    assert (
        found.formula == "3 sequences x (64 bytes x 6 layers x 10 tokens + 128 bytes x 6 layers x 100 tokens)"
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"model_type": "bert"}, "all tokens are read at once, and nothing is kept of them"),
        ({"model_type": "t5", "architectures": ["T5EncoderModel"], "is_encoder_decoder": True}, "all tokens are read at once, and nothing is kept of them"),
        ({"model_type": "mamba2"}, "0 layers (and 12 layers whose state does not grow)"),
    ],
)  # fmt: skip
def test_what_keeps_nothing_has_no_cache(more: dict[str, Any], words: str) -> None:
    found = figures(BASE | more)
    assert found.cache_per_token is not None
    assert (found.cache_per_token.bytes, found.cache_per_token.formula, found.cache) == (0, words, None)


@pytest.mark.parametrize(
    "more",
    [
        {"layer_types": ["compressed_sparse_attention"] * 12},
        {"model_type": "longcat_flash"},
        {"layer_types": ["linear_attention"] * 13},
    ],
)  # fmt: skip
def test_a_cache_that_is_not_understood_is_unknown(more: dict[str, Any]) -> None:
    found = figures(BASE | more)
    assert (found.cache_per_token, found.cache) == (None, None)


def test_a_decoder_also_keeps_what_its_encoder_read() -> None:
    config = {
        "d_model": 64,
        "decoder_layers": 2,
        "decoder_attention_heads": 4,
        "vocab_size": 97,
        "is_encoder_decoder": True,
    }
    line = figures(config).cache_per_token
    assert line is not None
    assert line.bytes == 2 * 4 * 2 * 16 * 2
    assert line.formula.endswith("; a token that an encoder read takes as much once more")


def test_a_bert_that_is_a_decoder_keeps_its_tokens() -> None:
    line = figures(BASE | {"model_type": "bert", "is_decoder": True}).cache_per_token
    assert line is not None
    assert line.bytes == 12 * ONE


def test_metadata_of_gguf_has_the_windows_of_its_class() -> None:
    named = {
        "block_count": 12,
        "attention.sliding_window": 10,
        "attention.head_count": 4,
        "embedding_length": 64,
    }
    found = read_metadata(
        {"general.architecture": "gemma3"} | {f"gemma3.{name}": value for name, value in named.items()}
    )
    assert (found.windowed_layers, found.window) == (10, 10)


@pytest.mark.parametrize(
    ("params", "inner"),
    [
        ({"dim": 4096, "multiple_of": 256}, 11_008),
        ({"dim": 4096, "multiple_of": 1024, "ffn_dim_multiplier": 1.3}, 14_336),
        ({"dim": 8192, "multiple_of": 4096, "ffn_dim_multiplier": 1.3}, 28_672),
        ({"dim": 4096, "multiple_of": 256, "hidden_dim": 14_336}, 14_336),
        ({"dim": 4096, "multiple_of": 256, "ffn_dim_multiplier": float("nan")}, 11_008),
        ({"dim": 4096}, None),
    ],
)  # fmt: skip
def test_the_width_that_a_release_of_meta_leaves_out_is_derived(
    params: dict[str, Any], inner: int | None
) -> None:
    assert read_params(params).intermediate == inner


def test_layers_that_share_keys_and_values_lack_no_weights_for_them() -> None:
    names = (
        "self_attn.q_proj.weight",
        "self_attn.k_proj.weight",
        "self_attn.v_proj.weight",
        "mlp.up_proj.weight",
        "norm.weight",
    )
    items = [
        item(f"layers.{n}.{name}", 4)
        for n in range(9)
        for name in names
        if n < 6 or not name.startswith(("self_attn.k", "self_attn.v"))
    ]
    (stack,) = layers.stacks(items)
    assert list(layers.check_stack(stack, Sizes(shared_layers=3))) == []
    assert [each.code for each in layers.check_stack(stack, Sizes(shared_layers=2))] == ["model.layer_lacks"]
    fewer = [each for each in items if each.name != "layers.8.mlp.up_proj.weight"]
    (stack,) = layers.stacks(fewer)
    assert [each.params["layer"] for each in layers.check_stack(stack, Sizes(shared_layers=3))] == ["8"]


def test_one_layer_that_is_declared_to_be_other_is_not_odd() -> None:
    names = ("q.weight", "k.weight", "v.weight", "o.weight")
    (stack,) = layers.stacks(
        [item(f"layers.{n}.{name}", 8 if n == 3 else 4) for n in range(5) for name in names]
    )
    assert [each.code for each in layers.check_stack(stack, Sizes())] == ["model.layer_odd"]
    assert list(layers.check_stack(stack, Sizes(others=(Other(1, 0, Sizes()),)))) == []


def test_numbers_of_little_modules_are_not_said_to_be_missing() -> None:
    items = [item(f"merger.{n}.{name}", 4) for n in (0, 2) for name in ("weight", "bias")]
    (family,) = layers.families(layers.stacks(items))
    assert (family.name, family.missing) == ("merger.{0,2}", "")


def test_the_first_layer_of_some_classes_has_no_norm() -> None:
    names = ("attn_norm.weight", "attn.Wqkv.weight", "mlp.Wi.weight", "mlp.Wo.weight", "mlp_norm.weight")
    items = [
        item(f"layers.{n}.{name}", 4)
        for n in range(5)
        for name in names
        if (n, name) != (0, "attn_norm.weight")
    ]
    (stack,) = layers.stacks(items)
    assert list(layers.check_stack(stack)) == []
    (stack,) = layers.stacks([each for each in items if each.name != "layers.2.attn_norm.weight"])
    assert [each.params["layer"] for each in layers.check_stack(stack)] == ["0,2"]


FIELDS = ("layer_types", "num_kv_shared_layers", "per_layer_config", "swa_head_dim", "global_head_dim", "sliding_window",
          "sliding_window_pattern", "block_types", "attn_layer_period", "attn_layer_offset", "attn_layer_indices", "model_type",
          "hybrid_override_pattern", "use_sliding_window", "max_window_layers", "block_auto_adjust_ff_dim", "block_multiple_of")  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 40) | st.floats() | st.sampled_from(["gemma2", "mistral", "mamba", "LG", "full_attention", "x"]),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.sampled_from(["0", "3", "head_dim", "num_key_value_heads"]), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8))
def test_anything_in_any_field_ends_in_a_figure_that_is_not_negative_or_in_none(more: dict[str, Any]) -> None:
    found = figures(BASE | more)
    for line in (found.cache_per_token, found.cache):
        assert line is None or (line.bytes is not None and line.bytes >= 0)
