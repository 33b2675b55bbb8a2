"""Target topologies by numbers: how ranks cut a tensor anew, by a layout table.

Ranks are numbered as Megatron Core numbers them (`megatron/core/parallel_state.py`, order tp-cp-ep-dp-pp): tensor-parallel ranks
are neighbours, then come expert-parallel and data-parallel ones, and stages of a pipeline are furthest apart. Experts are on the
same ranks, seen as (edp, ep, tp): the ranks of one ep are dp / ep groups of tp neighbours.
"""

import math
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.geometry.constructors.cuts import chunks, padded_cut
from shardscope.engine.geometry.constructors.flat import zero3_range
from shardscope.engine.geometry.mapping.sections import Asked, Sectioned, sectioned
from shardscope.engine.geometry.mapping.tables import LayoutTable, Placed
from shardscope.engine.geometry.mapping.templates import Variant
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.mapping import Kind, ModelFacts, View
from shardscope.engine.model.shardmap import (
    Block,
    Box,
    Contiguous,
    DeviceMesh,
    MeshAxis,
    Node,
    Part,
    Replicate,
    SubParamConcat,
    TensorMap,
)

Sharding = Literal["none", "zero1", "zero2", "zero3", "fsdp"]
Shape = tuple[int, ...]

TP: Final = "tp"
MOST_RANKS: Final = 65_536


