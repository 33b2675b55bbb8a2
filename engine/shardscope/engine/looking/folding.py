"""Findings about many tensors as few: what tensors that differ in numbers alone have in common is said once, of all of them."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from shardscope.engine.model.blocker import Finding, Param
from shardscope.engine.model.modules import Pattern, folded_name, is_complete, pattern_of

Numbers = tuple[int, ...]


class Seen(Struct, frozen=True):
    """What was found about one tensor. Those of one code and one `kind` whose names differ in numbers alone are one finding."""

    code: str
    tensor: str
    place: int
    """By which findings are put in order."""
    counts: dict[str, int] = {}
    """Parameters that are added up."""
    most: dict[str, float] = {}
    """Parameters of which the largest is said."""
    kind: dict[str, Param] = {}
    """Other parameters, which have to be the same."""
    least: dict[str, int] = {}
    """Parameters of which the smallest is said."""
    first: dict[str, Param] = {}
    """Parameters that are said of the first tensor alone."""
    many: str | None = None
    """The code where it is of several: their number and `least` are all that is said of them."""
    others: dict[str, str] = {}
    """Parameters that are names of other tensors: they are folded like that of the tensor."""


class Said(Struct, frozen=True):
    """A finding in its place."""

    place: int
    finding: Finding
    tensor: str
    """The first that it is about."""


def partition(numbers: Iterable[Numbers]) -> Iterator[list[Numbers]]:
    """Yield numbers of names in parts of which each has every combination of the numbers at each place."""
    found = sorted(set(numbers))
    if not found:
        return
    if not found[0] or is_complete(found):
        yield found
        return
    by_first: dict[int, list[Numbers]] = {}
    for first, *rest in found:
        by_first.setdefault(first, []).append(tuple(rest))
    alike: dict[tuple[Numbers, ...], list[int]] = {}
    for number, rests in by_first.items():
        alike.setdefault(tuple(rests), []).append(number)
    for some, firsts in alike.items():
        for part in partition(some):
            yield [(first, *rest) for first in firsts for rest in part]


def folded(seen: Iterable[Seen]) -> Iterator[Said]:
    """Yield findings, those that belong together as one."""
    groups: dict[tuple[object, ...], list[tuple[Numbers, Seen]]] = {}
    for each in seen:
        pattern = pattern_of(each.tensor)
        others = tuple(_beside(pattern, *other) for other in each.others.items())
        group = (each.code, pattern.parts, tuple(each.kind.items()), others)
        groups.setdefault(group, []).append((pattern.numbers, each))
    for members in groups.values():
        by_numbers: dict[Numbers, list[Seen]] = {}
        for numbers, each in members:
            by_numbers.setdefault(numbers, []).append(each)
        for part in partition(by_numbers):
            yield _one([each for numbers in part for each in by_numbers[numbers]])


def _beside(pattern: Pattern, key: str, name: str) -> tuple[object, ...]:
    """Return what tells whether another name goes with a name: its pattern, and how far its numbers are from those of the name."""
    other = pattern_of(name)
    apart = tuple(b - a for a, b in zip(pattern.numbers, other.numbers, strict=False))
    return key, other.parts, apart, other.numbers[len(pattern.numbers) :]


def alone(seen: Seen) -> Said:
    """Return the finding about one tensor."""
    return _one([seen])


def name_of(names: Sequence[str]) -> str:
    """Return one name for names of one pattern: `layers.{0-31}.mlp.weight`."""
    if len(set(names)) == 1:
        return names[0]
    patterns = [pattern_of(name) for name in names]
    return folded_name(patterns[0].parts, [each.numbers for each in patterns])


def _one(members: Sequence[Seen]) -> Said:
    """Return one finding of those that belong together."""
    first = min(members, key=lambda each: each.place)
    params: dict[str, Param] = {"tensor": name_of([each.tensor for each in members])}
    params |= {key: min(each.least[key] for each in members) for key in first.least}
    if first.many is not None and len(members) > 1:
        return Said(first.place, Finding(first.many, {**params, "count": len(members)}), first.tensor)
    params |= first.kind
    params |= {key: sum(each.counts[key] for each in members) for key in first.counts}
    params |= {key: f"{max(each.most[key] for each in members):.6g}" for key in first.most}
    params |= {key: name_of([each.others[key] for each in members]) for key in first.others}
    params |= first.first
    return Said(first.place, Finding(first.code, params), first.tensor)
