"""DTensors that torch.save pickled on one rank: mesh, placements, this rank's place, and its local tensor.

Fields are those of torch 2.13 (`torch/distributed/tensor/_dtensor_spec.py`, `device_mesh.py`, `_mesh_layout.py`); up to 2.8 a
mesh kept a tensor of its ranks instead of a layout over the ranks of a root mesh.
"""

import re
from collections.abc import Sequence
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.decoder import Decoder, TorchFile
from shardscope.engine.geometry.constructors.dtensor import Partial, Placement, Shard, Whole
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.pickled import Items, Number, PickledTensor, Record
from shardscope.engine.parse.pickled.tree import Tree

_NAME: Final = re.compile(r"[A-Za-z]\w{0,31}")
_MOST_AXES: Final = 8
_MOST_RANKS: Final = 1 << 17


class Layout(Struct, frozen=True):
    """How a tensor is cut: equal for all ranks that hold a part of it, whichever of several like meshes they are on."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    placements: tuple[Placement, ...]

    @property
    def places(self) -> int:
        """How many places the mesh has."""
        return prod(self.sizes)


class Local(Struct, frozen=True):
    """What one rank holds of a DTensor."""

    layout: Layout
    place: int
    """Of this rank on the mesh, row-major over its axes."""
    ranks: tuple[int, ...] | None
    """Of every place of the mesh; null where the file does not tell."""
    rank: int | None
    """That wrote it, as the mesh says."""
    tensor: PickledTensor


class _Mesh(Struct, frozen=True):
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    coordinate: tuple[int, ...]
    ranks: tuple[int, ...] | None
    rank: int | None


class DTensors:
    """The DTensors of one file. Meshes and placements are read once each."""

    def __init__(self, decoder: Decoder, file: TorchFile) -> None:
        self._decoder = decoder
        self._file = file
        self._tree: Tree = file.tree
        self._meshes: dict[Number, _Mesh] = {}
        self._layouts: dict[tuple[Number | None, ...], tuple[Layout, int]] = {}

    def read(self, tensor: PickledTensor) -> Local:
        """Return what a DTensor says. Raises `Fault` `fsdp.layout_unknown` with a reason."""
        tree = self._tree
        local, spec = tree.tensor(tensor.parts.get("_local_tensor")), tensor.parts.get("_spec")
        if local is None or local.kind != "strided" or tree.record(spec, "DTensorSpec") is None:
            raise odd("it has no plain local tensor, or no description")
        shape = tree.integers(spec, "tensor_meta", "shape")
        if shape is not None and shape != tuple(tensor.shape):
            raise odd("its description has another shape")
        numbers = tuple(tree.get(spec, name) for name in ("mesh", "placements", "shard_order"))
        mesh = self._mesh(numbers[0])
        if numbers not in self._layouts:
            self._layouts[numbers] = self._layout(mesh, *numbers[1:])
        layout, place = self._layouts[numbers]
        return Local(layout, place, _permuted(mesh, layout), mesh.rank, local)

    def _layout(self, mesh: _Mesh, placements: Number | None, order: Number | None) -> tuple[Layout, int]:
        found = tuple(self._placement(item) for item in self._tree.items(placements))
        if len(found) != len(mesh.sizes):
            raise odd("it has another number of placements than its mesh has axes")
        axes = self._order(order, found)
        layout = Layout(
            tuple(mesh.names[axis] for axis in axes),
            tuple(mesh.sizes[axis] for axis in axes),
            tuple(found[axis] for axis in axes),
        )
        return layout, place_of(layout.sizes, [mesh.coordinate[axis] for axis in axes])

    def _placement(self, number: Number) -> Placement:
        node = self._tree.node(number)
        kind = node.kind if isinstance(node, Record) else ""
        match kind:
            case "Replicate":
                return Whole()
            case "Shard":
                return Shard(self._count(number, "dim"))
            case "_StridedShard":
                return Shard(self._count(number, "dim"), self._count(number, "split_factor"))
            case "Partial" | "_Partial":
                return Partial()
        raise odd("it has a placement that is not known here")

    def _count(self, number: Number, name: str) -> int:
        found = self._tree.integer(number, name)
        if found is None:
            raise odd(f"a placement has no {name}")
        return found

    def _order(self, order: Number | None, placements: Sequence[Placement]) -> list[int]:
        """Return the axes in the order of their cuts.

        `shard_order` lists, for each dimension, the mesh axes that cut it, first cut first: left to right where nothing else
        is said. Moving axes about on the mesh says the same, since a cut by one axis knows nothing of the others.
        """
        axes = list(range(len(placements)))
        for entry in self._tree.items(order):
            cuts = self._tree.integers(entry, "mesh_dims")
            dim = self._tree.integer(entry, "tensor_dim")
            sharding = [axis for axis, item in enumerate(placements) if _shards(item, dim)]
            if cuts is None or sorted(cuts) != sharding:
                raise odd("its order of cuts does not fit its placements")
            for axis, cut in zip(sharding, cuts, strict=True):
                axes[axis] = cut
        return axes

    def _mesh(self, number: Number | None) -> _Mesh:
        if number is None or self._tree.record(number, "DeviceMesh") is None:
            raise odd("it has no mesh")
        if number not in self._meshes:
            self._meshes[number] = self._read_mesh(number)
        return self._meshes[number]

    def _read_mesh(self, number: Number) -> _Mesh:
        tree = self._tree
        coordinate = tree.integers(number, "_coordinate_on_dim")
        mesh = tree.tensor(number, "mesh")
        if mesh is not None:
            sizes = tuple(mesh.shape)
            offsets: list[tuple[tuple[int, int], ...]] = []
        else:
            offsets = self._axes(number)
            sizes = tuple(prod(size for size, _ in axis) for axis in offsets)
        if coordinate is None or len(coordinate) != len(sizes) or not 0 < len(sizes) <= _MOST_AXES:
            raise odd("its mesh does not say where this rank is on it")
        if not 0 < prod(sizes) <= _MOST_RANKS or not all(
            0 <= at < size for at, size in zip(coordinate, sizes, strict=True)
        ):
            raise odd("this rank is outside of its mesh")
        rank = tree.integer(number, "_rank")
        table = self._decoder.integers(self._file, mesh or tree.tensor(number, "_rank_map"))
        if table is not None and len(table) < prod(sizes):
            raise odd("its mesh has more places than ranks")
        if mesh is not None:
            ranks = table
            rank = table[place_of(sizes, coordinate)] if rank is None and table is not None else rank
        else:
            ranks = _from_layout(offsets, coordinate, rank, table)
        return _Mesh(self._names(number, len(sizes)), sizes, coordinate, ranks, rank)

    def _axes(self, number: Number) -> list[tuple[tuple[int, int], ...]]:
        """Return sizes and strides of the axes of a layout, over the ranks of its root mesh."""
        tree = self._tree
        axes = tree.items(number, "_layout", "axes")
        if axes:
            pairs = [(tree.get(axis, "shape"), tree.get(axis, "stride")) for axis in axes]
        else:
            shape, stride = tree.get(number, "_layout", "shape"), tree.get(number, "_layout", "stride")
            if isinstance(tree.node(shape), Items):
                pairs = list(zip(tree.items(shape), tree.items(stride), strict=False))
            else:
                pairs = [(shape, stride)]
        return [tuple(zip(self._flat(size), self._flat(step), strict=False)) for size, step in pairs]

    def _flat(self, number: Number | None) -> list[int]:
        """Return a number, or the numbers of nested tuples."""
        found: list[int] = []
        stack = [number]
        while stack:
            at = stack.pop()
            value = self._tree.integer(at) if at is not None else None
            if value is not None:
                found.append(value)
            elif at is None or len(stack) > _MOST_AXES * _MOST_AXES:
                raise odd("the layout of its mesh cannot be read")
            else:
                stack += reversed(self._tree.items(at))
        return found

    def _names(self, number: Number, count: int) -> tuple[str, ...]:
        tree = self._tree
        said = tree.items(number, "_mesh_dim_names") or tree.items(number, "mesh_dim_names")
        names = [tree.text(item) or "" for item in said]
        if len(names) != count or len(set(names)) != count or not all(map(_NAME.fullmatch, names)):
            return tuple(f"axis{axis}" for axis in range(count))
        return tuple(names)


def odd(reason: str) -> Fault:
    """Return the fault of a distributed tensor that cannot be placed."""
    return Fault("fsdp.layout_unknown", reason=reason)


def _shards(placement: Placement, dim: int | None) -> bool:
    return isinstance(placement, Shard) and placement.dim == dim


def place_of(sizes: Sequence[int], coordinate: Sequence[int]) -> int:
    """Return the place of coordinates on a mesh, row-major."""
    place = 0
    for size, at in zip(sizes, coordinate, strict=True):
        place = place * size + at
    return place


def coordinates(sizes: Sequence[int], place: int) -> list[int]:
    """Return the coordinates of a place on a mesh, row-major."""
    found = []
    for size in reversed(sizes):
        place, at = divmod(place, size)
        found.append(at)
    return found[::-1]


def _from_layout(
    axes: Sequence[tuple[tuple[int, int], ...]],
    coordinate: Sequence[int],
    rank: int | None,
    table: tuple[int, ...] | None,
) -> tuple[int, ...] | None:
    """Return the ranks of every place of a mesh that is a part of a root mesh: strides over the table of its ranks.

    Where the part begins in the table follows from this rank's own place.
    """
    if rank is None or table is None or rank not in table:
        return None
    sizes = [prod(size for size, _ in axis) for axis in axes]
    steps = [_steps(axis) for axis in axes]
    begin = table.index(rank) - sum(step[at] for step, at in zip(steps, coordinate, strict=True))
    found = []
    for place in range(prod(sizes)):
        at = begin + sum(step[i] for step, i in zip(steps, coordinates(sizes, place), strict=True))
        if not 0 <= at < len(table):
            return None
        found.append(table[at])
    return tuple(found)


def _steps(axis: Sequence[tuple[int, int]]) -> list[int]:
    """Return how far each position of an axis is from its first; an axis that joins several has a size and a stride of each."""
    found = [0]
    for size, stride in axis:
        found = [at + step * stride for at in found for step in range(size)]
    return found


def _permuted(mesh: _Mesh, layout: Layout) -> tuple[int, ...] | None:
    """Return the ranks of a mesh whose axes were moved about."""
    if mesh.ranks is None or layout.names == mesh.names:
        return mesh.ranks
    axes = [mesh.names.index(name) for name in layout.names]
    found = []
    for place in range(layout.places):
        at = [0] * len(axes)
        for axis, position in zip(axes, coordinates(layout.sizes, place), strict=True):
            at[axis] = position
        found.append(mesh.ranks[place_of(mesh.sizes, at)])
    return tuple(found)
