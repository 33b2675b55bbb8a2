"""What each node makes of its input, for one coordinate: docs/geometry.md in code.

A rule gets the shape of the input and returns the shard and its blocks; `of`, composition and merging are the caller's
(`apply`). A rule never looks below its own node.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from shardscope.engine.geometry.pieces.blocks import Block, boxes, meet, met, steps
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.pieces.digits import DigitBox, chain_of
from shardscope.engine.geometry.pieces.explicit import INDEXED, blocks_of, settled
from shardscope.engine.model import shardmap as nodes
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import ONE, Side, row_major
from shardscope.engine.model.shardmap import Node


class Local(Struct, frozen=True):
    """What a node makes of its input for one coordinate: a shard, and blocks from shard (a) to input (b) addresses."""

    shape: tuple[int, ...]
    blocks: tuple[Block, ...]
    padding: int = 0
    scale: tuple[int, int] = ONE
    whole: bool = False
    """The shard is the input, address by address."""

    @property
    def elements(self) -> int:
        """Elements of the shard, padding included."""
        return math.prod(self.shape)


class Memory:
    """What one lowering remembers: a sub-tree is applied once for each position on the axes that it names."""

    __slots__ = ("axes", "boxes", "locals")

    def __init__(self) -> None:
        self.axes: dict[int, tuple[str, ...]] = {}
        self.locals: dict[tuple[int, tuple[int, ...], tuple[int, ...]], Local] = {}
        self.boxes: dict[tuple[int, tuple[int, ...]], tuple[Local, list[DigitBox]]] = {}
        """With the shard that they are of, so that no other shard gets its identity."""

    def axes_of(self, node: Node) -> tuple[str, ...]:
        """Return the mesh axes that a tree names, sorted."""
        known = self.axes.get(id(node))
        if known is None:
            known = self.axes[id(node)] = axes_of(node)
        return known

    def boxes_of(self, local: Local, places: tuple[int, ...], budget: Budget) -> list[DigitBox]:
        """Return the digit boxes of a shard's addresses."""
        key = (id(local), places)
        known = self.boxes.get(key)
        if known is None:
            known = self.boxes[key] = local, boxes(local.blocks, places, budget, side="a")
        return known[1]


class Site:
    """Where a node is applied: at which coordinate of which mesh, how deep in the tree, and what may be spent."""

    __slots__ = ("at", "budget", "index", "memory", "place", "sizes")

    def __init__(
        self,
        at: Mapping[str, int],
        sizes: Mapping[str, int],
        budget: Budget,
        memory: Memory,
        *,
        index: bool = False,
        place: str = "map",
    ) -> None:
        self.at = at
        """Position on each mesh axis."""
        self.sizes = sizes
        """Size of each mesh axis."""
        self.budget = budget
        self.memory = memory
        self.index = index
        """Keep every `Explicit` node as an index."""
        self.place = place
        """For messages: the way from the root of the tree."""

    def below(self, step: str) -> "Site":
        """Return the site of a node further down the tree."""
        return Site(
            self.at, self.sizes, self.budget, self.memory, index=self.index, place=f"{self.place}.{step}"
        )

    def invalid(self, reason: str) -> Fault:
        """Return the fault of a node that contradicts itself here."""
        return Fault("map.invalid", place=self.place, reason=reason)

    def position(self, axis: str, entries: int) -> int:
        """Return the position on an axis for which a node has `entries` entries."""
        if self.sizes[axis] != entries:
            raise self.invalid(f"{entries:,} entries for axis {axis} of size {self.sizes[axis]:,}")
        return self.at[axis]


