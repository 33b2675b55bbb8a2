"""Adapters that were said to be merged into a checkpoint: what they should have changed there, beside what is different."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from shardscope.engine.comparing.compared import Compared, is_same, summary
from shardscope.engine.diffing.adapter import FORMAT
from shardscope.engine.diffing.structure import counts, strayed, with_targets
from shardscope.engine.diffing.updates import Adapter, Target, check_plain, updates
from shardscope.engine.inspecting.sides import Side, adapter_facts, has_own_head
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.format_names import FORMAT_TITLES
from shardscope.engine.model.limits import Limits


def with_adapters(compared: Compared, sides: Sequence[Side], limits: Limits) -> Compared:
    """Return two checkpoints with what adapters do to the first one, which the second one is held against.

    Raises `Fault`: `diff.adapter_none`, `diff.opaque`, and those of `check_plain`.
    """
    adapters = [_adapter(side, limits) for side in sides]
    for adapter in adapters:
        check_plain(adapter)
    numbers = [number for number, (one, _) in enumerate(compared.tensors) if one is not None]
    base = [one for one, _ in compared.tensors if one is not None]
    found = updates(base, adapters, tied=not has_own_head(compared.first, limits))
    targets = {numbers[place]: target for place, target in found.targets.items()}
    cast = {number: Target() for number in _cast(compared) if number not in targets}
    strays = strayed(found.strays)
    items = (*with_targets(compared.document.tensors, targets | cast), *strays)
    document = replace(
        compared.document,
        same=is_same(items),
        kind="merge",
        counts=counts(items, len(base) - len(targets), len(targets)),
        decisions=(*compared.document.decisions, *_decisions(adapters)),
        tensors=items,
        adapters=tuple(summary(side, adapter.tensors) for side, adapter in zip(sides, adapters, strict=True)),
    )
    return replace(
        compared,
        tensors=(*compared.tensors, *((stray.tensor, None) for stray in found.strays)),
        document=document,
        adapters=tuple(sides),
        targets=targets | cast,
    )


def _cast(compared: Compared) -> Iterator[int]:
    """Yield the differences whose tensors have another type in B, and nothing else: merges are saved in the type that they were made in."""
    for number, (one, other) in enumerate(compared.tensors):
        if one is not None and other is not None and one.shape == other.shape and one.dtype != other.dtype:
            yield number


def _adapter(side: Side, limits: Limits) -> Adapter:
    facts = adapter_facts(side, limits)
    name = side.found.descriptor.classification.format
    if name != FORMAT or facts is None:
        raise Fault("diff.adapter_none", found=FORMAT_TITLES.get(name, name))
    tensors: tuple[LogicalTensor, ...] = side.catalogue.of("model")
    if not tensors:
        raise Fault("diff.opaque", side="the adapter", files=side.found.descriptor.tensors.files_opaque)
    return Adapter(tensors, facts)


def _decisions(adapters: Sequence[Adapter]) -> list[str]:
    return [
        f"the factors were made out of the base's weights ({adapter.facts.initialised}): A has to be what that left of them"
        for adapter in adapters
        if adapter.facts.initialised is not None
    ]
