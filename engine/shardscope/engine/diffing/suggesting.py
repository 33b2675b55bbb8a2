"""Tensors that have no partner of their name, put together by what they are: a guess, and labelled as one.

First by the ends of names, from the longest on, where exactly one tensor on each side has the end and the shape: a prefix was put
on or taken off, or a module got another parent. Then by shape, type and position: the n-th of its kind beside the n-th.
Numbers in names, those of layers and experts, have to agree wherever both names have as many.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, TypeAlias

from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.difference import By
from shardscope.engine.model.modules import SEPARATOR, pattern_of

DEEPEST: Final = 12
"""Parts of the longest end of a name that is looked at."""
_Found: TypeAlias = Iterator[tuple[int, int, By]]


def suggested(
    first: Sequence[LogicalTensor], second: Sequence[LogicalTensor], left: Sequence[int], over: Sequence[int]
) -> _Found:
    """Yield tensors of `left` beside tensors of `over`, each at most once."""
    if not left or not over:
        return
    ones, others = _Rest(first, left), _Rest(second, over)
    for depth in range(DEEPEST, 0, -1):
        yield from _alone(ones, others, depth)
    yield from _in_order(ones, others, numbered=True)
    yield from _in_order(ones, others, numbered=False)


class _Rest:
    """The tensors of one side that have no partner yet."""

    def __init__(self, tensors: Sequence[LogicalTensor], numbers: Sequence[int]) -> None:
        self.tensors = tensors
        self.left = dict.fromkeys(numbers)
        self.digits = {number: pattern_of(tensors[number].name).numbers for number in numbers}

    def by_end(self, depth: int) -> dict[Hashable, list[int]]:
        """Return the tensors by the last parts of their names and their shapes."""
        found: defaultdict[Hashable, list[int]] = defaultdict(list)
        for number in self.left:
            tensor = self.tensors[number]
            end = _end(tensor.name, depth)
            if end is not None:
                found[end, tensor.shape, tensor.part_of].append(number)
        return found

    def by_kind(self, *, numbered: bool) -> dict[Hashable, list[int]]:
        """Return the tensors by shape and type, and by the numbers in their names."""
        found: defaultdict[Hashable, list[int]] = defaultdict(list)
        for number in self.left:
            tensor = self.tensors[number]
            digits = self.digits[number] if numbered else ()
            found[tensor.shape, tensor.dtype, tensor.part_of, digits].append(number)
        return found


def _end(name: str, depth: int) -> str | None:
    """Return the last parts of a name; null where it has fewer."""
    at = len(name) + 1
    for _ in range(depth):
        if at <= 0:
            return None
        at = name.rfind(SEPARATOR, 0, at - 1) + 1
    return name[at:]


def _alone(ones: _Rest, others: _Rest, depth: int) -> _Found:
    ends = others.by_end(depth)
    for key, here in ones.by_end(depth).items():
        there = ends.get(key, ())
        if len(here) == len(there) == 1 and _alike(ones.digits[here[0]], others.digits[there[0]]):
            yield _taken(ones, others, here[0], there[0], "ending")


def _in_order(ones: _Rest, others: _Rest, *, numbered: bool) -> _Found:
    kinds = others.by_kind(numbered=numbered)
    for key, here in ones.by_kind(numbered=numbered).items():
        there = kinds.get(key, ())
        if len(here) != len(there):
            continue
        pairs = list(zip(here, there, strict=True))
        if all(_alike(ones.digits[one], others.digits[other]) for one, other in pairs):
            for one, other in pairs:
                yield _taken(ones, others, one, other, "position")


def _alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return one == other or len(one) != len(other)


def _taken(ones: _Rest, others: _Rest, one: int, other: int, by: By) -> tuple[int, int, By]:
    del ones.left[one], others.left[other]
    return one, other, by