def axes_of(node: Node | None) -> tuple[str, ...]:
    """Return the mesh axes that a tree names, sorted."""
    names: set[str] = set()
    stack: list[Node | None] = [node]
    while stack:
        item = stack.pop()
        if item is None:
            continue
        if isinstance(item, nodes.Block):
            names.update(item.axes)
        elif isinstance(item, nodes.Contiguous | nodes.Interleave | nodes.Explicit | nodes.FlatRange):
            names.add(item.axis)
        if isinstance(item, nodes.SubParamConcat):
            stack.extend(part.map for part in item.parts)
        if not isinstance(item, nodes.Replicate):
            stack.append(item.of)
    return tuple(sorted(names))


def apply(node: Node, shape: tuple[int, ...], site: Site) -> Local:
    """Return what a tree makes of a tensor of `shape`: first `of`, then the node on the shard that `of` makes.

    Raises `Fault`: `map.invalid`, `map.unproven`, `map.budget`.
    """
    if isinstance(node, nodes.Replicate):
        return _identity(shape)
    position = tuple([site.at[name] for name in site.memory.axes_of(node)])
    key = (id(node), shape, position)
    known = site.memory.locals.get(key)
    if known is None:
        known = site.memory.locals[key] = _applied(node, shape, site)
    return known


def _applied(node: Node, shape: tuple[int, ...], site: Site) -> Local:
    if isinstance(node, nodes.Replicate) or node.of is None:
        below = _identity(shape)
    else:
        below = apply(node.of, shape, site.below("of"))
    here = _RULES[type(node)](node, below.shape, site)
    blocks = _composed(here, below, site)
    mapped = sum(block.elements for block in blocks)
    return Local(
        here.shape,
        blocks,
        here.elements - mapped,
        _product(below.scale, here.scale),
        here.whole and below.whole,
    )


def _identity(shape: tuple[int, ...]) -> Local:
    total = math.prod(shape)
    whole = Block((total,), Side(0, (1,)), Side(0, (1,)))
    return Local(shape, (whole,) if total else (), whole=True)


def _composed(here: Local, below: Local, site: Site) -> tuple[Block, ...]:
    if below.whole:
        return _merged(here.blocks)
    if here.whole:
        return below.blocks
    places = chain_of((*steps(here.blocks, side="b"), *steps(below.blocks, side="a")), below.elements)
    outer = boxes(here.blocks, places, site.budget, side="b")
    meetings = met(outer, site.memory.boxes_of(below, places, site.budget), site.budget)
    return _merged(
        [Block(m.shape, m.a, m.b, here.blocks[m.first].tag | below.blocks[m.second].tag) for m in meetings]
    )


def _merged(blocks: Sequence[Block]) -> tuple[Block, ...]:
    plain, index = settled(blocks)
    return (*plain, *index)


