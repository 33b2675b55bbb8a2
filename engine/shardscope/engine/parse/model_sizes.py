"""Sizes of a model from the configuration beside it: `config.json` of transformers, `params.json` of Meta and Mistral, GGUF metadata.

Field names are those of the model classes of transformers 5 and of the two releases. A field that says something else for each layer says
nothing here; what is wrong with a field is for `config` to tell.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from shardscope.engine.model.anatomy import Keeping, Other, Packing, Sizes
from shardscope.engine.model.config import ConfigFacts
from shardscope.engine.model.facts import GgufArray, GgufValue
from shardscope.engine.parse.attention_layers import (
    ENCODERS,
    OF_THEIR_OWN,
    Layers,
    grows,
    read_layers,
    windowed,
)
from shardscope.engine.parse.config import check_config
from shardscope.engine.parse.fields import KEPT, Fields

_LARGEST: Final = (1 << 63) - 1
_FACTOR: Final = 1 << 20
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
_GGUF_CLASSES: Final = {"gemma3": "gemma3_text", "gpt-oss": "gpt_oss"}
"""Architectures whose classes transformers calls otherwise."""
_GATED: Final = ("qwen3_next", "qwen3_5")
_FURTHER_WORDS: Final = {"mllama_text_model": 8, "moshi": 1}
"""Rows that classes add to the embedding of the input."""
_EXPERT_WIDTHS: Final = ("moe_intermediate_size", "expert_intermediate_size", "expert_ffn_hidden_size")
_OTHERS: Final = 16
"""Sets of sizes of single layers that are looked at, at most."""


def read_sizes(value: Mapping[str, Any]) -> Sizes:
    """Return what a `config.json` declares of the sizes of its (text) model."""
    facts = check_config(dict(value))
    part: Mapping[str, Any] = value
    if facts.text_model is not None and isinstance(value.get(facts.text_model), dict):
        part = value[facts.text_model]
    sizes = _sizes(part, facts)
    layers = read_layers(part, sizes.layers)
    tied = facts.tie_word_embeddings
    if tied is None and part is not value:
        tied = Fields(dict(part), []).boolean("tie_word_embeddings")
    return replace(
        sizes,
        layers=sizes.layers or (len(layers.kinds) if layers.kinds is not None else None),
        window=layers.window,
        windowed_layers=layers.windowed,
        linear_layers=layers.without,
        shared_layers=layers.shared,
        tied=tied,
        multimodal=facts.text_model,
        keeps=_keeps(part, facts, layers),
        crossed=part.get("is_encoder_decoder") is True,
        others=_others(part, layers),
    )


def _sizes(part: Mapping[str, Any], facts: ConfigFacts) -> Sizes:
    """Return the sizes that hold for all layers of a model, or for some of them."""
    fields = Fields(dict(part), [])

    def count(*names: str, zero: bool = False) -> int | None:
        return fields.count(names, _LARGEST, zero=zero)

    heads, hidden = (
        count("decoder_attention_heads", "decoder_num_attention_heads") or facts.num_attention_heads,
        facts.hidden_size,
    )
    divided = hidden // heads if hidden and heads and hidden % heads == 0 else None
    plain, rope = count("qk_nope_head_dim"), count("qk_rope_head_dim", zero=True)
    latent = count("kv_lora_rank")
    head = (
        plain + rope
        if latent and plain and rope is not None
        else facts.head_dim or count("attention_head_dim") or divided
    )
    intermediate = count("decoder_ffn_dim") or facts.intermediate_size
    if intermediate is None and hidden is not None and part.get("n_inner", 0) is None:
        intermediate = 4 * hidden
    if intermediate is not None and part.get("block_auto_adjust_ff_dim") is True:
        intermediate = _adjusted(
            intermediate, part.get("block_ffn_dim_multiplier"), count("block_multiple_of")
        )
    embedding = count("embedding_size", "word_embed_proj_dim", "input_embedding_size")
    dtype = facts.dtype
    kind = part.get("model_type")
    return Sizes(
        layers=count("decoder_layers", "num_decoder_layers", "decoder_num_hidden_layers")
        or facts.num_hidden_layers,
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(part, count("decoder_num_key_value_heads") or facts.num_key_value_heads, heads),
        head=head,
        value_head=count("v_head_dim") or head,
        intermediate=intermediate,
        expert_intermediate=count(*_EXPERT_WIDTHS)
        if fields.first(_EXPERT_WIDTHS) is not None
        else intermediate,
        experts=None if isinstance(part.get("moe_num_experts"), list) else facts.num_experts or None,
        experts_per_token=facts.num_experts_per_tok
        or count("moe_topk", "moe_k", "top_k_experts", "num_experts_per_token"),
        shared_experts=count("n_shared_experts", "num_shared_experts", zero=True),
        vocabulary=facts.vocab_size,
        context=facts.max_position_embeddings,
        query_rank=count("q_lora_rank"),
        latent_rank=latent,
        rope_head=rope,
        plain_head=plain,
        extra_layers=count("num_nextn_predict_layers", "mtp_num_hidden_layers", zero=True),
        dtype=None if dtype == "auto" else dtype,
        gated_queries=_gated(part),
        embedding=embedding if embedding != hidden else None,
        further_words=_FURTHER_WORDS.get(kind, 0) if isinstance(kind, str) else 0,
        further_experts=count("zero_expert_num")
        or (count("n_shared_experts") or 0 if part.get("shared_expert_sink") is True else 0),
    )


def _adjusted(size: int, multiplier: object, multiple: int | None) -> int:
    """Return the width of a gated feed-forward layer as Llama's release and LFM2 derive it from a plain one."""
    size = 2 * size // 3
    if isinstance(multiplier, int | float) and not isinstance(multiplier, bool) and 0 < multiplier < _FACTOR:
        size = int(multiplier * size)
    return -(-size // multiple) * multiple if multiple else size


def _keeps(part: Mapping[str, Any], facts: ConfigFacts, layers: Layers) -> Keeping:
    kinds = {each for each in (part.get("model_type"), facts.model_type) if isinstance(each, str)}
    alone = any(name.endswith("EncoderModel") for name in facts.architectures)
    if alone or (not ENCODERS.isdisjoint(kinds) and part.get("is_decoder") is not True):
        return "nothing"
    return "tokens" if layers.known and kinds.isdisjoint(OF_THEIR_OWN) else "unknown"


def _others(part: Mapping[str, Any], layers: Layers) -> tuple[Other, ...]:
    """Return the sizes of layers that a configuration sets apart: by their number, or by how they attend."""
    keeping = layers.keeping
    found = []
    for numbers, changed in _changes(part, layers):
        held = [keeping[number] for number in numbers if number < len(keeping)]
        changed_part = {**part, **changed}
        full, some = sum(map(grows, held)), sum(map(windowed, held))
        found.append(Other(full, some, _sizes(changed_part, check_config(changed_part))))
    return tuple(found)


def _changes(part: Mapping[str, Any], layers: Layers) -> Iterator[tuple[list[int], dict[str, Any]]]:
    """Yield numbers of layers and the fields that are others for them."""
    kinds = layers.kinds or ()
    single = part.get("per_layer_config")
    if isinstance(single, dict):
        groups: dict[str, tuple[list[int], dict[str, Any]]] = {}
        for number, changed in single.items():
            if isinstance(changed, dict) and number.isascii() and number.isdigit() and len(number) < 7:
                groups.setdefault(repr(sorted(changed.items(), key=str)), ([], changed))[0].append(
                    int(number)
                )
        yield from islice(groups.values(), _OTHERS)
        return
    sliding = {name.removeprefix("swa_"): held for name, held in part.items() if name.startswith("swa_")}
    if sliding:
        yield [number for number, kind in enumerate(kinds) if windowed(kind)], sliding
    head = part.get("global_head_dim")
    if head is not None:
        whole = {"head_dim": head}
        if part.get("num_global_key_value_heads") is not None and part.get("attention_k_eq_v", True) is True:
            whole["num_key_value_heads"] = part["num_global_key_value_heads"]
        yield [number for number, kind in enumerate(kinds) if grows(kind)], whole
    wide = part.get("intermediate_size")
    if part.get("use_double_wide_mlp") is True and layers.shared and isinstance(wide, int):
        yield [], {"intermediate_size": 2 * wide}


def _kv_heads(part: Mapping[str, Any], declared: int | None, heads: int | None) -> int | None:
    """Return the heads of keys: one, where a class of old says multi_query; all, where nothing else is said."""
    if part.get("multi_query") is True and part.get("new_decoder_architecture") is not True:
        return 1
    return declared or heads


def _gated(part: Mapping[str, Any]) -> bool:
    """Tell whether query projections hold a gate: by their field, or by the classes that always have one."""
    kind = part.get("model_type")
    return part.get("attn_output_gate") is True or (isinstance(kind, str) and kind.startswith(_GATED))


def read_params(value: Mapping[str, Any]) -> Sizes:
    """Return what a `params.json` of Meta or Mistral declares."""
    named = {ours: value[theirs] for theirs, ours in _PARAMS.items() if theirs in value}
    if (
        "hidden_dim" not in value
        and isinstance(dim := value.get("dim"), int)
        and isinstance(multiple := value.get("multiple_of"), int)
    ):
        named["intermediate_size"] = _adjusted(4 * dim, value.get("ffn_dim_multiplier"), max(multiple, 1))
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
    kind = _GGUF_CLASSES.get(architecture, architecture) if isinstance(architecture, str) else None
    tokens = metadata.get("tokenizer.ggml.tokens")
    if named["vocab_size"] is None and isinstance(tokens, GgufArray):
        named["vocab_size"] = tokens.count
    usable = {
        key: item
        for key, item in named.items()
        if isinstance(item, int) and not isinstance(item, bool) and item > 0
    }
    return read_sizes({**usable, "model_type": kind} if kind is not None else usable)


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
        form=fields.word("checkpoint_format"),
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
