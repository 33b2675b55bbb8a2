"""From a target as a person gave it, by a document of maps or by numbers, to maps for every tensor of an output.

Optimizer state moves with its parameter: what has a parameter's name within its own, and that parameter's shape, is laid out by
the same map. That is never an exact resume: what else a run needs is in no map.
"""

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.convert.plans.selection import Chosen
from shardscope.engine.geometry.constructors.flat import FlatBuffer, zero_group
from shardscope.engine.geometry.language.document import written
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.mapping.tables import LayoutTable, Placed
from shardscope.engine.geometry.mapping.targets import ANY, Cut, Numbers, Targets, is_vocabulary
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Shape
from shardscope.engine.model.lowered import LoweredDocument, LoweredTensor
from shardscope.engine.model.mapping import ModelFacts
from shardscope.engine.model.plan import Decision, RankLayout, Target
from shardscope.engine.model.schemas import LOWERED, SHARD_MAP
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis, Replicate, ShardMapDocument, TensorMap
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.text import counted, display_name

_EXAMPLES: Final = 3
_DIVIDERS: Final = re.compile(r"\.|::")
"""What stands between a parameter's name and the rest of a state's."""


class Made(Struct, frozen=True):
    """A target, and how it came to be."""

    target: Target
    decisions: tuple[Decision, ...]


class Owners:
    """Which parameter a state belongs to, by the names of both."""

    def __init__(self, parameters: Mapping[str, Shape]) -> None:
        """`parameters` are those of the model, written or not, with their shapes."""
        self._parameters = parameters

    def of(self, name: str, shape: Shape) -> str | None:
        """Return the longest name of a parameter that stands within a name, between its dots, and has this shape; a state of one
        element is of any. Null where there is none.
        """
        starts = [0, *(match.end() for match in _DIVIDERS.finditer(name))]
        ends = [*(match.start() for match in _DIVIDERS.finditer(name)), len(name)]
        for start, end in sorted(
            ((start, end) for start in starts for end in ends if start < end),
            key=lambda part: part[0] - part[1],
        ):
            known = self._parameters.get(name[start:end])
            if known is not None and (known == shape or prod(shape) == 1):
                return name[start:end]
        return None


def by_document(
    chosen: Sequence[Chosen],
    document: ShardMapDocument | LoweredDocument,
    layout: RankLayout,
    owners: Owners,
    *,
    partial: bool,
) -> Made:
    """Return the target that a document of maps is. `partial`: it may have maps of tensors that are not written.

    Raises `Fault`: `reshard.unmapped`, `reshard.absent`, `reshard.shape`.
    """
    names = {item.name for item in chosen}
    strays = [name for name in document.tensors if name not in names]
    if strays and not partial:
        raise Fault("reshard.absent", count=len(strays), tensor=strays[0])
    known = document.tensors
    of: dict[str, str] = {}
    moved = []
    lacking = []
    for item in chosen:
        owner = item.name if item.name in known else _owner(item, owners, known)
        if owner is None:
            lacking.append(item.name)
            continue
        of[item.name] = owner
        if owner != item.name:
            moved.append(item.name)
        elif known[owner].shape != item.shape:
            raise Fault(
                "reshard.shape", tensor=item.name, found=_by(item.shape), expected=_by(known[owner].shape)
            )
    if lacking:
        raise Fault("reshard.unmapped", count=len(lacking), tensor=lacking[0])
    decisions = [_decision("target", f"{counted(len(of), 'tensor')} by maps", "--target", "--target", chosen)]
    if moved:
        decisions.append(_states(moved))
    shapes = {item.name: item.shape for item in chosen}
    if isinstance(document, LoweredDocument):
        pieces = {
            name: _lowered_like(document.tensors[at], shapes[name], own=name == at) for name, at in of.items()
        }
        return Made(Target(layout, lowered=LoweredDocument(LOWERED, pieces)), tuple(decisions))
    maps = {name: _map_like(document.tensors[at], shapes[name], own=name == at) for name, at in of.items()}
    meshes = {
        name: mesh for name, mesh in document.meshes.items() if any(t.mesh == name for t in maps.values())
    }
    return Made(Target(layout, ShardMapDocument(SHARD_MAP, meshes, maps)), tuple(decisions))


