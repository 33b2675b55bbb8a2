"""Some rows of differences alone: of one state, and of names that have a text in them."""

from collections.abc import Sequence

from msgspec.structs import replace

from shardscope.engine.model.difference import LETTERS, Fold, State, TensorDifference
from shardscope.engine.model.modules import folded_name, is_complete, pattern_of
from shardscope.widgets.figures import plural
from shardscope.widgets.safe import Part, Tone


class DiffFilter:
    """What is listed of differences."""

    def __init__(self) -> None:
        self.state: State | None = None
        """The one state that is listed; None for all."""
        self.text = ""
        """In lower case; empty for all."""

    @property
    def on(self) -> bool:
        """Whether anything is left out."""
        return self.state is not None or bool(self.text)

    def clear(self) -> None:
        """List all again."""
        self.state, self.text = None, ""

    def step(self, folds: Sequence[Fold], by: int) -> None:
        """Go to the next state of those that there are, and to all of them after the last one."""
        there = {fold.state for fold in folds}
        cycle: list[State | None] = [None, *(state for state in LETTERS if state in there)]
        at = cycle.index(self.state) if self.state in cycle else 0
        self.state = cycle[(at + by) % len(cycle)]

    def listed(self, folds: Sequence[Fold], tensors: Sequence[TensorDifference]) -> tuple[Fold, ...]:
        """Return what is listed of some rows: a row of which a part has the text is that part."""
        of_state = [fold for fold in folds if self.state in (None, fold.state)]
        if not self.text:
            return tuple(of_state)
        found = (self._part(fold, tensors) for fold in of_state)
        return tuple(fold for fold in found if fold is not None)

    def _part(self, fold: Fold, tensors: Sequence[TensorDifference]) -> Fold | None:
        if self.text in fold.name.lower():
            return fold
        members = tuple(number for number in fold.members if self._has(tensors[number]))
        if not members or len(members) == len(fold.members):
            return fold if members else None
        patterns = [pattern_of(tensors[number].name) for number in members]
        numbers = tuple(dict.fromkeys(pattern.numbers for pattern in patterns))
        name = folded_name(patterns[0].parts, numbers)
        if fold.module:  # a part of a module is no module: its tensors have names of several patterns
            name = fold.name
        return replace(fold, name=name, members=members, complete=is_complete(numbers))

    def _has(self, item: TensorDifference) -> bool:
        return self.text in item.name.lower() or (
            item.name_b is not None and self.text in item.name_b.lower()
        )

    def words(self, rows: int, all_rows: int) -> tuple[Part, ...]:
        """Return what is listed, for a person."""
        parts: list[Part] = [f"{rows:,} of {plural(all_rows, 'row')}"]
        if self.state is not None:
            parts.append((f"   {LETTERS[self.state]} {self.state} alone", Tone.HERE))
        if self.text:
            parts.append((f"   with {self.text}", Tone.HERE))
        return (*parts, ("   esc: all", Tone.MUTED))
