"""The table of what is different between two checkpoints: rows of tensors that differ alike, which open into the tensors."""

from collections.abc import Sequence
from typing import Final

from shardscope.engine.model.difference import LETTERS, Figures, Fold, State, TensorDifference
from shardscope.widgets import compare_words as words
from shardscope.widgets.glyphs import Glyphs, terminal_glyphs
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.virtual_table import Column, VirtualTable

COLUMNS: Final = (
    Column("", 1),
    Column("tensor", 35, grow=5, tail=0.75),
    Column("type and shape", 20, grow=2, tail=0.7),
    Column("values", 13, grow=2, tail=0),
)
EMPTY: Final = "Nothing is different"
TONES: Final[dict[State, Tone]] = {
    "same": Tone.MUTED,
    "changed": Tone.CAUTION,
    "missing": Tone.STOP,
    "extra": Tone.HERE,
    "renamed": Tone.CAUTION,
}
"""What the letters say again by their colour."""


class DiffRows:
    """Rows of folds, and of the tensors of those that are open."""

    def __init__(
        self, tensors: Sequence[TensorDifference], folds: Sequence[Fold], glyphs: Glyphs | None = None
    ) -> None:
        self.tensors: list[TensorDifference] = list(tensors)
        """By number. Entries are exchanged while values are compared."""
        self._folds = tuple(folds)
        self._glyphs = glyphs or terminal_glyphs()
        self._open: set[int] = set()
        self._lines: list[tuple[int, int | None]] = [(place, None) for place in range(len(folds))]

    @property
    def row_count(self) -> int:
        """How many rows there are: folds, and the tensors of those that are open."""
        return len(self._lines)

    def fold(self, row: int) -> Fold:
        """Return the fold that a row is, or belongs to."""
        return self._folds[self._lines[row][0]]

    def members(self, row: int) -> tuple[int, ...]:
        """Return the tensors that a row stands for, by number."""
        member = self._lines[row][1]
        return self.fold(row).members if member is None else (member,)

    def state(self, row: int) -> State:
        """Return the state of a row; of one that opens, of its first tensor as it is known by now."""
        return self.tensors[self.members(row)[0]].state

    @property
    def opened(self) -> frozenset[str]:
        """The names of the folds that are open."""
        return frozenset(self._folds[place].name for place in self._open)

    def reopen(self, names: frozenset[str]) -> None:
        """Open the folds of some names, of those that are there."""
        self._open = {
            place for place, fold in enumerate(self._folds) if fold.name in names and len(fold.members) > 1
        }
        self._lay_out()

    def row_of(self, number: int, *, fold: bool = False) -> int:
        """Return the row of a tensor, or of its fold where that is wanted or not open; 0 where there is none."""
        rows = [row for row in range(len(self._lines)) if number in self.members(row)]
        own = next((row for row in rows if not self.opens(row)), None)
        return rows[0] if rows and (fold or own is None) else own or 0

    def opens(self, row: int) -> bool:
        """Tell whether a row opens into several tensors."""
        return self._lines[row][1] is None and len(self.fold(row).members) > 1

    def toggle(self, row: int) -> None:
        """Open a row, or close it."""
        self._open ^= {self._lines[row][0]}
        self._lay_out()

    def _lay_out(self) -> None:
        lines: list[tuple[int, int | None]] = []
        for place, fold in enumerate(self._folds):
            lines.append((place, None))
            if place in self._open:
                lines += [(place, member) for member in fold.members]
        self._lines = lines

    def sort(self, column: int | None, *, descending: bool) -> None:
        """Put the folds in the order of a column, all of them closed; in that of their appearance without one."""
        keys = {
            None: lambda fold: fold.members[0],
            0: lambda fold: list(LETTERS).index(fold.state),
            1: lambda fold: fold.name,
            2: lambda fold: words.change(self.tensors[fold.members[0]]),
            3: self._worst,
        }
        self._open.clear()
        self._folds = tuple(sorted(self._folds, key=keys[column], reverse=descending))
        self._lay_out()

    def _worst(self, fold: Fold) -> float:
        found = (self.tensors[member].values for member in fold.members)
        return max((each.max_abs or 0.0 for each in found if each is not None), default=-1.0)

    def cell(self, row: int, column: int) -> Part:
        """Return what stands in a column of a row."""
        place, member = self._lines[row]
        fold = self._folds[place]
        item = self.tensors[fold.members[0] if member is None else member]
        if column == 0:
            return LETTERS[item.state if member is not None else fold.state], TONES[fold.state]
        if column == 1:
            return self._name(place, member, item)
        if column == 2:
            return self._what(fold, member, item)
        several = [self.tensors[each].values for each in (fold.members if member is None else (member,))]
        return _short([each for each in several if each is not None], len(several), item)

    def _name(self, place: int, member: int | None, item: TensorDifference) -> Part:
        if member is not None:
            return f"    {words.name(item.name)}"
        fold = self._folds[place]
        sign = "  "
        if len(fold.members) > 1:
            sign = f"{self._glyphs.open if place in self._open else self._glyphs.closed} "
        return f"{sign}{words.name(fold.name)}{'.*' if fold.module else ''}"

    def _what(self, fold: Fold, member: int | None, item: TensorDifference) -> Part:
        if member is None and fold.module:
            return words.fold_words(fold, self.tensors), Tone.MUTED
        if item.state == "renamed" and item.name_b is not None:
            names = fold.members if member is None else (member,)
            return f"> {words.other_names([self.tensors[each] for each in names])}", Tone.CAUTION
        return words.change(item), Tone.PLAIN if item.state == "changed" else Tone.MUTED


