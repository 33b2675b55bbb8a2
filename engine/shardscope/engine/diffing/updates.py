"""What adapters do to the tensors of their base when they are merged into it: for each tensor, the products that are added.

Scales are those of peft: `alpha / r`, or `alpha / sqrt(r)` with rsLoRA, where `rank_pattern` and `alpha_pattern` may give a module its own.
A factor pair is seen as the matrix product `outer @ inner` of the weight as it is stored, with the dimensions of a kernel behind its
inputs as one.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from math import prod, sqrt
from typing import Final

from msgspec import Struct

from shardscope.engine.diffing.adapter import Part, Places, part_of
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor, Shape
from shardscope.engine.model.config import AdapterFacts

_LITERAL: Final = re.compile(r"\^?[\w.-]+\$?")
"""Keys of patterns that mean what they say: letters, and dots between the parts of a name."""


class Adapter(Struct, frozen=True):
    """An adapter that is to be merged: its tensors, and what it declares."""

    tensors: Sequence[LogicalTensor]
    facts: AdapterFacts


class Update(Struct, frozen=True):
    """A product that is added to a tensor: `scale * outer @ inner`."""

    adapter: int
    """Whose tensors the factors are."""
    outer: LogicalTensor
    """A row for each row of the weight; of a bias, the vector that is added."""
    inner: LogicalTensor | None
    """Null of a bias."""
    turned: bool
    """Both factors are stored transposed, as the weight is."""
    rank: int
    scale: float


class Target(Struct, frozen=True):
    """A tensor of the base that adapters change."""

    updates: tuple[Update, ...] = ()
    instead: tuple[int, LogicalTensor] | None = None
    """The tensor that an adapter has in its place, and the number of the adapter. Updates are added to it."""
    refused: str | None = None
    """Why nobody can say what it should become, in one clause."""


class Stray(Struct, frozen=True):
    """A tensor of an adapter that is for nothing in the base."""

    tensor: LogicalTensor
    note: str


class Updates(Struct, frozen=True):
    """What adapters do to a base."""

    targets: dict[int, Target]
    """By the number of the base's tensor."""
    strays: tuple[Stray, ...]


def check_plain(adapter: Adapter) -> None:
    """Raise `Fault` where the update of an adapter is not a product of two factors: `diff.adapter_kind`, `diff.adapter_scale`,
    `diff.adapter_names`, `diff.adapter_pattern`.
    """
    facts = adapter.facts
    if facts.peft_type not in (None, "LORA"):
        raise Fault("diff.adapter_kind", what=f"peft_type {facts.peft_type}")
    if facts.variants:
        raise Fault("diff.adapter_kind", what=facts.variants[0])
    if any(".lora_magnitude_vector" in tensor.name for tensor in adapter.tensors):
        raise Fault("diff.adapter_kind", what="use_dora")
    if facts.lora_alpha is None:
        raise Fault("diff.adapter_scale")
    names = {part_of(tensor.name).adapter for tensor in adapter.tensors} - {None}
    if len(names) > 1:
        raise Fault("diff.adapter_names", count=len(names), first=min(map(str, names)))
    for key, _ in (*facts.rank_pattern, *facts.alpha_pattern):
        if not _LITERAL.fullmatch(key):
            raise Fault("diff.adapter_pattern", key=key)


def updates(base: Sequence[LogicalTensor], adapters: Sequence[Adapter], *, tied: bool = False) -> Updates:
    """Return what adapters that are plain do to a base. `tied`: a base without a head has its embedding for
    one.
    """
    places = Places(base, tied=tied)
    roots = _roots(base)
    found: defaultdict[int, list[Update | str]] = defaultdict(list)
    instead: dict[int, tuple[int, LogicalTensor]] = {}
    strays: list[Stray] = []
    for number, adapter in enumerate(adapters):
        pairs: dict[str, dict[str, tuple[Part, LogicalTensor]]] = {}
        for tensor in adapter.tensors:
            part = part_of(tensor.name)
            place = places.of(part.target)
            if place is None:
                strays.append(Stray(tensor, "the base has no such module"))
            elif part.factor is not None:
                pairs.setdefault(part.target, {})[part.factor] = (part, tensor)
            elif not part.original:
                instead[roots[place]] = (number, tensor)
        for target, factors in pairs.items():
            place = places.of(target)
            if place is not None:
                found[roots[place]].append(_update(number, adapter.facts, target, factors, base[place]))
    changed = {root: _target(found.get(root, ()), instead.get(root)) for root in {**found, **instead}}
    return Updates(
        {number: changed[root] for number, root in enumerate(roots) if root in changed}, tuple(strays)
    )


