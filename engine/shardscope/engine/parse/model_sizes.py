"""Sizes of a model from the configuration beside it: `config.json` of transformers, `params.json` of Meta and Mistral, GGUF metadata.

Field names are those of the model classes of transformers 5 and of the two releases. A field that says something else for each layer says
nothing here; what is wrong with a field is for `config` to tell.
"""

from collections.abc import Mapping
from typing import Any, Final

from shardscope.engine.model.anatomy import Packing, Sizes
from shardscope.engine.model.facts import GgufArray, GgufValue
from shardscope.engine.parse.config import check_config
from shardscope.engine.parse.fields import KEPT, Fields

_LARGEST: Final = (1 << 63) - 1
_PARTS: Final = ("text_config", "llm_config", "language_config", "thinker_config")
_PARAMS: Final = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
    "head_dim": "head_dim",
    "vocab_size": "vocab_size",
    "max_seq_len": "max_position_embeddings",
}
_GGUF: Final = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "feed_forward_length": "intermediate_size",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size",
    "attention.sliding_window": "sliding_window",
    "attention.value_length": "v_head_dim",
    "attention.kv_lora_rank": "kv_lora_rank",
    "attention.q_lora_rank": "q_lora_rank",
}
_GATED: Final = ("qwen3_next", "qwen3_5")
_WINDOWED: Final = frozenset({"sliding_attention", "chunked_attention"})
_LINEAR: Final = frozenset({"linear_attention", "mamba", "conv", "recurrent"})


def read_sizes(value: Mapping[str, Any]) -> Sizes:
    """Return what a `config.json` declares of the sizes of its (text) model."""
    facts = check_config(dict(value))
    part: Mapping[str, Any] = value
    if facts.text_model is not None and isinstance(value.get(facts.text_model), dict):
        part = value[facts.text_model]
    fields = Fields(dict(part), [])

    def count(*names: str, zero: bool = False) -> int | None:
        return fields.count(names, _LARGEST, zero=zero)

    heads, hidden = facts.num_attention_heads, facts.hidden_size
    divided = hidden // heads if hidden and heads and hidden % heads == 0 else None
    plain, rope = count("qk_nope_head_dim"), count("qk_rope_head_dim")
    latent = count("kv_lora_rank")
    head = plain + rope if latent and plain and rope else facts.head_dim or divided
    intermediate = facts.intermediate_size
    if intermediate is None and hidden is not None and part.get("n_inner", 0) is None:
        intermediate = 4 * hidden
    windowed, linear = _layer_types(part)
    dtype = facts.dtype
    tied = facts.tie_word_embeddings
    if tied is None and part is not value:
        tied = fields.boolean("tie_word_embeddings")
    return Sizes(
        layers=facts.num_hidden_layers,
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(part, facts.num_key_value_heads, heads),
        head=head,
        value_head=count("v_head_dim") or head,
        intermediate=intermediate,
        expert_intermediate=count("moe_intermediate_size", "expert_intermediate_size") or intermediate,
        experts=facts.num_experts or None,
        experts_per_token=facts.num_experts_per_tok or count("moe_topk", "moe_k", "top_k_experts"),
        shared_experts=count("n_shared_experts", "num_shared_experts", zero=True),
        vocabulary=facts.vocab_size,
        context=facts.max_position_embeddings,
        window=count("sliding_window", "attention_chunk_size"),
        windowed_layers=windowed,
        linear_layers=linear,
        query_rank=count("q_lora_rank"),
        latent_rank=latent,
        rope_head=rope,
        plain_head=plain,
        extra_layers=count("num_nextn_predict_layers", "mtp_num_hidden_layers", zero=True),
        tied=tied,
        dtype=None if dtype == "auto" else dtype,
        gated_queries=_gated(part),
        multimodal=facts.text_model,
    )


def _kv_heads(part: Mapping[str, Any], declared: int | None, heads: int | None) -> int | None:
    """Return the heads of keys: one, where a class of old says multi_query; all, where nothing else is said."""
    if part.get("multi_query") is True and part.get("new_decoder_architecture") is not True:
        return 1
    return declared or heads


