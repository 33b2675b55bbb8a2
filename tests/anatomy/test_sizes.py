"""Sizes of a model from configurations of three kinds, whatever stands in their fields."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shardscope.engine.anatomy.rules import LAYER, SEEN, TOP, named, value_of
from shardscope.engine.model.anatomy import Sizes
from shardscope.engine.model.facts import GgufArray
from shardscope.engine.parse.model_sizes import read_metadata, read_packing, read_params, read_sizes


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, Sizes()),
        ({"hidden_size": 64, "num_attention_heads": 4}, Sizes(hidden=64, heads=4, kv_heads=4, head=16, value_head=16)),
        ({"hidden_size": 64, "num_attention_heads": 4, "head_dim": 32}, Sizes(hidden=64, heads=4, kv_heads=4, head=32, value_head=32)),
        ({"n_embd": 8, "n_inner": None}, Sizes(hidden=8, intermediate=32, expert_intermediate=32)),
        ({"num_attention_heads": 71, "multi_query": True}, Sizes(heads=71, kv_heads=1)),
        ({"num_attention_heads": 8, "multi_query": True, "new_decoder_architecture": True}, Sizes(heads=8, kv_heads=8)),
        ({"layer_types": ["sliding_attention", "full_attention", "linear_attention"]}, Sizes(layers=3, windowed_layers=1, linear_layers=1)),
        ({"layer_types": [1, 2]}, Sizes()),
        ({"layer_types": "all"}, Sizes()),
        ({"intermediate_size": [8, 8, 8]}, Sizes(intermediate=8, expert_intermediate=8)),
        ({"intermediate_size": [8, 16]}, Sizes()),
        ({"text_config": {"hidden_size": 32, "tie_word_embeddings": True}}, Sizes(hidden=32, tied=True, multimodal="text_config")),
        ({"attn_output_gate": True}, Sizes(gated_queries=True)),
        ({"intermediate_size": 8, "moe_intermediate_size": [4, 2]}, Sizes(intermediate=8)),
        ({"num_experts": 4, "moe_num_experts": [4, 4]}, Sizes()),
        ({"hidden_size": 8, "embedding_size": 4}, Sizes(hidden=8, embedding=4)),
        ({"hidden_size": 8, "word_embed_proj_dim": 8}, Sizes(hidden=8)),
        ({"model_type": "moshi", "vocab_size": 9}, Sizes(vocabulary=9, further_words=1)),
        ({"n_routed_experts": 9, "zero_expert_num": 3}, Sizes(experts=9, further_experts=3)),
        ({"n_routed_experts": 9, "n_shared_experts": 2, "shared_expert_sink": True}, Sizes(experts=9, shared_experts=2, further_experts=2)),
        ({"kv_lora_rank": 4, "qk_nope_head_dim": 6, "qk_rope_head_dim": 0, "v_head_dim": 5},
         Sizes(latent_rank=4, plain_head=6, rope_head=0, head=6, value_head=5)),
        ({"hidden_size": 8, "vocab_size": 5, "text_config": {"num_hidden_layers": 2, "hidden_size": 16, "vocab_size": 7}},
         Sizes(layers=2, hidden=16, vocabulary=7, multimodal="text_config")),
        ({"hidden_size": 8, "num_hidden_layers": 3, "text_config": {"num_hidden_layers": 2}}, Sizes(layers=3, hidden=8)),
        ({"hidden_size": -1, "vocab_size": 1 << 70, "num_hidden_layers": "12"}, Sizes()),
        ({"torch_dtype": "auto"}, Sizes()),
    ],
)  # fmt: skip
def test_what_a_configuration_declares(config: dict[str, Any], expected: Sizes) -> None:
    assert read_sizes(config) == expected


def test_the_releases_of_meta_and_mistral_have_names_of_their_own() -> None:
    params = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "hidden_dim": 96, "vocab_size": -1,
              "moe": {"num_experts": 8, "num_experts_per_tok": 2}}  # fmt: skip
    found = read_params(params)
    assert (found.hidden, found.layers, found.kv_heads, found.intermediate) == (64, 2, 2, 96)
    assert (found.experts, found.experts_per_token, found.vocabulary) == (8, 2, None)
    assert read_params({"moe": 7, "dim": "x"}) == Sizes()


def test_metadata_of_gguf_is_named_after_the_architecture() -> None:
    found = read_metadata({"general.architecture": "qwen3", "qwen3.embedding_length": 64, "qwen3.block_count": 3,
                           "llama.block_count": 9, "tokenizer.ggml.tokens": GgufArray("string", 50)})  # fmt: skip
    assert (found.hidden, found.layers, found.vocabulary) == (64, 3, 50)
    assert read_metadata({}) == Sizes()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FIELDS = ("hidden_size", "num_attention_heads", "head_dim", "layer_types", "sliding_window", "kv_lora_rank", "n_inner",
          "quantization_config", "text_config", "qk_rope_head_dim", "qk_nope_head_dim", "num_local_experts", "moe",
          "group_size", "config_groups", "weight_block_size", "ignore", "quant_method", "dim")  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=8))
def test_anything_in_any_field_ends_in_sizes(config: dict[str, Any]) -> None:
    read_sizes(config)
    read_params(config)
    read_packing(config)
    read_packing({"quantization_config": config})


def test_every_rule_is_a_sum_of_sizes_that_there_are() -> None:
    known = dict.fromkeys(named(Sizes()), 3)
    for readings in (*TOP.values(), *LAYER.values()):
        for dims in readings:
            assert all(value_of(dim, known) for dim in dims)
    assert all(place.rest in TOP or place.rest in LAYER for place in SEEN)
    assert value_of("heads*plain+heads*value", named(Sizes())) is None
