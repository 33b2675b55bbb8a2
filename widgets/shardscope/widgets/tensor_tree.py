"""The tensors of a catalogue as a tree by module, in which layers that are alike are one row.

A branch knows its rows of the catalogue and is grouped when it opens, so that a million tensors cost what is looked at.
Numbered siblings (`layers.0`, `layers.1`, `experts.7`) whose tensors have the same names, types and shapes become one fold,
`0-31`, with its members inside; one that differs from the others stands beside them.
"""

import re
import threading
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.model.progress import check
from shardscope.engine.model.tensors import TensorTable
from shardscope.widgets.figures import plural, size
from shardscope.widgets.safe import Part, Tone
from shardscope.widgets.tensor_detail import shape_words
from shardscope.widgets.tensor_folds import common, differences, natural, ranges

INLINE: Final = 10_000
"""Rows of a branch that are grouped at once when it opens, in some 20 ms; more of them are a worker's."""
FOLDED: Final = 3
"""Siblings that are alike before they are one row."""
CHUNK: Final = 8_192
"""Rows between two looks at `cancel`."""
DIFFERENT: Final = "d"
"""The mark of a branch that differs from its numbered siblings."""
_SEPARATOR: Final = re.compile(r"[./]")


class Group(Struct, gc=False):
    """What a branch holds under one name: the rows of a branch, of a fold, or of one tensor."""

    part: str
    rows: Sequence[int]
    at: int
    """Where in the names of its rows the part below begins."""
    members: tuple[str, ...] = ()
    """Of a fold: the numbers of its members, each with the same count of rows, in order."""
    differs: bool = False
    """Whether most of its numbered siblings are alike and it is not."""
    bytes: int = 0
    dtypes: tuple[int, ...] = ()
    """The numbers of its types, the most frequent first."""


class _Branch(Struct, gc=False):
    """A node with others in it."""

    group: Group
    parent: int
    children: Sequence[int] | None = None
    """Null until it was opened."""


class Grouped(Struct, frozen=True):
    """What a branch holds, ready to become nodes."""

    order: Sequence[int]
    """A row for each tensor, and -1, -2, ... for the first, the second branch."""
    branches: list[_Branch]