def _gated(part: Mapping[str, Any]) -> bool:
    """Tell whether query projections hold a gate: by their field, or by the classes that always have one."""
    kind = part.get("model_type")
    return part.get("attn_output_gate") is True or (isinstance(kind, str) and kind.startswith(_GATED))


def _layer_types(part: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return how many layers are of sliding and of linear attention by the list of layer types; null without a list."""
    types = part.get("layer_types")
    if not isinstance(types, list) or not types or len(types) > 100_000:
        return None, None
    words = [each for each in types if isinstance(each, str)]
    if len(words) < len(types):
        return None, None
    return sum(word in _WINDOWED for word in words), sum(word in _LINEAR for word in words)


def read_params(value: Mapping[str, Any]) -> Sizes:
    """Return what a `params.json` of Meta or Mistral declares."""
    named = {ours: value[theirs] for theirs, ours in _PARAMS.items() if theirs in value}
    moe = value.get("moe")
    if isinstance(moe, dict):
        named["num_experts"] = moe.get("num_experts")
        named["num_experts_per_tok"] = moe.get("num_experts_per_tok")
    usable = {key: item for key, item in named.items() if isinstance(item, int) and item > 0}
    return read_sizes(usable)


def read_metadata(metadata: Mapping[str, GgufValue]) -> Sizes:
    """Return what the metadata of a GGUF file declares."""
    architecture = metadata.get("general.architecture")
    named = {ours: metadata.get(f"{architecture}.{theirs}") for theirs, ours in _GGUF.items()}
    tokens = metadata.get("tokenizer.ggml.tokens")
    if named["vocab_size"] is None and isinstance(tokens, GgufArray):
        named["vocab_size"] = tokens.count
    usable = {
        key: item
        for key, item in named.items()
        if isinstance(item, int) and not isinstance(item, bool) and item > 0
    }
    return read_sizes(usable)


def read_packing(value: Mapping[str, Any]) -> Packing | None:
    """Return what `quantization_config` of a `config.json`, or a whole `quantize_config.json`, declares; null where there is none."""
    declared = value.get("quantization_config", value if "quant_method" in value else None)
    if not isinstance(declared, dict):
        for name in _PARTS:
            part = value.get(name)
            if isinstance(part, dict) and isinstance(part.get("quantization_config"), dict):
                declared = part["quantization_config"]
    if not isinstance(declared, dict):
        return None
    fields = Fields(declared, [])
    bits = fields.count(("bits", "w_bit", "wbits", "weight_bits"), 64)
    group = declared.get("group_size", declared.get("q_group_size"))
    groups = declared.get("config_groups")
    if isinstance(groups, dict):
        bits, group = _of_groups(groups, bits, group)
    if bits is None:
        bits = (
            4 if declared.get("load_in_4bit") is True else 8 if declared.get("load_in_8bit") is True else None
        )
    ignored = next(
        (declared[key] for key in ("modules_to_not_convert", "ignore", "ignored_layers") if key in declared),
        None,
    )
    return Packing(
        method=fields.word("quant_method"),
        bits=bits,
        group=group
        if isinstance(group, int) and not isinstance(group, bool) and -1 <= group <= _LARGEST
        else None,
        block=_block(declared.get("weight_block_size")),
        left_out=min(len(ignored), KEPT) if isinstance(ignored, list) else 0,
    )


def _of_groups(groups: Mapping[str, Any], bits: int | None, group: Any) -> tuple[int | None, Any]:
    """Return bits and group size of the weights of the first group of compressed-tensors."""
    for each in groups.values():
        weights = each.get("weights") if isinstance(each, dict) else None
        if isinstance(weights, dict):
            return Fields(weights, []).count(("num_bits",), 64) or bits, weights.get("group_size", group)
    return bits, group


def _block(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    sound = all(
        isinstance(item, int) and not isinstance(item, bool) and 0 < item <= 1 << 20 for item in value
    )
    return tuple(value) if sound else None
