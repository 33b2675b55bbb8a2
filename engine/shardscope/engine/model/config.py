"""What configurations declare, as facts that are safe to show.

Every field is what the file says and null where it says nothing or nothing usable. Words are kept only where they look
like the names they should be, so that no path, token or sentence of a stranger travels on as a fact.
"""

from msgspec import Struct

from shardscope.engine.model.blocker import Finding


class Quantization(Struct, frozen=True):
    """`quantization_config` of a Hugging Face configuration, or a whole `quantize_config.json`."""

    method: str | None = None
    """`gptq`, `awq`, `bitsandbytes`, `fp8`, ..."""
    bits: int | None = None


class ConfigFacts(Struct, frozen=True):
    """What a `config.json` in the manner of Hugging Face declares.

    Sizes are those of the text model: where the file describes several models, those of `text_config` or its like.
    """

    architectures: tuple[str, ...] = ()
    model_type: str | None = None
    dtype: str | None = None
    """In torch's spelling, without `torch.`: `bfloat16`, `float32`, `auto`."""
    num_hidden_layers: int | None = None
    hidden_size: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    """Only where it is declared; otherwise readers divide the hidden size by the heads."""
    vocab_size: int | None = None
    intermediate_size: int | None = None
    num_experts: int | None = None
    num_experts_per_tok: int | None = None
    max_position_embeddings: int | None = None
    tie_word_embeddings: bool | None = None
    quantization: Quantization | None = None
    transformers_version: str | None = None
    text_model: str | None = None
    """The key of the part that the sizes are taken from: null for the document itself."""
    code_references: tuple[str, ...] = ()
    """Keys that name Python classes to import, such as `auto_map.AutoModel`. They are never imported."""
    findings: tuple[Finding, ...] = ()


class AdapterFacts(Struct, frozen=True):
    """What a PEFT `adapter_config.json` declares."""

    peft_type: str | None = None
    task_type: str | None = None
    r: int | None = None
    """The rank of the update."""
    lora_alpha: float | None = None
    """The update counts lora_alpha / r, or lora_alpha / sqrt(r) under `use_rslora`."""
    rank_pattern: tuple[tuple[str, int], ...] = ()
    """Ranks of single modules, by the end of their names; the first that fits counts."""
    alpha_pattern: tuple[tuple[str, float], ...] = ()
    variants: tuple[str, ...] = ()
    """Fields that make the update something else than the product of two factors: `use_dora`."""
    initialised: str | None = None
    """How the factors were made, where that took something off the base's weights: `pissa`."""
    use_dora: bool | None = None
    use_rslora: bool | None = None
    fan_in_fan_out: bool | None = None
    target_modules: tuple[str, ...] = ()
    """Sorted: PEFT writes them from a set, in any order."""
    target_pattern: bool = False
    """The target modules are one pattern or word (`all-linear`), not a list."""
    modules_to_save: tuple[str, ...] = ()
    peft_version: str | None = None
    base_declared: bool = False
    """The file names a base model. A path on the machine that wrote it is not kept."""
    base_hub_id: str | None = None
    """The base model where its name looks like `organisation/name`."""
    base_revision: str | None = None
    """The commit of the base model: only a full one is immutable, a branch or tag is not kept."""
    code_references: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
