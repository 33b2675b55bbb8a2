"""What a model is made of (`shardscope.model/1`): parameters, repeated layers, sizes, packing, an adapter, and arithmetic on memory.

Everything is counted from names, types and shapes, and held against what a configuration declares. Nothing here says that a model
loads or runs.
"""

from typing import Final, Literal

from msgspec import Struct

from shardscope.engine.model.blocker import Blocker

Shape = tuple[int, ...]

Keeping = Literal["tokens", "nothing", "unknown"]
"""What a model keeps of the tokens that it has read: keys and values, nothing that grows, or something that is not known here."""

Use = Literal["parameter", "frozen", "buffer", "companion", "other"]
"""Of a tensor: `companion` belongs to a quantised weight (scales, zero points), `other` is no weight of the model."""


class Sizes(Struct, frozen=True):
    """Sizes that a configuration declares. Null where it says nothing usable, or something else for each layer."""

    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head: int | None = None
    """Of keys and queries."""
    value_head: int | None = None
    intermediate: int | None = None
    expert_intermediate: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    shared_experts: int | None = None
    vocabulary: int | None = None
    context: int | None = None
    window: int | None = None
    """Tokens that a layer of sliding attention looks back."""
    windowed_layers: int | None = None
    """Layers of sliding attention; null where no list of layers says it."""
    linear_layers: int | None = None
    """Layers whose state does not grow with the context."""
    query_rank: int | None = None
    """Of latent attention: width of the compressed queries."""
    latent_rank: int | None = None
    """Of latent attention: width of the compressed keys and values."""
    rope_head: int | None = None
    """Of latent attention: the part of a head with positions."""
    plain_head: int | None = None
    """Of latent attention: the part of a head without."""
    extra_layers: int | None = None
    """Layers beyond the model's own, that predict further tokens."""
    tied: bool | None = None
    dtype: str | None = None
    """As torch calls it."""
    gated_queries: bool = False
    """Query projections hold a gate, too, so that they have twice the rows."""
    multimodal: str | None = None
    """The part of the configuration that the sizes are of; null for the whole."""
    embedding: int | None = None
    """Width of the embeddings, where it is not the hidden size."""
    further_words: int = 0
    """Rows that the embedding of the input has beyond the vocabulary."""
    further_experts: int = 0
    """Rows that a router has beyond the experts."""
    keeps: Keeping = "tokens"
    crossed: bool = False
    """Layers keep keys and values of what an encoder read, too."""
    shared_layers: int = 0
    """Of the last layers: how many take keys and values from earlier ones."""
    others: tuple["Other", ...] = ()


class Other(Struct, frozen=True):
    """Layers of other sizes than those that a configuration declares for all."""

    full: int
    """How many of them keep keys and values of every token."""
    windowed: int
    """How many keep those of a window."""
    sizes: Sizes


class Packing(Struct, frozen=True):
    """What a configuration declares of quantisation."""

    method: str | None = None
    bits: int | None = None
    group: int | None = None
    """Weights that share a scale; -1 stands for a whole row."""
    block: Shape | None = None
    """Rows and columns that share a scale."""
    left_out: int = 0
    """Modules that are named as not quantised."""
    form: str | None = None
    """The variant of the method, where it has several (`checkpoint_format`)."""


class Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """How many numbers a model has. Quantised weights count with their logical elements, ties once."""

    total: int
    unknown: int
    """Tensors whose elements cannot be counted, which the total leaves out."""
    embeddings: int
    experts: int
    """In experts, all of them."""
    active: int | None
    """Used for one token, where experts are chosen; null without experts or without their number per token."""
    frozen: int | None
    """Null where nothing tells what is trained."""
    tied: tuple[str, ...]
    """Names that stand for a tensor that is counted already."""
    buffers: int
    """Elements of tensors that are no parameters, not in the total."""
    companions: int
    """Elements of scales and zero points, not in the total."""


class DtypeRow(Struct, frozen=True, forbid_unknown_fields=True):
    """How much of a model is stored in one type."""

    dtype: str
    tensors: int
    bytes: int


