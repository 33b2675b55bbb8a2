"""Models for the screens about them, made on the spot: one whose layers, experts, sizes and packing are wrong in every way."""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from tests.checkpoints import write_json, write_safetensors

HOSTILE = "[red]evil\x1b[31m\u202e \n" + "n" * 300


def odd_model(folder: Path) -> Path:
    """Write a mixture of experts: layer 5 is not there, 6 lacks a norm, 3 has one of another type, 2 lacks an expert, the vocabulary is
    another one, packed weights of the last layer have no scales, and a name would draw on the terminal.
    """
    kinds: dict[str, tuple[str, tuple[int, ...]]] = {"model.embed_tokens.weight": ("F32", (64, 16))}
    for layer in (0, 1, 2, 3, 4, 6, 7):
        at = f"model.layers.{layer}."
        for name in "qkvo":
            kinds[f"{at}self_attn.{name}_proj.weight"] = ("BF16", (16, 16))
        kinds[f"{at}input_layernorm.weight"] = ("F32" if layer == 3 else "BF16", (16,))
        if layer != 6:
            kinds[f"{at}post_attention_layernorm.weight"] = ("BF16", (16,))
        for expert in range(3 if layer == 2 else 4):
            kinds[f"{at}block_sparse_moe.experts.{expert}.w1.weight"] = ("BF16", (24, 16))
            kinds[f"{at}block_sparse_moe.experts.{expert}.w2.weight"] = ("BF16", (16, 24))
    kinds["lm_head.weight"] = ("F16", (64, 16))
    for name in ("up_proj", "down_proj"):
        kinds[f"draft.0.{name}.qweight"] = ("I32", (2, 16))
        kinds[f"draft.0.{name}.qzeros"] = ("I32", (1, 2))
        if name == "up_proj":
            kinds[f"draft.0.{name}.scales"] = ("F16", (1, 16))
    kinds[HOSTILE] = ("F16", (3,))
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", kinds)
    config = {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "hidden_size": 16,
        "num_hidden_layers": 8,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "intermediate_size": 24,
        "vocab_size": 50_000,
        "max_position_embeddings": 4_096,
    }
    write_json(folder / "config.json", config)
    return folder


def broken_values(path: Path) -> Path:
    """Write tensors with numbers that are not finite, zeros alone and in a stretch, one number alone, a copy, and a hostile name."""
    chance = np.random.default_rng(0)

    def noise(*shape: int) -> np.ndarray:
        return chance.normal(size=shape).astype("f4")

    broken, half = noise(8, 8), noise(40, 1024)
    broken[3, 3], broken[4, 4] = np.nan, -np.inf
    half[20:] = 0
    one = noise(9, 9)
    tensors = {
        "model.layers.0.broken.weight": broken,
        "model.layers.0.copy.weight": one.copy(),
        "model.layers.0.half.weight": half,
        "model.layers.0.one.weight": one,
        "model.layers.0.ones.weight": np.ones(16, "f4"),
        "model.layers.0.sound.weight": noise(50, 50),
        "model.layers.0.zeros.weight": np.zeros((7, 7), "f4"),
        HOSTILE: np.zeros((5, 5), "f4"),
    }
    save_file(tensors, path)
    return path
