"""The JSON files that stand beside weights: what they declare, and what is wrong with them.

`describe` and `describe_adapter` return what a format may lean on; `check` reports every finding about such a file once,
whichever format the folder turns out to be. Nothing that a configuration names is imported, opened or followed.
"""

import re
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.folder import Folder
from shardscope.engine.formats.hf_index import json_word
from shardscope.engine.formats.probe import Probe
from shardscope.engine.formats.roles import role_of
from shardscope.engine.model.descriptor import Component, ProducerFact
from shardscope.engine.model.evidence import Basis, Evidence, EvidenceKind
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.source import Entry
from shardscope.engine.parse import config as config_parser

CONFIG: Final = "config.json"
_KNOWN: Final = re.compile(
    r"(config|generation_config|tokenizer_config|special_tokens_map|adapter_config|quantize_config|quantization_config"
    r"|model_index|trainer_state|params|preprocessor_config|processor_config|fsdp_config|metadata)\.json"
)

EMBEDDINGS: Final = (
    "model.embed_tokens.weight",
    "embed_tokens.weight",
    "transformer.wte.weight",
    "wte.weight",
    "tok_embeddings.weight",
    "lm_head.weight",
    "output.weight",
)


class ConfigReading(Struct, frozen=True):
    """What the files beside the weights say."""

    recognised: bool = False
    """The configuration names an architecture or a model type."""
    title: str | None = None
    evidence: tuple[Evidence, ...] = ()
    components: tuple[Component, ...] = ()
    producer: tuple[ProducerFact, ...] = ()
    code_references: tuple[str, ...] = ()


NO_CONFIG: Final = ConfigReading()


def is_known_json(name: str) -> bool:
    """Tell whether a file of this name is small JSON that inspection reads whole."""
    return _KNOWN.fullmatch(name) is not None


def check(probe: Probe, entry: Entry) -> None:
    """Read one JSON file of a known name and report what is wrong with it."""
    document = probe.json(entry)
    if document is None:
        return
    for finding in document.notes:
        probe.note(finding, entry)
    value = document.value
    if not isinstance(value, dict):
        probe.report("json.not_object", entry, found=json_word(value))
        return
    if entry.name == CONFIG:
        findings = config_parser.check_config(value).findings
    elif entry.name == "adapter_config.json":
        findings = config_parser.check_adapter_config(value).findings
    else:
        findings = config_parser.check_json(value)
    for finding in findings:
        probe.note(finding, entry)


def check_metadata(probe: Probe, entry: Entry, metadata: dict[str, str]) -> bool:
    """Report secrets in the free-form metadata of a safetensors header; tell whether there was nothing to report."""
    findings = config_parser.check_json(dict(metadata))
    for finding in findings:
        probe.note(finding, entry)
    return not findings


def describe(probe: Probe, folder: Folder) -> ConfigReading:
    """Return what config.json of the folder declares, and the configuration and tokenizer files as components."""
    components = tuple(
        _component(kind, entries)
        for kind in ("config", "tokenizer")
        if (entries := [entry for name, entry in folder.files.items() if role_of(name) == kind])
    )
    entry = folder.files.get(CONFIG)
    document = probe.json(entry) if entry is not None else None
    if entry is None or document is None or not isinstance(document.value, dict):
        return ConfigReading(components=components)
    facts = config_parser.check_config(document.value)
    kind = facts.architectures[0] if facts.architectures else facts.model_type
    if kind is None:
        return ConfigReading(components=components)
    producer: tuple[ProducerFact, ...] = ()
    if facts.transformers_version is not None:
        says = f"{entry.text}: transformers_version"
        producer = (ProducerFact("transformers", facts.transformers_version, Basis.DECLARED, says),)
    return ConfigReading(
        recognised=True,
        title=kind,
        evidence=(
            Evidence(EvidenceKind.JSON, entry.text, f"declares the architecture {kind}", Basis.DECLARED),
        ),
        components=components,
        producer=producer,
        code_references=facts.code_references,
    )


def embedding_shapes(probe: Probe, folder: Folder) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return the shapes that config.json of the folder gives embeddings and output heads, with the file's path.

    Only where it describes one model: names follow transformers and torchtitan, rows are the vocabulary.
    """
    entry = folder.files.get(CONFIG)
    document = probe.json(entry) if entry is not None else None
    if entry is None or document is None or not isinstance(document.value, dict):
        return {}
    facts = config_parser.check_config(document.value)
    if facts.vocab_size is None or facts.hidden_size is None or facts.text_model is not None:
        return {}
    shape = (facts.vocab_size, facts.hidden_size)
    return dict.fromkeys(EMBEDDINGS, (shape, entry.text))


def model_facts(probe: Probe, folder: Folder) -> ModelFacts | None:
    """Return what config.json of the folder declares to mapping tables; null where it is none, or describes several models.

    As in transformers: without `num_key_value_heads` every head has a key of its own, without `head_dim` the heads share the
    hidden size.
    """
    entry = folder.files.get(CONFIG)
    document = probe.json(entry) if entry is not None else None
    if document is None or not isinstance(document.value, dict):
        return None
    facts = config_parser.check_config(document.value)
    if facts.text_model is not None:
        return None
    heads, hidden = facts.num_attention_heads, facts.hidden_size
    divided = hidden // heads if hidden and heads and hidden % heads == 0 else None
    return ModelFacts(
        layers=facts.num_hidden_layers,
        heads=heads,
        groups=facts.num_key_value_heads or heads,
        head_size=facts.head_dim or divided,
        experts=facts.num_experts,
        vocabulary=facts.vocab_size,
        architecture=facts.architectures[0] if facts.architectures else None,
    )


def describe_adapter(probe: Probe, entry: Entry) -> ConfigReading:
    """Return what adapter_config.json declares."""
    document = probe.json(entry)
    if document is None or not isinstance(document.value, dict):
        return NO_CONFIG
    facts = config_parser.check_adapter_config(document.value)
    if facts.peft_type is None:
        return NO_CONFIG
    rank = f", rank {facts.r:,}" if facts.r is not None else ""
    producer: tuple[ProducerFact, ...] = ()
    if facts.peft_version is not None:
        producer = (ProducerFact("peft", facts.peft_version, Basis.DECLARED, f"{entry.text}: peft_version"),)
    return ConfigReading(
        recognised=True,
        title=f"{facts.peft_type}{rank}",
        evidence=(
            Evidence(EvidenceKind.JSON, entry.text, f"declares {facts.peft_type}{rank}", Basis.DECLARED),
        ),
        producer=producer,
    )


def producer_of(entry: Entry, metadata: dict[str, str]) -> list[ProducerFact]:
    """Return what a header's `format` key says of the framework that wrote it."""
    framework = {"pt": "torch", "tf": "tensorflow", "flax": "flax", "np": "numpy", "mlx": "mlx"}.get(
        metadata.get("format", "")
    )
    if framework is None:
        return []
    says = f"{entry.text}: __metadata__.format is {metadata['format']!r}"
    return [ProducerFact(framework, None, Basis.DECLARED, says)]


def _component(kind: str, entries: list[Entry]) -> Component:
    return Component(
        kind=kind,
        name=kind,
        format=None,
        files=tuple(entry.text for entry in entries),
        bytes=sum(entry.size for entry in entries),
    )
