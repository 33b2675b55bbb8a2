"""Small configurations of transformers' model classes, by the name that a configuration calls its class by."""

from typing import Any, Final

SMALL: Final = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "vocab_size": 97,
    "intermediate_size": 96,
}
GROUPED: Final = SMALL | {"num_key_value_heads": 2}
WINDOW: Final = {"sliding_window": 16}
TWO: Final = {"num_local_experts": 4, "num_experts_per_tok": 2}
EXPERTS: Final = GROUPED | {"moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2}
ROUTED: Final = EXPERTS | {
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}
LATENT: Final = GROUPED | {
    "num_key_value_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 12,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
}  # fmt: skip
GPT: Final = {"n_embd": 64, "n_layer": 3, "n_head": 4, "vocab_size": 97, "n_positions": 64}
MAMBA: Final = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 8}
TOWER: Final = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 8,
}
T5: Final = {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 3, "num_heads": 4, "vocab_size": 97}
BART: Final = {
    "d_model": 64, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "vocab_size": 97, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1,
}  # fmt: skip
SIX: Final = {"num_hidden_layers": 6}

DECODERS: Final[dict[str, dict[str, Any]]] = {
    "llama": GROUPED,
    "mistral": GROUPED | WINDOW,
    "mixtral": GROUPED | TWO | WINDOW,
    "qwen2": GROUPED | WINDOW | {"use_sliding_window": True, "max_window_layers": 2},
    "qwen3": GROUPED | {"head_dim": 24},
    "qwen2_moe": EXPERTS | {"shared_expert_intermediate_size": 48},
    "qwen3_moe": EXPERTS | {"head_dim": 24},
    "qwen3_next": EXPERTS | {"num_hidden_layers": 4, "head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
                             "linear_key_head_dim": 16, "linear_value_head_dim": 16, "shared_expert_intermediate_size": 32},
    "gemma": GROUPED | {"head_dim": 24},
    "gemma2": GROUPED | {"head_dim": 24} | WINDOW,
    "gemma3_text": GROUPED | {"head_dim": 24} | WINDOW | SIX,
    "gemma3n_text": GROUPED | {"head_dim": 24, "vocab_size_per_layer_input": 97, "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 2,
                               "laurel_rank": 8, "layer_types": ["sliding_attention", "full_attention"] * 3, "intermediate_size": [96] * 6,
                               "activation_sparsity_pattern": [0.0] * 6} | WINDOW | SIX,
    "gemma4_text": GROUPED | {"head_dim": 24, "global_head_dim": 32, "num_key_value_heads": 2, "vocab_size_per_layer_input": 97,
                              "hidden_size_per_layer_input": 8} | WINDOW | SIX,
    "phi": SMALL,
    "phi3": GROUPED | {"pad_token_id": 0} | WINDOW,
    "phimoe": GROUPED | TWO,
    "deepseek_v2": LATENT | {"topk_method": "greedy"},
    "deepseek_v3": LATENT,
    "gpt_oss": GROUPED | TWO | {"head_dim": 16} | WINDOW,
    "gpt2": GPT,
    "gpt_bigcode": GPT | {"multi_query": True},
    "gpt_neo": {"hidden_size": 64, "num_layers": 4, "num_heads": 4, "vocab_size": 97, "attention_types": [[["global", "local"], 2]]},
    "gpt_neox": SMALL,
    "gptj": GPT | {"rotary_dim": 8},
    "codegen": GPT | {"rotary_dim": 8},
    "falcon": {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 97},
    "falcon_h1": GROUPED | MAMBA | {"head_dim": 16, "mamba_d_ssm": 128},
    "falcon_mamba": {"hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 97, "state_size": 8},
    "bloom": {"hidden_size": 64, "n_layer": 3, "n_head": 4, "vocab_size": 97},
    "mpt": {"d_model": 64, "n_layers": 3, "n_heads": 4, "vocab_size": 97, "max_seq_len": 64},
    "opt": {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 97, "ffn_dim": 96, "word_embed_proj_dim": 32},
    "xglm": {"d_model": 64, "num_layers": 3, "attention_heads": 4, "ffn_dim": 96, "vocab_size": 97},
    "biogpt": SMALL,
    "olmo": GROUPED,
    "olmo2": GROUPED,
    "olmo3": GROUPED | WINDOW,
    "olmoe": GROUPED | {"num_experts": 4, "num_experts_per_tok": 2},
    "cohere": GROUPED,
    "cohere2": GROUPED | WINDOW | {"num_hidden_layers": 5},
    "granite": GROUPED,
    "granitemoe": GROUPED | TWO,
    "granitemoehybrid": GROUPED | TWO | MAMBA | {"num_hidden_layers": 4, "shared_intermediate_size": 48,
                                                 "layer_types": ["mamba", "mamba", "attention", "mamba"]},
    "starcoder2": GROUPED | WINDOW,
    "stablelm": GROUPED,
    "persimmon": SMALL,
    "nemotron": GROUPED,
    "exaone4": GROUPED | WINDOW | {"num_hidden_layers": 5},
    "glm": GROUPED | {"head_dim": 16, "pad_token_id": 0},
    "glm4": GROUPED | {"head_dim": 16, "pad_token_id": 0},
    "glm4_moe": ROUTED | {"head_dim": 16, "pad_token_id": 0},
    "dots1": ROUTED,
    "ernie4_5_moe": EXPERTS | {"moe_num_experts": 4, "moe_k": 2},
    "hunyuan_v1_moe": GROUPED | {"head_dim": 16, "num_experts": 4, "moe_topk": 2},
    "smollm3": GROUPED | {"pad_token_id": 0},
    "seed_oss": GROUPED | {"head_dim": 16},
    "apertus": GROUPED,
    "llama4_text": GROUPED | TWO | {"num_hidden_layers": 4, "head_dim": 16, "intermediate_size_mlp": 128, "interleave_moe_layer_step": 2,
                                    "num_experts_per_tok": 1, "attention_chunk_size": 16},
    "lfm2": GROUPED | {"num_hidden_layers": 4, "full_attn_idxs": [2]},
    "minimax": GROUPED | TWO | {"head_dim": 16},
    "minimax_m2": GROUPED | TWO | {"head_dim": 16},
    "jamba": GROUPED | {"num_hidden_layers": 8, "num_experts": 4, "num_experts_per_tok": 2, "attn_layer_period": 4, "attn_layer_offset": 2,
                        "expert_layer_period": 2, "expert_layer_offset": 1, "use_mamba_kernels": False},
    "bamba": GROUPED | MAMBA | {"num_hidden_layers": 4, "attn_layer_indices": [2]},
    "mamba": {"hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 97, "state_size": 8},
    "mamba2": {"hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 97, "state_size": 8, "num_heads": 8, "head_dim": 16, "n_groups": 1},
}  # fmt: skip
"""Models that read token after token."""

SEVERAL: Final[dict[str, dict[str, Any]]] = {
    "gemma3": {"text_config": GROUPED | {"head_dim": 24} | WINDOW, "vision_config": TOWER},
    "llava": {"text_config": GROUPED | {"model_type": "llama"}, "vision_config": TOWER | {"model_type": "clip_vision_model"}},
    "paligemma": {"text_config": GROUPED | {"model_type": "gemma", "head_dim": 16},
                  "vision_config": TOWER | {"model_type": "siglip_vision_model", "projection_dim": 64}, "projection_dim": 64, "hidden_size": 64},
    "qwen2_5_vl": {"text_config": GROUPED, "vision_config": {"depth": 2, "hidden_size": 32, "out_hidden_size": 64, "num_heads": 2, "intermediate_size": 48}},
    "qwen3_vl": {"text_config": GROUPED | {"head_dim": 16}, "vision_config": {"depth": 2, "hidden_size": 32, "out_hidden_size": 64, "num_heads": 2,
                                                                              "intermediate_size": 48, "deepstack_visual_indexes": [0]}},
}  # fmt: skip
"""Models whose sizes are those of a part."""

ENCODERS: Final[dict[str, dict[str, Any]]] = {
    "bert": SMALL,
    "roberta": SMALL,
    "distilbert": {"dim": 64, "n_layers": 3, "n_heads": 4, "hidden_dim": 96, "vocab_size": 97},
    "electra": SMALL | {"embedding_size": 32},
    "albert": SMALL | {"embedding_size": 32},
    "deberta-v2": SMALL,
    "modernbert": SMALL | {"pad_token_id": 0},
    "clip": {"text_config": SMALL | {"projection_dim": 32}, "vision_config": TOWER, "projection_dim": 32},
    "siglip": {"text_config": SMALL, "vision_config": TOWER},
    "vit": TOWER | {"num_hidden_layers": 3},
}  # fmt: skip
"""Models that read everything at once."""

PAIRS: Final[dict[str, dict[str, Any]]] = {
    "t5": T5,
    "mt5": T5 | {"num_decoder_layers": 2, "feed_forward_proj": "gated-gelu"},
    "bart": BART,
    "mbart": BART,
    "whisper": BART | {"num_mel_bins": 16, "max_source_positions": 32},
}  # fmt: skip
"""Models with an encoder and a decoder."""

ARCHITECTURES: Final = DECODERS | SEVERAL | ENCODERS | PAIRS