def _map_like(known: TensorMap, shape: Shape, *, own: bool) -> TensorMap:
    """Return the map of a tensor, or of a state of it: the same one; a state of one element is on every rank of it."""
    if own:
        return known
    return TensorMap(shape, known.map if shape == known.shape else Replicate(), known.mesh)


def _lowered_like(known: LoweredTensor, shape: Shape, *, own: bool) -> LoweredTensor:
    if own:
        return known
    if shape == known.shape:
        return LoweredTensor(shape, known.shards, known.explicit)
    ranks = tuple(sorted(rank for group in known.shards for rank in group.ranks))
    mesh = DeviceMesh((MeshAxis("rank", len(ranks)),), ranks)
    return written(lower(TensorMap(shape, Replicate()), mesh))


def _owner(
    item: Chosen, owners: Owners, known: Mapping[str, TensorMap] | Mapping[str, LoweredTensor]
) -> str | None:
    owner = owners.of(item.name, item.shape) if _is_state(item) else None
    if owner is None or owner not in known:
        return None
    return owner if prod(item.shape) == 1 or known[owner].shape == item.shape else None


def by_numbers(
    chosen: Sequence[Chosen],
    table: LayoutTable | None,
    facts: ModelFacts,
    numbers: Numbers,
    layout: RankLayout,
    owners: Owners,
) -> Made:
    """Return the target that a topology in numbers and a table come to.

    Raises `Fault`: `reshard.target`, `reshard.unplaced`, `reshard.state`, `reshard.stage`, `reshard.cut`, `mapping.fact_missing`,
    `mapping.size`.
    """
    return _ByNumbers(chosen, table, facts, numbers, owners).made(layout)


class _Placed(Struct, frozen=True):
    """A tensor of the output under the rule of its own name, or of its parameter's."""

    item: Chosen
    owner: str
    placed: Placed


