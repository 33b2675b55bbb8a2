"""What `shardscope model` says of models that transformers makes, saves and counts itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine import explain_model
from shardscope.engine.model.anatomy import ModelDocument
from tests.producers.architectures import ARCHITECTURES, GROUPED

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]


def saved(kind: str, folder: Path) -> Any:
    """Save a small model of random numbers and return it."""
    config = transformers.AutoConfig.for_model(kind, **ARCHITECTURES[kind])
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", ["llama", "mixtral", "gpt2", "deepseek_v3", "gemma2"])
@pytest.mark.parametrize("field", ["vocab_size", "hidden_size"])
def test_a_configuration_that_transformers_refuses_is_contradicted(
    kind: str, field: str, tmp_path: Path
) -> None:
    saved(kind, tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    name = {"hidden_size": "n_embd"}.get(field, field) if kind == "gpt2" else field
    path.write_text(json.dumps(config | {name: config[name] * 2}))

    found = explain_model(tmp_path)
    assert "model.contradiction" in {item.code for item in found.findings}
    with pytest.raises((RuntimeError, ValueError)):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


def quantised(folder: Path, **options: Any) -> ModelDocument:
    """Save a Llama, let transformers and bitsandbytes quantise it, and look at what they save."""
    pytest.importorskip("bitsandbytes")
    config = transformers.LlamaConfig(**GROUPED)
    transformers.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder / "plain")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder / "plain", quantization_config=transformers.BitsAndBytesConfig(**options), device_map="cpu"
    )
    model.save_pretrained(folder / "packed")
    return explain_model(folder / "packed")


@pytest.mark.parametrize(("kind", "double"), [("nf4", False), ("nf4", True), ("fp4", False)])
def test_four_bits_of_bitsandbytes_are_unpacked_in_the_count(kind: str, double: bool, tmp_path: Path) -> None:
    found = quantised(tmp_path, load_in_4bit=True, bnb_4bit_quant_type=kind, bnb_4bit_use_double_quant=double)
    plain = explain_model(tmp_path / "plain")

    (group,) = found.packed
    assert (group.scheme, group.bits, group.modules) == (f"bitsandbytes {kind}", 4, 3 * 7)
    assert found.parameters.total == plain.parameters.total
    assert [item.code for item in found.findings] == []


def test_eight_bits_of_bitsandbytes_are_told(tmp_path: Path) -> None:
    found = quantised(tmp_path, load_in_8bit=True)
    assert [(group.scheme, group.modules) for group in found.packed] == [("bitsandbytes int8", 3 * 7)]
    assert [item.code for item in found.findings] == []


COMPRESSED = (
    ("W4A16", "pack-quantized", (256, 2), "compressed-tensors integers", 4),
    ("W3A16", "pack-quantized", (256, 2), "compressed-tensors integers", 3),
    ("W8A8", "int-quantized", (256, 1), "int8", 8),
    ("FP8_DYNAMIC", "float-quantized", (256, 1), "fp8", 8),
    ("FP8_BLOCK", "float-quantized", (2, 2), "fp8 blocks", 8),
    ("NVFP4A16", "nvfp4-pack-quantized", (256, 16), "NVFP4", 4),
    ("MXFP4A16", "mxfp4-pack-quantized", (256, 8), "MXFP4", 4),
    ("MXFP6A16", "mxfp6-pack-quantized", (256, 8), "MXFP6", 6),
    ("MXFP8A16", "mxfp8-quantized", (256, 8), "MXFP8", 8),
)


@pytest.mark.parametrize(("preset", "form", "scale", "scheme", "bits"), COMPRESSED)
def test_what_compressed_tensors_packs_is_known_by_its_tensors(
    preset: str, form: str, scale: tuple[int, int], scheme: str, bits: int, tmp_path: Path
) -> None:
    compressors = pytest.importorskip("compressed_tensors.compressors")
    quantization = pytest.importorskip("compressed_tensors.quantization")
    from safetensors.torch import save_file

    state = {"weight": torch.randn(256, 256, dtype=torch.bfloat16), "weight_scale": torch.ones(scale)}
    if preset.startswith("NVFP4"):
        state["weight_global_scale"] = torch.ones(1)
    how = quantization.preset_name_to_scheme(preset, ["Linear"])
    packed = compressors.BaseCompressor.get_value_from_registry(form).compress(state, how)
    tensors = {f"model.layers.0.mlp.up_proj.{name}": tensor for name, tensor in packed.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    weights = {"num_bits": how.weights.num_bits, "group_size": how.weights.group_size}
    config = {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": config}))

    found = explain_model(tmp_path)
    (group,) = found.packed
    assert (group.scheme, group.bits, group.logical) == (scheme, bits, (256, 256))
    assert [item.code for item in found.findings] == []
