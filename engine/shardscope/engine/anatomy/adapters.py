"""A LoRA adapter by its factors: ranks, targets, what it scales with, and whether it is whole. Names are those of peft."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.anatomy.items import Item
from shardscope.engine.model.anatomy import Adapter, AdapterModule, Shape
from shardscope.engine.model.blocker import Finding, Param
from shardscope.engine.model.config import AdapterFacts
from shardscope.engine.model.modules import SEPARATOR, is_number

_PREFIX: Final = "base_model.model."
_FACTOR: Final = re.compile(
    r"(?P<module>.+)\.lora_(?P<of>embedding_)?(?P<factor>[AB])(\.[^.]+)?(\.weight)?\Z", re.DOTALL
)
_OTHER: Final = re.compile(
    r"\.lora_magnitude_vector|\.lora_[AB]\.[^.]+\.bias\Z|\.lora_[AB]\.bias\Z|\.lora_E\Z|\.ranknum\Z|\.token_adapter\."
)
"""What belongs to an update and is none of its factors: directions of DoRA, biases, singular values of AdaLoRA, rows of single tokens."""
_EXPERTS: Final = re.compile(r"(?:\A|\.)experts(?:\.base_layer)*\Z")
"""Modules whose factors are those of all their experts, one below the other."""
_FACTORED: Final = frozenset({None, "LORA", "ADALORA"})
"""Kinds of adapters whose tensors are factors, or weights that are saved whole."""


class Pair(Struct):
    """The two factors of one module, as far as they are there."""

    a: Shape | None = None
    b: Shape | None = None
    embedding: bool = False

    @property
    def rank(self) -> int | None:
        """Rows of A, columns of B."""
        if self.a is not None and self.a:
            return self.a[0]
        return self.b[1] if self.b is not None and len(self.b) > 1 else None

    @property
    def inputs(self) -> int | None:
        """Columns of A."""
        return self.a[1] if self.a is not None and len(self.a) > 1 else None

    @property
    def outputs(self) -> int | None:
        """Rows of B."""
        return self.b[0] if self.b is not None and self.b else None


def pairs_of(items: Iterable[Item]) -> tuple[dict[str, Pair], list[str]]:
    """Return the factors of each module, and the names of tensors that are none."""
    pairs: dict[str, Pair] = {}
    whole = []
    for item in items:
        name = item.name.removeprefix(_PREFIX)
        factor = _FACTOR.match(name) if ".lora_" in name else None
        if factor is None:
            if not _OTHER.search(name):
                whole.append(name)
            continue
        pair = pairs.setdefault(factor["module"], Pair(embedding=factor["of"] is not None))
        if factor["factor"] == "A":
            pair.a = item.shape
        else:
            pair.b = item.shape
    return pairs, whole


def adapter(
    items: Sequence[Item],
    facts: AdapterFacts | None,
    *,
    fitting: int | None = None,
    unfitting: int | None = None,
) -> Adapter | None:
    """Return what an adapter is; null where no tensor is a factor and nothing declares one."""
    pairs, whole = pairs_of(items)
    if not pairs and (facts is None or facts.peft_type is None):
        return None
    alpha = facts.lora_alpha if facts is not None else None
    return Adapter(
        kind=_kind(facts),
        rank=facts.r
        if facts is not None and facts.r is not None
        else _one(pair.rank for pair in pairs.values()),
        alpha=None if alpha is None else f"{alpha:g}",
        scale=_scale(facts),
        base=facts.base_hub_id if facts is not None else None,
        targets=tuple(_targets(pairs)),
        parameters=sum(item.elements for item in items),
        saved_whole=tuple(_saved_whole(whole, facts)),
        fitting=fitting,
        unfitting=unfitting,
    )


def _saved_whole(names: Iterable[str], facts: AdapterFacts | None) -> list[str]:
    """Return what is saved whole, each name once; of other kinds than LoRA only what their configuration names."""
    found = list(dict.fromkeys(names))
    if facts is None or facts.peft_type in _FACTORED:
        return found
    modules = set(facts.modules_to_save)
    return [name for name in found if not modules.isdisjoint(name.split(SEPARATOR))]


def _kind(facts: AdapterFacts | None) -> str:
    if facts is None or facts.peft_type is None:
        return "LoRA"
    words = {"LORA": "LoRA"}.get(facts.peft_type, facts.peft_type)
    return f"{words} with DoRA" if facts.use_dora else words


def _scale(facts: AdapterFacts | None) -> str | None:
    if facts is None or facts.lora_alpha is None or not facts.r:
        return None
    if facts.use_rslora:
        return f"{facts.lora_alpha:g} / sqrt({facts.r:,}) = {facts.lora_alpha / facts.r**0.5:.4g}"
    return f"{facts.lora_alpha:g} / {facts.r:,} = {facts.lora_alpha / facts.r:.4g}"


def _targets(pairs: dict[str, Pair]) -> Iterator[AdapterModule]:
    """Yield the modules by what follows the number of their layer."""
    groups: dict[str, list[Pair]] = {}
    for module, pair in pairs.items():
        parts = module.split(SEPARATOR)
        last = max((at for at, part in enumerate(parts) if is_number(part)), default=-1)
        groups.setdefault(SEPARATOR.join(parts[last + 1 :]) or module, []).append(pair)
    for target, members in groups.items():
        yield AdapterModule(
            target,
            len(members),
            _one(pair.rank for pair in members),
            _one(pair.inputs for pair in members),
            _one(pair.outputs for pair in members),
        )


def _one(values: Iterable[int | None]) -> int | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def check_adapter(items: Iterable[Item], facts: AdapterFacts | None) -> Iterator[Finding]:
    """Yield modules with one factor, and ranks other than the declared one."""
    pairs, _ = pairs_of(items)
    lone = [module for module, pair in pairs.items() if pair.a is None or pair.b is None]
    if lone:
        yield Finding("model.adapter_pair", {"count": len(lone), "tensor": lone[0]})
    if facts is None or facts.r is None or facts.peft_type == "ADALORA":
        return  # which ranks remain is what AdaLoRA finds out
    declared = {None, facts.r, *(rank for _, rank in facts.rank_pattern)}
    other = [
        (module, pair.rank)
        for module, pair in pairs.items()
        if pair.rank not in declared and not _of_experts(module, pair.rank, declared)
    ]
    if other:
        module, rank = other[0]
        params: dict[str, Param] = {"count": len(other), "declared": facts.r, "tensor": module, "found": rank}
        yield Finding("model.adapter_rank", params)


def _of_experts(module: str, rank: int | None, declared: set[int | None]) -> bool:
    """Tell whether a rank is that of factors of several experts."""
    if rank is None or _EXPERTS.search(module) is None:
        return False
    return any(each and rank % each == 0 for each in declared)
