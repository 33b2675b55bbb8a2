"""What `shardscope model` says of the classes of transformers, held against what these count, name and allocate themselves."""

import json
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine import explain_model
from shardscope.engine.model.anatomy import ModelDocument
from shardscope.engine.modelling import ModelOptions
from tests.producers.architectures import ARCHITECTURES, DECODERS, ENCODERS, PAIRS, SEVERAL

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

TOKENS = 40
"""More than the windows of the small configurations."""
WITHOUT_STACK = frozenset({"albert", "minimax"})
"""Classes whose layers share weights, or whose facts are not all there."""
NO_VOCABULARY = frozenset({"vit"})
LISTED = frozenset({"qwen3_next", "granitemoehybrid", "minimax", "gemma3n_text", "gemma4_text"})
"""Classes whose layers only a list tells apart, or fields that are not read here."""


def saved(kind: str, folder: Path) -> Any:
    """Save a small model of random numbers and return it."""
    config = transformers.AutoConfig.for_model(kind, **ARCHITECTURES[kind])
    torch.manual_seed(0)
    model = class_of(config, kind)._from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    return model.eval()


def class_of(config: Any, kind: str) -> Any:
    """Return the class that a checkpoint of this kind is usually of: the first that transformers has."""
    from transformers.models.auto import modeling_auto as auto

    tables = {
        "pair": (auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING),
        "encoder": (auto.MODEL_FOR_MASKED_LM_MAPPING, auto.MODEL_MAPPING),
        "several": (auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,),
        "decoder": (auto.MODEL_FOR_CAUSAL_LM_MAPPING,),
    }
    which = (
        "pair"
        if kind in PAIRS
        else "encoder"
        if kind in ENCODERS
        else "several"
        if kind in SEVERAL
        else "decoder"
    )
    return next(table[type(config)] for table in tables[which] if type(config) in table)


def explained(folder: Path) -> ModelDocument:
    return explain_model(folder, ModelOptions(context=TOKENS))


def allocated(cache: Any) -> int:
    """Return the bytes of keys and values in a cache of transformers.

    Between two tokens it drops the oldest one of a window that is full, and has it back with the next one: it counts here.
    """
    size = 0
    for layer in cache.layers:
        keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
        if keys is None or not keys.numel():
            continue
        dropped = 1 if getattr(layer, "is_sliding", False) and keys.shape[-2] < TOKENS else 0
        size += (keys.nbytes + values.nbytes) // keys.shape[-2] * (keys.shape[-2] + dropped)
    return size


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_model_of_transformers_fits_its_own_configuration(kind: str, tmp_path: Path) -> None:
    model = saved(kind, tmp_path)
    found = explained(tmp_path)

    assert [item.message for item in found.findings] == []
    assert found.parameters.total == model.num_parameters()
    assert [fact.name for fact in found.facts if fact.agrees is False] == []
    wanted = {"layers", "hidden size", "vocabulary"}
    if kind in NO_VOCABULARY:
        wanted = {"layers"}
    if kind in WITHOUT_STACK:
        wanted = {"vocabulary"}
    assert {fact.name for fact in found.facts if fact.agrees} >= wanted
    assert [family.name for family in found.families if family.missing] == []


# R115
@pytest.mark.parametrize("kind", DECODERS)
def test_a_cache_takes_what_transformers_allocates(kind: str, tmp_path: Path) -> None:
    model = saved(kind, tmp_path)
    line = explained(tmp_path).memory.cache
    tokens = torch.arange(TOKENS)[None] % 90
    with torch.no_grad():
        cache = model(tokens, use_cache=True).past_key_values

    assert (0 if line is None else line.bytes) == allocated(cache)

    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    if config.pop("layer_types", None) is not None and kind not in LISTED:
        # as configurations were before there were such lists
        path.write_text(json.dumps(config))
        assert explained(tmp_path).memory.cache == line


@pytest.mark.parametrize("kind", PAIRS)
def test_a_decoder_keeps_as_much_of_each_token_that_its_encoder_read(kind: str, tmp_path: Path) -> None:
    model = saved(kind, tmp_path)
    line = explained(tmp_path).memory.cache_per_token
    read = 32
    start = {"decoder_input_ids": torch.arange(TOKENS)[None] % 90, "use_cache": True}
    if kind == "whisper":
        start["input_features"] = torch.zeros(1, 16, 2 * read, dtype=torch.bfloat16)
    else:
        start["input_ids"] = torch.arange(read)[None]
    with torch.no_grad():
        cache = model(**start).past_key_values

    assert line is not None
    assert line.bytes is not None
    assert line.formula.endswith("as much once more")
    assert allocated(cache.self_attention_cache) == line.bytes * TOKENS
    assert allocated(cache.cross_attention_cache) == line.bytes * read


@pytest.mark.parametrize("kind", ENCODERS)
def test_what_reads_everything_at_once_keeps_nothing(kind: str, tmp_path: Path) -> None:
    saved(kind, tmp_path)
    memory = explained(tmp_path).memory
    assert memory.cache is None
    assert memory.cache_per_token is not None
    assert memory.cache_per_token.bytes == 0
