"""What peft merges is what shardscope says should come out, and nothing else is, whatever the types, the scales and the modules."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.producers import peers

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

LLAMA = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def llama(**options: Any) -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA, **options))


def gpt2() -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=96, n_positions=32, n_embd=24, n_layer=2, n_head=4)
    return transformers.GPT2LMHeadModel(config)


def train(model: Any) -> None:
    """Give every factor numbers, as training would: as they are made, one of two is zero."""
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_" in name or "modules_to_save" in name:
            parameter.data = (torch.randn(parameter.shape) * 0.1).to(parameter.dtype)


def merged(model: Any, folder: Path, adapter_dtype: Any = None, **config: Any) -> tuple[Path, Path, Path]:
    """Save a base, an adapter for it, and what peft makes of both."""
    model.save_pretrained(folder / "base")
    tuned = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **config))
    train(tuned)
    if adapter_dtype is not None:
        for name, parameter in tuned.named_parameters():
            if "lora_" in name:
                parameter.data = parameter.data.to(adapter_dtype)
    tuned.save_pretrained(folder / "lora")
    tuned.merge_and_unload().save_pretrained(folder / "merged")
    return folder / "base", folder / "merged", folder / "lora"


def held(base: Path, other: Path, *adapters: Path) -> dict[str, Any]:
    words = [word for adapter in adapters for word in ("--adapter", str(adapter))]
    said = peers.shardscope(
        "diff", base, other, *words, "--values", "--json", "--only", "same", "--only", "changed"
    )
    assert said.exit in (0, 1), said.text
    found: dict[str, Any] = json.loads(said.text)
    assert found["same"] == (said.exit == 0)
    return found


Q = ["q_proj", "v_proj"]


@pytest.mark.parametrize("dtype", [None, "bfloat16", "float16"])
@pytest.mark.parametrize(
    "config",
    [
        {"r": 4, "lora_alpha": 8, "target_modules": Q},
        {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "use_rslora": True},
        {
            "r": 4,
            "lora_alpha": 8,
            "target_modules": Q,
            "rank_pattern": {"layers.1.self_attn.q_proj": 2, "^model.layers.0.self_attn.v_proj": 3},
            "alpha_pattern": {"q_proj": 5},
        },
        {"r": 4, "lora_alpha": 8, "target_modules": Q, "modules_to_save": ["lm_head"]},
        {"r": 4, "lora_alpha": 8, "target_modules": [*Q, "embed_tokens"]},
    ],
    ids=["plain", "rslora", "patterns", "saved whole", "embedding"],
)
def test_what_peft_merges_is_merged_and_its_base_is_not(
    tmp_path: Path, dtype: str | None, config: dict[str, Any]
) -> None:
    model = llama() if dtype is None else llama().to(getattr(torch, dtype))
    base, other, lora = merged(model, tmp_path, **config)
    found = held(base, other, lora)
    targets = [item["merge"] for item in found["tensors"] if item.get("merge")]
    assert found["same"], [item for item in found["tensors"] if item["state"] != "same"]
    assert len(targets) == found["counts"]["targets"] >= 4
    assert {each["verdict"] for each in targets} == {"merged"}
    assert max(each["strain"] for each in targets) <= 1
    assert all(each["share"] is None or abs(each["share"] - 1) < 0.02 for each in targets)

    wrong = held(base, base, lora)
    assert not wrong["same"]
    assert wrong["counts"]["changed"] == len([each for each in targets if each["ranks"]]) + len(
        config.get("modules_to_save", ())
    )


@pytest.mark.parametrize("factors", ["bfloat16", "float16"])
def test_factors_of_another_type_than_the_weights(tmp_path: Path, factors: str) -> None:
    base, other, lora = merged(llama(), tmp_path, getattr(torch, factors), r=4, target_modules=Q)
    assert held(base, other, lora)["same"]


def test_weights_that_lie_with_a_row_for_each_input(tmp_path: Path) -> None:
    config = {"r": 4, "lora_alpha": 16, "target_modules": ["c_attn", "c_proj", "c_fc"]}
    base, other, lora = merged(gpt2(), tmp_path, fan_in_fan_out=True, **config)
    found = held(base, other, lora)
    assert found["same"], found
    assert found["counts"]["targets"] == 8


def test_a_tied_head(tmp_path: Path) -> None:
    base, other, lora = merged(llama(tie_word_embeddings=True), tmp_path, r=4, target_modules=["lm_head"])
    found = held(base, other, lora)
    assert found["same"], found
    assert [item["name"] for item in found["tensors"] if item.get("merge")] == ["model.embed_tokens.weight"]


def test_two_adapters_one_after_the_other(tmp_path: Path) -> None:
    model = llama()
    model.save_pretrained(tmp_path / "base")
    tuned = peft.get_peft_model(model, peft.LoraConfig(r=4, lora_alpha=8, target_modules=Q), "one")
    tuned.add_adapter("two", peft.LoraConfig(r=2, lora_alpha=2, target_modules=["q_proj"], use_rslora=True))
    train(tuned)
    tuned.save_pretrained(tmp_path / "lora")
    tuned.base_model.set_adapter(["one", "two"])
    tuned.merge_and_unload(adapter_names=["one", "two"]).save_pretrained(tmp_path / "merged")
    paths = tmp_path / "base", tmp_path / "merged"
    assert held(*paths, tmp_path / "lora/one", tmp_path / "lora/two")["same"]
    found = held(*paths, tmp_path / "lora/one")
    assert found["counts"]["changed"] == 2


def test_biases(tmp_path: Path) -> None:
    model = llama(attention_bias=True)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.data = torch.randn(parameter.shape)
    base, other, lora = merged(model, tmp_path, r=4, lora_alpha=8, target_modules=Q, lora_bias=True)
    found = held(base, other, lora)
    assert found["same"], found
    assert found["counts"]["targets"] == 8


def test_dora_is_refused(tmp_path: Path) -> None:
    base, other, lora = merged(llama(), tmp_path, r=4, target_modules=Q, use_dora=True)
    said = peers.shardscope("diff", base, other, "--adapter", lora, "--values")
    assert said.exit == 8
    assert "diff.adapter_kind" in said.text
