"""What shardscope writes, transformers loads like the original: same names, same logits, to the last bit."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.producers import peers

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

MODELS = (
    "bin_sharded",
    "bin_single_tied",
    "gpt2_tied_sharded",
    "llama_sharded",
    "llama_single_bf16",
    "llama_tied_sharded",
    "mixtral_moe_sharded",
)


def logits(folder: Path, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Return the logits of some tokens, and what the loader says of names."""
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, **options
    )
    tokens = torch.arange(2, 26).reshape(2, 12) % model.config.vocab_size
    with torch.no_grad():
        return model.eval()(tokens).logits, {
            key: sorted(map(str, value or ())) for key, value in info.items()
        }


# R089
@pytest.mark.parametrize(
    "options", [(), ("--max-shard-size", "20KB"), ("--ties", "both")], ids=["plain", "sharded", "both"]
)
@pytest.mark.parametrize("name", MODELS)
def test_logits_are_those_of_the_original(name: str, options: tuple[str, ...], tmp_path: Path) -> None:
    original = peers.source(f"hf/{name}")
    written = peers.converted(original, tmp_path / "out", *options)
    assert written
    if "--max-shard-size" in options:
        assert len(list((tmp_path / "out").glob("model-*.safetensors"))) > 1
    want, said = logits(original)
    got, told = logits(tmp_path / "out")
    assert want.abs().max() > 0
    assert torch.equal(got, want)
    assert told == said
    assert not told["mismatched_keys"]
    assert not told["missing_keys"]


@pytest.mark.parametrize("name", ["llama_sharded", "bin_single_tied"])
def test_a_cast_is_the_cast_that_the_loader_makes(name: str, tmp_path: Path) -> None:
    original = peers.source(f"hf/{name}")
    peers.converted(original, tmp_path / "out", "--dtype", "bf16")
    want, _ = logits(original, dtype=torch.bfloat16)
    got, _ = logits(tmp_path / "out", dtype=torch.bfloat16)
    assert torch.equal(got, want)


def test_the_output_loads_without_the_files_of_the_source(tmp_path: Path) -> None:
    """Nothing in an output points back."""
    shutil.copytree(peers.source("hf/bin_sharded"), tmp_path / "source")
    peers.converted(tmp_path / "source", tmp_path / "out")
    want, _ = logits(tmp_path / "source")
    shutil.rmtree(tmp_path / "source")
    assert torch.equal(logits(tmp_path / "out")[0], want)


@pytest.mark.parametrize("name", ["legacy_tp2_pp2", "torch_dist_tp2_pp2", "torch_dist_tp2_pp2_singleton"])
def test_megatron_weights_load_under_their_hugging_face_names(name: str, tmp_path: Path) -> None:
    """The names, the shapes and the values are those of the model that the fixture was trained as."""
    from safetensors.torch import load_file

    fixture = peers.FIXTURES / "megatron" / name
    written = peers.converted(
        fixture / "checkpoint", tmp_path / "out", "--mapping", "megatron-llama", "--vocab-size", "97"
    )
    want = load_file(fixture / "expected_hf.safetensors")
    assert not peers.different(written, want)
    model = transformers.LlamaForCausalLM(llama_of(want))
    absent = model.load_state_dict(written, strict=False)
    assert not absent.unexpected_keys
    assert set(absent.missing_keys) <= {"lm_head.weight"}


def llama_of(tensors: dict[str, Any]) -> Any:
    """Return the configuration that tensors of a model of the Llama kind call for."""
    words, hidden = tensors["model.embed_tokens.weight"].shape
    layers = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("model.layers."))
    inner = tensors["model.layers.0.mlp.gate_proj.weight"].shape[0]
    queries, keys = (tensors[f"model.layers.0.self_attn.{name}_proj.weight"].shape[0] for name in "qk")
    size = 8
    return transformers.LlamaConfig(
        vocab_size=words, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers, head_dim=size,
        num_attention_heads=queries // size, num_key_value_heads=keys // size,
    )  # fmt: skip
