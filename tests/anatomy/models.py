"""Published architectures as lists of tensors and configurations, written out by hand from their papers and model classes."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from shardscope.engine.anatomy.items import Item, use_of

SIZES = {"F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "U8": 1, "I8": 1, "I32": 4, "I64": 8, "BOOL": 1}


def item(name: str, *shape: int, dtype: str = "BF16") -> Item:
    size = SIZES[dtype]
    for extent in shape:
        size *= extent
    return Item(name, dtype, shape, size, use_of(name, dtype, shape))


class Model(NamedTuple):
    """One architecture."""

    config: dict[str, Any]
    tensors: Callable[[dict[str, Any]], Iterator[Item]]
    total: int
    """Parameters, as its authors and its model card count them."""
    active: int | None = None
    token_bytes: int | None = None
    """Of keys and values in 16 bits."""


def llama(
    c: dict[str, Any], stem: str = "model.", bias: bool = False, norms: tuple[str, ...] = ()
) -> Iterator[Item]:
    hidden, inter, heads = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"]
    head = c.get("head_dim") or hidden // heads
    kv = c.get("num_key_value_heads") or heads
    yield item(f"{stem}embed_tokens.weight", c["vocab_size"], hidden)
    for n in range(c["num_hidden_layers"]):
        at = f"{stem}layers.{n}."
        for name, rows in (("q", heads), ("k", kv), ("v", kv)):
            yield item(f"{at}self_attn.{name}_proj.weight", rows * head, hidden)
            if bias:
                yield item(f"{at}self_attn.{name}_proj.bias", rows * head)
        yield item(f"{at}self_attn.o_proj.weight", hidden, heads * head)
        yield item(f"{at}mlp.gate_proj.weight", inter, hidden)
        yield item(f"{at}mlp.up_proj.weight", inter, hidden)
        yield item(f"{at}mlp.down_proj.weight", hidden, inter)
        for norm in ("input_layernorm", "post_attention_layernorm", *norms):
            yield item(f"{at}{norm}.weight", hidden)
    yield item(f"{stem}norm.weight", hidden)
    if not c.get("tie_word_embeddings"):
        yield item("lm_head.weight", c["vocab_size"], hidden)


def qwen2(c: dict[str, Any]) -> Iterator[Item]:
    return llama(c, bias=True)


def gemma2(c: dict[str, Any]) -> Iterator[Item]:
    return llama(c, norms=("pre_feedforward_layernorm", "post_feedforward_layernorm"))


def mixtral(c: dict[str, Any]) -> Iterator[Item]:
    hidden, inter, heads = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"]
    head, kv, experts = hidden // heads, c["num_key_value_heads"], c["num_local_experts"]
    yield item("model.embed_tokens.weight", c["vocab_size"], hidden)
    for n in range(c["num_hidden_layers"]):
        at = f"model.layers.{n}."
        for name, rows in (("q", heads), ("k", kv), ("v", kv)):
            yield item(f"{at}self_attn.{name}_proj.weight", rows * head, hidden)
        yield item(f"{at}self_attn.o_proj.weight", hidden, heads * head)
        yield item(f"{at}block_sparse_moe.gate.weight", experts, hidden)
        for e in range(experts):
            for name, shape in (("w1", (inter, hidden)), ("w2", (hidden, inter)), ("w3", (inter, hidden))):
                yield item(f"{at}block_sparse_moe.experts.{e}.{name}.weight", *shape)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield item(f"{at}{norm}.weight", hidden)
    yield item("model.norm.weight", hidden)
    yield item("lm_head.weight", c["vocab_size"], hidden)


def qwen3_moe(c: dict[str, Any]) -> Iterator[Item]:
    hidden, inter, heads = c["hidden_size"], c["moe_intermediate_size"], c["num_attention_heads"]
    head, kv, experts = c["head_dim"], c["num_key_value_heads"], c["num_experts"]
    yield item("model.embed_tokens.weight", c["vocab_size"], hidden)
    for n in range(c["num_hidden_layers"]):
        at = f"model.layers.{n}."
        for name, rows in (("q", heads), ("k", kv), ("v", kv)):
            yield item(f"{at}self_attn.{name}_proj.weight", rows * head, hidden)
        yield item(f"{at}self_attn.q_norm.weight", head)
        yield item(f"{at}self_attn.k_norm.weight", head)
        yield item(f"{at}self_attn.o_proj.weight", hidden, heads * head)
        yield item(f"{at}mlp.gate.weight", experts, hidden)
        for e in range(experts):
            yield item(f"{at}mlp.experts.{e}.gate_proj.weight", inter, hidden)
            yield item(f"{at}mlp.experts.{e}.up_proj.weight", inter, hidden)
            yield item(f"{at}mlp.experts.{e}.down_proj.weight", hidden, inter)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield item(f"{at}{norm}.weight", hidden)
    yield item("model.norm.weight", hidden)
    yield item("lm_head.weight", c["vocab_size"], hidden)


def deepseek(c: dict[str, Any]) -> Iterator[Item]:
    hidden, heads = c["hidden_size"], c["num_attention_heads"]
    q, kv = c["q_lora_rank"], c["kv_lora_rank"]
    plain, rope, value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    yield item("model.embed_tokens.weight", c["vocab_size"], hidden)
    for n in range(c["num_hidden_layers"]):
        at = f"model.layers.{n}."
        yield item(f"{at}self_attn.q_a_proj.weight", q, hidden)
        yield item(f"{at}self_attn.q_a_layernorm.weight", q)
        yield item(f"{at}self_attn.q_b_proj.weight", heads * (plain + rope), q)
        yield item(f"{at}self_attn.kv_a_proj_with_mqa.weight", kv + rope, hidden)
        yield item(f"{at}self_attn.kv_a_layernorm.weight", kv)
        yield item(f"{at}self_attn.kv_b_proj.weight", heads * (plain + value), kv)
        yield item(f"{at}self_attn.o_proj.weight", hidden, heads * value)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield item(f"{at}{norm}.weight", hidden)
        if n < c["first_k_dense_replace"]:
            yield from _gated(f"{at}mlp.", hidden, c["intermediate_size"])
            continue
        yield item(f"{at}mlp.gate.weight", c["n_routed_experts"], hidden)
        yield item(f"{at}mlp.gate.e_score_correction_bias", c["n_routed_experts"], dtype="F32")
        inter = c["moe_intermediate_size"]
        yield from _gated(f"{at}mlp.shared_experts.", hidden, inter * c["n_shared_experts"])
        for e in range(c["n_routed_experts"]):
            yield from _gated(f"{at}mlp.experts.{e}.", hidden, inter)
    yield item("model.norm.weight", hidden)
    yield item("lm_head.weight", c["vocab_size"], hidden)


def _gated(at: str, hidden: int, inter: int) -> Iterator[Item]:
    yield item(f"{at}gate_proj.weight", inter, hidden)
    yield item(f"{at}up_proj.weight", inter, hidden)
    yield item(f"{at}down_proj.weight", hidden, inter)


def gpt2(c: dict[str, Any]) -> Iterator[Item]:
    hidden = c["n_embd"]
    yield item("wte.weight", c["vocab_size"], hidden, dtype="F32")
    yield item("wpe.weight", c["n_positions"], hidden, dtype="F32")
    for n in range(c["n_layer"]):
        at = f"h.{n}."
        yield item(f"{at}attn.bias", 1, 1, c["n_positions"], c["n_positions"], dtype="F32")
        for name, shape in (
            ("attn.c_attn", (hidden, 3 * hidden)),
            ("attn.c_proj", (hidden, hidden)),
            ("mlp.c_fc", (hidden, 4 * hidden)),
            ("mlp.c_proj", (4 * hidden, hidden)),
        ):
            yield item(f"{at}{name}.weight", *shape, dtype="F32")
            yield item(f"{at}{name}.bias", shape[1], dtype="F32")
        for norm in ("ln_1", "ln_2"):
            yield from (item(f"{at}{norm}.{end}", hidden, dtype="F32") for end in ("weight", "bias"))
    yield from (item(f"ln_f.{end}", hidden, dtype="F32") for end in ("weight", "bias"))


def neox(c: dict[str, Any]) -> Iterator[Item]:
    hidden, inter = c["hidden_size"], c["intermediate_size"]
    yield item("gpt_neox.embed_in.weight", c["vocab_size"], hidden, dtype="F16")
    for n in range(c["num_hidden_layers"]):
        at = f"gpt_neox.layers.{n}."
        yield item(f"{at}attention.rotary_emb.inv_freq", 8, dtype="F32")
        yield item(f"{at}attention.bias", 1, 1, 2048, 2048, dtype="BOOL")
        for name, shape in (
            ("attention.query_key_value", (3 * hidden, hidden)),
            ("attention.dense", (hidden, hidden)),
            ("mlp.dense_h_to_4h", (inter, hidden)),
            ("mlp.dense_4h_to_h", (hidden, inter)),
        ):
            yield item(f"{at}{name}.weight", *shape, dtype="F16")
            yield item(f"{at}{name}.bias", shape[0], dtype="F16")
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield from (item(f"{at}{norm}.{end}", hidden, dtype="F16") for end in ("weight", "bias"))
    yield from (item(f"gpt_neox.final_layer_norm.{end}", hidden, dtype="F16") for end in ("weight", "bias"))
    yield item("embed_out.weight", c["vocab_size"], hidden, dtype="F16")


def falcon(c: dict[str, Any]) -> Iterator[Item]:
    hidden, head = c["hidden_size"], c["hidden_size"] // c["num_attention_heads"]
    yield item("transformer.word_embeddings.weight", c["vocab_size"], hidden)
    for n in range(c["num_hidden_layers"]):
        at = f"transformer.h.{n}."
        yield item(f"{at}self_attention.query_key_value.weight", hidden + 2 * head, hidden)
        yield item(f"{at}self_attention.dense.weight", hidden, hidden)
        yield item(f"{at}mlp.dense_h_to_4h.weight", 4 * hidden, hidden)
        yield item(f"{at}mlp.dense_4h_to_h.weight", hidden, 4 * hidden)
        yield from (item(f"{at}input_layernorm.{end}", hidden) for end in ("weight", "bias"))
    yield from (item(f"transformer.ln_f.{end}", hidden) for end in ("weight", "bias"))
    if not c["tie_word_embeddings"]:
        yield item("lm_head.weight", c["vocab_size"], hidden)


def bert(c: dict[str, Any]) -> Iterator[Item]:
    hidden, inter = c["hidden_size"], c["intermediate_size"]

    def both(name: str, *shape: int) -> Iterator[Item]:
        yield item(f"{name}.weight", *shape, dtype="F32")
        yield item(f"{name}.bias", shape[0], dtype="F32")

    stem = "bert.embeddings."
    yield item(f"{stem}position_ids", 1, 512, dtype="I64")
    yield item(f"{stem}word_embeddings.weight", c["vocab_size"], hidden, dtype="F32")
    yield item(f"{stem}position_embeddings.weight", c["max_position_embeddings"], hidden, dtype="F32")
    yield item(f"{stem}token_type_embeddings.weight", 2, hidden, dtype="F32")
    yield from both(f"{stem}LayerNorm", hidden)
    for n in range(c["num_hidden_layers"]):
        at = f"bert.encoder.layer.{n}."
        for name in ("query", "key", "value"):
            yield from both(f"{at}attention.self.{name}", hidden, hidden)
        yield from both(f"{at}attention.output.dense", hidden, hidden)
        yield from both(f"{at}attention.output.LayerNorm", hidden)
        yield from both(f"{at}intermediate.dense", inter, hidden)
        yield from both(f"{at}output.dense", hidden, inter)
        yield from both(f"{at}output.LayerNorm", hidden)
    yield from both("bert.pooler.dense", hidden, hidden)


def gpt_oss(c: dict[str, Any]) -> Iterator[Item]:
    hidden, inter, experts = c["hidden_size"], c["intermediate_size"], c["num_local_experts"]
    heads, kv, head = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    yield item("model.embed_tokens.weight", c["vocab_size"], hidden)
    for n in range(c["num_hidden_layers"]):
        at = f"model.layers.{n}."
        for name, rows in (("q", heads), ("k", kv), ("v", kv)):
            yield item(f"{at}self_attn.{name}_proj.weight", rows * head, hidden)
            yield item(f"{at}self_attn.{name}_proj.bias", rows * head)
        yield item(f"{at}self_attn.o_proj.weight", hidden, heads * head)
        yield item(f"{at}self_attn.o_proj.bias", hidden)
        yield item(f"{at}self_attn.sinks", heads)
        yield item(f"{at}mlp.router.weight", experts, hidden)
        yield item(f"{at}mlp.router.bias", experts)
        for name, rows, columns in (("gate_up_proj", 2 * inter, hidden), ("down_proj", hidden, inter)):
            yield item(f"{at}mlp.experts.{name}_blocks", experts, rows, columns // 32, 16, dtype="U8")
            yield item(f"{at}mlp.experts.{name}_scales", experts, rows, columns // 32, dtype="U8")
            yield item(f"{at}mlp.experts.{name}_bias", experts, rows)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield item(f"{at}{norm}.weight", hidden)
    yield item("model.norm.weight", hidden)
    yield item("lm_head.weight", c["vocab_size"], hidden)


MODELS: dict[str, Model] = {
    "Llama 3 8B": Model(
        {"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
         "tie_word_embeddings": False, "torch_dtype": "bfloat16"},
        llama, 8_030_261_248, None, 131_072,
    ),
    "Llama 2 7B": Model(
        {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
         "vocab_size": 32000, "max_position_embeddings": 4096, "tie_word_embeddings": False},
        llama, 6_738_415_616, None, 524_288,
    ),
    "Qwen 2.5 0.5B": Model(
        {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
         "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 32768, "tie_word_embeddings": True},
        qwen2, 494_032_768, None, 12_288,
    ),
    "Gemma 2 2B": Model(
        {"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8, "head_dim": 256,
         "num_key_value_heads": 4, "vocab_size": 256000, "max_position_embeddings": 8192, "tie_word_embeddings": True,
         "sliding_window": 4096, "layer_types": ["sliding_attention", "full_attention"] * 13},
        gemma2, 2_614_341_888, None, 106_496,
    ),
    "Mixtral 8x7B": Model(
        {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
         "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
         "max_position_embeddings": 32768},
        mixtral, 46_702_792_704, 12_879_925_248, 131_072,
    ),
    "Qwen 3 30B A3B": Model(
        {"hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
         "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "num_experts": 128,
         "num_experts_per_tok": 8, "max_position_embeddings": 40960},
        qwen3_moe, 30_532_122_624, 3_353_032_704, 98_304,
    ),
    "DeepSeek V3": Model(
        {"hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
         "num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1,
         "num_experts_per_tok": 8, "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
         "num_nextn_predict_layers": 1, "max_position_embeddings": 163840},
        deepseek, 671_026_404_352, 37_552_282_624, 70_272,
    ),
    "GPT 2": Model(
        {"n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257, "n_inner": None,
         "tie_word_embeddings": True},
        gpt2, 124_439_808, None, 36_864,
    ),
    "GPT NeoX 20B": Model(
        {"hidden_size": 6144, "intermediate_size": 24576, "num_hidden_layers": 44, "num_attention_heads": 64,
         "vocab_size": 50432, "max_position_embeddings": 2048},
        neox, 20_554_567_680, None, 1_081_344,
    ),
    "Falcon 7B": Model(
        {"hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "vocab_size": 65024,
         "multi_query": True, "new_decoder_architecture": False, "tie_word_embeddings": True},
        falcon, 6_921_720_704, None, 8_192,
    ),
    "BERT base": Model(
        {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
         "vocab_size": 30522, "max_position_embeddings": 512},
        bert, 109_482_240, None, 36_864,
    ),
    "gpt-oss 20B": Model(
        {"hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64,
         "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088, "num_local_experts": 32,
         "num_experts_per_tok": 4, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 12,
         "max_position_embeddings": 131072, "tie_word_embeddings": False,
         "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}},
        gpt_oss, 20_914_757_184, 4_187_440_704, 49_152,  # its card leaves the embedding out: 3.61 billion
    ),
}  # fmt: skip
