"""What a configuration declares, held against the shapes of the weights: facts with two columns, and contradictions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

from msgspec import Struct

from shardscope.engine.anatomy.items import Item, place_of
from shardscope.engine.anatomy.layers import Stack
from shardscope.engine.anatomy.rules import LAYER, SEEN, STACKS, TOP, Dims, Seen, named, value_of
from shardscope.engine.model.anatomy import Fact, Shape, Sizes
from shardscope.engine.model.blocker import Finding, Param
from shardscope.engine.model.modules import SEPARATOR

_FACTS: Final = (
    "layers",
    "hidden size",
    "attention heads",
    "key and value heads",
    "head size",
    "feed-forward size",
    "experts",
    "experts per token",
    "expert size",
    "vocabulary",
    "context",
)


class Weight(Struct, frozen=True, gc=False):
    """A weight whose name a rule knows."""

    name: str
    rest: str
    """As in the rules."""
    shape: Shape


def weights(
    items: Iterable[Item], unpacked: Mapping[str, tuple[str, Shape]], without: Set[str]
) -> list[Weight]:
    """Return the weights that rules know, in order: of the model's own stack, and not tied.

    `unpacked` gives names and shapes of the weights in packed tensors; `without` are names that stand for nothing alone.
    """
    found = []
    for item in items:
        name, shape = unpacked.get(item.name, (item.name, item.shape))
        if item.alias_of is not None or (item.name in without and item.name not in unpacked):
            continue
        rest = _rest(name)
        if rest is not None:
            found.append(Weight(name, rest, shape))
    return found


def _rest(name: str) -> str | None:
    place = place_of(name)
    if place is None:
        parts = name.split(SEPARATOR)
        last = SEPARATOR.join(parts[-2:])
        return last if last in TOP and not _elsewhere(parts[:-2]) else None
    rest = place.rest.folded
    return rest if rest in LAYER and place.prefix in STACKS else None


def _elsewhere(parts: Sequence[str]) -> bool:
    """Tell whether a name without a number is of another tower than the language model."""
    return any(
        word in part
        for part in parts
        for word in ("vision", "visual", "audio", "encoder", "projector", "qformer")
    )


def facts(sizes: Sizes | None, found: Sequence[Weight], stack: Stack | None) -> tuple[Fact, ...]:
    """Return what is declared and what is seen, size by size; sizes that are neither are left out."""
    declared = _declared(sizes)
    seen = _seen(sizes, found, stack)
    rows = []
    for name in _FACTS:
        says, (shows, by) = declared.get(name), seen.get(name, (None, ""))
        if says is None and shows is None:
            continue
        agrees = None
        if says is not None and shows is not None:
            agrees = shows in (says, says + _beyond(name, sizes))
        rows.append(Fact(name, says, shows, agrees, by))
    return tuple(rows)


def _beyond(name: str, sizes: Sizes | None) -> int:
    """Return how much more than is declared may be there."""
    if sizes is None:
        return 0
    more = {
        "layers": sizes.extra_layers,
        "experts": sizes.further_experts,
        "vocabulary": sizes.further_words,
    }
    return more.get(name) or 0


def _declared(sizes: Sizes | None) -> dict[str, int | None]:
    if sizes is None:
        return {}
    return {
        "layers": sizes.layers,
        "hidden size": sizes.hidden,
        "attention heads": sizes.heads,
        "key and value heads": None if sizes.latent_rank else sizes.kv_heads,
        "head size": sizes.head,
        "feed-forward size": sizes.intermediate,
        "experts": sizes.experts,
        "experts per token": sizes.experts_per_token,
        "expert size": sizes.expert_intermediate if sizes.experts else None,
        "vocabulary": sizes.vocabulary,
        "context": sizes.context,
    }


def _seen(sizes: Sizes | None, found: Sequence[Weight], stack: Stack | None) -> dict[str, tuple[int, str]]:
    seen: dict[str, tuple[int, str]] = {}
    values = named(sizes) if sizes is not None else {}
    apart = sizes is not None and bool(sizes.others)
    first: dict[str, Weight] = {}
    for weight in found:
        known = first.setdefault(weight.rest, weight)
        if apart and known is not weight and _as_declared(weight, values) and not _as_declared(known, values):
            first[weight.rest] = (
                weight  # what is declared for all is to be seen in a layer that it is meant for
            )
    for place in SEEN:
        held = first.get(place.rest)
        size = None if held is None else _read(place, held.shape, values, sizes)
        if held is not None and size:
            seen.setdefault(place.fact, (size, held.name))
    if stack is not None:
        seen["layers"] = (len(stack.layers), stack.name)
        numbers = [len(each) for by_layer in stack.experts.values() for each in by_layer.values()]
        if numbers and "experts" not in seen:
            seen["experts"] = (max(numbers), stack.name)
    return seen


def _as_declared(weight: Weight, values: Mapping[str, int | None]) -> bool:
    return any(_fits(weight.shape, reading) for reading in _readings(weight.rest, (values,)))


def _read(place: Seen, shape: Shape, values: Mapping[str, int | None], sizes: Sizes | None) -> int | None:
    if place.dim >= len(shape):
        return None
    if (
        place.fact == "hidden size"
        and place.rest in TOP
        and sizes is not None
        and sizes.embedding is not None
    ):
        return None
    if place.dim < 0:
        return next((size for size in shape if size != values.get("hidden")), shape[0] if shape else None)
    size = shape[place.dim]
    if place.per is None:
        return size
    if sizes is None or sizes.latent_rank is not None or sizes.gated_queries:
        return None
    per = values.get(place.per)
    return size // per if per and size % per == 0 else None


def check_sizes(sizes: Sizes, found: Sequence[Weight], stack: Stack | None) -> Iterator[Finding]:
    """Yield where weights have other shapes than the configuration asks for, and other numbers of layers or experts."""
    values = (named(sizes), *(named(other.sizes) for other in sizes.others))
    by_rest: dict[str, list[Weight]] = {}
    for weight in found:
        by_rest.setdefault(weight.rest, []).append(weight)
    for rest, members in by_rest.items():
        yield from _check(rest, members, values)
    if stack is not None and sizes.layers is not None:
        allowed = {sizes.layers, sizes.layers + (sizes.extra_layers or 0)}
        if len(stack.layers) not in allowed and sizes.multimodal is None:
            params: dict[str, Param] = {
                "declared": sizes.layers,
                "found": len(stack.layers),
                "family": stack.name,
            }
            yield Finding("model.layers_declared", params)
    if stack is not None and sizes.experts is not None:
        yield from _check_experts(sizes.experts, sizes.further_experts, stack)


def _readings(rest: str, values: Iterable[Mapping[str, int | None]]) -> list[tuple[int | None, ...]]:
    """Return the shapes that a weight may have, each once."""
    every = (*TOP.get(rest, ()), *LAYER.get(rest, ()))
    return list(dict.fromkeys(_shape(dims, each) for each in values for dims in every))


def _check(
    rest: str, members: Sequence[Weight], values: Sequence[Mapping[str, int | None]]
) -> Iterator[Finding]:
    readings = _readings(rest, values)
    if any(all(size is None for size in reading) for reading in readings):
        return  # a reading that nothing is known of may be the right one
    wrong = [each for each in members if not any(_fits(each.shape, reading) for reading in readings)]
    if not wrong:
        return
    first = wrong[0]
    words = " or ".join(_words(reading) for reading in readings)
    params: dict[str, Param] = {
        "fact": rest,
        "declared": words,
        "tensor": first.name,
        "found": _words(first.shape),
    }
    if len(wrong) == len(members):
        yield Finding("model.contradiction", params)
    else:
        yield Finding("model.contradiction_some", {**params, "count": len(wrong), "total": len(members)})


def _shape(dims: Dims, values: Mapping[str, int | None]) -> tuple[int | None, ...]:
    return tuple(value_of(each, values) for each in dims)


def _fits(shape: Shape, reading: Sequence[int | None]) -> bool:
    return len(shape) == len(reading) and all(
        want is None or want == size for size, want in zip(shape, reading, strict=True)
    )


def _words(shape: Sequence[int | None]) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def _check_experts(declared: int, further: int, stack: Stack) -> Iterator[Finding]:
    for path, by_layer in stack.experts.items():
        usual = max(len(numbers) for numbers in by_layer.values())
        if usual not in (declared, declared + further):
            layer = next(number for number, held in by_layer.items() if len(held) == usual)
            yield Finding(
                "model.contradiction",
                {
                    "fact": "experts",
                    "declared": f"{declared:,}",
                    "tensor": stack.below(str(layer), path),
                    "found": f"{usual:,}",
                },
            )