class Numbers(Struct, frozen=True):
    """A topology in numbers."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    sharding: Sharding = "none"
    """Among data-parallel ranks: flattened stretches (ZeRO; below stage 3 of optimizer states alone), or slices of dimension 0."""
    vocabulary_multiple: int = 1
    """Rows of a vocabulary are padded to a multiple of it that divides among tp."""

    @property
    def ranks(self) -> int:
        """All ranks."""
        return self.tp * self.pp * self.dp

    @property
    def alike(self) -> bool:
        """Whether data-parallel ranks alone share tensors: each in the same way, whatever it is for."""
        return self.tp == self.pp == self.ep == 1

    def check(self) -> None:
        """Raise `Fault` `reshard.target` where the numbers contradict each other."""
        if min(self.tp, self.pp, self.dp, self.ep, self.vocabulary_multiple) < 1:
            raise Fault("reshard.target", reason="a number is less than 1")
        if self.ranks > MOST_RANKS:
            raise Fault("reshard.target", reason=f"{self.ranks:,} ranks are more than {MOST_RANKS:,}")
        if self.dp % self.ep:
            raise Fault(
                "reshard.target",
                reason=f"{self.dp:,} data-parallel ranks do not divide among {self.ep:,} expert-parallel ones",
            )


class Cut(Struct, frozen=True):
    """A tensor before data-parallel ranks share it."""

    shape: Shape
    node: Node | None
    """Null: every rank of the mesh holds all of it."""
    shard: Shape
    """Of every rank: they are equal."""
    mesh: str
    axis: str
    """Of the mesh, along which ranks hold the same."""
    group: tuple[int, str]
    """Stage and mesh: what lies in one flattened buffer of ZeRO."""


ANY: Final = Placed(Kind("any", ()), {}, (), Variant((), ()))
"""The rule for tensors that are not cut by their names."""


class Targets:
    """The tensors of a model on the ranks of a topology."""

    def __init__(self, table: LayoutTable | None, facts: ModelFacts, numbers: Numbers, layers: int) -> None:
        """`layers` are those of the whole model. Without a table no tensor is cut by its name, which data-parallel ranks alone need
        not. Raises `Fault` `reshard.target`.
        """
        numbers.check()
        if layers % numbers.pp:
            raise Fault(
                "reshard.target", reason=f"{layers:,} layers do not divide among {numbers.pp:,} stages"
            )
        self._name = "" if table is None else table.name
        self.numbers = numbers
        self.meshes: dict[str, DeviceMesh] = {}
        """Those that tensors are on, by name."""
        self._facts = facts
        self._per_stage = layers // numbers.pp

    def cut(self, name: str, shape: Shape, placed: Placed) -> Cut:
        """Return how tensor-parallel and expert-parallel ranks cut a tensor, and on which ranks it is.

        Raises `Fault`: `reshard.cut`, `reshard.stage`, `mapping.fact_missing`, `mapping.size`.
        """
        depth = len(placed.stacked)
        if "layer" in placed.stacked and self.numbers.pp > 1:
            raise Fault(
                "reshard.stage",
                table=self._name,
                tensor=name,
                reason="it holds all layers in one tensor",
            )
        stage = self._stage(name, placed)
        expert = placed.kind.group == "expert"
        node: Node | None = None
        held = shape
        if expert and "expert" in placed.stacked:
            node, held = self._experts(name, shape, placed.stacked.index("expert"))
        node, held = _cut_by_tp(
            placed.kind, held, depth, self.numbers, self._facts, Asked(self._name, name), node
        )
        mesh = self._mesh(stage, placed, experts=self._experts_of(name, placed) if expert else 0)
        return Cut(shape, node, held, mesh, "edp" if expert else "dp", (stage, mesh))

    def shared(self, cut: Cut, *, state: bool) -> TensorMap:
        """Return the map of a tensor with its share among data-parallel ranks, ZeRO-1 and ZeRO-2 apart: see `flat_state`."""
        node, sharding = cut.node, self.numbers.sharding
        ranks = self.ranks_along(cut)
        if sharding == "zero3" and ranks > 1:
            node = zero3_range(math.prod(cut.shard), ranks, axis=cut.axis, of=node)
        elif sharding == "fsdp" and ranks > 1 and cut.shard:
            node = Contiguous(cut.axis, 0, chunks(cut.shard[0], ranks), node)
        elif state and sharding in ("zero1", "zero2") and ranks > 1:
            raise ValueError("states of ZeRO-1 and ZeRO-2 lie in a buffer of all of them")
        return TensorMap(cut.shape, node or Replicate(), cut.mesh)

    def everywhere(self, cut: Cut, shape: Shape) -> TensorMap:
        """Return the map of something that belongs to a tensor and that every rank of it holds whole: a count of steps."""
        return TensorMap(shape, Replicate(), cut.mesh)

    def ranks_along(self, cut: Cut) -> int:
        """Return how many data-parallel ranks share a tensor."""
        return self.numbers.dp // (self.numbers.ep if cut.axis == "edp" else 1)

    def _stage(self, name: str, placed: Placed) -> int:
        if self.numbers.pp == 1:
            return 0
        layer = placed.numbers.get("layer")
        if layer is not None:
            return layer // self._per_stage
        if placed.kind.stage is None:
            raise Fault(
                "reshard.stage",
                table=self._name,
                tensor=name,
                reason="it is in no layer, and its kind has no stage",
            )
        return 0 if placed.kind.stage == "first" else self.numbers.pp - 1

    def _experts_of(self, name: str, placed: Placed) -> int:
        if "expert" in placed.stacked or self.numbers.ep == 1:
            return 0
        count = self._facts.experts
        if count is None:
            raise Asked(self._name, name).missing("experts")
        if count % self.numbers.ep:
            raise self._refusal(name, self.numbers.ep, f"{count:,} experts do not divide")
        return placed.numbers["expert"] // (count // self.numbers.ep)

    def _experts(self, name: str, shape: Shape, dim: int) -> tuple[Node | None, Shape]:
        ranks = self.numbers.ep
        if ranks == 1:
            return None, shape
        if shape[dim] % ranks:
            raise self._refusal(name, ranks, f"{shape[dim]:,} experts do not divide")
        each = shape[dim] // ranks
        return Contiguous("ep", dim, (each,) * ranks), _with(shape, dim, each)

    def _mesh(self, stage: int, placed: Placed, *, experts: int) -> str:
        n = self.numbers
        base, end = stage * n.dp * n.tp, f".{stage}" if n.pp > 1 else ""
        if placed.kind.group != "expert":
            made, axes = f"dense{end}", {"dp": n.dp, TP: n.tp}
            labels = range(base, base + n.dp * n.tp)
            return self._known(made, axes, tuple(labels))
        edp = n.dp // n.ep
        if "expert" in placed.stacked or n.ep == 1:
            labels = range(base, base + n.dp * n.tp)
            return self._known(f"experts{end}", {"edp": edp, "ep": n.ep, TP: n.tp}, tuple(labels))
        own = tuple(base + (d * n.ep + experts) * n.tp + t for d in range(edp) for t in range(n.tp))
        return self._known(f"experts{end}.ep{experts}", {"edp": edp, TP: n.tp}, own)

    def _known(self, name: str, axes: dict[str, int], labels: tuple[int, ...]) -> str:
        if name not in self.meshes:
            plain = labels == tuple(range(len(labels)))
            self.meshes[name] = DeviceMesh(
                tuple(MeshAxis(axis, size) for axis, size in axes.items()), None if plain else labels
            )
        return name

    def _refusal(self, name: str, ranks: int, reason: str) -> Fault:
        return Fault("reshard.cut", tensor=name, ranks=ranks, reason=reason)


def is_vocabulary(view: View | None) -> bool:
    """Tell whether a dimension is a vocabulary with padding behind it."""
    return view is not None and any(part.size == "vocabulary" for part in view.sections)


def _cut_by_tp(
    kind: Kind, shape: Shape, depth: int, numbers: Numbers, facts: ModelFacts, asked: Asked, of: Node | None
) -> tuple[Node | None, Shape]:
    """Return the cut of what `of` leaves of a tensor, and the shard of a rank."""
    ranks = numbers.tp
    if kind.cut is None:
        return of, shape
    dim = kind.cut + depth
    if dim >= len(shape):
        raise _refused(asked, ranks, f"it has no dimension {kind.cut}")
    if is_vocabulary(kind.view):
        step = math.lcm(ranks, numbers.vocabulary_multiple)
        each = -(-shape[dim] // step) * step // ranks
        return _padded(dim, shape, (each,) * ranks, of)
    if ranks == 1:
        return of, shape
    view = kind.view
    if view is None or view.dim != kind.cut:
        return _evenly(dim, shape, ranks, 1, asked, of)
    cut = sectioned(view, shape[dim], facts, asked)
    if not kind.each:
        grain = shape[dim] // (cut.before[0] if cut.before else 1)
        return _evenly(dim, shape, ranks, grain if cut.before else 1, asked, of)
    return _by_section(view, cut, dim, shape, ranks, asked, of)


def _padded(dim: int, shape: Shape, widths: Sequence[int], of: Node | None) -> tuple[Node | None, Shape]:
    if len(widths) == 1 and widths[0] == shape[dim]:
        return of, shape
    node = padded_cut(TP, dim, shape[dim], widths)
    if of is not None:
        node = replace(node, of=of if node.of is None else replace(node.of, of=of))
    return node, _with(shape, dim, widths[0])


def _evenly(
    dim: int, shape: Shape, ranks: int, grain: int, asked: Asked, of: Node | None
) -> tuple[Node, Shape]:
    """Return equal runs of whole grains."""
    if shape[dim] % (grain * ranks):
        what = f"runs of {grain:,} slices" if grain > 1 else "slices"
        raise _refused(
            asked, ranks, f"its {shape[dim] // grain:,} {what} along dimension {dim} do not divide"
        )
    each = shape[dim] // ranks
    return Contiguous(TP, dim, (each,) * ranks, of), _with(shape, dim, each)


def _by_section(
    view: View, cut: Sectioned, dim: int, shape: Shape, ranks: int, asked: Asked, of: Node | None
) -> tuple[Node, Shape]:
    """Return the cut of each section on its own: by whole units where their number is known, otherwise by slices."""
    parts: list[Part] = []
    held = 0
    node: Block | Contiguous
    for section, units in zip(view.sections, cut.sizes, strict=True):
        size = units * cut.inner
        part = _with(shape, dim, size)
        if section.shared and units < ranks and ranks % units == 0:
            width = cut.inner
            starts = [rank // (ranks // units) * width for rank in range(ranks)]
            boxes = tuple(
                Box(_with((0,) * len(part), dim, start), _with(part, dim, width)) for start in starts
            )
            node = Block((TP,), boxes)
        elif (units if section.size is not None else size) % ranks:
            count = units if section.size is not None else size
            word = "units" if section.size is not None else "slices"
            raise _refused(asked, ranks, f"{count:,} {word} of its section {section.name} do not divide")
        else:
            width = size // ranks
            node = Contiguous(TP, dim, (width,) * ranks)
        parts.append(Part(size, node, section.name))
        held += width
    shard = _with(shape, dim, held)
    if len(parts) == 1:
        return replace(node, of=of), shard
    return SubParamConcat(dim, tuple(parts), of), shard


def _refused(asked: Asked, ranks: int, reason: str) -> Fault:
    return Fault("reshard.cut", tensor=asked.tensor, ranks=ranks, reason=reason)


def _with(shape: Shape, dim: int, extent: int) -> Shape:
    return (*shape[:dim], extent, *shape[dim + 1 :])