def _roots(base: Sequence[LogicalTensor]) -> list[int]:
    """Return for each tensor the one that it shares its bytes with: itself for most."""
    by_name = {tensor.name: number for number, tensor in reversed(list(enumerate(base)))}
    return [
        number if tensor.alias_of is None else by_name.get(tensor.alias_of, number)
        for number, tensor in enumerate(base)
    ]


def _target(found: Sequence[Update | str], instead: tuple[int, LogicalTensor] | None) -> Target:
    refused = next((item for item in found if isinstance(item, str)), None)
    return Target(tuple(item for item in found if isinstance(item, Update)), instead, refused)


def _update(
    number: int,
    facts: AdapterFacts,
    target: str,
    factors: dict[str, tuple[Part, LogicalTensor]],
    weight: LogicalTensor,
) -> Update | str:
    """Return what a pair of factors adds to a weight; in one clause why nobody can say."""
    module = target.rpartition(".")[0]
    part, second = factors.get("B", (None, None))
    _, first = factors.get("A", (None, None))
    if second is None or part is None:
        return "the adapter has one factor of two for it"
    for tensor in (first, second, weight):
        if tensor is not None and tensor.unwritable is not None:
            return tensor.unwritable
    if any(0 in tensor.shape for tensor in (first, second, weight) if tensor is not None):
        return "a factor of it, or it itself, has no elements"
    if part.bias:
        if second.shape != weight.shape:
            return "the adapter's bias is of another shape"
        rank = int(_declared(facts.rank_pattern, module) or facts.r or 1)
        return Update(number, second, None, turned=False, rank=rank, scale=_scale(facts, module, rank))
    if first is None:
        return "the adapter has one factor of two for it"
    if len(first.shape) < 2 or len(second.shape) < 2 or len(weight.shape) < 2:
        return "a factor and its module have two dimensions at least"
    turned = _turned(facts, first.shape, second.shape, weight.shape, embedding=part.embedding)
    if turned is None:
        return "its factors are of other shapes than it is"
    rank = first.shape[0]
    outer, inner = (first, second) if turned else (second, first)
    return Update(number, outer, inner, turned, rank, _scale(facts, module, rank))


def _turned(
    facts: AdapterFacts, first: Shape, second: Shape, weight: Shape, *, embedding: bool
) -> bool | None:
    """Tell whether a weight is stored with a row for each input; null where it fits neither way.

    Embeddings are, and those of GPT-2's `Conv1D`. Of a square weight the configuration says it.
    """
    inputs, outputs = prod(first[1:]), second[0]
    if prod(second[1:]) != first[0]:
        return None
    turned = weight == (inputs, outputs)
    straight = weight == (outputs, *first[1:]) and not embedding
    if straight and turned:
        return bool(facts.fan_in_fan_out)
    return turned if straight or turned else None


def _scale(facts: AdapterFacts, module: str, rank: int) -> float:
    alpha = _declared(facts.alpha_pattern, module)
    alpha = facts.lora_alpha or 0.0 if alpha is None else alpha
    return alpha / sqrt(rank) if facts.use_rslora else alpha / rank


def _declared(pattern: Sequence[tuple[str, float]], module: str) -> float | None:
    """Return what the first key that fits a module says of it; null where none does."""
    for key, value in pattern:
        name = key.removesuffix("$")
        end = name.removeprefix("^")
        if module == end or (name == end and module.endswith(f".{end}")):
            return value
    return None
