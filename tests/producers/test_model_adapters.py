"""What `shardscope model` says of adapters that peft makes and counts itself."""

from pathlib import Path
from typing import Any

import pytest

from shardscope.engine import explain_model
from tests.producers.architectures import ARCHITECTURES
from tests.producers.test_merge_peft import gpt2, llama

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

Q = ["q_proj", "v_proj"]
LORA = {"r": 4, "lora_alpha": 8, "task_type": "CAUSAL_LM"}


def of(kind: str) -> Any:
    config = transformers.AutoConfig.for_model(kind, **ARCHITECTURES[kind])
    tables = transformers.models.auto.modeling_auto
    table = (
        tables.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING if kind == "t5" else tables.MODEL_FOR_CAUSAL_LM_MAPPING
    )
    return table[type(config)](config)


LORAS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (llama, {"target_modules": Q}),
    "patterns": (llama, {"target_modules": Q, "rank_pattern": {"layers.1.self_attn.q_proj": 2}, "alpha_pattern": {"q_proj": 5}}),
    "DoRA": (llama, {"target_modules": Q, "use_dora": True}),
    "rsLoRA": (llama, {"target_modules": "all-linear", "use_rslora": True}),
    "saved whole": (llama, {"target_modules": Q, "modules_to_save": ["lm_head"]}),
    "biases": (llama, {"target_modules": Q, "lora_bias": True}),
    "tokens": (llama, {"target_modules": Q, "trainable_token_indices": [1, 2, 3]}),
    "some layers": (llama, {"target_modules": Q, "layers_to_transform": [1]}),
    "PiSSA": (llama, {"target_modules": Q, "init_lora_weights": "pissa"}),
    "inputs first": (gpt2, {"target_modules": ["c_attn"], "fan_in_fan_out": True}),
    "experts": (lambda: of("mixtral"), {"target_modules": Q, "target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]}),
    "encoder and decoder": (lambda: of("t5"), {"target_modules": ["q", "v"], "task_type": "SEQ_2_SEQ_LM"}),
}  # fmt: skip


@pytest.mark.parametrize("name", LORAS)
def test_a_lora_of_peft_is_counted_and_sound(name: str, tmp_path: Path) -> None:
    make, options = LORAS[name]
    tuned = peft.get_peft_model(make(), peft.LoraConfig(**LORA | options))
    tuned.save_pretrained(tmp_path)
    found = explain_model(tmp_path)

    assert [item.message for item in found.findings] == []
    assert found.adapter is not None
    trainable, _ = tuned.get_nb_trainable_parameters()
    assert (found.adapter.rank, found.adapter.alpha, found.adapter.parameters) == (4, "8", trainable)
    layers = [each for each in tuned.modules() if isinstance(each, peft.tuners.lora.LoraLayer)]
    touched = sum(len(each.lora_A) + len(each.lora_embedding_A) for each in layers)
    assert sum(target.count for target in found.adapter.targets) == touched
    assert found.adapter.saved_whole == (("lm_head.weight",) if name == "saved whole" else ())
    scales = {
        each.scaling["default"]
        for each in layers
        if not isinstance(each, peft.tuners.lora.layer.ParamWrapper)
    }
    assert found.adapter.scale is not None
    if name != "patterns":
        assert float(found.adapter.scale.rpartition("= ")[2]) == pytest.approx(scales.pop(), rel=1e-3)


def test_ranks_of_a_pattern_differ_and_are_told_as_such(tmp_path: Path) -> None:
    make, options = LORAS["patterns"]
    peft.get_peft_model(make(), peft.LoraConfig(**LORA | options)).save_pretrained(tmp_path)
    found = explain_model(tmp_path).adapter
    assert found is not None
    assert {target.target: target.rank for target in found.targets} == {
        "self_attn.q_proj": None,
        "self_attn.v_proj": 4,
    }


OTHERS: dict[str, Any] = {
    "IA3": lambda: peft.IA3Config(task_type="CAUSAL_LM"),
    "VERA": lambda: peft.VeraConfig(r=4, target_modules=Q, task_type="CAUSAL_LM"),
    "LOHA": lambda: peft.LoHaConfig(r=4, target_modules=Q, task_type="CAUSAL_LM"),
    "LOKR": lambda: peft.LoKrConfig(r=4, target_modules=Q, task_type="CAUSAL_LM"),
    "ADALORA": lambda: peft.AdaLoraConfig(init_r=6, target_r=2, total_step=10, target_modules=Q, task_type="CAUSAL_LM"),
    "OFT": lambda: peft.OFTConfig(oft_block_size=8, target_modules=Q, task_type="CAUSAL_LM"),
    "PROMPT_TUNING": lambda: peft.PromptTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"),
    "PREFIX_TUNING": lambda: peft.PrefixTuningConfig(num_virtual_tokens=4, task_type="CAUSAL_LM"),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS)
def test_other_kinds_of_adapters_raise_no_alarm(kind: str, tmp_path: Path) -> None:
    tuned = peft.get_peft_model(llama(), OTHERS[kind]())
    tuned.save_pretrained(tmp_path)
    found = explain_model(tmp_path)
    assert [item.message for item in found.findings] == []
    assert found.adapter is not None
    assert (found.adapter.kind, found.adapter.saved_whole) == (kind, ())


def test_adapters_side_by_side_are_several(tmp_path: Path) -> None:
    tuned = peft.get_peft_model(llama(), peft.LoraConfig(**LORA, target_modules=Q))
    tuned.add_adapter("second", peft.LoraConfig(**LORA | {"r": 2}, target_modules=["k_proj"]))
    tuned.save_pretrained(tmp_path)

    both, second = explain_model(tmp_path), explain_model(tmp_path / "second")
    assert [item.code for item in both.findings] == ["model.several"]
    assert both.adapter is not None
    assert (both.adapter.rank, both.adapter.scale) == (None, None)
    assert [item.code for item in second.findings] == []
    assert second.adapter is not None
    assert (second.adapter.rank, second.adapter.scale) == (2, "8 / 2 = 4")


def test_an_adapter_fits_its_base_and_no_other(tmp_path: Path) -> None:
    base = llama()
    base.save_pretrained(tmp_path / "base")
    peft.get_peft_model(base, peft.LoraConfig(**LORA, target_modules=Q)).save_pretrained(tmp_path / "lora")
    gpt2().save_pretrained(tmp_path / "other")
    found = explain_model(tmp_path / "lora", base=tmp_path / "base")
    assert [item.code for item in found.findings] == []
    assert found.adapter is not None
    assert (found.adapter.fitting, found.adapter.unfitting) == (8, 0)
    wrong = explain_model(tmp_path / "lora", base=tmp_path / "other")
    assert [item.code for item in wrong.findings] == ["model.adapter_base"]
