"""Random shard maps of every node, and what they mean, told by numpy element by element.

The oracle knows the language from its documentation alone: it slices, reshapes and gathers an array of addresses, and
shares no code with the engine.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from shardscope.engine.model import shardmap as nodes
from shardscope.engine.model.piece import Lowered, RankShard
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis, Node, Part, TensorMap

Array = np.ndarray[Any, np.dtype[np.int64]]
At = dict[str, int]

PADDING = -1


class Shown:
    """A shard as the oracle sees it: the logical address at each place, or PADDING, and the factor."""

    def __init__(self, elements: Array, scale: Fraction = Fraction(1)) -> None:
        self.elements = elements
        self.scale = scale


def mesh_of(ranks: tuple[int, ...] | None = None, **axes: int) -> DeviceMesh:
    return DeviceMesh(tuple(MeshAxis(name, size) for name, size in axes.items()), ranks)


def places_of(mesh: DeviceMesh) -> list[tuple[int, At]]:
    """Return every rank with its coordinate, the last axis fastest."""
    sizes = [axis.size for axis in mesh.axes]
    indices = [tuple(int(n) for n in index) for index in np.ndindex(*sizes)]
    ranks = mesh.ranks if mesh.ranks is not None else tuple(range(len(indices)))
    names = [axis.name for axis in mesh.axes]
    return [(rank, dict(zip(names, index, strict=True))) for rank, index in zip(ranks, indices, strict=True)]


def shown(tensor: TensorMap, mesh: DeviceMesh) -> dict[int, Shown]:
    """Return what every rank holds."""
    full = np.arange(math.prod(tensor.shape), dtype=np.int64).reshape(tensor.shape)
    sizes = {axis.name: axis.size for axis in mesh.axes}
    return {rank: evaluate(tensor.map, full, at, sizes) for rank, at in places_of(mesh)}


def evaluate(node: Node, full: Array, at: At, sizes: dict[str, int]) -> Shown:
    """Return the shard that a tree makes of an array at one coordinate."""
    if isinstance(node, nodes.Replicate):
        return Shown(full)
    below = Shown(full) if node.of is None else evaluate(node.of, full, at, sizes)
    here = below.elements
    scale = below.scale
    if isinstance(node, nodes.Contiguous):
        start = sum(node.widths[: at[node.axis]])
        return Shown(_cut(here, node.dim, start, node.widths[at[node.axis]]), scale)
    if isinstance(node, nodes.SubParamConcat):
        ends = np.cumsum([part.size for part in node.parts]).tolist()
        parts = [
            evaluate(part.map, _cut(here, node.dim, end - part.size, part.size), at, sizes)
            for part, end in zip(node.parts, ends, strict=True)
        ]
        return Shown(np.concatenate([part.elements for part in parts], axis=node.dim), scale * parts[0].scale)
    if isinstance(node, nodes.Interleave):
        return Shown(_dealt(node, here, at[node.axis], sizes[node.axis]), scale)
    if isinstance(node, nodes.Trim):
        room = [(0, 0)] * here.ndim
        room[node.dim] = (0, node.padded_size - node.logical_size)
        return Shown(np.pad(here, room, constant_values=PADDING), scale)
    if isinstance(node, nodes.FlatRange):
        start, stop = node.start[at[node.axis]], node.stop[at[node.axis]]
        flat = here.reshape(-1)
        beyond = np.full(max(0, stop - flat.size), PADDING, dtype=np.int64)
        return Shown(np.concatenate([flat, beyond])[start:stop], scale)
    if isinstance(node, nodes.Block):
        position = 0
        for name in node.axes:
            position = position * sizes[name] + at[name]
        box = node.boxes[position]
        if box is None:
            return Shown(here[tuple(slice(0, 0) for _ in here.shape)], scale)
        return Shown(here[tuple(slice(o, o + n) for o, n in zip(box.offsets, box.sizes, strict=True))], scale)
    if isinstance(node, nodes.Explicit):
        taken = here.reshape(-1)[np.array(node.indices[at[node.axis]], dtype=np.int64)]
        return Shown(taken if node.shapes is None else taken.reshape(node.shapes[at[node.axis]]), scale)
    return Shown(here, scale * Fraction(node.numerator, node.denominator))


def _cut(array: Array, dim: int, start: int, size: int) -> Array:
    return array[(slice(None),) * dim + (slice(start, start + size),)]


def _dealt(node: nodes.Interleave, array: Array, position: int, ranks: int) -> Array:
    shape, dim = array.shape, node.dim
    units = shape[dim] // (node.head_grouping * node.parts * node.stride)
    seen = array.reshape(*shape[:dim], node.head_grouping, node.parts, units, node.stride, *shape[dim + 1 :])
    seen = np.moveaxis(seen, dim + 2, dim + 1)
    every = node.head_grouping * units
    seen = seen.reshape(*shape[:dim], every, node.parts, node.stride, *shape[dim + 1 :])
    mine = every // ranks
    seen = _cut(seen, dim, position * mine, mine)
    return seen.reshape(*shape[:dim], mine * node.parts * node.stride, *shape[dim + 1 :])


def pairs(shard: RankShard) -> list[tuple[int, int, tuple[int, ...], Fraction]]:
    """Return a lowered shard element by element: shard address, logical address, holders, factor."""
    found = []
    for piece in shard.pieces:
        for index in np.ndindex(*piece.shape):
            source = piece.source.offset + sum(
                n * s for n, s in zip(index, piece.source.strides, strict=True)
            )
            dest = piece.dest.offset + sum(n * s for n, s in zip(index, piece.dest.strides, strict=True))
            found.append((int(dest), int(source), piece.holders, Fraction(*piece.scale)))
    for one in shard.indexed:
        sources, dests = (np.frombuffer(side, dtype="<i8").tolist() for side in (one.source, one.dest))
        found += [(d, s, one.holders, Fraction(*one.scale)) for s, d in zip(sources, dests, strict=True)]
    return found


def holders_of(shards: Mapping[int, Iterable[int]]) -> dict[int, tuple[int, ...]]:
    """Return which ranks hold each logical address."""
    held: dict[int, set[int]] = {}
    for rank, elements in shards.items():
        for element in elements:
            if element != PADDING:
                held.setdefault(int(element), set()).add(rank)
    return {element: tuple(sorted(ranks)) for element, ranks in held.items()}


def elements_of(lowered: Lowered) -> dict[int, list[int]]:
    """Return the logical address at every shard address of every rank; PADDING where there is none."""
    found = {}
    for shard in lowered.ranks:
        row = [PADDING] * shard.elements
        for dest, source, _, _ in pairs(shard):
            row[dest] = source
        found[shard.rank] = row
    return found


@st.composite
def cuts(draw: st.DrawFn, extent: int, count: int) -> tuple[int, ...]:
    """`count` widths that sum to `extent`: often even, often with zeros."""
    if extent % count == 0 and draw(st.booleans()):
        return (extent // count,) * count
    ends = sorted(draw(st.lists(st.integers(0, extent), min_size=count - 1, max_size=count - 1)))
    return tuple(b - a for a, b in zip([0, *ends], [*ends, extent], strict=True))


Inputs = Sequence[Array]
"""What a node may get as its input, one array for each coordinate."""


@st.composite
def nodes_on(draw: st.DrawFn, inputs: Inputs, sizes: dict[str, int], of: Node | None, depth: int) -> Node:
    """A node that is valid on every one of the inputs."""
    kinds = ["flat_range", "scale", "explicit"]
    shapes = {array.shape for array in inputs}
    dims = []
    if len({len(shape) for shape in shapes}) == 1:
        kinds += ["block"]
        dims = [d for d in range(len(inputs[0].shape)) if len({shape[d] for shape in shapes}) == 1]
    if dims:
        kinds += (
            ["contiguous"] * 3 + ["interleave"] * 2 + ["trim"] + ["sub_param_concat"] * (3 if depth else 0)
        )
    kind = draw(st.sampled_from(kinds))
    axis = draw(st.sampled_from(sorted(sizes)))
    ranks = sizes[axis]
    if kind == "flat_range":
        total = max(array.size for array in inputs) + draw(st.integers(0, 4))
        widths = draw(cuts(total, ranks))
        ends = np.cumsum(widths).tolist()
        return nodes.FlatRange(axis, tuple(b - w for b, w in zip(ends, widths, strict=True)), tuple(ends), of)
    if kind == "scale":
        return nodes.Scale(draw(st.sampled_from([-2, -1, 1, 2, 3])), draw(st.sampled_from([1, 2, 3])), of)
    if kind == "explicit":
        return draw(_explicit(min(array.size for array in inputs), axis, ranks, of))
    if kind == "block":
        return draw(_block([min(shape[d] for shape in shapes) for d in range(inputs[0].ndim)], sizes, of))
    dim = draw(st.sampled_from(dims))
    extent = inputs[0].shape[dim]
    if kind == "contiguous":
        return nodes.Contiguous(axis, dim, draw(cuts(extent, ranks)), of)
    if kind == "trim":
        return nodes.Trim(dim, extent, extent + draw(st.integers(0, 3)), of)
    if kind == "interleave":
        fits = [
            (groups, parts, stride)
            for groups in (1, 2, 3, 4)
            for parts in (1, 2, 3)
            for stride in (1, 2, 4)
            if extent and extent % (groups * parts * stride) == 0 and extent // (parts * stride) % ranks == 0
        ]
        if not fits:
            return nodes.Contiguous(axis, dim, draw(cuts(extent, ranks)), of)
        groups, parts, stride = draw(st.sampled_from(fits))
        return nodes.Interleave(axis, dim, groups, stride, parts, of)
    return nodes.SubParamConcat(dim, draw(_parts(inputs, sizes, dim, extent, depth)), of)


@st.composite
def _explicit(draw: st.DrawFn, room: int, axis: str, ranks: int, of: Node | None) -> nodes.Explicit:
    order = draw(st.permutations(range(room)))
    if room and draw(st.booleans()):
        step = draw(st.integers(1, room))
        order = [n for start in range(step) for n in range(start, room, step)]
    widths = draw(cuts(room, ranks))
    ends = np.cumsum(widths).tolist()
    indices = tuple(tuple(order[b - w : b]) for b, w in zip(ends, widths, strict=True))
    shapes = None
    if draw(st.booleans()):
        shapes = tuple((2, n // 2) if n % 2 == 0 else (n, 1) for n in widths)
    return nodes.Explicit(axis, indices, shapes, of)


@st.composite
def _block(draw: st.DrawFn, extents: list[int], sizes: dict[str, int], of: Node | None) -> nodes.Block:
    axes = tuple(draw(st.lists(st.sampled_from(sorted(sizes)), min_size=1, max_size=2, unique=True)))
    boxes: list[nodes.Box | None] = []
    for _ in range(math.prod(sizes[name] for name in axes)):
        offsets = [draw(st.integers(0, extent)) for extent in extents]
        held = [
            draw(st.integers(0, extent - offset)) for extent, offset in zip(extents, offsets, strict=True)
        ]
        empty = draw(st.integers(0, 9)) == 0
        boxes.append(None if empty else nodes.Box(tuple(offsets), tuple(held)))
    return nodes.Block(axes, tuple(boxes), of)


@st.composite
def _parts(
    draw: st.DrawFn, inputs: Inputs, sizes: dict[str, int], dim: int, extent: int, depth: int
) -> tuple[Part, ...]:
    parts: list[Part] = []
    for size in draw(cuts(extent, draw(st.integers(1, 3)))):
        choice = draw(st.sampled_from(["replicate", "contiguous", "nested", "trim"]))
        axis = draw(st.sampled_from(sorted(sizes)))
        node: Node = nodes.Replicate()
        if choice == "contiguous":
            node = nodes.Contiguous(axis, dim, draw(cuts(size, sizes[axis])))
        elif choice == "trim":
            padded = size + draw(st.integers(0, 2))
            node = nodes.Contiguous(axis, dim, draw(cuts(padded, sizes[axis])), nodes.Trim(dim, size, padded))
        elif choice == "nested" and depth > 1:
            cut = [_cut(array, dim, 0, size) for array in inputs]
            node = nodes.SubParamConcat(dim, draw(_parts(cut, sizes, dim, size, depth - 1)))
        parts.append(Part(size, node))
    return tuple(parts)


@st.composite
def trees(draw: st.DrawFn, shape: tuple[int, ...], sizes: dict[str, int]) -> Node:
    """A tree of up to three nodes on top of each other, parts nested up to two deep."""
    full = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    coordinates = [
        {name: int(n) for name, n in zip(sizes, index, strict=True)} for index in np.ndindex(*sizes.values())
    ]
    node: Node | None = None
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3]))):
        inputs = [full if node is None else evaluate(node, full, at, sizes).elements for at in coordinates]
        node = draw(nodes_on(inputs, sizes, node, 2))
    return node or nodes.Replicate()


shapes = (
    st.lists(st.sampled_from([1, 2, 3, 4, 6, 8, 12]), min_size=1, max_size=3)
    .map(tuple)
    .filter(lambda shape: math.prod(shape) <= 192)
)

meshes = st.builds(
    lambda tp, dp, labels: mesh_of(tuple(labels[: tp * dp]) if labels else None, dp=dp, tp=tp),
    st.sampled_from([1, 2, 3, 4]),
    st.sampled_from([1, 2, 3]),
    st.none() | st.lists(st.integers(-50, 2000), min_size=12, max_size=12, unique=True),
)
"""A tensor-parallel and a data-parallel axis; the labels of the ranks in any order and with gaps, or left out."""


@st.composite
def maps(draw: st.DrawFn, shape: tuple[int, ...] | None = None) -> tuple[TensorMap, DeviceMesh]:
    """A map of one tensor on a mesh."""
    mesh = draw(meshes)
    extents = draw(shapes) if shape is None else shape
    tree = draw(trees(extents, {axis.name: axis.size for axis in mesh.axes}))
    return TensorMap(extents, tree), mesh


@st.composite
def pairs_of_maps(draw: st.DrawFn) -> tuple[tuple[TensorMap, DeviceMesh], tuple[TensorMap, DeviceMesh]]:
    """Two layouts of one tensor."""
    shape = draw(shapes)
    return draw(maps(shape)), draw(maps(shape))
