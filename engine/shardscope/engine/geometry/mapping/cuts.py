"""The map of a tensor whose slices were cut as a layout says."""

from collections.abc import Callable, Sequence

from shardscope.engine.geometry.mapping.sections import Asked, Sectioned, sectioned, whole_extent
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.mapping import Kind, ModelFacts, View
from shardscope.engine.model.shardmap import (
    Block,
    Box,
    Contiguous,
    Node,
    Part,
    Replicate,
    SubParamConcat,
    TensorMap,
)

TP = "tp"

Shape = tuple[int, ...]


def shard_map(
    kind: Kind,
    shards: Sequence[Shape],
    facts: ModelFacts,
    asked: Asked,
    *,
    axis: str = TP,
    wrong: Callable[[str], Fault] | None = None,
) -> TensorMap:
    """Return the map of a tensor whose slices, rank by rank of `axis`, have these shapes.

    Raises `Fault`: `mapping.shards` (or what `wrong` makes of the reason) where they are not what the cut gives,
    `mapping.fact_missing`, `mapping.size`.
    """
    wrong = wrong or asked.shards
    first = shards[0]
    if any(shard != first for shard in shards):
        raise wrong("its ranks hold shards of different shapes")
    if kind.cut is None or len(shards) == 1:
        return TensorMap(first, Replicate())
    if kind.cut >= len(first):
        raise wrong(f"it has no dimension {kind.cut}, along which ranks cut it")
    if not kind.each or kind.view is None:
        shape = _with(first, kind.cut, first[kind.cut] * len(shards))
        return TensorMap(shape, Contiguous(axis, kind.cut, (first[kind.cut],) * len(shards)))
    return _each(kind.view, first, len(shards), facts, asked, axis, wrong)


def _each(
    view: View,
    shard: Shape,
    ranks: int,
    facts: ModelFacts,
    asked: Asked,
    axis: str,
    wrong: Callable[[str], Fault],
) -> TensorMap:
    """Return the map of a tensor of which every section was cut on its own."""
    dim = view.dim
    shared = any(section.shared for section in view.sections)
    extent = whole_extent(view, facts, asked) if shared else shard[dim] * ranks
    cut = sectioned(view, extent, facts, asked)
    shape = _with(shard, dim, extent)
    parts: list[Part] = []
    held = 0
    for number, section in enumerate(view.sections):
        made, width = _part(cut, number, ranks, shape, axis, wrong, shared=section.shared)
        parts.append(made)
        held += width
    if held != shard[dim]:
        raise wrong(
            f"a rank of {ranks:,} would hold {held:,} slices of its sections, and holds {shard[dim]:,}"
        )
    return TensorMap(shape, SubParamConcat(dim, tuple(parts)))


def _part(
    cut: Sectioned,
    number: int,
    ranks: int,
    whole: Shape,
    axis: str,
    wrong: Callable[[str], Fault],
    *,
    shared: bool,
) -> tuple[Part, int]:
    """Return one section as a part, and how many slices of it a rank holds."""
    units, inner = cut.sizes[number], cut.inner
    size = units * inner
    name = cut.names[number]
    if shared and units < ranks:
        if not units or ranks % units:
            raise wrong(f"{units:,} units of {name} shared by {ranks:,} ranks")
        boxes = tuple(_box(whole, cut.dim, rank // (ranks // units) * inner, inner) for rank in range(ranks))
        return Part(size, Block((axis,), boxes), name), inner
    # A section of open size is cut by slices: its units are not known to the table.
    if (units if shared else size) % ranks:
        raise wrong(f"a section of {size:,} slices among {ranks:,} ranks")
    node: Node = Contiguous(axis, cut.dim, (size // ranks,) * ranks)
    return Part(size, node, name), size // ranks


def _box(whole: Shape, dim: int, start: int, extent: int) -> Box:
    return Box(_with((0,) * len(whole), dim, start), _with(whole, dim, extent))


def _with(shape: Shape, dim: int, extent: int) -> Shape:
    return (*shape[:dim], extent, *shape[dim + 1 :])
