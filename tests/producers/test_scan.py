"""What stands out in saves of torch and transformers: nothing in a sound one, and what was done to the others."""

from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.scan import ScanDocument
from shardscope.engine.peeking.scanning import scan
from tests.producers.architectures import ARCHITECTURES
from tests.producers.saves import model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]


def scanned(folder: Path) -> ScanDocument:
    return scan(folder, decoding=Decoding(Intent("verify", "command line"), "all"))


def loud(document: ScanDocument) -> dict[str, str]:
    """Return what stands out by its subject; norms of a model that was not trained are all ones, which is no more than a note."""
    return {each.subject: each.code for each in document.findings if each.code != "scan.constant"}


def trained(kind: str) -> Any:
    """Return a small model of a class of transformers whose every parameter is random, as after training."""
    config = transformers.AutoConfig.for_model(kind, **ARCHITECTURES[kind])
    torch.manual_seed(0)
    made = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
    return made


@pytest.mark.parametrize(
    "kind", ["llama", "mixtral", "gpt2", "gemma3_text", "deepseek_v3", "mamba2", "qwen3_next"]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nothing_stands_out_in_a_sound_model(kind: str, dtype: str, tmp_path: Path) -> None:
    trained(kind).to(getattr(torch, dtype)).save_pretrained(tmp_path, max_shard_size="100KB")
    document = scanned(tmp_path)
    untrained = {subject for subject in loud(document) if subject.endswith("e_score_correction_bias")}
    assert loud(document).keys() == untrained  # a buffer that starts at zero
    assert document.unread == 0


@pytest.mark.parametrize("way", ["torch.save", "safetensors", "dcp"])
def test_what_was_done_to_a_model_is_found(way: str, tmp_path: Path) -> None:
    broken = model()
    layers = broken.model.layers
    with torch.no_grad():
        layers[1].mlp.up_proj.weight[3, 4] = float("nan")
        layers[1].mlp.up_proj.weight[5, 6] = float("-inf")
        layers[0].mlp.gate_proj.weight.zero_()
        layers[1].self_attn.k_proj.weight.copy_(layers[0].self_attn.k_proj.weight)
    if way == "torch.save":
        torch.save(broken.state_dict(), tmp_path / "pytorch_model.bin")
    elif way == "safetensors":
        broken.save_pretrained(tmp_path, max_shard_size="20KB")
    else:
        torch.distributed.checkpoint.save(broken.state_dict(), checkpoint_id=str(tmp_path))

    document = scanned(tmp_path)
    assert loud(document) == {
        "model.layers.0.mlp.gate_proj.weight": "scan.zeros",
        "model.layers.1.mlp.up_proj.weight": "scan.not_finite",
        "model.layers.1.self_attn.k_proj.weight": "scan.duplicate_layer",
    }
    (numbers,) = (each.params for each in document.findings if each.code == "scan.not_finite")
    assert (numbers["nans"], numbers["infinite"]) == (1, 1)


def test_experts_that_are_copies_of_one_are_told_once(tmp_path: Path) -> None:
    upcycled = trained("mixtral")
    with torch.no_grad():
        for layer in upcycled.model.layers:
            for weights in (layer.mlp.experts.gate_up_proj, layer.mlp.experts.down_proj):
                weights.copy_(weights[:1].expand_as(weights))
    upcycled.save_pretrained(tmp_path)
    assert list(loud(scanned(tmp_path)).values()) == ["scan.equal_experts"]


def test_a_head_that_is_tied_in_memory_and_saved_twice_is_a_copy(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    state = {"model.embed_tokens.weight": torch.randn(97, 32), "model.norm.weight": torch.randn(32)}
    save_file(
        state | {"lm_head.weight": state["model.embed_tokens.weight"].clone()}, tmp_path / "model.safetensors"
    )
    assert list(loud(scanned(tmp_path)).values()) == ["scan.duplicate"]


def test_a_hole_in_a_distributed_save_is_found(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weight = torch.randn(256, 1024)
    torch.distributed.checkpoint.save({"weight": weight}, checkpoint_id=str(tmp_path))
    assert loud(scanned(tmp_path)) == {}
    (file,) = tmp_path.glob("*.distcp")
    data = bytearray(file.read_bytes())
    at = data.index(weight[100].numpy().tobytes())
    data[at : at + 64 * 4096] = bytes(64 * 4096)
    file.write_bytes(data)
    assert loud(scanned(tmp_path)) == {"weight": "scan.zero_run"}
