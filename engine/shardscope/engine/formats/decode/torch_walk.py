"""The way through a decoded file of torch.save to its tensors, each under the keys that lead to it."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct

from shardscope.engine.model.catalogue import Role
from shardscope.engine.model.pickled import Items, Named, Node, Number, Pairs, PickledTensor, Plain, Record
from shardscope.engine.parse.pickled.tree import Tree

_REBUILDERS: Final = frozenset({"torch._utils", "torch._tensor"})
_MODULE: Final[Sequence[tuple[str, Role | None]]] = (
    ("_parameters", "parameter"),
    ("_buffers", "buffer"),
    ("_modules", None),
)
"""Where `torch.nn.Module` keeps what its state_dict() lists, in that order."""
_REOPENED: Final = 4
"""Containers are opened this many times as often as there are nodes, at the most."""
_SPARE: Final = 4096

ROOT: Final = "tensor"
"""The name of a tensor that is all of its file."""


class Leaf(Struct, frozen=True):
    """A tensor under one of its names."""

    name: str
    top: str | None
    """The key at the top; null where the file is no mapping."""
    tensor: PickledTensor
    role: Role | None
    """As the module that holds it says."""


class Walked(Struct):
    """What the walk met."""

    tensors: list[Leaf]
    malformed: list[str]
    """Names of what torch would rebuild as tensors, from arguments that describe none."""
    top: dict[str, bool]
    """The keys at the top, each with whether its value holds others."""
    odd: list[str]
    """Names that needed a key that is neither text nor a number."""
    modules: list[str]
    """Classes of whole modules, outermost first."""
    bounded: int | None = None
    """How many containers were opened when the walk began to open each once only; null where it never did."""


_Frame = tuple[str, str | None, Number, Role | None]


def walk(tree: Tree, root: Number) -> Walked:
    """Return the tensors below a node. Mappings, sequences, namespaces and modules are opened.

    A container that is shared is opened wherever it stands, as it is after loading, but never within itself; where that would
    multiply without end, each is opened once from then on.
    """
    found = Walked([], [], {}, [], [])
    budget = _REOPENED * len(tree.nodes) + _SPARE
    opened = 0
    seen: set[Number] = set()
    inside: set[Number] = set()
    stack: list[_Frame | Number] = [("", None, root, None)]
    while stack:
        frame = stack.pop()
        if isinstance(frame, int):
            inside.discard(frame)
            continue
        name, top, number, role = frame
        node = tree.nodes[number]
        if isinstance(node, PickledTensor):
            found.tensors.append(Leaf(name or ROOT, top, node, role))
            continue
        if isinstance(node, Named) and node.module in _REBUILDERS and node.name.startswith("_rebuild"):
            found.malformed.append(name or ROOT)
            continue
        if not holds(node):
            continue
        if number in inside or (found.bounded is not None and number in seen):
            continue
        seen.add(number)
        inside.add(number)
        opened += 1
        if opened > budget and found.bounded is None:
            found.bounded = opened
        below = list(_below(tree, name, node, role, found))
        if number == root and isinstance(node, Pairs | Record):
            found.top = {key: holds(tree.nodes[child]) for _, key, child, _ in below}
            frames: list[_Frame] = [(path, key, child, part) for path, key, child, part in below]
        else:
            frames = [(path, top, child, part) for path, _, child, part in below]
        stack.append(number)
        stack += reversed(frames)
    return found


def holds(node: Node) -> bool:
    """Tell whether a node is opened."""
    if isinstance(node, Pairs | Items):
        return True
    if isinstance(node, Record):
        return node.kind == "Namespace"
    return isinstance(node, Named) and not (node.state is None and node.items is None and node.others is None)


_Below = tuple[str, str, Number, Role | None]
"""Name, last key, node, role."""


def _below(tree: Tree, name: str, node: Node, role: Role | None, found: Walked) -> Iterator[_Below]:
    prefix = f"{name}." if name else ""
    match node:
        case Items():
            for place, child in enumerate(node.items):
                yield f"{prefix}{place}", str(place), child, role
        case Pairs():
            for key, child in _pairs(tree, node).items():
                text, kind = key
                if kind == "odd":
                    found.odd.append(f"{prefix}{text}")
                yield f"{prefix}{text}", text, child, role
        case Record():
            for text, child in zip(node.names, node.values, strict=True):
                yield f"{prefix}{text}", text, child, role
        case Named():
            yield from _attributes(tree, prefix, node, found)
        case _:
            pass


_Kind = Literal["text", "number", "odd"]


def _pairs(tree: Tree, node: Pairs) -> dict[tuple[str, _Kind], Number]:
    """Return the values of a mapping by the text of their keys; of equal keys the last one counts, at the place of the first."""
    nodes = tree.nodes
    found: dict[tuple[str, _Kind], Number] = {}
    for key, child in zip(node.keys, node.values, strict=True):
        plain = nodes[key]
        if isinstance(plain, Plain) and isinstance(plain.value, str):
            found[plain.value, "text"] = child
        elif isinstance(plain, Plain) and isinstance(plain.value, int):
            found[str(plain.value), "number"] = child
        else:
            found[_odd(tree, key), "odd"] = child
    return found


def _odd(tree: Tree, key: Number) -> str:
    node = tree.nodes[key]
    match node:
        case Plain():
            return str(node.value)
        case Items():
            inner = [tree.nodes[item] for item in node.items[:8]]
            return f"({', '.join(str(item.value) if isinstance(item, Plain) else '?' for item in inner)})"
        case _:
            return f"<{key}>"


def _attributes(tree: Tree, prefix: str, node: Named, found: Walked) -> Iterator[_Below]:
    """Yield what an object of a foreign class holds: what it is made of by place (a named tuple's fields), items by key, and of a
    module what its state_dict() lists, of others every attribute.
    """
    state = node.state
    for key, child in tree.entries(node.others):
        yield f"{prefix}{key}", str(key), child, None
    for key, child in tree.entries(node.items):
        yield f"{prefix}{key}", str(key), child, None
    if tree.has(state, "_parameters") and tree.has(state, "_modules"):
        found.modules.append(f"{node.module}.{node.name}")
        passing = {tree.text(item) for item in tree.items(state, "_non_persistent_buffers_set")}
        for attribute, role in _MODULE:
            for key, child in tree.entries(tree.get(state, attribute)):
                if role != "buffer" or key not in passing:
                    yield f"{prefix}{key}", str(key), child, role
        return
    for key, child in tree.entries(state):
        yield f"{prefix}{key}", str(key), child, None
