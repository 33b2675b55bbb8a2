"""Facts of a pickle as plain data, for readers that take what JSON would give them: bounded, and shared parts stay shared."""

from typing import Final

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.pickled import Items, Number, Pairs, Plain, Record
from shardscope.engine.parse.pickled.tree import Tree

_MOST_VALUES: Final = 20_000_000
"""Values, shared ones counted wherever they turn up: a reader walks through all of them."""
_DEEPEST: Final = 64


def plain(tree: Tree, number: Number | None, place: str) -> object:
    """Return what a node holds: mappings with keys that are text or whole numbers, lists, and plain values; null for anything else.

    `place` is for messages. Raises `Fault` `deepspeed.entry_unreadable` where it is too deep, too large, or holds itself.
    """
    return _Plain(tree, place).of(number, 0)[0] if number is not None else None


class _Plain:
    def __init__(self, tree: Tree, place: str) -> None:
        self.tree = tree
        self.place = place
        self.known: dict[Number, tuple[object, int]] = {}
        self.open: set[Number] = set()

    def of(self, number: Number, depth: int) -> tuple[object, int]:
        """Return a node's data and how many values it counts."""
        known = self.known.get(number)
        if known is not None:
            return known
        node = self.tree.nodes[number]
        if isinstance(node, Plain):
            return node.value, 1
        if not isinstance(node, Items | Pairs | Record):
            return None, 1
        if number in self.open:
            self._refuse("it holds itself")
        if depth == _DEEPEST:
            self._refuse(f"it is nested more than {_DEEPEST} deep")
        self.open.add(number)
        size = 1
        found: list[object] | dict[object, object]
        if isinstance(node, Items):
            found = []
            for item in node.items:
                value, count = self.of(item, depth + 1)
                found.append(value)
                size += count
        else:
            found = {}
            for key, item in self.tree.entries(number):
                found[key], count = self.of(item, depth + 1)
                size += count
        if size > _MOST_VALUES:
            self._refuse(f"it holds more than {_MOST_VALUES:,} values")
        self.open.discard(number)
        self.known[number] = found, size
        return found, size

    def _refuse(self, reason: str) -> None:
        raise Fault("deepspeed.entry_unreadable", place=self.place, reason=reason)
