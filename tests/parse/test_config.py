"""Configurations: typed facts, findings that name the field and never its value, nothing followed."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.model.blocker import Finding, blocker
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.config import Quantization
from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.config import check_adapter_config, check_config, check_json

FIXTURES = Path(__file__).parent.parent / "fixtures"
BASE: dict[str, Any] = {
    "architectures": ["TestModel"],
    "model_type": "test",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "torch_dtype": "float32",
}
TOKEN = "hf_" + "aB3" * 11 + "d"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def read(path: str) -> Any:
    return json.loads((FIXTURES / path).read_bytes())


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.code for finding in findings]


def sentences(findings: tuple[Finding, ...]) -> str:
    made = [blocker(finding, "config.json") for finding in findings]
    return "\n".join(f"{item.message} {item.remedy} {item.params}" for item in made)


def test_a_plain_configuration_gives_facts_and_no_findings() -> None:
    facts = check_config(read("hf/mixtral_moe_sharded/checkpoint/config.json"))
    assert facts.architectures == ("MixtralForCausalLM",)
    assert (facts.model_type, facts.dtype, facts.transformers_version) == ("mixtral", "float32", "5.24.0")
    assert (facts.num_hidden_layers, facts.hidden_size, facts.vocab_size) == (2, 16, 64)
    assert (facts.num_attention_heads, facts.num_key_value_heads, facts.head_dim) == (4, 2, None)
    assert (facts.num_experts, facts.num_experts_per_tok, facts.intermediate_size) == (4, 2, 24)
    assert facts.tie_word_embeddings is False
    assert facts.findings == ()


def test_the_names_that_gpt2_uses_are_known() -> None:
    facts = check_config(read("hf/gpt2_tied_sharded/checkpoint/config.json"))
    assert (facts.num_hidden_layers, facts.hidden_size, facts.num_attention_heads) == (2, 24, 3)
    assert facts.max_position_embeddings == 32
    assert facts.intermediate_size is None
    assert facts.findings == ()


@pytest.mark.parametrize(
    "path", sorted(FIXTURES.glob("**/checkpoint/*config.json")), ids=lambda path: path.parts[-3]
)
def test_no_configuration_that_a_producer_wrote_is_faulted(path: Path) -> None:
    value = json.loads(path.read_bytes())
    if path.name == "adapter_config.json":
        assert codes(check_adapter_config(value).findings) == ["adapter.base_revision"]
    else:
        assert check_config(value).findings == () if path.name == "config.json" else check_json(value) == ()


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("num_hidden_layers", 10**12, "config.field_value"),
        ("num_hidden_layers", -1, "config.field_value"),
        ("num_hidden_layers", 2.5, "config.field_type"),
        ("num_hidden_layers", float("inf"), "config.field_type"),
        ("num_hidden_layers", True, "config.field_type"),
        ("num_hidden_layers", "2", "config.field_type"),
        ("hidden_size", [8], "config.field_type"),
        ("hidden_size", None, "config.field_type"),
        ("hidden_size", 0, "config.field_value"),
        ("hidden_size", 2**64, "config.field_value"),
        ("hidden_size", TOKEN, "config.field_type"),
        ("num_attention_heads", 3, "config.field_value"),
        ("num_attention_heads", 0, "config.field_value"),
        ("num_key_value_heads", [], "config.field_type"),
        ("architectures", "TestModel", "config.field_type"),
        ("architectures", None, "config.field_type"),
        ("architectures", [["a"], {"b": 1}, None], "config.field_type"),
        ("architectures", ["two words"], "config.field_value"),
        ("model_type", {"a": 1}, "config.field_type"),
        ("model_type", "\u202ex", "config.field_value"),
        ("torch_dtype", "float3", "config.dtype_unknown"),
        ("torch_dtype", 32, "config.field_type"),
        ("quantization_config", [], "config.field_type"),
        ("quantization_config", "int4", "config.field_type"),
        ("quantization_config", {"bits": 0}, "config.field_value"),
        ("quantization_config", {"bits": 65}, "config.field_value"),
        ("rope_scaling", "linear", "config.field_type"),
        ("tie_word_embeddings", "yes", "config.field_type"),
        ("transformers_version", "latest", "config.field_value"),
        ("transformers_version", 5, "config.field_type"),
    ],
)
def test_a_field_that_cannot_be_is_named_and_not_used(field: str, value: object, code: str) -> None:
    facts = check_config(BASE | {field: value})
    assert facts.findings[0].code == code
    assert field in str(facts.findings[0].params["field"])
    fact = {"torch_dtype": "dtype", "quantization_config": "quantization", "rope_scaling": "text_model"}.get(
        field, field
    )
    assert getattr(facts, fact) in (None, (), Quantization())
    assert TOKEN not in sentences(facts.findings)


def test_sizes_that_do_not_fit_each_other_are_told() -> None:
    facts = check_config(BASE | {"vocab_size": 1 << 62, "hidden_size": 1 << 62})
    assert [finding.params["field"] for finding in facts.findings] == ["vocab_size"]
    assert (facts.vocab_size, facts.hidden_size) == (None, None)
    facts = check_config(BASE | {"num_attention_heads": 4, "num_key_value_heads": 3})
    assert [finding.params["field"] for finding in facts.findings] == ["num_key_value_heads"]
    assert (facts.num_attention_heads, facts.num_key_value_heads) == (4, None)


@pytest.mark.parametrize("field", ["head_dim", "d_kv", "kv_channels", "qk_rope_head_dim"])
def test_a_declared_head_dimension_frees_the_heads_from_dividing(field: str) -> None:
    facts = check_config(BASE | {"num_attention_heads": 3, field: 4})
    assert facts.num_attention_heads == 3
    assert facts.findings == ()


def test_a_list_for_each_layer_counts_only_where_it_agrees() -> None:
    facts = check_config(BASE | {"intermediate_size": [16, 16], "num_attention_heads": [2, 4]})
    assert (facts.intermediate_size, facts.num_attention_heads) == (16, None)
    assert facts.findings == ()
    assert codes(check_config(BASE | {"intermediate_size": [16, -1]}).findings) == ["config.field_value"]


def test_more_layers_than_tensors_are_refused_by_the_limit() -> None:
    assert check_config(BASE | {"num_hidden_layers": 11}, Limits(tensors=10)).num_hidden_layers is None
    assert check_config(BASE | {"num_hidden_layers": 10}, Limits(tensors=10)).num_hidden_layers == 10


def test_sizes_come_from_the_text_model_where_there_are_several() -> None:
    text = {"hidden_size": 8, "num_hidden_layers": -2, "rope_scaling": 1}
    facts = check_config({"architectures": ["A"], "model_type": "a", "text_config": text})
    assert (facts.text_model, facts.hidden_size) == ("text_config", 8)
    assert [finding.params["field"] for finding in facts.findings] == [
        "text_config.num_hidden_layers",
        "text_config.rope_scaling",
    ]


@pytest.mark.parametrize(
    ("fields", "dtype"),
    [
        ({"torch_dtype": "torch.bfloat16"}, "bfloat16"),
        ({"dtype": "half", "torch_dtype": "float32"}, "float16"),
        ({"dtype": None, "torch_dtype": "auto"}, "auto"),
        ({"torch_dtype": None}, None),
    ],
)
def test_dtypes_are_told_in_one_spelling(fields: dict[str, Any], dtype: str | None) -> None:
    facts = check_config({"model_type": "a"} | fields)
    assert facts.dtype == dtype
    assert facts.findings == ()


def test_quantization() -> None:
    facts = check_config(BASE | {"quantization_config": {"quant_method": "gptq", "bits": 4}})
    assert facts.quantization == Quantization("gptq", 4)
    assert facts.findings == ()


def test_case_twins_are_counted() -> None:
    facts = check_config(BASE | {"Hidden_Size": 9, "HIDDEN_SIZE": 10})
    assert facts.hidden_size == 8
    assert facts.findings == (Finding("config.case_twins", {"count": 1, "field": "hidden_size"}),)


def test_code_references_are_named_by_their_keys() -> None:
    auto_map = {
        "AutoModel": "owner/repo--modeling_x.Model",
        "AutoConfig": "configuration_x.Config",
        TOKEN: "a.B",
    }
    facts = check_config(BASE | {"auto_map": auto_map})
    assert facts.code_references == ("auto_map.AutoConfig", "auto_map.AutoModel", "auto_map.[hf token]")
    assert codes(facts.findings) == ["config.code_reference", "config.secret"]
    assert "modeling_x" not in sentences(facts.findings)
    assert codes(check_json({"auto_map": "a.B"})) == ["config.code_reference"]
    assert check_adapter_config({"auto_mapping": {"parent_library": "x"}}).code_references == (
        "auto_mapping.parent_library",
    )


def test_what_points_outside_is_told_by_kind_and_place() -> None:
    value = BASE | {
        "_name_or_path": "../../../etc/hostname",
        "vocab_file": "/etc/hostname",
        "tokenizer_file": "file:///etc/hostname",
        "adapter": ["https://example.com/a", "C:\\data\\a"],
        "chat_template": "/think\n../no",
        "eos_token": "</s>",
        "pattern": "a/../b",
    }
    facts = check_config(value)
    assert [tuple(finding.params.values()) for finding in facts.findings] == [
        ("a URL", 2, "/tokenizer_file"),
        ("a parent folder", 2, "/_name_or_path"),
        ("an absolute path", 2, "/vocab_file"),
    ]
    assert "hostname" not in sentences(facts.findings)


def test_secrets_are_told_by_kind_and_place_and_never_kept() -> None:  # R098
    value = BASE | {
        "note": [f"x{TOKEN}", TOKEN],
        "model_type": TOKEN,
        "password": "pq-17",
        "architectures": ["A", TOKEN],
    }
    facts = check_config(value)
    assert (facts.model_type, facts.architectures) == (None, ())
    found = {
        finding.params["kind"]: finding.params
        for finding in facts.findings
        if finding.code == "config.secret"
    }
    assert found["hf token"] == {"kind": "hf token", "count": 4, "field": "/architectures/1"}
    assert found["secret value"]["field"] == "/password"
    assert TOKEN not in repr(facts)
    assert TOKEN not in sentences(facts.findings)
    assert "pq-17" not in sentences(facts.findings)


ADAPTER: dict[str, Any] = {
    "peft_type": "LORA",
    "r": 8,
    "lora_alpha": 16,
    "base_model_name_or_path": "org/name",
}


@pytest.mark.parametrize(
    ("base", "revision", "state", "hub_id"),
    [
        (None, None, "names no base model", None),
        ("", COMMIT, "names no base model", None),
        ("org/name", None, "names its base model without a commit", "org/name"),
        ("org/name", "main", "names its base model without a commit", "org/name"),
        ("org/name", COMMIT[:12], "names its base model without a commit", "org/name"),
        ("org/name", COMMIT.upper(), "names its base model without a commit", "org/name"),
        ("org/name", COMMIT, None, "org/name"),
        ("/data/models/base", COMMIT, None, None),
        ("../base", COMMIT, None, None),
        (f"org/{TOKEN}", COMMIT, None, None),
    ],
)
def test_an_adapter_is_pinned_by_the_commit_of_its_base(  # R141
    base: str | None, revision: str | None, state: str | None, hub_id: str | None
) -> None:
    facts = check_adapter_config(ADAPTER | {"base_model_name_or_path": base, "revision": revision})
    found = [finding.params["state"] for finding in facts.findings if finding.code == "adapter.base_revision"]
    assert found == ([] if state is None else [state])
    assert facts.base_hub_id == hub_id
    assert facts.base_declared == bool(base)
    assert facts.base_revision == (COMMIT if revision == COMMIT else None)
    assert "/data" not in repr(facts)
    assert TOKEN not in repr(facts)
    assert [str(item) for item in CODES["adapter.base_revision"].blocks] == ["load"]


def test_adapter_facts() -> None:
    facts = check_adapter_config(read("peft/lora_gpt2_bin_rslora/checkpoint/adapter_config.json"))
    assert (facts.peft_type, facts.task_type, facts.r, facts.lora_alpha) == ("LORA", "CAUSAL_LM", 2, 4.0)
    assert (facts.use_rslora, facts.use_dora, facts.fan_in_fan_out) == (True, False, True)
    assert (facts.target_modules, facts.modules_to_save, facts.peft_version) == (("c_attn",), (), "0.21.2")
    facts = check_adapter_config(read("peft/lora_llama/checkpoint/adapter_config.json"))
    assert (facts.target_modules, facts.modules_to_save) == (("q_proj", "v_proj"), ("lm_head",))
    facts = check_adapter_config(ADAPTER | {"target_modules": "all-linear"})
    assert (facts.target_modules, facts.target_pattern) == ((), True)


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("r", 0, "config.field_value"),
        ("r", "8", "config.field_type"),
        ("lora_alpha", -1, "config.field_value"),
        ("lora_alpha", float("nan"), "config.field_value"),
        ("lora_alpha", "x", "config.field_type"),
        ("lora_alpha", True, "config.field_type"),
        ("peft_type", 3, "config.field_type"),
        ("target_modules", {"a": 1}, "config.field_type"),
        ("target_modules", ["../x"], "config.field_value"),
        ("modules_to_save", "lm_head", "config.field_type"),
        ("use_dora", 1, "config.field_type"),
        ("base_model_name_or_path", 5, "config.field_type"),
        ("revision", 5, "config.field_type"),
    ],
)
def test_adapter_fields_that_cannot_be(field: str, value: object, code: str) -> None:
    findings = check_adapter_config(ADAPTER | {field: value}).findings
    assert (code, field) in [(finding.code, finding.params.get("field")) for finding in findings]


def test_an_adapter_without_a_type_is_told() -> None:
    assert "config.field_type" in codes(check_adapter_config({}).findings)


def test_findings_do_not_grow_with_the_document() -> None:
    value = {
        f"k{number}": [f"{TOKEN}", f"/data/{number}/x", "https://a.example.com"] for number in range(2_000)
    }
    assert codes(check_json(value)) == ["config.path_reference", "config.path_reference", "config.secret"]
    assert check_json(value)[2].params["count"] == 2_000
    assert check_json({f"k{number}": number for number in range(2_000)}) == ()


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
known = st.sampled_from(
    sorted(
        {*BASE, *ADAPTER, "dtype", "vocab_size", "num_attention_heads", "num_key_value_heads", "head_dim", "text_config",
         "quantization_config", "rope_scaling", "auto_map", "target_modules", "modules_to_save", "revision", "n_layer",
         "intermediate_size", "num_experts", "tie_word_embeddings", "transformers_version", "peft_version"}
    )
)  # fmt: skip


@given(st.dictionaries(known | st.text(max_size=8), values, max_size=12))
def test_any_object_gives_facts_and_sentences(value: dict[str, Any]) -> None:
    facts = check_config(value)
    adapter = check_adapter_config(value)
    for count in (facts.hidden_size, facts.num_hidden_layers, facts.vocab_size, adapter.r):
        assert count is None or 0 < count < 2**63
    sentences(facts.findings + adapter.findings + check_json(value))


@given(known, st.sampled_from([TOKEN, [TOKEN], {"bits": TOKEN}, {TOKEN: {TOKEN: TOKEN}}]))
def test_a_token_in_any_field_stays_there(field: str, value: object) -> None:
    for facts in (check_config(BASE | {field: value}), check_adapter_config(ADAPTER | {field: value})):
        assert TOKEN not in repr(facts)
        assert TOKEN not in sentences(facts.findings)
        assert "config.secret" in codes(facts.findings)
