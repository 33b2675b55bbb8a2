"""What `shardscope model` says of GGUF files that the gguf package writes: sizes from their metadata, weights in blocks, and the cache."""

from pathlib import Path
from typing import Any

import pytest

from shardscope.engine import explain_model
from shardscope.engine.modelling import ModelOptions

gguf = pytest.importorskip("gguf")
np = pytest.importorskip("numpy")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(300), pytest.mark.filterwarnings("default")]

LAYERS, HIDDEN, INNER, HEADS, GROUPS, HEAD, WORDS, CONTEXT = 3, 256, 512, 8, 2, 32, 99, 4096
KINDS = ("F16", "BF16", "Q4_0", "Q5_1", "Q8_0", "Q2_K", "Q4_K", "Q6_K", "IQ4_XS", "MXFP4")


def shapes() -> dict[str, tuple[int, ...]]:
    """Return the tensors of a llama, as llama.cpp names them."""
    found: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (WORDS, HIDDEN),
        "output_norm.weight": (HIDDEN,),
    }
    for n in range(LAYERS):
        found |= {
            f"blk.{n}.attn_norm.weight": (HIDDEN,),
            f"blk.{n}.attn_q.weight": (HEADS * HEAD, HIDDEN),
            f"blk.{n}.attn_k.weight": (GROUPS * HEAD, HIDDEN),
            f"blk.{n}.attn_v.weight": (GROUPS * HEAD, HIDDEN),
            f"blk.{n}.attn_output.weight": (HIDDEN, HEADS * HEAD),
            f"blk.{n}.ffn_norm.weight": (HIDDEN,),
            f"blk.{n}.ffn_gate.weight": (INNER, HIDDEN),
            f"blk.{n}.ffn_up.weight": (INNER, HIDDEN),
            f"blk.{n}.ffn_down.weight": (HIDDEN, INNER),
        }
    return found


def write(path: Path, kind: str, architecture: str = "llama", **more: Any) -> int:
    """Write a model whose matrices are of a type, and return how many parameters it has."""
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(more.get("inner", INNER))
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_context_length(CONTEXT)
    if "window" in more:
        writer.add_sliding_window(more["window"])
    writer.add_token_list([f"token {n}" for n in range(WORDS)])
    chosen = gguf.GGMLQuantizationType[kind]
    for name, shape in shapes().items():
        if len(shape) == 1:
            writer.add_tensor(name, np.ones(shape, np.float32))
            continue
        width = gguf.quant_shape_to_byte_shape(shape, chosen)[-1]
        writer.add_tensor(name, np.zeros((*shape[:-1], width), np.uint8), raw_dtype=chosen)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sum(int(np.prod(shape)) for shape in shapes().values())


@pytest.mark.parametrize("kind", KINDS)
def test_weights_in_blocks_are_counted_and_fit_the_metadata(kind: str, tmp_path: Path) -> None:
    total = write(tmp_path / "model.gguf", kind)
    found = explain_model(tmp_path, ModelOptions(context=100))

    assert [item.message for item in found.findings] == []
    assert found.parameters.total == total
    agreed = {fact.name for fact in found.facts if fact.agrees}
    assert agreed >= {
        "layers",
        "hidden size",
        "attention heads",
        "key and value heads",
        "feed-forward size",
        "vocabulary",
    }
    assert [fact.name for fact in found.facts if fact.agrees is False] == []
    assert found.memory.cache is not None
    assert found.memory.cache.bytes == 100 * LAYERS * 2 * GROUPS * HEAD * 2
    if kind not in ("F16", "BF16"):
        (group,) = found.packed
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
        assert (group.scheme, group.modules, group.group) == (
            f"GGUF {kind}",
            1 + 7 * LAYERS,
            f"{block} weights",
        )
        matrices = sum(int(np.prod(shape)) for shape in shapes().values() if len(shape) > 1)
        assert (group.elements, group.bytes) == (matrices, matrices // block * size)


def test_metadata_of_another_model_is_contradicted(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf", "Q8_0", inner=2 * INNER)
    found = explain_model(tmp_path)
    assert {item.code for item in found.findings} == {"model.contradiction"}
    assert [fact.name for fact in found.facts if fact.agrees is False] == ["feed-forward size"]


def test_a_window_counts_for_the_layers_that_have_it(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf", "Q8_0", architecture="gemma2", window=10)
    line = explain_model(tmp_path, ModelOptions(context=100)).memory.cache
    assert line is not None
    assert line.bytes == 2 * GROUPS * HEAD * 2 * (2 * 10 + 1 * 100)
