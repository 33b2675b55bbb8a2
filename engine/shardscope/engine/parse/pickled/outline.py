"""A pickle's facts as a tree to look at: breadth first and bounded, so that nothing of it costs more than what is shown.

Nodes of a pickle are shared and may hold themselves. Each is opened once; where it is met again a word says so.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from shardscope.engine.model.outline import OutlineKind, OutlineNode
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
from shardscope.engine.model.text import counted, display_name

NODES: Final = 5_000
"""Nodes of one stream."""
WIDE: Final = 256
"""Members of one node."""
LONGEST: Final = 160
"""Characters of a key or a value."""

Member = tuple[str, Number]


def outline(pickled: Pickled, limit: int = NODES) -> tuple[OutlineNode, ...]:
    """Return at most `limit` nodes of all pickles of a stream, those of one depth before those below them."""
    known = {(item.module, item.name): item.known for item in pickled.references}
    several = len(pickled.roots) > 1
    waiting: deque[tuple[int, str, Number]] = deque(
        (-1, f"pickle {place}" if several else "object", number) for place, number in enumerate(pickled.roots)
    )
    found: list[OutlineNode] = []
    opened: dict[Number, str] = {}
    while waiting and len(found) < limit:
        parent, key, number = waiting.popleft()
        node = pickled.nodes[number]
        kind, words = _words(node, pickled)
        holds = _count(node)
        if holds and number in opened:
            found.append(OutlineNode(parent, _cut(key), "shared", f"the same as {opened[number]}"))
            continue
        foreign = isinstance(node, Named) and not known.get((node.module, node.name), False)
        room = max(0, min(WIDE, limit - len(found) - 1 - len(waiting)))
        members = list(islice(_members(node, pickled.nodes), room)) if holds else []
        found.append(OutlineNode(parent, _cut(key), kind, words, foreign, holds - len(members)))
        if holds:
            opened[number] = _cut(key)
            waiting.extend((len(found) - 1, name, child) for name, child in members)
    return tuple(found)


def _members(node: Node, nodes: Sequence[Node]) -> Iterator[Member]:
    match node:
        case Pairs():
            for key, value in zip(node.keys, node.values, strict=True):
                yield _key(nodes[key]), value
        case Record():
            yield from zip(node.names, node.values, strict=True)
        case Items():
            for place, value in enumerate(node.items):
                yield f"[{place}]", value
        case PickledTensor():
            yield from node.parts.items()
            if node.state is not None:
                yield "attributes", node.state
        case Named():
            yield from _there(("state", node.state), ("items", node.items), ("others", node.others))
        case DcpChunks():
            yield from _there(("planner_data", node.planner), ("storage_meta", node.storage_meta))
            yield from node.extra.items()
        case _:
            return


def _there(*members: tuple[str, Number | None]) -> Iterator[Member]:
    return ((name, number) for name, number in members if number is not None)


def _count(node: Node) -> int:
    match node:
        case Pairs():
            return len(node.keys)
        case Record():
            return len(node.names)
        case Items():
            return len(node.items)
        case PickledTensor():
            return len(node.parts) + (node.state is not None)
        case Named():
            return sum(each is not None for each in (node.state, node.items, node.others))
        case DcpChunks():
            return len(node.extra) + sum(each is not None for each in (node.planner, node.storage_meta))
    return 0


def _key(node: Node) -> str:
    if isinstance(node, Plain):
        return node.value if isinstance(node.value, str) else repr(node.value)
    if isinstance(node, Items):
        return counted(len(node.items), "item")
    return type(node).__name__.lower()


def _words(node: Node, pickled: Pickled) -> tuple[OutlineKind, str]:
    match node:
        case Plain():
            value = node.value
            return "value", f'"{_cut(value)}"' if isinstance(value, str) else repr(value)
        case Bytes():
            head = node.value[:16].hex(" ")
            return "value", f"{counted(len(node.value), 'byte')}{': ' if head else ''}{head}"
        case Long():
            return "value", f"0x{_cut(node.digits)}"
        case Items():
            return "sequence", f"{node.kind} of {counted(len(node.items), 'item')}"
        case Pairs():
            return "mapping", f"{node.kind} of {counted(len(node.keys), 'key')}"
        case Record():
            return "record", f"{_cut(node.kind)} of {counted(len(node.names), 'field')}"
        case PickledTensor():
            return "tensor", _tensor(node, pickled)
        case Named():
            return "name", f"{_cut(f'{node.module}.{node.name}')}{' (called)' if node.called else ''}"
        case DcpChunks():
            return (
                "record",
                f"Metadata of {counted(len(node.names), 'tensor')} in {counted(len(node.begin), 'chunk')}",
            )


def _tensor(node: PickledTensor, pickled: Pickled) -> str:
    words = f"{_cut(node.dtype)} {list(node.shape[:64])}"
    if node.kind != "strided":
        words += f" {node.kind}"
    if node.storage is not None:
        storage = pickled.storages[node.storage]
        words += f"  storage {_cut(storage.key)}, saved from {_cut(storage.location)}"
    return words + ("  parameter" if node.parameter else "")


def _cut(text: str) -> str:
    return display_name(text, LONGEST)
