"""The arguments of a run that Megatron-LM saves with its weights: a closed list of facts, and nothing else of them.

`args` is an `argparse.Namespace` of some hundreds of fields (`megatron/training/arguments.py`), private paths among them. Only
the fields that are named here are ever read.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.pickled import Number
from shardscope.engine.parse.pickled.tree import Tree

LARGEST: Final = 1 << 31
"""No count of a model or of its ranks is larger."""
CORE_VERSION: Final = 2.0
"""The checkpoint version from which rows of query, key and value are ordered by group."""
LATEST_VERSION: Final = 3.0
_PADDED_TOKENIZER: Final = "NullTokenizer"
"""It counts a token beside those of `vocab_size`."""


class Args(Struct, frozen=True):
    """What the arguments declare. Null is not declared."""

    tp: int | None = None
    pp: int | None = None
    ep: int | None = None
    etp: int | None = None
    cp: int | None = None
    dp: int | None = None
    vpp: int | None = None
    world: int | None = None
    layers: int | None = None
    hidden: int | None = None
    ffn: int | None = None
    heads: int | None = None
    groups: int | None = None
    head_size: int | None = None
    experts: int | None = None
    gated: bool | None = None
    tied: bool | None = None
    normalization: str | None = None
    positions: str | None = None
    vocabulary: int | None = None
    padded_vocabulary: int | None = None
    distributed_optimizer: bool | None = None
    implementation: str | None = None
    format: str | None = None
    samples: int | None = None
    """Consumed in training: the place in the data."""
    uneven: bool = False
    """The stages of the pipeline were given numbers of layers of their own."""

    @property
    def shared(self) -> Iterator[tuple[str, object]]:
        """What all ranks of a run have in common, by words for a person."""
        words = {
            "tp": "tensor-parallel size",
            "pp": "pipeline-parallel size",
            "ep": "expert-parallel size",
            "vpp": "number of virtual pipeline stages",
            "layers": "number of layers",
            "hidden": "hidden size",
            "heads": "number of attention heads",
            "groups": "number of query groups",
            "experts": "number of experts",
            "gated": "kind of the feed-forward layer",
        }
        for name, says in words.items():
            yield says, getattr(self, name)


def read_args(tree: Tree, number: Number | None) -> Args | None:
    """Return the facts of a namespace of arguments; null where the node is none."""
    if tree.record(number, "Namespace") is None:
        return None
    fields = _Fields(tree, number)
    heads, hidden = fields.count("num_attention_heads"), fields.count("hidden_size")
    grouped = fields.flag("group_query_attention")
    groups = fields.count("num_query_groups") if grouped else None
    head_size = fields.count("kv_channels")
    if head_size is None and heads and hidden and hidden % heads == 0:
        head_size = hidden // heads
    vocabulary = fields.count("vocab_size")
    return Args(
        tp=fields.count("tensor_model_parallel_size") or fields.count("model_parallel_size"),
        pp=fields.count("pipeline_model_parallel_size"),
        ep=fields.count("expert_model_parallel_size"),
        etp=fields.count("expert_tensor_parallel_size"),
        cp=fields.count("context_parallel_size"),
        dp=fields.count("data_parallel_size"),
        vpp=fields.count("virtual_pipeline_model_parallel_size"),
        world=fields.count("world_size"),
        layers=fields.count("num_layers") or fields.count("decoder_num_layers"),
        hidden=hidden,
        ffn=fields.count("ffn_hidden_size"),
        heads=heads,
        groups=groups or heads,
        head_size=head_size,
        experts=fields.count("num_experts"),
        gated=_gated(fields),
        tied=_opposite(fields.flag("untie_embeddings_and_output_weights")),
        normalization=fields.word("normalization") or "LayerNorm",  # the only one before there was a choice
        positions=fields.word("position_embedding_type") or "learned_absolute",
        vocabulary=None if fields.word("tokenizer_type") == _PADDED_TOKENIZER else vocabulary,
        padded_vocabulary=fields.count("padded_vocab_size"),
        distributed_optimizer=fields.flag("use_distributed_optimizer"),
        implementation=fields.word("transformer_impl"),
        format=fields.word("ckpt_format") or fields.word("dist_ckpt_format"),
        samples=fields.whole("consumed_train_samples"),
        uneven=any(fields.given(name) for name in _UNEVEN),
    )


_UNEVEN: Final = (
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "pipeline_model_parallel_layout",
    "encoder_pipeline_model_parallel_size",
)


def facts_of(args: Args, qkv: str | None) -> ModelFacts:
    """Return what mapping tables may ask."""
    return ModelFacts(
        layers=args.layers,
        heads=args.heads,
        groups=args.groups,
        head_size=args.head_size,
        experts=args.experts,
        vocabulary=args.vocabulary,
        gated=args.gated,
        qkv=qkv,  # type: ignore[arg-type]  # one of the three words
        normalization=args.normalization,
        positions=args.positions,
    )


def order_of(version: float | None) -> str | None:
    """Return how a checkpoint of this version orders the rows of query, key and value; null where that is not known.

    `megatron/training/checkpointing.py`, `fix_query_key_value_ordering`: a checkpoint without a version is one of version 0.
    """
    if version is None or version == 0:
        return "parts_first"
    if version == 1:
        return "parts_last"
    return "grouped" if CORE_VERSION <= version <= LATEST_VERSION else None


def _gated(fields: "_Fields") -> bool:
    return (
        bool(fields.flag("swiglu")) or bool(fields.flag("geglu")) or fields.word("glu_activation") is not None
    )


def _opposite(flag: bool | None) -> bool | None:
    return None if flag is None else not flag


class _Fields:
    """A namespace, asked for single fields by name."""

    def __init__(self, tree: Tree, number: Number | None) -> None:
        self._tree = tree
        self._number = number

    def whole(self, name: str) -> int | None:
        """Return a whole number that is not below zero."""
        found = self._tree.integer(self._number, name)
        return found if found is not None and found >= 0 else None

    def count(self, name: str) -> int | None:
        """Return a count: a number above zero, and not beyond all measure."""
        found = self._tree.integer(self._number, name)
        return found if found is not None and 0 < found < LARGEST else None

    def flag(self, name: str) -> bool | None:
        """Return a boolean."""
        found = self._tree.value(self._number, name)
        return found if isinstance(found, bool) else None

    def word(self, name: str) -> str | None:
        """Return a short text."""
        found = self._tree.text(self._number, name)
        return found if found is not None and len(found) <= 64 else None

    def given(self, name: str) -> bool:
        """Tell whether a field is there and says something."""
        number = self._tree.get(self._number, name)
        return number is not None and self._tree.value(number) is not None