def _short(found: Sequence[Figures], count: int, item: TensorDifference) -> Part:
    """Return what the values of some of `count` tensors came to, in a few words."""
    if not found:
        lone = item.a is None or item.b is None
        if item.note is not None and item.note.startswith("values were not compared"):
            return "not compared", Tone.CAUTION  # why, the detail says
        return ("", Tone.PLAIN) if lone or item.note is None else (item.note, Tone.MUTED)
    less = "" if len(found) == count else f", {len(found):,} of {count:,}"
    if item.merge is not None and item.merge.verdict is not None and item.merge.verdict != "differs":
        return f"{item.merge.verdict}{less}", TONES[item.state] if item.state == "changed" else Tone.OK
    verdicts = {each.verdict for each in found}
    if verdicts == {"bits"}:
        return f"same bits{less}", Tone.OK
    if "differs" not in verdicts:
        return f"same numbers{less}", Tone.OK
    worst = words.most(each.max_abs for each in found)
    return (f"differ{less}" if worst is None else f"max {worst:.3g}{less}"), Tone.CAUTION


class CompareTable(VirtualTable):
    """The differences of two checkpoints."""

    BINDING_GROUP_TITLE = "Differences"

    def __init__(self, rows: DiffRows) -> None:
        super().__init__(COLUMNS, rows, empty=EMPTY)
        self.rows = rows

    def show_differences(self, rows: DiffRows) -> None:
        """Show other differences: the cursor stays on its tensor, and what was open stays open."""
        row = self.row
        here = None if row is None else self.rows.members(row)[0]
        fold = row is not None and self.rows.opens(row)
        rows.reopen(self.rows.opened)
        self.rows = rows
        self.sort_column, self.descending = None, False
        self.show(rows, cursor=0 if here is None else rows.row_of(here, fold=fold))

    def toggle(self, row: int) -> None:
        """Open a row into its tensors, or close it."""
        self.rows.toggle(row)
        self.show(self.rows, cursor=row)

    def sort_by(self, column: int | None, *, descending: bool) -> None:
        """Put the rows in another order."""
        self.rows.sort(column, descending=descending)
        self.sort_column, self.descending = column, descending
        self.show(self.rows)
