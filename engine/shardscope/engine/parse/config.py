"""Configurations beside the weights: what they declare, field by field, and nothing they say is followed.

Field names are those of Hugging Face transformers (`configuration_utils.py` and the model classes' `attribute_map`)
and PEFT (`config.py`, `tuners/lora/config.py`). No value is quoted in a finding, no declared count is looped over, and
classes and files that a configuration names are neither imported nor opened.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.config import AdapterFacts, ConfigFacts, Quantization
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.secrets import Leaf, find_secrets, find_secrets_in, shown, strings_in
from shardscope.engine.parse import adapter_config
from shardscope.engine.parse.fields import KEPT, MODULE, VERSION, Fields

_LARGEST: Final = (1 << 63) - 1

# Each fact under the names that model classes give it; the first that is there counts.
_SIZES: Final = {
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "n_embed", "dim"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"),
    "num_key_value_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "head_dim": ("head_dim", "d_kv", "kv_channels"),
    "vocab_size": ("vocab_size",),
    "intermediate_size": ("intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size", "hidden_dim"),
    "num_experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": ("num_experts_per_tok", "num_selected_experts"),
    "max_position_embeddings": (
        "max_position_embeddings",
        "n_positions",
        "max_seq_len",
        "seq_length",
        "max_target_positions",
    ),
}
_NEVER_NULL: Final = frozenset(("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"))
_PER_LAYER: Final = frozenset(
    ("num_attention_heads", "num_key_value_heads", "intermediate_size", "num_experts", "num_experts_per_tok")
)
"""Some classes write these as a list with a number for each layer."""
_MAY_BE_ZERO: Final = frozenset(("num_experts", "num_experts_per_tok", "num_key_value_heads"))
_ONE_TENSOR_EACH: Final = frozenset(("num_hidden_layers", "num_experts", "num_experts_per_tok"))
_TEXT_MODELS: Final = ("text_config", "llm_config", "language_config", "thinker_config")

_DTYPES: Final = {
    name: name
    for name in (
        "auto", "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bfloat16", "float16",
        "float32", "float64", "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
        "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2", "int4", "uint4",
    )
} | {"half": "float16", "float": "float32", "double": "float64", "fp16": "float16", "fp32": "float32", "bf16": "bfloat16"}  # fmt: skip

_HUB_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}/[A-Za-z0-9][A-Za-z0-9_.-]{0,95}")
_COMMIT: Final = re.compile("[0-9a-f]{40}")
_DEFAULT: Final = Limits()


def check_config(value: dict[str, Any], limits: Limits = _DEFAULT) -> ConfigFacts:
    """Return what a `config.json` declares, with what is wrong with it.

    `value` is a parsed JSON object. A model of N layers or experts has at least N tensors, so counts above
    `limits.tensors` are refused; other sizes have to fit 63 bits.
    """
    findings: list[Finding] = []
    fields = Fields(value, findings)
    architectures = fields.words("architectures", null=False)
    model_type = fields.word("model_type", null=False)
    dtype = _dtype(fields, value)
    part = next((name for name in _TEXT_MODELS if isinstance(value.get(name), dict)), None)
    text = fields
    if part is not None and _describes(value[part], fields):
        text = Fields(value[part], findings, f"{part}.")
    else:
        part = None
    sizes = _sizes(text, limits)
    quantization = fields.part("quantization_config")
    for field in ("rope_scaling", "rope_parameters"):
        text.part(field)
    references = _code_references(value)
    return ConfigFacts(
        architectures=architectures,
        model_type=model_type,
        dtype=dtype,
        **sizes,
        tie_word_embeddings=fields.boolean("tie_word_embeddings"),
        quantization=None if quantization is None else _quantization(quantization),
        transformers_version=fields.word("transformers_version", VERSION),
        text_model=part,
        code_references=references,
        findings=(*findings, *_case_twins(value), *_common(value, references)),
    )


def _describes(part: dict[str, Any], whole: Fields) -> bool:
    """Tell whether the sizes are those of a part: where the whole lacks a hidden size, or layers that the part has."""
    layers = _SIZES["num_hidden_layers"]
    if whole.first(_SIZES["hidden_size"]) is None:
        return True
    return whole.first(layers) is None and any(part.get(name) is not None for name in layers)


def check_adapter_config(value: dict[str, Any]) -> AdapterFacts:
    """Return what a PEFT `adapter_config.json` declares, with what is wrong with it.

    Without the commit of its base model an adapter belongs to weights that nobody can name: `adapter.base_revision`.
    """
    findings: list[Finding] = []
    fields = Fields(value, findings)
    peft_type = fields.word("peft_type", null=False)
    if "peft_type" not in value:
        fields.wrong_type("peft_type", "a word", None)
    rank = fields.count(("r",), _LARGEST, null=False)
    alpha = value.get("lora_alpha")
    if isinstance(alpha, bool) or not isinstance(alpha, int | float | None):
        fields.wrong_type("lora_alpha", "a number", alpha)
        alpha = None
    elif alpha is not None and not 0 < alpha < 1e18:
        fields.wrong_value("lora_alpha", "it is not a positive number")
        alpha = None
    pattern = isinstance(value.get("target_modules"), str)
    base = value.get("base_model_name_or_path")
    if not isinstance(base, str | None):
        fields.wrong_type("base_model_name_or_path", "a string", base)
    declared = isinstance(base, str) and bool(base)
    hub_id = base if isinstance(base, str) and _HUB_ID.fullmatch(base) and not find_secrets(base) else None
    revision = value.get("revision")
    if not isinstance(revision, str | None):
        fields.wrong_type("revision", "a commit", revision)
    commit = revision if isinstance(revision, str) and _COMMIT.fullmatch(revision) else None
    if not declared or commit is None:
        state = "names no base model" if not declared else "names its base model without a commit"
        findings.append(Finding("adapter.base_revision", {"state": state}))
    references = _code_references(value)
    return AdapterFacts(
        peft_type=peft_type,
        task_type=fields.word("task_type"),
        r=rank,
        lora_alpha=None if alpha is None else float(alpha),
        rank_pattern=adapter_config.ranks(fields, value),
        alpha_pattern=adapter_config.alphas(fields, value),
        variants=adapter_config.variants(value),
        initialised=adapter_config.initialised(value),
        use_dora=fields.boolean("use_dora"),
        use_rslora=fields.boolean("use_rslora"),
        fan_in_fan_out=fields.boolean("fan_in_fan_out"),
        target_modules=() if pattern else tuple(sorted(fields.words("target_modules", MODULE))),
        target_pattern=pattern,
        modules_to_save=tuple(sorted(fields.words("modules_to_save", MODULE))),
        peft_version=fields.word("peft_version", VERSION),
        base_declared=declared,
        base_hub_id=hub_id,
        base_revision=commit,
        code_references=references,
        findings=(*findings, *_common(value, references)),
    )


def check_json(value: Any) -> tuple[Finding, ...]:
    """Return what any JSON beside the weights reaches for and what it should not hold.

    For generation and tokenizer configurations, trainer states, `model_index.json` and header metadata: code and files
    that it names, and secrets. One finding for each kind, with the first place and the count.
    """
    return tuple(_common(value, _code_references(value)))


def _dtype(fields: Fields, value: dict[str, Any]) -> str | None:
    for field in ("dtype", "torch_dtype"):  # transformers 5 renamed it and reads the old name still
        declared = value.get(field)
        if isinstance(declared, str):
            known = _DTYPES.get(declared.removeprefix("torch."))
            if known is not None:
                return known
            fields.findings.append(Finding("config.dtype_unknown", {"field": field}))
            return None
        if declared is not None:
            fields.wrong_type(field, "a word", declared)
            return None
    return None


def _sizes(fields: Fields, limits: Limits) -> dict[str, Any]:
    sizes = {
        fact: fields.count(
            names,
            limits.tensors if fact in _ONE_TENSOR_EACH else _LARGEST,
            null=fact not in _NEVER_NULL,
            zero=fact in _MAY_BE_ZERO,
            per_layer=fact in _PER_LAYER,
        )
        for fact, names in _SIZES.items()
    }
    hidden, heads, groups = sizes["hidden_size"], sizes["num_attention_heads"], sizes["num_key_value_heads"]
    vocabulary = sizes["vocab_size"]
    # a declared head dimension, of whatever name, takes the place of hidden size / heads
    if (
        hidden
        and heads
        and hidden % heads
        and not fields.declares("head_dim", "kv_channels", "head_size", "d_kv")
    ):
        fields.wrong_value("num_attention_heads", "it does not divide the hidden size")
        sizes["num_attention_heads"] = None
    if heads and groups and heads % groups:
        fields.wrong_value("num_key_value_heads", "it does not divide the number of attention heads")
        sizes["num_key_value_heads"] = None
    if hidden and vocabulary and hidden * vocabulary > _LARGEST:
        fields.wrong_value("vocab_size", "times the hidden size it is beyond 63 bits")
        sizes["vocab_size"] = sizes["hidden_size"] = None
    return sizes


def _quantization(fields: Fields) -> Quantization:
    bits = fields.count(("bits", "w_bit", "wbits", "weight_bits"), 64)
    return Quantization(method=fields.word("quant_method"), bits=bits)


def _case_twins(value: dict[str, Any]) -> Iterator[Finding]:
    spellings: dict[str, int] = {}
    for key in value:
        folded = key.casefold()
        spellings[folded] = spellings.get(folded, 0) + 1
    twins = sorted(key for key, count in spellings.items() if count > 1)
    if twins:
        yield Finding("config.case_twins", {"count": len(twins), "field": twins[0]})


_CODE_KEYS: Final = ("auto_map", "auto_mapping", "custom_pipelines", "custom_generate")


def _code_references(value: Any) -> tuple[str, ...]:
    """Return the keys under which classes to import are named: of transformers, and `auto_mapping` of PEFT."""
    if not isinstance(value, dict):
        return ()
    references: list[str] = []
    for key in _CODE_KEYS:
        named = value.get(key)
        if isinstance(named, dict):
            references += [f"{key}.{shown(name, 60, possible=True)}" for name in sorted(named)[:KEPT]]
        elif named:
            references.append(key)
    return tuple(references)


_ABSOLUTE: Final = re.compile(r"(?:/[\w.~-]+/[\w.~-]|[A-Za-z]:[\\/][\w.~-]|~/|\\\\[\w.-]+\\)")
_PARENT: Final = re.compile(r"(?:[^\n]{0,4096}[/\\])?\.\.[/\\]")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://\S")


def _path_kind(text: str) -> str | None:
    if "/" not in text and "\\" not in text:
        return None
    for kind, pattern in (("a URL", _URL), ("an absolute path", _ABSOLUTE), ("a parent folder", _PARENT)):
        if pattern.match(text):
            return None if "\n" in text else kind
    return None


def _common(value: Any, references: tuple[str, ...]) -> Iterator[Finding]:
    if references:
        yield Finding(
            "config.code_reference", {"count": len(references), "fields": ", ".join(references[:12])}
        )
    outside = (
        (kind, leaf)
        for leaf in strings_in(value)
        if not leaf.is_key and (kind := _path_kind(leaf.text)) is not None
    )
    for kind, count, place in _tally(outside):
        yield Finding("config.path_reference", {"kind": kind, "count": count, "field": place})
    for kind, count, place in _tally((hit.kind, hit.leaf) for hit in find_secrets_in(value)):
        yield Finding("config.secret", {"kind": kind, "count": count, "field": place})


def _tally(found: Iterable[tuple[str, Leaf]]) -> list[tuple[str, int, str]]:
    """Return each kind with how often it was found and the place of the first."""
    counts: dict[str, int] = {}
    first: dict[str, Leaf] = {}
    for word, leaf in found:
        kind = str(word)
        counts[kind] = counts.get(kind, 0) + 1
        first.setdefault(kind, leaf)
    return [(kind, count, first[kind].place or "/") for kind, count in sorted(counts.items())]
