"""Makes the checkpoints of `make demo`: a small Llama in four shards, and a copy that lost its way.

    python tests/demo.py FOLDER

The values are noise; names, shapes, sharding, index and configuration are those of a Hugging Face folder. The copy
has one shard cut short, one that is still a Git LFS pointer and one that never arrived.
"""

import hashlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors
from safetensors import TensorSpec

LAYERS, HIDDEN, FEED_FORWARD, HEADS, KEY_VALUE_HEADS, VOCABULARY = 4, 256, 688, 8, 2, 2048
SHARD_BYTES = 2_200_000

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "bos_token_id": 1,
    "dtype": "bfloat16",
    "eos_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": FEED_FORWARD,
    "max_position_embeddings": 2048,
    "model_type": "llama",
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": KEY_VALUE_HEADS,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "vocab_size": VOCABULARY,
}


def shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors of the model, in the order in which a Llama registers them."""
    key_value = HIDDEN // HEADS * KEY_VALUE_HEADS
    yield "model.embed_tokens.weight", (VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        yield f"{prefix}.self_attn.q_proj.weight", (HIDDEN, HIDDEN)
        yield f"{prefix}.self_attn.k_proj.weight", (key_value, HIDDEN)
        yield f"{prefix}.self_attn.v_proj.weight", (key_value, HIDDEN)
        yield f"{prefix}.self_attn.o_proj.weight", (HIDDEN, HIDDEN)
        yield f"{prefix}.mlp.gate_proj.weight", (FEED_FORWARD, HIDDEN)
        yield f"{prefix}.mlp.up_proj.weight", (FEED_FORWARD, HIDDEN)
        yield f"{prefix}.mlp.down_proj.weight", (HIDDEN, FEED_FORWARD)
        yield f"{prefix}.input_layernorm.weight", (HIDDEN,)
        yield f"{prefix}.post_attention_layernorm.weight", (HIDDEN,)
    yield "model.norm.weight", (HIDDEN,)
    yield "lm_head.weight", (VOCABULARY, HIDDEN)


Bits = npt.NDArray[np.uint16]
"""The bits of a bfloat16 tensor, a type that numpy does not have."""


def bfloat16(shape: tuple[int, ...], noise: np.random.Generator) -> Bits:
    """Noise of the spread that weights have, cut to the upper halves of little-endian float32."""
    values = noise.normal(0.0, 0.02, shape).astype("<f4")
    return (values.view("<u4") >> 16).astype("<u2")


def shards() -> list[dict[str, Bits]]:
    """The tensors, dealt out in order to files of at most `SHARD_BYTES`."""
    noise = np.random.default_rng(seed=20)
    dealt: list[dict[str, Bits]] = [{}]
    filled = 0
    for name, shape in shapes():
        bits = bfloat16(shape, noise)
        if filled and filled + bits.nbytes > SHARD_BYTES:
            dealt.append({})
            filled = 0
        filled += bits.nbytes
        dealt[-1][name] = bits
    return dealt


def write_shard(path: Path, tensors: dict[str, Bits]) -> None:
    specs = {
        name: TensorSpec(dtype="bfloat16", shape=bits.shape, data_ptr=bits.ctypes.data, data_len=bits.nbytes)
        for name, bits in tensors.items()
    }
    safetensors.serialize_file(specs, path, {"format": "pt"})


def write_json(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def make_whole(folder: Path) -> None:
    """Write the checkpoint as it should be."""
    folder.mkdir(parents=True)
    dealt = shards()
    weight_map: dict[str, str] = {}
    for number, tensors in enumerate(dealt, start=1):
        file = f"model-{number:05}-of-{len(dealt):05}.safetensors"
        write_shard(folder / file, tensors)
        weight_map |= dict.fromkeys(tensors, file)
    total = sum(bits.nbytes for tensors in dealt for bits in tensors.values())
    write_json(
        folder / "model.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": weight_map},
    )
    write_json(folder / "config.json", CONFIG)
    write_json(folder / "generation_config.json", {"bos_token_id": 1, "eos_token_id": 2})
    special = {"<unk>": 0, "<s>": 1, "</s>": 2}
    vocabulary = special | {f"<0x{byte:02X}>": len(special) + byte for byte in range(256)}
    write_json(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "added_tokens": [
                {"id": id_, "content": token, "special": True} for token, id_ in special.items()
            ],
            "model": {"type": "BPE", "byte_fallback": True, "vocab": vocabulary, "merges": []},
        },
    )
    write_json(
        folder / "tokenizer_config.json", {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    )


def damage(folder: Path) -> None:
    """Do to a whole checkpoint what downloads do."""
    short, pointer, lost = sorted(folder.glob("*.safetensors"))[1:4]
    with short.open("r+b") as file:
        file.truncate(short.stat().st_size - 300_000)
    content = pointer.read_bytes()
    pointer.write_text(
        "version https://git-lfs.github.com/spec/v1\n"
        f"oid sha256:{hashlib.sha256(content).hexdigest()}\n"
        f"size {len(content)}\n"
    )
    lost.unlink()


def main(target: Path) -> None:
    whole, damaged = target / "tiny-llama", target / "tiny-llama-damaged"
    for folder in (whole, damaged):
        shutil.rmtree(folder, ignore_errors=True)
    make_whole(whole)
    shutil.copytree(whole, damaged)
    damage(damaged)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