class _ByNumbers:
    """A target, while it is made."""

    def __init__(
        self,
        chosen: Sequence[Chosen],
        table: LayoutTable | None,
        facts: ModelFacts,
        numbers: Numbers,
        owners: Owners,
    ) -> None:
        self._chosen = chosen
        self._table = table
        self._facts = facts
        self._numbers = numbers
        self._placed = self._all(owners)
        layers = [one.placed.numbers["layer"] + 1 for one in self._placed if "layer" in one.placed.numbers]
        self._targets = Targets(table, facts, numbers, max(layers, default=0))

    def made(self, layout: RankLayout) -> Made:
        """Return the target."""
        buffered: dict[tuple[object, ...], list[tuple[_Placed, Cut]]] = {}
        maps: dict[str, TensorMap] = {}
        for one in self._placed:
            item = one.item
            small = one.owner != item.name and prod(item.shape) == 1
            cut = self._targets.cut(
                one.owner, () if small else item.shape, _flat(one.placed) if small else one.placed
            )
            if small:
                maps[item.name] = self._targets.everywhere(cut, item.shape)
            elif self._is_buffered(one, cut):
                slot = tuple(item.name.split(one.owner, 1))
                buffered.setdefault((*cut.group, slot, item.dtype), []).append((one, cut))
            else:
                maps[item.name] = self._targets.shared(cut, state=False)
        for some in buffered.values():
            maps.update(self._in_buffer(some))
        ordered = {item.name: maps[item.name] for item in self._chosen}
        target = Target(layout, ShardMapDocument(SHARD_MAP, dict(self._targets.meshes), ordered))
        return Made(target, tuple(self._decisions(buffered=bool(buffered))))

    def _all(self, owners: Owners) -> list[_Placed]:
        found: list[_Placed] = []
        strays = []
        for item in self._chosen:
            owner, placed = item.name, self._place(item.name)
            if _is_state(item):
                of = owners.of(item.name, item.shape)
                if of is not None:
                    owner, placed = of, self._place(of)
                if placed is None:
                    raise Fault("reshard.state", tensor=item.name)
            if placed is None:
                strays.append(item.name)
            else:
                found.append(_Placed(item, owner, placed))
        if strays:
            raise Fault("reshard.unplaced", table=self._said, count=len(strays), tensor=strays[0])
        return found

    def _place(self, name: str) -> Placed | None:
        return ANY if self._table is None else self._table.place(name, self._facts)

    @property
    def _said(self) -> str:
        return "" if self._table is None else self._table.name

    def _is_buffered(self, one: _Placed, cut: Cut) -> bool:
        state = _is_state(one.item)
        flat = self._numbers.sharding in ("zero1", "zero2")
        return state and flat and self._targets.ranks_along(cut) > 1

    def _in_buffer(self, some: Sequence[tuple[_Placed, Cut]]) -> dict[str, TensorMap]:
        """Return the maps of states of one kind that lie end to end in one buffer, as ZeRO-1 and ZeRO-2 keep them."""
        first = some[0][1]
        item_bytes = DTYPES[some[0][0].item.dtype].bits // 8
        buffer: FlatBuffer = zero_group(
            [cut.shard for _, cut in some], self._targets.ranks_along(first), item_bytes=item_bytes or None
        )
        return {
            one.item.name: buffer.parameter(
                number, axis=cut.axis, of=TensorMap(cut.shape, cut.node or Replicate(), cut.mesh)
            )
            for number, (one, cut) in enumerate(some)
        }

    def _decisions(self, *, buffered: bool) -> list[Decision]:
        n = self._numbers
        said = [
            f"{name} {value}"
            for name, value in (("tp", n.tp), ("pp", n.pp), ("dp", n.dp), ("ep", n.ep))
            if value > 1
        ]
        shared = {"none": "", "fsdp": ", slices of dimension 0 among dp"}.get(
            n.sharding, f", {n.sharding} among dp"
        )
        choice = f"{counted(n.ranks, 'rank')}: {', '.join(said) or 'all of it on one'}{shared}"
        found = [
            _decision(
                "target",
                choice,
                _by_what(self._table),
                "--cuts",
                [one.item for one in self._placed],
            )
        ]
        padded = [one.item for one in self._placed if self._is_padded(one)]
        if padded:
            rows = (
                self._targets.cut(padded[0].name, padded[0].shape, self._known_place(padded[0].name)).shard[0]
                * n.tp
            )
            found.append(
                _decision(
                    "vocabulary",
                    f"{padded[0].shape[0]:,} rows padded with zeros to {rows:,}",
                    "ranks hold equal shares of it",
                    "--vocab-multiple",
                    padded,
                )
            )
        moved = [one.item.name for one in self._placed if _is_state(one.item)]
        if moved:
            found.append(_states(moved))
        if buffered:
            found.append(
                _decision(
                    "partition",
                    "states of one kind in one buffer, in the order of the source",
                    "ZeRO below stage 3 cuts a buffer of all parameters; the groups of the run are not known",
                    "--zero",
                    [one.item for one in self._placed if _is_state(one.item)],
                )
            )
        return found

    def _known_place(self, name: str) -> Placed:
        placed = self._place(name)
        if placed is None:
            raise AssertionError("it was placed before")
        return placed

    def _is_padded(self, one: _Placed) -> bool:
        kind = one.placed.kind
        if one.owner != one.item.name or not is_vocabulary(kind.view) or kind.cut is None:
            return False
        cut = self._targets.cut(one.item.name, one.item.shape, one.placed)
        return cut.shard[kind.cut] * self._numbers.tp != one.item.shape[kind.cut]


def _by_what(table: LayoutTable | None) -> str:
    return "no tensor is cut by what it is for" if table is None else f"the table {table.name}"


def _is_state(item: Chosen) -> bool:
    return item.tensor.component != "model" or item.tensor.role == "state"


def _flat(placed: Placed) -> Placed:
    """Return the rule for something of a tensor that is not cut: it is on the tensor's ranks."""
    return replace(placed, kind=replace(placed.kind, cut=None), stacked=())


def _states(names: Sequence[str]) -> Decision:
    return Decision(
        kind="states",
        choice="laid out as their parameters; no exact resume of a training run",
        evidence="a parameter's name stands within theirs, and they have its shape",
        option="--component",
        tensors=len(names),
        examples=tuple(display_name(name, 120) for name in names[:_EXAMPLES]),
    )


def _decision(kind: str, choice: str, evidence: str, option: str, items: Sequence[Chosen]) -> Decision:
    examples = tuple(display_name(item.name, 120) for item in items[:_EXAMPLES])
    return Decision(kind, choice, evidence, option, len(items), examples)


def _by(shape: Shape) -> str:
    return " x ".join(f"{extent:,}" for extent in shape) or "one element"
