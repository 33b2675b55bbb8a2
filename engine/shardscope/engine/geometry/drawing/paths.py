"""The nodes of a map that lead to an element, and the parts of a fused tensor by their names."""

from collections.abc import Iterator
from itertools import accumulate

from msgspec import Struct

from shardscope.engine.geometry.describing.explain import line
from shardscope.engine.geometry.drawing.lines import matrix
from shardscope.engine.model import shardmap as nodes
from shardscope.engine.model.shardmap import Node, Part


class Named(Struct, frozen=True):
    """A part of a fused tensor."""

    row: int
    """Its first row, of the tensor as a matrix."""
    rows: int
    name: str
    """Raw, where the map names it; otherwise `part 2`."""


def path(node: Node, index: tuple[int, ...]) -> tuple[str, ...]:
    """Return what each node does on the way to an element, the first applied first; of a fused tensor the part that has it.

    Which part that is is told where the parts are cut from the full tensor; where another node comes first, all are named.
    """
    return tuple(_steps(node, index))


def _steps(node: Node, index: tuple[int, ...]) -> Iterator[str]:
    below = None if isinstance(node, nodes.Replicate) else node.of
    if below is not None and not isinstance(below, nodes.Replicate):
        yield from _steps(below, index)
        if isinstance(node, nodes.SubParamConcat):
            yield f"parts {_names(node.parts)} along dimension {node.dim}, each cut by itself"
            return
    if not isinstance(node, nodes.SubParamConcat):
        yield line(node)
        return
    at = index[node.dim]
    for number, (end, part) in enumerate(
        zip(accumulate(part.size for part in node.parts), node.parts, strict=True)
    ):
        if at < end:
            name = part.name or f"part {number}"
            yield f"part {name} of {_names(node.parts)} along dimension {node.dim}"
            inner = tuple(at - end + part.size if dim == node.dim else n for dim, n in enumerate(index))
            yield from _steps(part.map, inner)
            return


def _names(parts: tuple[Part, ...]) -> str:
    names = [part.name or f"part {number}" for number, part in enumerate(parts)]
    return ", ".join(names) if len(names) <= 8 else f"{len(names):,} parts"


def parts(node: Node, shape: tuple[int, ...]) -> tuple[Named, ...]:
    """Return the parts along the first dimension of a tensor that a map fuses; none, where they lie otherwise."""
    while not isinstance(node, nodes.Replicate) and node.of is not None:
        node = node.of
    if not isinstance(node, nodes.SubParamConcat) or node.dim != 0 or not shape or not shape[0]:
        return ()
    each = matrix(shape).rows // shape[0]
    found = []
    first = 0
    for number, part in enumerate(node.parts):
        found.append(Named(first * each, part.size * each, part.name or f"part {number}"))
        first += part.size
    return tuple(found)
