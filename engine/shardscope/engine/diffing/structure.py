"""Pairs of tensors as differences in structure: what each pair comes to before any value is read."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from msgspec.structs import replace

from shardscope.engine.diffing.adapter import Fit
from shardscope.engine.diffing.pairing import Pair
from shardscope.engine.diffing.updates import Stray, Target
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.decoded import Component
from shardscope.engine.model.difference import (
    SUGGESTED,
    DiffCounts,
    Merge,
    State,
    TensorDifference,
    TensorFacts,
)
from shardscope.engine.model.tensors import array_bytes
from shardscope.engine.model.text import display_name

Tensors = Sequence[LogicalTensor]


def differences(first: Tensors, second: Tensors, pairs: Iterable[Pair]) -> list[TensorDifference]:
    """Return what each pair comes to. A tied tensor that only one side writes out counts as the same."""
    pairs = list(pairs)
    here = {first[pair.a].name for pair in pairs if pair.a is not None and pair.b is not None}
    there = {second[pair.b].name for pair in pairs if pair.a is not None and pair.b is not None}
    return [_difference(first, second, pair, here, there) for pair in pairs]


def _difference(
    first: Tensors, second: Tensors, pair: Pair, here: set[str], there: set[str]
) -> TensorDifference:
    if pair.a is None or pair.b is None:
        alone, state, known = _alone(first, second, pair, here, there)
        tied = alone.alias_of if alone.alias_of in known else None
        return TensorDifference(
            "same" if tied is not None else state,
            alone.name,
            facts(alone) if pair.a is not None else None,
            facts(alone) if pair.b is not None else None,
            part_of=alone.part_of,
            note=None if tied is None else f"tied to {display_name(tied, 120)}, which both have",
        )
    one, other = first[pair.a], second[pair.b]
    changed = (one.dtype, one.shape) != (other.dtype, other.shape)
    state = "changed" if changed else "same"
    return TensorDifference(
        "renamed" if pair.by in SUGGESTED else state,
        one.name,
        facts(one),
        facts(other),
        name_b=None if other.name == one.name else other.name,
        by=pair.by,
        part_of=one.part_of,
    )


def _alone(
    first: Tensors, second: Tensors, pair: Pair, here: set[str], there: set[str]
) -> tuple[LogicalTensor, State, set[str]]:
    if pair.a is not None:
        return first[pair.a], "missing", here
    if pair.b is None:
        raise ValueError("a pair of nothing")
    return second[pair.b], "extra", there


def of_adapter(
    adapter: Tensors, base: Tensors, fits: Iterable[Fit], *, swapped: bool
) -> list[TensorDifference]:
    """Return what an adapter comes to beside its base. `swapped`: the base is A and the adapter B."""
    found = []
    for fit in fits:
        tensor, other = adapter[fit.tensor], None if fit.base is None else base[fit.base]
        one, two = facts(tensor), None if other is None else facts(other)
        name, name_b = tensor.name, None if other is None else other.name
        state = fit.state
        if swapped:
            one, two = two, one  # type: ignore[assignment]  # one of them is there
            name, name_b = (name, None) if name_b is None else (name_b, name)
            state = "extra" if state == "missing" else state
        found.append(TensorDifference(state, name, one, two, name_b=name_b, by="adapter", note=fit.note))
    return found


def with_targets(items: Sequence[TensorDifference], targets: Mapping[int, Target]) -> list[TensorDifference]:
    """Return what tensors come to, with what adapters do to those that they change."""
    found = list(items)
    for number, target in targets.items():
        merge = Merge(
            tuple(update.rank for update in target.updates),
            tuple(update.scale for update in target.updates),
            whole=target.instead is not None,
        )
        found[number] = replace(found[number], merge=merge)
    return found


def strayed(strays: Iterable[Stray]) -> list[TensorDifference]:
    """Return the tensors of adapters that are for nothing."""
    return [
        TensorDifference(
            "missing", stray.tensor.name, facts(stray.tensor), None, by="adapter", note=stray.note
        )
        for stray in strays
    ]


def facts(tensor: LogicalTensor) -> TensorFacts:
    """Return what is told of a tensor."""
    return _facts(tensor.dtype, tensor.shape, tensor.component)


@lru_cache(1024)
def _facts(dtype: str, shape: tuple[int, ...], component: Component) -> TensorFacts:
    return TensorFacts(dtype, shape, array_bytes(dtype, shape), component)


def counts(items: Iterable[TensorDifference], untouched: int = 0, targets: int = 0) -> DiffCounts:
    """Return how many there are in each state."""
    found = Counter[State](item.state for item in items)
    return DiffCounts(
        same=found["same"],
        changed=found["changed"],
        missing=found["missing"],
        extra=found["extra"],
        renamed=found["renamed"],
        untouched=untouched,
        targets=targets,
    )
