"""Twelve published architectures: their parameters, what a token takes in the cache, and no contradiction where there is none."""

from functools import lru_cache

import pytest

from shardscope.engine.anatomy import architecture, counting, layers, packing
from shardscope.engine.anatomy.items import Item
from shardscope.engine.anatomy.memory import memory
from shardscope.engine.model.anatomy import Parameters, Sizes
from shardscope.engine.model.blocker import Finding
from shardscope.engine.parse.model_sizes import read_packing, read_sizes
from tests.anatomy.models import MODELS, item


@lru_cache
def items_of(name: str) -> tuple[Item, ...]:
    model = MODELS[name]
    return tuple(model.tensors(model.config))


def sizes_of(name: str) -> Sizes:
    return read_sizes(MODELS[name].config)


@lru_cache
def packed_of(name: str) -> packing.Found:
    return packing.find(items_of(name), read_packing(MODELS[name].config))


@lru_cache
def counts_of(name: str) -> Parameters:
    packed = packed_of(name)
    return counting.parameters(items_of(name), packed.elements, packed.companions, sizes_of(name))


@lru_cache
def own_of(name: str) -> layers.Stack:
    return max(layers.stacks(items_of(name)), key=lambda each: len(each.layers))


@lru_cache
def weights_of(name: str) -> list[architecture.Weight]:
    packed = packed_of(name)
    without = packed.elements.keys() | packed.companions
    return architecture.weights(items_of(name), packed.weights, without)


def findings(items: tuple[Item, ...], name: str) -> list[Finding]:
    """Return what is wrong with a model that has been changed. Its weights are not packed."""
    stacks = layers.stacks(items)
    weights = architecture.weights(items, {}, frozenset())
    own = max(stacks, key=lambda each: len(each.layers))
    checked = [each for stack in stacks for each in layers.check_stack(stack)]
    return [*checked, *architecture.check_sizes(sizes_of(name), weights, own)]


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_counted_as_their_authors_count_them(name: str) -> None:
    counts = counts_of(name)
    assert counts.total == MODELS[name].total
    assert counts.active == MODELS[name].active
    assert not counts.unknown


# R114 R115
@pytest.mark.parametrize("name", MODELS)
def test_a_token_takes_what_its_heads_take(name: str) -> None:
    counts = counts_of(name)
    line = memory(0, counts, sizes_of(name)).cache_per_token
    assert line is not None
    assert line.bytes == MODELS[name].token_bytes
    assert str(sizes_of(name).layers) in line.formula


@pytest.mark.parametrize("name", MODELS)
def test_a_sound_model_contradicts_nothing(name: str) -> None:
    assert packed_of(name).findings == ()
    assert list(layers.check_stack(own_of(name))) == []
    assert list(architecture.check_sizes(sizes_of(name), weights_of(name), own_of(name))) == []


@pytest.mark.parametrize("name", MODELS)
def test_every_size_that_shows_agrees(name: str) -> None:
    rows = architecture.facts(sizes_of(name), weights_of(name), own_of(name))
    assert {row.name for row in rows if row.agrees} >= {"layers", "hidden size", "vocabulary"}
    assert [row.name for row in rows if row.agrees is False] == []


WRONG = {
    "vocab_size": 7,
    "hidden_size": 64,
    "intermediate_size": 32,
    "num_key_value_heads": 4,
    "num_hidden_layers": 31,
}


@pytest.mark.parametrize("field", WRONG)
def test_a_configuration_of_another_model_is_contradicted(field: str) -> None:
    name = "Llama 3 8B"
    sizes = read_sizes(MODELS[name].config | {field: WRONG[field]})
    codes = {each.code for each in architecture.check_sizes(sizes, weights_of(name), own_of(name))}
    assert codes == {"model.layers_declared" if field == "num_hidden_layers" else "model.contradiction"}


def test_another_number_of_experts_is_contradicted() -> None:
    name = "Mixtral 8x7B"
    sizes = read_sizes(MODELS[name].config | {"num_local_experts": 16})
    found = list(architecture.check_sizes(sizes, weights_of(name), own_of(name)))
    assert {each.params["fact"] for each in found} == {"block_sparse_moe.gate.weight", "experts"}


def test_one_layer_of_another_shape_is_a_warning_and_not_an_error() -> None:
    items = [
        Item(each.name, each.dtype, (128, 4096), each.bytes) if each.name == "model.layers.5.self_attn.k_proj.weight" else each
        for each in items_of("Llama 3 8B")
    ]  # fmt: skip
    found = findings(tuple(items), "Llama 3 8B")
    assert {each.code for each in found} == {"model.contradiction_some", "model.layer_odd"}
    odd = next(each for each in found if each.code == "model.layer_odd")
    assert (odd.params["layer"], odd.params["others"]) == ("5", 31)


def test_a_layer_that_lacks_a_tensor_is_named() -> None:
    items = tuple(each for each in items_of("Llama 3 8B") if each.name != "model.layers.7.mlp.up_proj.weight")
    (found,) = findings(items, "Llama 3 8B")
    assert (found.code, found.params["layer"], found.params["tensor"]) == (
        "model.layer_lacks",
        "7",
        "mlp.up_proj.weight",
    )


def test_a_layer_that_is_gone_is_named() -> None:
    items = tuple(each for each in items_of("Llama 3 8B") if ".layers.7." not in each.name)
    found = {each.code: each for each in findings(items, "Llama 3 8B")}
    assert set(found) == {"model.layer_gap", "model.layers_declared"}
    assert found["model.layer_gap"].params["missing"] == "layer 7"


