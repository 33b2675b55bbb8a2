"""Modules that repeat under numbers: which layers are alike, which one is not, which number is missing, and experts below them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.anatomy.items import Item, place_of
from shardscope.engine.model.anatomy import Family, Kind, Shape, Sizes
from shardscope.engine.model.blocker import Finding, Param
from shardscope.engine.model.modules import SEPARATOR, WILD, ranges_of

STACK: Final = 4
"""Tensors that a layer has at least: with fewer, numbers may count steps of a sequence, of which some hold nothing."""

_CONVOLUTIONS: Final = "conv_layers"
"""Last part of the prefix of layers whose sizes differ by design."""
_KEYS_AND_VALUES: Final = ("self_attn.k_", "self_attn.v_")
_NOT_IN_THE_FIRST: Final = frozenset({"attn_norm.weight", "mlp.gate.router_states_scale"})
"""What the first layer of ModernBERT and of Zaya has not."""

_Signature = frozenset[tuple[str, str, Shape]]


class Stack(Struct, frozen=True):
    """The layers under one prefix, by number; of each its tensors by the rest of their names, numbers taken out."""

    prefix: str
    layers: dict[int, dict[str, tuple[str, Shape]]]
    experts: dict[str, dict[int, set[int]]]
    """By the path of experts below a layer: for each layer the numbers that are there."""

    def below(self, *parts: str) -> str:
        """Return a name below the prefix, which may be empty."""
        return SEPARATOR.join((self.prefix, *parts) if self.prefix else parts)

    @property
    def name(self) -> str:
        """The prefix and the numbers: `model.layers.{0-31}`."""
        return self.below(f"{{{ranges_of(self.layers)}}}")


def stacks(items: Iterable[Item]) -> list[Stack]:
    """Return the stacks of layers, by their first appearance."""
    found: dict[str, Stack] = {}
    for item in items:
        place = place_of(item.name)
        if place is None:
            continue
        stack = found.get(place.prefix)
        if stack is None:
            stack = found[place.prefix] = Stack(place.prefix, {}, {})
        layer, rest = place.layer, place.rest
        tensors = stack.layers.get(layer)
        if tensors is None:
            tensors = stack.layers[layer] = {}
        tensors[rest.folded] = (item.dtype, item.shape)
        if rest.path is not None and rest.number is not None:
            by_layer = stack.experts.setdefault(rest.path, {})
            numbers = by_layer.get(layer)
            if numbers is None:
                numbers = by_layer[layer] = set()
            numbers.add(rest.number)
    return [stack for stack in found.values() if len(stack.layers) > 1]


def families(found: Iterable[Stack]) -> Iterator[Family]:
    """Yield what repeats: each stack with its kinds of layers, and its experts."""
    for stack in found:
        kinds = _kinds(stack)
        full = any(len(tensors) >= STACK for tensors in stack.layers.values())
        yield Family(stack.name, len(stack.layers), _gaps(stack.layers) if full else "", tuple(kinds))
        for path, by_layer in stack.experts.items():
            every = sorted(set().union(*by_layer.values()))
            name = stack.below(WILD, path, f"{{{ranges_of(every)}}}")
            sizes = Counter(len(numbers) for numbers in by_layer.values())
            rows = [
                Kind(
                    ranges_of(layer for layer, numbers in by_layer.items() if len(numbers) == size),
                    count,
                    *_of_expert(stack, path),
                )
                for size, count in sizes.most_common()
            ]
            yield Family(name, len(every), _gaps(every), tuple(rows), experts=True)


def _of_expert(stack: Stack, path: str) -> tuple[int, int]:
    """Return tensors and elements of one expert, by the first layer that has any."""
    start = f"{path}{SEPARATOR}{WILD}{SEPARATOR}"
    for tensors in stack.layers.values():
        shapes = [shape for rest, (_, shape) in tensors.items() if rest.startswith(start)]
        if shapes:
            return len(shapes), sum(prod(shape) for shape in shapes)
    return 0, 0


def _kinds(stack: Stack) -> list[Kind]:
    by_signature = _by_signature(stack)
    found = sorted(by_signature.items(), key=lambda each: (-len(each[1]), each[1]))
    return [
        Kind(
            ranges_of(layers),
            len(layers),
            len(signature),
            sum(prod(shape) * _times(stack, layers[0], rest) for rest, _, shape in signature),
        )
        for signature, layers in found
    ]


def _times(stack: Stack, layer: int, rest: str) -> int:
    """Return how often a name with its numbers taken out stands in a layer: once for each expert."""
    path, _, _ = rest.partition(f"{SEPARATOR}{WILD}{SEPARATOR}")
    return len(stack.experts.get(path, {}).get(layer, ())) or 1


def _by_signature(stack: Stack) -> dict[_Signature, list[int]]:
    found: dict[_Signature, list[int]] = {}
    for layer in sorted(stack.layers):
        tensors = stack.layers[layer]
        key = frozenset((rest, dtype, shape) for rest, (dtype, shape) in tensors.items())
        found.setdefault(key, []).append(layer)
    return found


def _gaps(numbers: Iterable[int]) -> str:
    present = sorted(set(numbers))
    missing = _between(present)
    return ranges_of(missing) if missing else ""


def _between(present: Sequence[int], most: int = 10_000) -> list[int]:
    """Return numbers from 0 that are not there, below the last: the first of them, where they are very many."""
    missing: list[int] = []
    expected = 0
    for number in present:
        while expected < number and len(missing) < most:
            missing.append(expected)
            expected += 1
        expected = number + 1
    return missing


def check_stack(stack: Stack, sizes: Sizes | None = None) -> Iterator[Finding]:
    """Yield what is wrong within a stack: a number that is missing, a layer that lacks tensors of its like or differs in one of them.

    `sizes` are those that are declared for its layers: the last ones may take keys and values from earlier ones, and one may be of other sizes.
    """
    shared = sizes.shared_layers if sizes is not None else 0
    apart = stack.prefix.endswith(_CONVOLUTIONS) or (
        sizes is not None and any(other.full + other.windowed == 1 for other in sizes.others)
    )
    by_signature = sorted(_by_signature(stack).items(), key=lambda each: (-len(each[1]), each[1]))
    usual, members = by_signature[0]
    if len(usual) < STACK:
        return
    missing = _between(sorted(stack.layers))
    if missing and missing != list(range(min(stack.layers))):
        words = f"{'layer' if len(missing) == 1 else 'layers'} {ranges_of(missing)}"
        yield Finding("model.layer_gap", {"family": stack.name, "missing": words})
    for signature, layers in by_signature[1:]:
        like = next(
            (each for each in by_signature if signature < each[0] and len(each[1]) > len(layers)), None
        )
        if like is not None:
            lost = sorted(rest for rest, _, _ in like[0] - signature)
            if _by_design(stack, layers, lost, shared):
                continue
            params: dict[str, Param] = {
                "layer": ranges_of(layers),
                "family": stack.name,
                "count": len(lost),
                "others": len(like[1]),
                "tensor": lost[0],
            }
            yield Finding("model.layer_lacks", params)
        elif len(layers) == 1 and len(members) > 2 and not apart:
            yield from _odd(stack, layers[0], signature, usual, len(members))
    yield from _experts(stack)


def _by_design(stack: Stack, layers: Sequence[int], lost: Sequence[str], shared: int) -> bool:
    """Tell whether layers lack what they have no use for: the first one a norm, the last ones keys and values that they share."""
    first, sharing = min(stack.layers), max(stack.layers) + 1 - shared
    return all(
        (shared and rest.startswith(_KEYS_AND_VALUES) and min(layers) >= sharing)
        or (rest in _NOT_IN_THE_FIRST and list(layers) == [first])
        for rest in lost
    )


def _odd(
    stack: Stack, layer: int, signature: _Signature, usual: _Signature, others: int
) -> Iterator[Finding]:
    """Yield the first tensor in which the one layer of its kind differs, where it has the same tensors as the others."""
    names, theirs = {rest: rest for rest, _, _ in signature}, {rest for rest, _, _ in usual}
    if set(names) != theirs:
        return  # another architecture: a dense layer before those of experts
    rest, dtype, shape = min(signature - usual)
    other = next(each for each in usual if each[0] == rest)
    yield Finding(
        "model.layer_odd",
        {
            "layer": str(layer),
            "family": stack.name,
            "tensor": rest,
            "found": described(dtype, shape),
            "others": others,
            "usual": described(other[1], other[2]),
        },
    )


def _experts(stack: Stack) -> Iterator[Finding]:
    for path, by_layer in stack.experts.items():
        sizes = Counter(len(numbers) for numbers in by_layer.values())
        every = set().union(*by_layer.values())
        name = stack.below(WILD, path)
        usual = max(len(every), max(every) + 1)
        short = {layer: numbers for layer, numbers in by_layer.items() if len(numbers) < usual}
        if short and (len(sizes) > 1 or usual > len(every)):
            layer = min(short)
            params: dict[str, Param] = {
                "family": name,
                "found": len(short[layer]),
                "layer": str(layer),
                "usual": usual,
            }
            yield Finding("model.experts_missing", params)


def described(dtype: str, shape: Shape) -> str:
    """Return a type and a shape in words."""
    return f"{dtype} [{', '.join(map(str, shape))}]"
