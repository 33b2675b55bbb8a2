"""Which tensors of two checkpoints belong together: by name, by names that are known to be theirs, and as a suggestion."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from shardscope.engine.diffing.suggesting import suggested
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.difference import By

Key: TypeAlias = tuple[str, int | None, int]
"""Name, the rank whose part it is, and which of several it is that share both."""


class Pair(NamedTuple):
    """A tensor of A beside one of B, by their numbers; one of them may be null."""

    a: int | None
    b: int | None
    by: By = "name"


def paired(
    first: Sequence[LogicalTensor],
    second: Sequence[LogicalTensor],
    renamed: Callable[[str], str] | None = None,
    by: By = "rules",
) -> list[Pair]:
    """Return every tensor of both sides once, in the order of A, then what only B has.

    `renamed` makes the name that a tensor of A should have in B. What is left over on both sides is put together by guess
    (`suggesting`).
    """
    places = dict(zip(_keys(second, None), range(len(second)), strict=True))
    found: list[Pair] = []
    taken: set[int] = set()
    for number, (key, tensor) in enumerate(zip(_keys(first, renamed), first, strict=True)):
        other = places.get(key)
        if other is None:
            found.append(Pair(number, None))
            continue
        taken.add(other)
        found.append(Pair(number, other, by if key[0] != tensor.name else "name"))
    left = [pair.a for pair in found if pair.a is not None and pair.b is None]
    over = [number for number in range(len(second)) if number not in taken]
    for one, other, how in suggested(first, second, left, over):
        found[one] = Pair(one, other, how)
        taken.add(other)
    return [*found, *(Pair(None, number) for number in over if number not in taken)]


def _keys(tensors: Sequence[LogicalTensor], renamed: Callable[[str], str] | None) -> Iterator[Key]:
    seen: Counter[tuple[str, int | None]] = Counter()
    for tensor in tensors:
        key = tensor.name if renamed is None else renamed(tensor.name), tensor.part_of
        yield (*key, seen[key])
        seen[key] += 1
