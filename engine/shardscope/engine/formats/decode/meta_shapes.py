"""Shapes of whole tensors in Meta's release layout, as the model code makes them from `params.json`, and the cut they imply.

Names and shapes follow meta-llama (`llama/model.py`: Attention, FeedForward, TransformerBlock, Transformer). Nothing in the
files says how a tensor was cut. But where the whole shape follows from the parameters, each rank's shape leaves one axis along
which equal parts come to it, or none: no convention of a release is needed, and the token embedding of Llama 2 (cut along
axis 1) and of Llama 3 (axis 0) come out as they are.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from shardscope.engine.model.catalogue import Shape

_MOST: Final = 1 << 40

_TABLE: Final = tuple(
    (re.compile(pattern, re.ASCII), extents)
    for pattern, extents in (
        (r"tok_embeddings\.weight", ("vocabulary", "dim")),
        (r"output\.weight", ("vocabulary", "dim")),
        (r"norm\.weight", ("dim",)),
        (r"rope\.freqs", ("half_head",)),
        (r"layers\.\d+\.(attention_norm|ffn_norm)\.weight", ("dim",)),
        (r"layers\.\d+\.attention\.wq\.weight", ("queries", "dim")),
        (r"layers\.\d+\.attention\.w[kv]\.weight", ("keys", "dim")),
        (r"layers\.\d+\.attention\.wo\.weight", ("dim", "queries")),
        (r"layers\.\d+\.feed_forward\.w[13]\.weight", ("hidden", "dim")),
        (r"layers\.\d+\.feed_forward\.w2\.weight", ("dim", "hidden")),
    )
)
"""Patterns of whole names, and the extents of their tensors by name."""


_DERIVED: Final = frozenset({"hidden"})
"""Extents that the model code works out, in ways that have changed: where they do not fit, they count as unknown."""


class Cut(Struct, frozen=True):
    """How the ranks hold a tensor."""

    shape: Shape
    """Of the whole."""
    axis: int | None
    """Along which the ranks hold equal parts in order; null where each holds the whole."""


def extents_of(params: Any) -> dict[str, int]:
    """Return the named extents that a `params.json` gives; what it does not give is left out."""
    if not isinstance(params, dict):
        return {}
    dim, heads = _number(params, "dim"), _number(params, "n_heads")
    found = {"dim": dim, "vocabulary": _number(params, "vocab_size"), "hidden": _hidden(params, dim)}
    head = _number(params, "head_dim") or (dim // heads if dim and heads and dim % heads == 0 else None)
    if head and heads:
        groups = _number(params, "n_kv_heads") or heads
        found |= {"queries": heads * head, "keys": groups * head, "half_head": head // 2}
    return {name: extent for name, extent in found.items() if extent}


def _number(params: Mapping[str, Any], key: str) -> int | None:
    value = params.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value < _MOST else None


def _hidden(params: Mapping[str, Any], dim: int | None) -> int | None:
    """Return the width of the feed-forward layers: two thirds of four times the model's, scaled, and rounded up."""
    given = _number(params, "hidden_dim")
    step = _number(params, "multiple_of")
    if given or not dim or not step:
        return given
    width = int(2 * (4 * dim) / 3)
    factor = params.get("ffn_dim_multiplier")
    if isinstance(factor, int | float) and not isinstance(factor, bool) and 0 < factor < _MOST:
        width = int(factor * width)
    return -(-width // step) * step


def with_vocabulary(extents: Mapping[str, int], embedding: Shape | None, ranks: int) -> dict[str, int]:
    """Return extents with the size of the vocabulary where the embedding tells it and `params.json` does not (it then says -1).

    An embedding that is cut along the model's width has all of its rows. One of the full width could be cut along its rows or
    whole, and tells nothing.
    """
    found = dict(extents)
    if "vocabulary" in found or embedding is None or len(embedding) != 2 or ranks == 1:
        return found
    if embedding[1] * ranks == found.get("dim"):
        found["vocabulary"] = embedding[0]
    return found


def cut_of(
    name: str, stored: Sequence[Shape], ranks: int, extents: Mapping[str, int], *, differ: bool | None = None
) -> Cut | None:
    """Return how ranks hold a tensor of which each has a part of the shape `stored`; null where that does not follow.

    `ranks` counts the absent ones too. `differ` tells whether the ranks are known to hold different bytes (null: nothing is known
    of that): they are then no copies, so that of a tensor with one axis of unknown extent this is the one that was cut.
    """
    if len(set(stored)) != 1:
        return None
    part = stored[0]
    if ranks == 1:
        return Cut(part, None)
    names = next((found for pattern, found in _TABLE if pattern.fullmatch(name)), None)
    if names is None or len(names) != len(part):
        return None
    whole: list[int] = list(part)
    cut: list[int] = []
    unknown: list[int] = []
    for axis, extent in enumerate(names):
        known = extents.get(extent)
        if known == part[axis] * ranks:
            cut.append(axis)
            whole[axis] = known
        elif known is None or (extent in _DERIVED and known != part[axis]):
            unknown.append(axis)
        elif known != part[axis]:
            return None
    if not cut and len(unknown) == 1 and differ:
        cut = unknown
        whole[cut[0]] *= ranks
    elif len(cut) > 1 or (unknown and not cut) or (not cut and differ):
        return None
    return Cut(tuple(whole), cut[0] if cut else None)
