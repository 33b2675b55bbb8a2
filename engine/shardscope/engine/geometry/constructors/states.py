"""Where the state of an optimizer lies: derived from the parameter's map and the partition among data-parallel ranks."""

from collections.abc import Sequence

from msgspec.structs import replace

from shardscope.engine.geometry.pieces.factors import factor
from shardscope.engine.model import shardmap as nodes
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.shardmap import FlatRange, Node, TensorMap


def derived(
    parameter: TensorMap, axis: str, start: Sequence[int], stop: Sequence[int], *, dtype: str | None = None
) -> TensorMap:
    """Return the map of a state that has a value for each of the parameter's, marked as derived.

    The rank at position r of `axis` holds the elements `start[r]` to `stop[r]` of the parameter's flattened shard; what lies
    beyond its end is padding. `dtype` is the state's, which is rarely the parameter's. A state is laid out like the
    parameter but does not scale like it: its moments change by other powers of a factor, and step sizes live in the
    shard's coordinates. Raises `Fault` `map.scaled` for a parameter whose map has a factor.
    """
    for node in _tree(parameter.map):
        if isinstance(node, nodes.Scale) and node.numerator != node.denominator:
            raise Fault("map.scaled", rank="any", factor=factor((node.numerator, node.denominator)))
    node = FlatRange(axis, tuple(start), tuple(stop), parameter.map)
    return replace(parameter, map=node, dtype=dtype, derived=True)


def _tree(node: Node) -> list[Node]:
    found: list[Node] = []
    waiting: list[Node] = [node]
    while waiting:
        item = waiting.pop()
        found.append(item)
        if isinstance(item, nodes.SubParamConcat):
            waiting.extend(part.map for part in item.parts)
        if not isinstance(item, nodes.Replicate) and item.of is not None:
            waiting.append(item.of)
    return found
