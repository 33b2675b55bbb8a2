"""Which layers keep keys and values, and for how many tokens, from the configuration of a (text) model.

Newer configurations list a word for each layer. Older ones, and some classes always, give a rule: a period, indices, a pattern of letters. Rules
and their defaults are those of transformers' configuration classes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

_MOST: Final = 100_000
"""Layers above which no rule is applied."""
_WINDOWED: Final = frozenset({"sliding_attention", "chunked_attention", "hybrid_sliding"})
_WITHOUT: Final = frozenset(
    {"linear_attention", "mamba", "mamba2", "conv", "recurrent", "moe", "mlp", "crossing"}
)
"""Layers whose state does not grow, or that have none."""
_WHOLE: Final = frozenset({"full_attention", "attention", "hybrid", "indexed_attention"})
_STATES: Final = frozenset({"mamba", "mamba2", "falcon_mamba", "rwkv", "xlstm"})
"""Classes without attention."""
_LETTERS: Final = {
    "M": "mamba",
    "*": "attention",
    "-": "mlp",
    "E": "moe",
    "L": "sliding_attention",
    "G": "attention",
}
_PERIODS: Final = {
    "gemma2": 2,
    "gemma3_text": 6,
    "cohere2": 4,
    "gpt_oss": 2,
    "olmo3": 4,
    "exaone4": 4,
    "vaultgemma": 2,
}  # fmt: skip
"""Of classes that alternate: every so many layers, one looks at everything."""
_ALL: Final = frozenset(
    {"mistral", "ministral", "mixtral", "phi3", "phimoe", "starcoder2", "qwen3_moe", "moshi"}
)
"""Classes of which each layer has the window."""
ENCODERS: Final = frozenset(
    {
        "albert", "align_text_model", "altclip", "beit", "bert", "big_bird", "camembert", "canine", "clip",
        "clip_text_model", "convbert", "data2vec-audio", "data2vec-text", "data2vec-vision", "deberta", "deberta-v2",
        "deit", "detr", "dinov2", "dinov2_with_registers", "dinov3_vit", "distilbert", "electra", "ernie", "esm",
        "eurobert", "flaubert", "funnel", "hubert", "ibert", "layoutlm", "layoutlmv2", "layoutlmv3", "lilt",
        "longformer", "luke", "markuplm", "megatron-bert", "mobilebert", "modernbert", "mpnet", "mra", "nezha",
        "nomic-bert", "nomic_bert", "nystromformer", "rembert", "roberta", "roberta-prelayernorm", "roc_bert",
        "roformer", "siglip", "siglip2", "siglip_text_model", "splinter", "squeezebert", "swin", "unispeech", "vit",
        "vit_mae", "wav2vec2", "wav2vec2-bert", "wav2vec2-conformer", "wavlm", "xlm-roberta", "xlm-roberta-xl",
        "xmod", "yoso",
    }
)  # fmt: skip
"""Classes that read all tokens at once, unless a configuration says that they are decoders."""
OF_THEIR_OWN: Final = frozenset({"longcat_flash", "cpmant", "reformer", "xlm", "xlnet"})
"""Classes whose caches are not one of keys and values for each layer."""


class Layers(Struct, frozen=True):
    """How the layers of a model attend."""

    kinds: tuple[str, ...] | None = None
    """A word for each layer, as transformers has them; null where nothing says it."""
    window: int | None = None
    """Tokens that a layer of sliding attention looks back."""
    shared: int = 0
    """Of the last layers: how many take keys and values from earlier ones."""

    @property
    def windowed(self) -> int | None:
        """How many keep no more than the window; null where nothing says it."""
        return None if self.kinds is None else sum(kind in _WINDOWED for kind in self.keeping)

    @property
    def without(self) -> int | None:
        """How many keep nothing that grows; null where nothing says it."""
        if self.kinds is None:
            return self.shared or None
        return sum(kind in _WITHOUT for kind in self.keeping) + self.shared

    @property
    def keeping(self) -> tuple[str, ...]:
        """The words of the layers that have keys and values of their own."""
        kinds = self.kinds or ()
        return kinds[: len(kinds) - self.shared] if self.shared < len(kinds) else ()

    @property
    def known(self) -> bool:
        """Whether each word is one that is known here."""
        return self.kinds is None or set(self.kinds) <= _WINDOWED | _WITHOUT | _WHOLE


def windowed(kind: str) -> bool:
    """Tell whether a layer of a kind keeps no more than the window."""
    return kind in _WINDOWED


def grows(kind: str) -> bool:
    """Tell whether a layer of a kind keeps keys and values of every token."""
    return kind in _WHOLE


def read_layers(part: Mapping[str, Any], layers: int | None) -> Layers:
    """Return what the configuration of a (text) model says of its `layers`."""
    window = next((size for name in ("sliding_window", "sliding_window_size", "attention_chunk_size", "attention_window_size")
                   if (size := _count(part.get(name))) is not None), None)  # fmt: skip
    if part.get("use_sliding_window") is False:
        window = None
    shared = _count(part.get("num_kv_shared_layers")) or 0
    return Layers(_kinds(part, layers, window), window, min(shared, layers or 0))


def _kinds(part: Mapping[str, Any], layers: int | None, window: int | None) -> tuple[str, ...] | None:
    for name in ("layer_types", "layers_block_type"):
        listed = _words(part.get(name))
        if listed is not None:
            return listed
    pattern = part.get("hybrid_override_pattern")
    if isinstance(pattern, str) and 0 < len(pattern) <= _MOST:
        return tuple(_LETTERS.get(letter, letter) for letter in pattern)
    if layers is None or not 0 < layers <= _MOST:
        return None
    rule = _rule(part, window)
    return None if rule is None else tuple(rule(layer) for layer in range(layers))


def _rule(part: Mapping[str, Any], window: int | None) -> Callable[[int], str] | None:
    """Return what says the kind of a layer by its number."""
    declared = part.get("model_type")
    kind = declared if isinstance(declared, str) else None
    if kind in _STATES:
        return lambda _: "recurrent"
    period, offset = _count(part.get("attn_layer_period")), part.get("attn_layer_offset")
    if period is not None and isinstance(offset, int):
        return lambda layer: "attention" if layer % period == offset else "mamba"
    for name in ("attn_layer_indices", "full_attn_idxs"):
        indices = part.get(name)
        if isinstance(indices, list):
            held = {each for each in indices if isinstance(each, int)}
            return lambda layer: "attention" if layer in held else "mamba"
    interval = _count(part.get("full_attention_interval"))
    if interval is not None:
        return lambda layer: "linear_attention" if (layer + 1) % interval else "attention"
    crossing = part.get("cross_attention_layers")
    if isinstance(crossing, list):
        apart = {each for each in crossing if isinstance(each, int)}
        return lambda layer: "crossing" if layer in apart else "attention"
    blocks = _words(part.get("block_types"))
    if blocks is not None and "recurrent" in blocks:
        words = ["sliding_attention" if each == "attention" else each for each in blocks]
        return lambda layer: words[layer % len(words)]
    return _sliding(part, kind, window)


def _sliding(part: Mapping[str, Any], kind: str | None, window: int | None) -> Callable[[int], str] | None:
    """Return which layers look no further back than the window."""
    if part.get("use_sliding_window") is False:
        return lambda _: "attention"
    if window is None:
        return None
    declared = part.get("sliding_window_pattern", part.get("_sliding_window_pattern"))
    if isinstance(declared, str) and 0 < len(declared) <= _MOST:
        return lambda layer: _LETTERS.get(declared[layer % len(declared)], declared)
    period = _count(declared) or (_PERIODS.get(kind) if kind is not None else None)
    if period is not None:
        return lambda layer: "sliding_attention" if (layer + 1) % period else "attention"
    if kind is not None and kind.startswith("llama4"):
        rotated = part.get("no_rope_layers")
        every = _count(part.get("no_rope_layer_interval")) or 4
        if isinstance(rotated, list) and rotated:
            return lambda layer: "chunked_attention" if rotated[layer % len(rotated)] else "attention"
        return lambda layer: "chunked_attention" if (layer + 1) % every else "attention"
    first = _count(part.get("max_window_layers"))
    if first is not None and part.get("use_sliding_window") is True and kind != "qwen3_moe":
        return (
            None
            if kind == "qwen2_moe"
            else lambda layer: "sliding_attention" if layer >= first else "attention"
        )
    return (lambda _: "sliding_attention") if kind in _ALL else None


def _words(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, Sequence) or isinstance(value, str) or not 0 < len(value) <= _MOST:
        return None
    words = tuple(each for each in value if isinstance(each, str))
    return words if len(words) == len(value) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 63 else None
