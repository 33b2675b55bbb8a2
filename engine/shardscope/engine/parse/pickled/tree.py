"""Reading typed facts: bounded, iterative, each node once."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from shardscope.engine.model.pickled import (
    Bytes,
    DcpChunks,
    Items,
    Long,
    Named,
    Node,
    Number,
    Pairs,
    Pickled,
    PickledTensor,
    Plain,
    Record,
)

Key: TypeAlias = str | int
"""Of a mapping or a place in a sequence. Keys of other types have no place in a name."""
Value: TypeAlias = bool | int | float | str | bytes | None


class Tree:
    """One pickle's facts, by their numbers."""

    __slots__ = ("_entries", "nodes", "pickled", "root")

    def __init__(self, pickled: Pickled, pickle: int = 0) -> None:
        self.pickled = pickled
        self.nodes: Sequence[Node] = pickled.nodes
        self.root: Number = pickled.roots[pickle]
        self._entries: dict[Number, dict[tuple[type, str], tuple[Key, Number]]] = {}

    def node(self, number: Number | None) -> Node | None:
        """Return a node; null for null."""
        return None if number is None else self.nodes[number]

    def entries(self, number: Number | None) -> Iterator[tuple[Key, Number]]:
        """Yield what a mapping, a record or a sequence holds. Of equal keys the last one counts, as it does in Python."""
        yield from self._index(number).values()

    def get(self, number: Number | None, *path: Key) -> Number | None:
        """Return the node at a path; null where there is none."""
        for key in path:
            found = self._index(number).get((type(key), str(key)))
            if found is None:
                return None
            number = found[1]
        return number

    def has(self, number: Number | None, *path: Key) -> bool:
        """Tell whether there is anything at a path."""
        return self.get(number, *path) is not None

    def value(self, number: Number | None, *path: Key) -> Value:
        """Return the plain value at a path; null where there is none or where it is none."""
        node = self.node(self.get(number, *path))
        return node.value if isinstance(node, Plain | Bytes) else None

    def text(self, number: Number | None, *path: Key) -> str | None:
        """Return the text at a path; null where there is none."""
        value = self.value(number, *path)
        return value if isinstance(value, str) else None

    def integer(self, number: Number | None, *path: Key) -> int | None:
        """Return the integer at a path (a boolean is none); null where there is none."""
        node = self.node(self.get(number, *path))
        if isinstance(node, Long):
            return int(node.digits, 16)
        value = node.value if isinstance(node, Plain) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def integers(self, number: Number | None, *path: Key) -> tuple[int, ...] | None:
        """Return a list or tuple of integers (`torch.Size` is one); null where it is anything else."""
        node = self.node(self.get(number, *path))
        if not isinstance(node, Items):
            return None
        found = [self.integer(item) for item in node.items]
        return None if None in found else tuple(found)  # type: ignore[arg-type]  # none is null

    def items(self, number: Number | None, *path: Key) -> Sequence[Number]:
        """Return what a list, tuple or set holds; nothing where it is none."""
        node = self.node(self.get(number, *path))
        return node.items if isinstance(node, Items) else ()

    def tensor(self, number: Number | None, *path: Key) -> PickledTensor | None:
        """Return the tensor at a path; null where there is none."""
        node = self.node(self.get(number, *path))
        return node if isinstance(node, PickledTensor) else None

    def record(self, number: Number | None, kind: str) -> Record | None:
        """Return a node that is a record of a kind; null where it is anything else."""
        node = self.node(number)
        return node if isinstance(node, Record) and node.kind == kind else None

    def leaves(self, number: Number | None = None) -> Iterator[tuple[tuple[Key, ...], Number]]:
        """Yield every node that holds no others by keys, with its path: tensors, values, records of distributed tensors, names.

        Mappings and sequences are opened, and records of plain namespaces; everything else is a leaf. A node that is met
        again, shared or in a cycle, is yielded again where it is a leaf and not opened again where it is not.
        """
        start = self.root if number is None else number
        stack: list[tuple[tuple[Key, ...], Number]] = [((), start)]
        opened: set[Number] = set()
        while stack:
            path, at = stack.pop()
            node = self.nodes[at]
            if not _opens(node):
                yield path, at
            elif at not in opened:
                opened.add(at)
                stack += [((*path, key), child) for key, child in reversed(list(self.entries(at)))]

    def _index(self, number: Number | None) -> dict[tuple[type, str], tuple[Key, Number]]:
        """Return what a node holds by the type and the text of its key: text hashes alike for nobody's choosing."""
        if number is None:
            return {}
        if number not in self._entries:
            node = self.nodes[number]
            found: dict[tuple[type, str], tuple[Key, Number]] = {}
            match node:
                case Pairs():
                    for key, value in zip(node.keys, node.values, strict=True):
                        plain = self.nodes[key]
                        if isinstance(plain, Plain) and isinstance(plain.value, str | int):
                            found[(type(plain.value), str(plain.value))] = (plain.value, value)
                case Record():
                    found = {
                        (str, name): (name, value)
                        for name, value in zip(node.names, node.values, strict=True)
                    }
                case Items():
                    found = {(int, str(place)): (place, value) for place, value in enumerate(node.items)}
                case PickledTensor() | Plain() | Bytes() | Long() | Named() | DcpChunks():
                    pass
            self._entries[number] = found
        return self._entries[number]


def _opens(node: Node) -> bool:
    return isinstance(node, Pairs | Items) or (isinstance(node, Record) and node.kind == "Namespace")