def _product(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    above, below = one[0] * other[0], one[1] * other[1]
    divisor = math.gcd(above, below)
    return above // divisor, below // divisor


def box(shape: tuple[int, ...], offsets: Sequence[int], sizes: Sequence[int]) -> Local:
    """Return the shard that is a box of a tensor."""
    strides = row_major(shape)
    inner = tuple(sizes)
    start = sum(o * s for o, s in zip(offsets, strides, strict=True))
    block = Block(inner, Side(0, row_major(inner)), Side(start, strides))
    return Local(inner, (block,) if math.prod(inner) else ())


def _dim(shape: tuple[int, ...], dim: int, site: Site) -> int:
    if dim >= len(shape):
        raise site.invalid(f"dimension {dim} of a tensor of {len(shape)}")
    return shape[dim]


def _contiguous(node: nodes.Contiguous, shape: tuple[int, ...], site: Site) -> Local:
    extent = _dim(shape, node.dim, site)
    position = site.position(node.axis, len(node.widths))
    if sum(node.widths) != extent:
        raise site.invalid(f"widths sum to {sum(node.widths):,}, dimension {node.dim} has {extent:,}")
    offsets, inner = [0] * len(shape), list(shape)
    offsets[node.dim] = sum(node.widths[:position])
    inner[node.dim] = node.widths[position]
    return box(shape, offsets, inner)


def _sub_param_concat(node: nodes.SubParamConcat, shape: tuple[int, ...], site: Site) -> Local:
    extent = _dim(shape, node.dim, site)
    if sum(part.size for part in node.parts) != extent:
        total = sum(part.size for part in node.parts)
        raise site.invalid(f"parts sum to {total:,}, dimension {node.dim} has {extent:,}")
    start = 0
    made: list[tuple[Local, tuple[Block, ...]]] = []
    for number, part in enumerate(node.parts):
        offsets, inner = [0] * len(shape), list(shape)
        offsets[node.dim], inner[node.dim] = start, part.size
        cut = box(shape, offsets, inner)
        sharded = apply(part.map, cut.shape, site.below(f"parts[{number}]"))
        if len(sharded.shape) != len(shape):
            raise site.invalid("a part's shard has another number of dimensions")
        made.append((sharded, _composed(sharded, cut, site)))
        start += part.size
    return _concatenated(made, node.dim, site)


def _concatenated(made: Sequence[tuple[Local, tuple[Block, ...]]], dim: int, site: Site) -> Local:
    """Return the shards of the parts, one behind the other along `dim`."""
    others = {tuple(n for k, n in enumerate(part.shape) if k != dim) for part, _ in made}
    if len(others) > 1:
        raise site.invalid("the parts' shards differ in another dimension than the concatenated one")
    if len({part.scale for part, _ in made}) > 1:
        raise site.invalid("the parts are scaled differently; scale the whole")
    rest = others.pop() if others else ()
    total = sum(part.shape[dim] for part, _ in made)
    whole = (*rest[:dim], total, *rest[dim:])
    start = 0
    blocks: list[Block] = []
    for part, inner in made:
        offsets = [0] * len(whole)
        offsets[dim] = start
        placed = box(whole, offsets, part.shape)
        into = tuple(block.swapped() for block in placed.blocks)
        meetings = meet(into, inner, part.elements, site.budget)
        blocks += [Block(m.shape, m.a, m.b, inner[m.second].tag) for m in meetings]
        start += part.shape[dim]
    scale = made[0][0].scale if made else ONE
    return Local(whole, tuple(blocks), scale=scale)


def _interleave(node: nodes.Interleave, shape: tuple[int, ...], site: Site) -> Local:
    extent = _dim(shape, node.dim, site)
    grouped = node.head_grouping * node.parts * node.stride
    if extent % grouped:
        raise site.invalid(f"{extent:,} slices do not divide into groups x parts x stride = {grouped:,}")
    units = extent // grouped
    ranks = site.sizes[node.axis]
    if node.head_grouping * units % ranks:
        raise site.invalid(f"{node.head_grouping * units:,} units do not divide among {ranks:,} ranks")
    mine = node.head_grouping * units // ranks
    outer, inner = shape[: node.dim], shape[node.dim + 1 :]
    below = math.prod(inner)
    out = (*outer, mine * node.parts * node.stride, *inner)
    first = site.at[node.axis] * mine
    blocks = []
    done = 0
    while done < mine:  # a run of units within one group at a time
        group, unit = divmod(first + done, units)
        run = min(mine - done, units - unit)
        whole = (mine - done) // units if unit == 0 else 0
        groups = max(1, whole)
        run = units if whole else run
        blocks.append(_units(node, shape, out, below, group, unit, groups, run, units, done))
        done += groups * run
    return Local(out, tuple(blocks))


def _units(
    node: nodes.Interleave,
    shape: tuple[int, ...],
    out: tuple[int, ...],
    below: int,
    group: int,
    unit: int,
    groups: int,
    run: int,
    units: int,
    done: int,
) -> Block:
    """Return the block of `run` units in each of `groups` groups: indices (outer, group, unit, part, stride x inner)."""
    tail = node.stride * below
    source = (
        units * node.parts * tail,
        tail,
        units * tail,
        1,
    )
    dest = (run * node.parts * tail, node.parts * tail, tail, 1)
    extents = (groups, run, node.parts, tail)
    outer_in = row_major(shape)[: node.dim]
    outer_out = row_major(out)[: node.dim]
    return Block(
        (*shape[: node.dim], *extents),
        Side(done * node.parts * tail, (*outer_out, *dest)),
        Side(group * source[0] + unit * source[1], (*outer_in, *source)),
    )


def _trim(node: nodes.Trim, shape: tuple[int, ...], site: Site) -> Local:
    extent = _dim(shape, node.dim, site)
    if extent != node.logical_size or node.padded_size < extent:
        raise site.invalid(
            f"{node.logical_size:,} of {node.padded_size:,} slices for a dimension of {extent:,}"
        )
    out = (*shape[: node.dim], node.padded_size, *shape[node.dim + 1 :])
    block = Block(shape, Side(0, row_major(out)), Side(0, row_major(shape)))
    return Local(out, (block,) if math.prod(shape) else ())


def _block(node: nodes.Block, shape: tuple[int, ...], site: Site) -> Local:
    extents = tuple(site.sizes[name] for name in node.axes)
    if math.prod(extents) != len(node.boxes):
        raise site.invalid(f"{len(node.boxes):,} boxes for {math.prod(extents):,} coordinates")
    position = sum(site.at[name] * s for name, s in zip(node.axes, row_major(extents), strict=True))
    held = node.boxes[position]
    if held is None:
        return Local((0,) * len(shape), ())
    if len(held.offsets) != len(shape) or len(held.sizes) != len(shape):
        raise site.invalid("a box has another number of dimensions than the tensor")
    if any(o + n > limit for o, n, limit in zip(held.offsets, held.sizes, shape, strict=True)):
        raise site.invalid(f"box {position} reaches beyond the tensor")
    return box(shape, held.offsets, held.sizes)


def _flat_range(node: nodes.FlatRange, shape: tuple[int, ...], site: Site) -> Local:
    position = site.position(node.axis, len(node.start))
    site.position(node.axis, len(node.stop))
    start, stop = node.start[position], node.stop[position]
    if stop < start:
        raise site.invalid(f"a range from {start:,} to {stop:,}")
    held = max(0, min(stop, math.prod(shape)) - start)
    block = Block((held,), Side(0, (1,)), Side(start, (1,)))
    return Local((stop - start,), (block,) if held else ())


def _explicit(node: nodes.Explicit, shape: tuple[int, ...], site: Site) -> Local:
    position = site.position(node.axis, len(node.indices))
    indices = node.indices[position]
    total = math.prod(shape)
    if indices and max(indices) >= total:
        raise site.invalid(f"an index beyond the {total:,} elements of the input")
    out: tuple[int, ...] = (len(indices),)
    if node.shapes is not None:
        site.position(node.axis, len(node.shapes))
        out = node.shapes[position]
    if math.prod(out) != len(indices):
        raise site.invalid(f"{len(indices):,} indices for a shard of {math.prod(out):,}")
    blocks = blocks_of(indices, index=site.index)
    if any(block.tag == INDEXED for block in blocks):
        site.budget.walk(len(indices))
    else:
        site.budget.index(len(indices))
    return Local(out, tuple(blocks))


def _scale(node: nodes.Scale, shape: tuple[int, ...], site: Site) -> Local:
    if node.numerator == 0:
        raise site.invalid("a factor of zero cannot be undone")
    blocks = _identity(shape).blocks
    return Local(shape, blocks, scale=_product((node.numerator, node.denominator), ONE), whole=True)


_RULES: Final[dict[type, Callable[..., Local]]] = {
    nodes.Contiguous: _contiguous,
    nodes.SubParamConcat: _sub_param_concat,
    nodes.Interleave: _interleave,
    nodes.Trim: _trim,
    nodes.Block: _block,
    nodes.FlatRange: _flat_range,
    nodes.Explicit: _explicit,
    nodes.Scale: _scale,
}