def test_an_expert_that_is_gone_is_named() -> None:
    items = tuple(
        each for each in items_of("Mixtral 8x7B") if ".layers.3.block_sparse_moe.experts.6." not in each.name
    )
    (found,) = findings(items, "Mixtral 8x7B")
    assert (found.code, found.params["layer"], found.params["found"]) == ("model.experts_missing", "3", 7)


def test_dense_layers_before_those_of_experts_are_a_kind_of_their_own() -> None:
    family, experts = layers.families([own_of("DeepSeek V3")])
    assert family.name == "model.layers.{0-60}"
    assert [(kind.layers, kind.count) for kind in family.kinds] == [("3-60", 58), ("0-2", 3)]
    assert (experts.name, experts.count) == ("model.layers.*.mlp.experts.{0-255}", 256)
    assert experts.kinds[0].parameters == 3 * 2048 * 7168


def test_layers_that_predict_further_tokens_are_allowed() -> None:
    config = MODELS["DeepSeek V3"].config
    small = config | {"num_hidden_layers": 4, "n_routed_experts": 4}
    deep = dict(small) | {"num_hidden_layers": 5}
    items = tuple(MODELS["DeepSeek V3"].tensors(deep))
    config = small
    weights = architecture.weights(items, {}, frozenset())
    stack = layers.stacks(items)[0]
    assert list(architecture.check_sizes(read_sizes(config), weights, stack)) == []
    facts = architecture.facts(read_sizes(config), weights, stack)
    assert next(row for row in facts if row.name == "layers").agrees


def test_a_window_bounds_what_its_layers_keep() -> None:
    name = "gpt-oss 20B"
    counts = counts_of(name)
    cache = memory(0, counts, sizes_of(name), context=10_000).cache
    assert cache is not None
    assert cache.bytes == 2_048 * (12 * 10_000 + 12 * 128)
    assert cache.formula == "2,048 bytes x (12 layers x 10,000 tokens + 12 layers x 128 tokens)"


# R115
def test_devices_share_weights_and_heads_as_far_as_there_are_any() -> None:
    name = "Llama 3 8B"
    counts = counting.parameters(items_of(name), {}, frozenset(), sizes_of(name))
    shared = memory(16_060_522_496, counts, sizes_of(name), devices=16, dtypes=("BF16", "I4"))
    assert [line.bytes for line in shared.weights] == [1_003_782_656, 1_003_782_656, 250_945_664]
    assert shared.cache_per_token is not None
    assert shared.cache_per_token.bytes == 32 * 1 * 2 * 128 * 2
    assert "1 of 8 heads on each of 16 devices" in shared.cache_per_token.formula
    assert all("if all of it is split evenly" in line.formula for line in shared.weights)


def test_latent_attention_is_held_by_every_device() -> None:
    counts = counting.parameters((), {}, frozenset(), None)
    line = memory(0, counts, sizes_of("DeepSeek V3"), devices=8).cache_per_token
    assert line is not None
    assert line.bytes == 70_272
    assert "each of 8 devices holds all of it" in line.formula


def test_layers_without_a_cache_are_left_out_of_it() -> None:
    config = MODELS["Llama 3 8B"].config | {"layer_types": ["linear_attention"] * 24 + ["full_attention"] * 8}
    counts = counting.parameters((), {}, frozenset(), None)
    line = memory(0, counts, read_sizes(config)).cache_per_token
    assert line is not None
    assert line.bytes == 131_072 // 4
    assert "24 layers whose state does not grow" in line.formula


def contradictions(config: dict[str, object], *items: Item) -> list[str]:
    """Return the facts of weights that a configuration contradicts."""
    weights = architecture.weights(items, {}, frozenset())
    return [str(each.params["fact"]) for each in architecture.check_sizes(read_sizes(config), weights, None)]


def test_embeddings_are_as_wide_as_they_are_declared() -> None:
    config: dict[str, object] = {"hidden_size": 8, "embedding_size": 4, "vocab_size": 9}
    embedding = item("electra.embeddings.word_embeddings.weight", 9, 4)
    assert contradictions(config, embedding) == []
    assert contradictions(config | {"embedding_size": 8}, embedding) == ["word_embeddings.weight"]
    weights = architecture.weights([embedding], {}, frozenset())
    facts = {each.name: each for each in architecture.facts(read_sizes(config), weights, None)}
    assert (facts["vocabulary"].agrees, facts["hidden size"].seen) == (True, None)


def test_rows_that_a_class_adds_are_no_contradiction() -> None:
    items = (item("model.embed_tokens.weight", 17, 8), item("lm_head.weight", 9, 8))
    config: dict[str, object] = {"model_type": "mllama_text_model", "hidden_size": 8, "vocab_size": 9}
    assert contradictions(config, *items) == []
    assert contradictions(config | {"model_type": "llama"}, *items) == ["embed_tokens.weight"]


def test_layers_that_are_declared_apart_have_sizes_of_their_own() -> None:
    config: dict[str, object] = {
        "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
        "layer_types": ["sliding_attention", "full_attention"], "global_head_dim": 6,
    }  # fmt: skip
    items = [item(f"model.layers.{n}.self_attn.q_proj.weight", rows, 8) for n, rows in ((0, 8), (1, 12))]
    assert contradictions(config, *items) == []
    assert contradictions(config | {"global_head_dim": 5}, *items) == ["self_attn.q_proj.weight"]
    turned = architecture.weights(items[::-1], {}, frozenset())
    facts = {each.name: each for each in architecture.facts(read_sizes(config), turned, None)}
    assert (facts["attention heads"].seen, facts["attention heads"].agrees) == (2, True)
