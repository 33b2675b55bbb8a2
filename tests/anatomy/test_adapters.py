"""LoRA adapters by their factors: ranks, targets, scales, and a base that they fit or not."""

import pytest

from shardscope.engine.anatomy.adapters import adapter, check_adapter
from shardscope.engine.anatomy.items import Item
from shardscope.engine.model.config import AdapterFacts
from tests.anatomy.models import item

STEM = "base_model.model.model.layers"


def pair(
    layer: int, module: str = "self_attn.q_proj", rank: int = 8, inputs: int = 64, outputs: int = 128
) -> list[Item]:
    return [
        item(f"{STEM}.{layer}.{module}.lora_A.weight", rank, inputs),
        item(f"{STEM}.{layer}.{module}.lora_B.weight", outputs, rank),
    ]


def test_modules_are_gathered_by_what_follows_the_layer() -> None:
    items = [
        *pair(0),
        *pair(1),
        *pair(0, "mlp.up_proj", 8, 64, 256),
        item(f"{STEM.rpartition('.')[0]}.lm_head.weight", 9, 64),
    ]
    found = adapter(items, AdapterFacts(peft_type="LORA", r=8, lora_alpha=16.0, base_hub_id="a/b"))
    assert found is not None
    assert [(each.target, each.count, each.rank, each.inputs, each.outputs) for each in found.targets] == [
        ("self_attn.q_proj", 2, 8, 64, 128),
        ("mlp.up_proj", 1, 8, 64, 256),
    ]
    assert (found.kind, found.rank, found.scale, found.base) == ("LoRA", 8, "16 / 8 = 2", "a/b")
    assert found.saved_whole == ("model.lm_head.weight",)
    assert found.parameters == sum(each.elements for each in items)


@pytest.mark.parametrize(
    ("facts", "scale", "kind"),
    [
        (AdapterFacts(peft_type="LORA", r=16, lora_alpha=16.0, use_rslora=True), "16 / sqrt(16) = 4", "LoRA"),
        (AdapterFacts(peft_type="LORA", r=8, use_dora=True), None, "LoRA with DoRA"),
        (None, None, "LoRA"),
    ],
)
def test_the_scale_is_a_formula(facts: AdapterFacts | None, scale: str | None, kind: str) -> None:
    found = adapter(pair(0), facts)
    assert found is not None
    assert (found.scale, found.kind) == (scale, kind)


def test_a_model_without_factors_is_no_adapter() -> None:
    assert adapter([item("model.norm.weight", 4)], None) is None


def test_half_a_pair_is_an_error() -> None:
    (found,) = check_adapter([*pair(0), pair(1)[0]], None)
    assert (found.code, found.params["count"]) == ("model.adapter_pair", 1)


def test_another_rank_is_a_warning() -> None:
    (found,) = check_adapter([*pair(0), *pair(1, rank=4)], AdapterFacts(r=8))
    assert (found.code, found.params["declared"], found.params["found"]) == ("model.adapter_rank", 8, 4)


def test_vectors_of_magnitude_and_biases_are_no_modules_saved_whole() -> None:
    items = [*pair(0), item(f"{STEM}.0.self_attn.q_proj.lora_magnitude_vector", 128)]
    found = adapter(items, None)
    assert found is not None
    assert found.saved_whole == ()


@pytest.mark.parametrize(("rank", "sound"), [(8, True), (64, True), (12, False)])
def test_factors_of_all_experts_are_as_many_times_the_rank(rank: int, sound: bool) -> None:
    items = [*pair(0), *pair(0, "mlp.experts", rank), *pair(0, "mlp.experts.base_layer", rank)]
    found = [each.code for each in check_adapter(items, AdapterFacts(peft_type="LORA", r=8))]
    assert found == ([] if sound else ["model.adapter_rank"])


def test_what_adalora_keeps_of_a_rank_is_no_contradiction() -> None:
    items = [*pair(0, rank=5), item(f"{STEM}.0.self_attn.q_proj.lora_E", 5, 1)]
    facts = AdapterFacts(peft_type="ADALORA", r=8)
    assert list(check_adapter(items, facts)) == []
    found = adapter(items, facts)
    assert found is not None
    assert found.saved_whole == ()


def test_tensors_of_other_kinds_are_not_said_to_be_saved_whole() -> None:
    items = [item(f"{STEM}.0.mlp.down_proj.ia3_l", 1, 4), item("base_model.model.lm_head.weight", 9, 4)]
    found = adapter(items, AdapterFacts(peft_type="IA3", modules_to_save=("lm_head",)))
    assert found is not None
    assert found.saved_whole == ("lm_head.weight",)
