"""Differences folded for a person: modules that are missing as a whole, and layers and experts that differ alike, in one row."""

from collections import Counter
from collections.abc import Collection, Hashable, Sequence

from shardscope.engine.model.difference import DIFFERENT, Fold, State, TensorDifference
from shardscope.engine.model.modules import SEPARATOR, folded_name, is_complete, pattern_of


def folded(tensors: Sequence[TensorDifference], states: Collection[State] = DIFFERENT) -> tuple[Fold, ...]:
    """Return the tensors in `states` in rows, by their first appearance. `tensors` are all of both sides, the same ones too."""
    lone = {"missing", "extra"}.intersection(states)
    modules = _Modules(tensors) if any(item.state in lone for item in tensors) else None
    rows: dict[Hashable, _Row] = {}
    for number, item in enumerate(tensors):
        if item.state not in states:
            continue
        whole = modules.highest(item) if modules is not None else None
        pattern = pattern_of(item.name if whole is None else whole)
        key = (item.state, pattern.parts, whole is not None, None if whole is not None else _alike(item))
        row = rows.get(key)
        if row is None:
            row = rows[key] = _Row(item.state, pattern.parts, module=whole is not None)
        row.numbers[pattern.numbers] = None
        row.members.append(number)
    return tuple(row.fold() for row in rows.values())


class _Row:
    """A row, while it is collected."""

    def __init__(self, state: State, parts: tuple[str, ...], *, module: bool) -> None:
        self.state: State = state
        self.parts = parts
        self.module = module
        self.numbers: dict[tuple[int, ...], None] = {}
        self.members: list[int] = []

    def fold(self) -> Fold:
        numbers = tuple(self.numbers)
        return Fold(
            self.state,
            folded_name(self.parts, numbers),
            tuple(self.members),
            self.module,
            is_complete(numbers),
        )


class _Modules:
    """How many tensors each module has, and how many of them in which state."""

    def __init__(self, tensors: Sequence[TensorDifference]) -> None:
        self._all: Counter[str] = Counter()
        self._lone: Counter[tuple[str, State]] = Counter()
        for item in tensors:
            for module in _above(item.name):
                self._all[module] += 1
                if item.state in ("missing", "extra"):
                    self._lone[module, item.state] += 1
            if item.name_b is not None:
                self._all.update(_above(item.name_b))

    def highest(self, item: TensorDifference) -> str | None:
        """Return the highest module of which everything is missing, or extra, as a tensor is; null where there is none."""
        if item.state not in ("missing", "extra"):
            return None
        return next(
            (
                module
                for module in _above(item.name)
                if self._lone[module, item.state] == self._all[module] > 1
            ),
            None,
        )


def _above(name: str) -> list[str]:
    """Return the modules of a tensor, the highest first. Beyond a depth that no model has, none."""
    found: list[str] = []
    at = name.find(SEPARATOR)
    while at != -1 and len(found) < 16:
        found.append(name[:at])
        at = name.find(SEPARATOR, at + 1)
    return found


def _alike(item: TensorDifference) -> Hashable:
    other = None if item.name_b is None else pattern_of(item.name_b).parts
    return (
        item.a,
        item.b,
        item.by,
        other,
        item.part_of,
        item.note,
        None if item.values is None else item.values.verdict,
        None if item.merge is None else (item.merge.ranks, item.merge.scales, item.merge.verdict),
    )