class Kind(Struct, frozen=True, forbid_unknown_fields=True):
    """Layers that have the same tensors of the same types and shapes."""

    layers: str
    """Their numbers: `0-31`."""
    count: int
    tensors: int
    """Of one of them."""
    parameters: int
    """Of one of them, as stored."""


class Family(Struct, frozen=True, forbid_unknown_fields=True):
    """Modules that repeat under numbers."""

    name: str
    """`model.layers.{0-31}`; experts stand below their layers: `model.layers.*.mlp.experts.{0-7}`."""
    count: int
    missing: str
    """Numbers between the first and the last that are not there; empty where none is."""
    kinds: tuple[Kind, ...]
    """The most frequent first."""
    experts: bool = False


class Fact(Struct, frozen=True, forbid_unknown_fields=True):
    """One size, declared and seen."""

    name: str
    declared: int | str | None
    seen: int | None
    """By the shapes."""
    agrees: bool | None
    """Null where one of the two is missing."""
    by: str
    """What it was seen in: a tensor, a count of layers."""


class PackedGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """Weights that are packed in one way."""

    scheme: str
    """`GPTQ`, `AWQ`, `bitsandbytes nf4`, `fp8 blocks`, `MXFP4`, `GGUF Q4_K`, ..."""
    modules: int
    bits: int | None
    group: str
    """What shares a scale: `128 inputs`, `128x128`, `a row`, `the tensor`."""
    first: str
    """Name of the first module."""
    stored: Shape
    """Of the first module's packed tensor."""
    logical: Shape | None
    """Of the first module's weight."""
    elements: int | None
    """Of all, unpacked."""
    bytes: int
    """Of all, with companions."""
    companions: tuple[tuple[str, int], ...]
    """How many modules have each companion."""
    explanation: str


class AdapterModule(Struct, frozen=True, forbid_unknown_fields=True):
    """What an adapter changes: modules of one name, in all layers."""

    target: str
    """`self_attn.q_proj`"""
    count: int
    rank: int | None
    """Null where it differs."""
    inputs: int | None
    outputs: int | None


class Adapter(Struct, frozen=True, forbid_unknown_fields=True):
    """A LoRA adapter."""

    kind: str
    rank: int | None
    alpha: str | None
    scale: str | None
    """What the product of the factors is multiplied with, as a formula."""
    base: str | None
    targets: tuple[AdapterModule, ...]
    parameters: int
    saved_whole: tuple[str, ...]
    """Modules that are saved whole, beside the factors."""
    fitting: int | None
    """Tensors that fit the base; null where none was given."""
    unfitting: int | None


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """A figure with the arithmetic behind it."""

    name: str
    bytes: int | None
    formula: str
    """With every number in it."""


class Memory(Struct, frozen=True, forbid_unknown_fields=True):
    """Arithmetic on bytes: weights in some types, and the cache of keys and values. No promise that it is enough."""

    devices: int
    context: int | None
    batch: int
    """Sequences at one time."""
    cache_dtype: str
    weights: tuple[Line, ...]
    cache_per_token: Line | None
    cache: Line | None
    """For `batch` sequences of `context` tokens."""
    together: tuple[Line, ...]
    """Weights and cache, for the weights in each type; none where the cache cannot be counted."""
    left_out: str
    """What is not in any of the figures."""


class ModelDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that is said of a model."""

    schema: str
    format: str
    title: str | None
    """What the configuration calls the model."""
    configuration: str | None
    """The file that declares the sizes; null where there is none."""
    tensors: int
    opaque_files: int
    parameters: Parameters
    dtypes: tuple[DtypeRow, ...]
    families: tuple[Family, ...]
    facts: tuple[Fact, ...]
    packed: tuple[PackedGroup, ...]
    declared_packing: str | None
    adapter: Adapter | None
    memory: Memory
    findings: tuple[Blocker, ...]


LEFT_OUT: Final = (
    "activations, buffers of kernels, the program itself, fragmentation, and whatever else a runtime reserves"
)
