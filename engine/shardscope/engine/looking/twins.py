"""Copies and near copies of tensors, put together as layers and experts that are copies of each other.

Two names that differ in numbers alone belong to two units: what stands before the first number that differs, with that number. `layers.24`
and `layers.8` are units, and so are `layers.3.experts.5` and `layers.3.experts.2`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from shardscope.engine.looking.folding import Said, Seen, folded, partition
from shardscope.engine.looking.nearness import Near
from shardscope.engine.model.blocker import Finding, Param
from shardscope.engine.model.modules import SEPARATOR, WILD, pattern_of, ranges_of

EXPERTS = "expert"
Head = tuple[str, ...]
"""The parts of a name before the number of a unit."""


class Twin(NamedTuple):
    """A tensor that is a copy of an earlier one, or nearly one."""

    tensor: str
    other: str
    place: int
    near: Near | None
    """Null where all bytes are the same."""
    matrix: bool = True
    """It has two dimensions at least."""


class Unit(NamedTuple):
    """A layer, or an expert."""

    head: Head
    number: int


class Pair(Struct, frozen=True):
    """Units of one head that are copies of others."""

    head: Head
    numbers: tuple[int, ...]
    others: tuple[int, ...]
    count: int
    """Tensors of each that are copies."""
    total: int
    """Tensors of each, without those of one number alone."""
    twins: tuple[Twin, ...]

    @property
    def near(self) -> bool:
        """Whether a tensor of it is no exact copy."""
        return any(each.near is not None for each in self.twins)

    @property
    def place(self) -> int:
        """Of the first tensor."""
        return min(each.place for each in self.twins)


def said_of(twins: Iterable[Twin], names: Collection[str]) -> Iterator[Said]:
    """Yield findings about copies. `names` are those of all tensors that have more than one number."""
    alone: list[Seen] = []
    units: dict[tuple[Unit, Unit], list[Twin]] = {}
    for twin in twins:
        if twin.tensor == twin.other:
            continue  # parts that ranks hold under one name
        pair = _units(twin.tensor, twin.other)
        if pair is None:
            alone.append(Seen("scan.duplicate", twin.tensor, twin.place, others={"other": twin.other}))
        else:
            units.setdefault(pair, []).append(twin)
    yield from folded(alone)
    counted, siblings = _counted(units, names)
    pairs = [
        Pair(one.head, (one.number,), (other.number,), len(some), counted[one], tuple(some))
        for (one, other), some in units.items()
        if any(each.matrix for each in some)  # norms of layers side by side are often alike
    ]
    for found in _over_heads(_over_numbers(pairs)):
        yield _said(found, siblings)


def _units(name: str, other: str) -> tuple[Unit, Unit] | None:
    """Return the units of two names; null where they are no pair that differs in numbers alone."""
    one, two = pattern_of(name), pattern_of(other)
    if one.parts != two.parts or one.numbers == two.numbers:
        return None
    parts, others = name.split(SEPARATOR), other.split(SEPARATOR)
    pairs = zip(one.parts, parts, others, strict=True)
    at = next(at for at, (part, here, there) in enumerate(pairs) if part == WILD and here != there)
    head = tuple(parts[:at])
    return Unit(head, int(parts[at])), Unit(head, int(others[at]))


def _counted(
    units: Iterable[tuple[Unit, Unit]], names: Iterable[str]
) -> tuple[dict[Unit, int], dict[Head, int]]:
    """Return how many tensors each unit has, and how many units of one head there are."""
    heads = {unit.head for pair in units for unit in pair}
    lengths = sorted({len(head) for head in heads})
    counted: dict[Unit, int] = defaultdict(int)
    siblings: dict[Head, set[int]] = defaultdict(set)
    for name in names:
        pattern = pattern_of(name).parts
        parts = name.split(SEPARATOR)
        for length in lengths:
            if length < len(parts) and pattern[length] == WILD and (head := tuple(parts[:length])) in heads:
                unit = Unit(head, int(parts[length]))
                counted[unit] += 1
                siblings[head].add(unit.number)
    return counted, {head: len(some) for head, some in siblings.items()}


def _over_numbers(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Yield pairs of one head as one: those that are copies of one unit, then those that are a step apart from theirs."""
    by_other: dict[tuple[object, ...], list[Pair]] = {}
    for pair in pairs:
        by_other.setdefault((pair.head, pair.others, pair.count, pair.total, pair.near), []).append(pair)
    by_step: dict[tuple[object, ...], list[Pair]] = {}
    for some in by_other.values():
        if len(some) > 1:
            yield _merged(some, some[0].head)
        else:
            (pair,) = some
            step = pair.numbers[0] - pair.others[0]
            by_step.setdefault((pair.head, step, pair.count, pair.total, pair.near), []).append(pair)
    for some in by_step.values():
        yield _merged(some, some[0].head)


def _over_heads(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Yield pairs that are alike in every layer as one."""
    found: dict[tuple[object, ...], dict[tuple[int, ...], Pair]] = {}
    for pair in pairs:
        head = pattern_of(SEPARATOR.join(pair.head))
        key = (head.parts, pair.numbers, pair.others, pair.count, pair.total, pair.near)
        found.setdefault(key, {})[head.numbers] = pair
    for by_numbers in found.values():
        for part in partition(by_numbers):
            some = [by_numbers[numbers] for numbers in part]
            heads = zip(*(pair.head for pair in some), strict=True)
            yield _merged(some, tuple(_place(column) for column in heads))


def _place(column: Sequence[str]) -> str:
    """Return one part of a name for those of several."""
    if len(set(column)) == 1:
        return column[0]
    text = ranges_of(map(int, column))
    return text if text.isdigit() else f"{{{text}}}"


def _merged(pairs: Sequence[Pair], head: Head) -> Pair:
    numbers = sorted({number for pair in pairs for number in pair.numbers})
    others = sorted({number for pair in pairs for number in pair.others})
    twins = tuple(twin for pair in pairs for twin in pair.twins)
    return Pair(head, tuple(numbers), tuple(others), pairs[0].count, pairs[0].total, twins)


def _said(pair: Pair, siblings: dict[Head, int]) -> Said:
    first = min(pair.twins, key=lambda each: each.place)
    here, there = (_name(pair.head, numbers) for numbers in (pair.numbers, pair.others))
    about: dict[str, Param] = {"tensor": here, "other": there, "count": pair.count, "total": pair.total}
    every = {*pair.numbers, *pair.others}
    near = [each.near for each in pair.twins if each.near is not None]
    if near:
        figures: dict[str, Param] = {
            "cosine": f"{min(each.cosine for each in near):.6f}",
            "apart": f"{max(each.apart for each in near):.2g}",
            "largest": f"{max(each.largest for each in near):.2g}",
        }
        return Said(first.place, Finding("scan.near_duplicate", {**about, **figures}), first.tensor)
    if EXPERTS in "".join(pair.head[-1:]) and pair.count == pair.total and len(pair.others) == 1:
        unit = _units(first.tensor, first.other)
        if unit is not None and siblings[unit[0].head] == len(every):
            experts: dict[str, Param] = {"tensor": SEPARATOR.join(pair.head), "count": len(every)}
            return Said(first.place, Finding("scan.equal_experts", experts), first.tensor)
    return Said(first.place, Finding("scan.duplicate_layer", about), first.tensor)


def _name(head: Head, numbers: Sequence[int]) -> str:
    text = ranges_of(numbers)
    return SEPARATOR.join((*head, text if text.isdigit() else f"{{{text}}}"))