class ModuleTree:
    """A catalogue as nodes of a `VirtualTree`: node `n` below the count of tensors is the tensor of row `n`.

    `group` may run in a worker; `adopt` makes nodes of what it found and belongs to the thread of the screen.
    """

    def __init__(self, table: TensorTable, folded: bool = True) -> None:
        """Show what `table` holds now. Nothing is grouped before a branch opens."""
        self.table = table
        self.count = len(table)
        self.folded = folded
        self.largest_first = False
        """Whether children stand by their bytes instead of their names."""
        self._names = table.names
        self._begins, self._ends = table.column("begin"), table.column("end")
        self._dtypes, self._dtype = table.dtypes, table.column("dtype")
        self._shapes, self._shape = table.shapes, table.column("shape")
        self._parents = array("i", [-1]) * self.count
        self._branches: list[_Branch] = []
        self._root = _Branch(Group("", range(self.count), 0), -1)

    # What a tree asks for.

    def children(self, node: int | None) -> Sequence[int]:
        """Return what a branch holds, grouping it now if need be."""
        branch = self._branch(node)
        if branch.children is None:
            self.adopt(node, self.group(node))
        found = branch.children or ()
        if self.largest_first:
            return sorted(found, key=lambda child: -self.bytes(child))
        return found

    def parent(self, node: int) -> int | None:
        """Return the branch that holds a node; None at the top."""
        parent = self._parents[node] if node < self.count else self._branch(node).parent
        return parent if parent >= 0 else None

    def is_branch(self, node: int) -> bool:
        """Tell whether a node holds others."""
        return node >= self.count

    def label(self, node: int) -> Part:
        """Return the name of a node, as far as its parents do not say it."""
        if node >= self.count:
            group = self._branch(node).group
            if group.members:
                return f"{group.part}  x{len(group.members):,}", Tone.HERE
            return group.part
        return self._names[node][self._cut(node) :] or "(itself)"

    def detail(self, node: int) -> Part:
        """Return the bytes of a node."""
        return size(self.bytes(node))

    def marks(self, node: int) -> Sequence[tuple[str, Tone]]:
        """Return the letter of a branch that is unlike its siblings."""
        differs = node >= self.count and self._branch(node).group.differs
        return [(DIFFERENT, Tone.CAUTION)] if differs else []

    # What a panel asks for.

    def is_ready(self, node: int | None) -> bool:
        """Tell whether a branch can open without a worker."""
        branch = self._branch(node)
        return branch.children is not None or len(branch.group.rows) <= INLINE

    def rows(self, node: int) -> Sequence[int]:
        """Return the rows of the catalogue that a node stands for."""
        return (node,) if node < self.count else self._branch(node).group.rows

    def bytes(self, node: int) -> int:
        """Return the bytes of all tensors of a node."""
        if node < self.count:
            return self._ends[node] - self._begins[node]
        return self._branch(node).group.bytes

    def kind(self, node: int) -> str:
        """Return the type and the shape of a tensor; of a branch its types, the most frequent first."""
        if node < self.count:
            return f"{self._dtypes[self._dtype[node]]} {shape_words(self._shapes[self._shape[node]])}"
        names = [self._dtypes[each] for each in self._branch(node).group.dtypes]
        return " ".join(names) if len(names) < 3 else f"{names[0]} +{len(names) - 1}"

    def name(self, node: int) -> str:
        """Return the exact name of a tensor; of a branch what all its names begin with, of a fold with `{0-31}` in it."""
        if node < self.count:
            return self._names[node]
        group = self._branch(node).group
        first = self._names[group.rows[0]]
        return f"{first[: group.at]}{{{group.part}}}" if group.members else first[: group.at - 1]

    def words(self, node: int) -> str:
        """Return a branch in one line: its name, how many tensors it holds, and how it differs from its siblings."""
        differs = self.difference(node)
        return f"{self.name(node)}  {plural(len(self.rows(node)), 'tensor')}" + (
            f"  {differs}" if differs else ""
        )

    def way(self, row: int) -> list[int] | None:
        """Return the branches to open for a row, the outermost first; None where that would take a worker."""
        way: list[int] = []
        node: int | None = None
        while self.is_ready(node):
            held = self.children(node)
            if row in held:
                return way
            node = next(
                (each for each in held if each >= self.count and row in self._branch(each).group.rows), None
            )
            if node is None:
                return None
            way.append(node)
        return None

    def difference(self, node: int) -> str:
        """Return how a branch with the mark of a different one differs from most of its siblings; empty where it has none."""
        if node < self.count or not self._branch(node).group.differs:
            return ""
        own = self._branch(node)
        siblings = [self._branch(each) for each in self._siblings(own) if each >= self.count]
        fold = max(
            (each.group for each in siblings if each.group.members), key=lambda group: len(group.members)
        )
        count = len(fold.rows) // len(fold.members)
        if max(count, len(own.group.rows)) > INLINE:
            return "other tensors than its siblings"
        there = self._contents(fold.rows[:count], fold.at + len(fold.members[0]) + 1)
        return differences(self._contents(own.group.rows, own.group.at), there)

    # Grouping.

    def group(self, node: int | None, cancel: threading.Event | None = None) -> Grouped:
        """Return what a branch holds, in order. Raises `Cancelled`. Nothing of the tree changes."""
        group = self._branch(node).group
        if group.members:
            each = len(group.rows) // len(group.members)
            found = []
            for number, label in enumerate(group.members):
                check(cancel)
                held = group.rows[number * each : (number + 1) * each]
                found.append(self._made(label, held, group.at, cancel))
        else:
            parts = self._parted(group, cancel)
            found = [
                self._made(label, [rows] if isinstance(rows, int) else rows, group.at, cancel)
                for label, rows in parts.items()
            ]
            found.sort(key=lambda each: natural(each.part))
            if self.folded:
                found = self._fold(found, cancel)
        return self._ready(-1 if node is None else node, found, cancel)

    def _ready(self, above: int, found: Sequence[Group], cancel: threading.Event | None) -> Grouped:
        """Make branches of all groups that are no single tensors."""
        order, branches = array("q"), []
        for number, group in enumerate(found):
            if number % CHUNK == 0:
                check(cancel)
            if len(group.rows) == 1 and not group.members:
                order.append(group.rows[0])
            elif self._is_end(group):
                order.extend(map(int, group.rows))
            else:
                self._weigh(group, cancel)
                branches.append(_Branch(group, above))
                order.append(-len(branches))
        return Grouped(order, branches)

    def adopt(self, node: int | None, found: Grouped) -> None:
        """Make what a branch holds its children. A second time it changes nothing."""
        branch = self._branch(node)
        if branch.children is not None:
            return
        above = -1 if node is None else node
        base = self.count + len(self._branches) - 1
        self._branches += found.branches
        branch.children = array("L", [each if each >= 0 else base - each for each in found.order])
        for row in found.order:
            if row >= 0:
                self._parents[row] = above

    def _branch(self, node: int | None) -> _Branch:
        return self._root if node is None else self._branches[node - self.count]

    def _cut(self, row: int) -> int:
        """Return where the part of a name begins that its parents do not say."""
        parent = self._parents[row]
        return 0 if parent < 0 else self._branch(parent).group.at

    def _siblings(self, branch: _Branch) -> Sequence[int]:
        parent = self._branch(branch.parent if branch.parent >= 0 else None)
        return parent.children or ()

    def _parted(self, group: Group, cancel: threading.Event | None) -> "dict[str, int | array[int]]":
        """Return the rows of a branch by the next part of their names. A single row is a number: a million arrays are dear."""
        names, at, search = self._names, group.at, _SEPARATOR.search
        parts: dict[str, int | array[int]] = {}
        for begin in range(0, len(group.rows), CHUNK):
            check(cancel)
            for row in group.rows[begin : begin + CHUNK]:
                name = names[row]
                end = search(name, at)
                part = name[at : end.start()] if end else name[at:]
                held = parts.get(part)
                if held is None:
                    parts[part] = row
                elif isinstance(held, int):
                    parts[part] = array("L", (held, row))
                else:
                    held.append(row)
        return parts

    def _made(self, part: str, rows: Sequence[int], at: int, cancel: threading.Event | None) -> Group:
        """Return a group, its label as long as all its names go on alike."""
        below = at + len(part) + 1
        group = Group(part, rows, below)
        if len(rows) > 1 and not part.isdecimal():
            first, last = self._ends_of(rows, cancel)
            alike = common(first, last)
            if alike > below and len(first) > alike:
                group.part, group.at = first[at : alike - 1], alike
        return group

    def _ends_of(self, rows: Sequence[int], cancel: threading.Event | None) -> tuple[str, str]:
        """Return the first and the last of the names in the order of their characters."""
        name = self._names.__getitem__
        first = last = name(rows[0])
        for begin in range(0, len(rows), CHUNK):
            check(cancel)
            names = [first, last, *map(name, rows[begin : begin + CHUNK])]
            first, last = min(names), max(names)
        return first, last

    def _is_end(self, group: Group) -> bool:
        """Tell whether no name of a group goes on: several tensors have the same one."""
        return not group.members and all(len(self._names[row]) < group.at for row in group.rows)

    def _fold(self, groups: list[Group], cancel: threading.Event | None) -> list[Group]:
        """Put numbered groups that are alike into one each, where the first of them stood."""
        alike: dict[tuple[int, int], list[Group]] = {}
        for group in groups:
            if natural(group.part)[0]:
                check(cancel)
                alike.setdefault((len(group.rows), self._signature(group)), []).append(group)
        most = max((len(each) for each in alike.values()), default=0)
        if most < FOLDED:
            return groups
        gone: set[int] = set()
        folds: dict[int, Group] = {}
        for kin in alike.values():
            if len(kin) >= FOLDED:
                folds[id(kin[0])] = _together(kin)
                gone.update(map(id, kin[1:]))
            else:
                for group in kin:
                    group.differs = True
        return [folds.get(id(group), group) for group in groups if id(group) not in gone]

    def _signature(self, group: Group) -> int:
        """Return a number that is the same for groups with the same names below, types and shapes, in any order."""
        at = group.at
        return (
            sum(hash((self._names[row][at:], self._dtype[row], self._shape[row])) for row in group.rows)
            & 0xFFFF_FFFF_FFFF_FFFF
        )

    def _weigh(self, group: Group, cancel: threading.Event | None) -> None:
        counts: Counter[int] = Counter()
        for begin in range(0, len(group.rows), CHUNK):
            check(cancel)
            rows = group.rows[begin : begin + CHUNK]
            group.bytes += sum(map(self._ends.__getitem__, rows)) - sum(map(self._begins.__getitem__, rows))
            counts.update(map(self._dtype.__getitem__, rows))
        group.dtypes = tuple(number for number, _ in counts.most_common())

    def _contents(self, rows: Sequence[int], at: int) -> dict[str, tuple[int, int]]:
        """Return type and shape by what the names have from `at` on."""
        return {self._names[row][at:]: (self._dtype[row], self._shape[row]) for row in rows}


def _together(kin: Sequence[Group]) -> Group:
    rows = array("L")
    for group in kin:
        rows.extend(group.rows)
    fold = Group(ranges([int(group.part) for group in kin]), rows, kin[0].at - len(kin[0].part) - 1)
    fold.members = tuple(group.part for group in kin)
    return fold
