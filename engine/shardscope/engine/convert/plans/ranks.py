"""Files of the ranks of a target topology: which shard is in which file, under which name, and what stands beside it.

`ranks`: one file for each rank, and a bundle (`shardscope-bundle.json`) that says how they make up the tensors. `dcp-safetensors`:
what PyTorch's distributed checkpoint keeps in safetensors (`torch/distributed/checkpoint/_hf_utils.py`, `hf_storage.py`, torch
2.13): a box of each tensor for each rank, replicas once. `vllm`: what its workers load (`sharded_state_loader.py`, vllm 0.11).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.convert.plans import header
from shardscope.engine.convert.plans.selection import Chosen
from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.checking.rankboxes import box_of
from shardscope.engine.geometry.language.document import lowered_of
from shardscope.engine.geometry.language.padding import padded_inside
from shardscope.engine.geometry.pieces.budget import DEFAULT, Budget
from shardscope.engine.geometry.transfer.planning import Planner
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.bundle import FILE, BundleDocument, BundleFragment, BundleTensor
from shardscope.engine.model.catalogue import Catalogue, LogicalTensor, Shape
from shardscope.engine.model.lowered import LoweredDocument
from shardscope.engine.model.piece import Lowered, RankShard
from shardscope.engine.model.plan import Decision, Plan, PlannedFile, PlannedTensor, Target
from shardscope.engine.model.schemas import BUNDLE, LOWERED, SHARD_MAP
from shardscope.engine.model.shardmap import ShardMapDocument, TensorMap
from shardscope.engine.model.tensors import DTYPES

MAP_FILE: Final = "shardscope-shardmap.json"
"""The target, beside files whose layout says less than it does."""
MOST_METADATA: Final = 8 << 20
"""Bytes of a map in a header; a larger one stands beside the file alone."""
_DCP: Final = "DCP_SHARDING_INFO"


class Ranks:
    """The maps of a target, each different one lowered and checked once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._planner = Planner(DEFAULT)
        self._lowered: dict[str, Lowered] = {}
        self._sound: set[int] = set()
        self._shards: dict[int, dict[int, RankShard]] = {}
        self._scattered: dict[int, bool] = {}
        self._layouts: dict[tuple[int, int, Shape], Lowered] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The tensors that it has maps for."""
        document = self.target.maps or self.target.lowered
        return () if document is None else tuple(document.tensors)

    def shape(self, name: str) -> Shape | None:
        """Return the shape of a tensor; null where there is no map."""
        document = self.target.maps or self.target.lowered
        tensor = None if document is None else document.tensors.get(name)
        return None if tensor is None else tensor.shape

    def dtype(self, name: str) -> str | None:
        """Return the type that a map gives its tensor."""
        document = self.target.maps or self.target.lowered
        return None if document is None else document.tensors[name].dtype

    def lowered(self, name: str) -> Lowered:
        """Return the normal form of a map, checked: it holds every element and multiplies none.

        Raises `Fault`: those of lowering, what is wrong first in the map, `reshard.loses`, `reshard.scaled`.
        """
        found = self._lowered.get(name)
        if found is None:
            found = self._lowered[name] = self._read(name)
            if id(found) not in self._sound:
                self._check(name, found)
                self._sound.add(id(found))
        return found

    def shard(self, name: str, rank: int) -> RankShard:
        """Return what a rank holds of a tensor. Raises `KeyError` where it holds nothing."""
        lowered = self.lowered(name)
        shards = self._shards.get(id(lowered))
        if shards is None:
            shards = self._shards[id(lowered)] = {shard.rank: shard for shard in lowered.ranks}
        return shards[rank]

    def scattered(self, shard: RankShard) -> bool:
        """Tell whether a shard has padding elsewhere than behind its elements."""
        if id(shard) not in self._scattered:
            self._scattered[id(shard)] = padded_inside(shard)
        return self._scattered[id(shard)]

    def layout(self, name: str, rank: int, shape: Shape) -> Lowered:
        """Return the layout of one rank over the stored tensor of `shape`, which may have rows behind those of the map."""
        lowered = self.lowered(name)
        key = id(lowered), rank, shape
        if key not in self._layouts:
            self._layouts[key] = Lowered(shape, (self.shard(name, rank),), lowered.explicit)
        return self._layouts[key]

    def _read(self, name: str) -> Lowered:
        if self.target.maps is not None:
            tensor = self.target.maps.tensors[name]
            return self._planner.lower(tensor, self.target.maps.meshes[tensor.mesh])
        if self.target.lowered is None:
            raise ValueError("a target without maps")
        return lowered_of(self.target.lowered.tensors[name], Budget(DEFAULT))

    def _check(self, name: str, lowered: Lowered) -> None:
        found = check(lowered)
        for finding in found.findings:
            if finding.code == "map.uncovered":
                raise Fault(
                    "reshard.loses", tensor=name, found=finding.params["found"], total=lowered.elements
                )
            raise Fault(finding.code, **{**finding.params, "tensor": name})
        if found.scaled:
            raise Fault("reshard.scaled", tensor=name)


class Aimed(Struct, frozen=True):
    """Files of a target."""

    target: Target
    files: tuple[PlannedFile, ...]
    document_bytes: int
    """Of what stands beside them."""
    decisions: tuple[Decision, ...] = ()
    """How the target came to be."""


def aimed(chosen: Sequence[Chosen], target: Target, max_bytes: int) -> Aimed:
    """Return the files of a target for the tensors of an output.

    Raises `Fault`: those of `Ranks.lowered`, `reshard.layout`, those of a header.
    """
    ranks = Ranks(target)
    for item in chosen:
        if ranks.dtype(item.name) not in (None, item.dtype):
            expected = f"{ranks.dtype(item.name)}"
            raise Fault("reshard.shape", tensor=item.name, found=item.dtype, expected=expected)
    held: dict[int, list[PlannedTensor]] = {}
    for item in chosen:
        for shard in _written(item.name, ranks):
            held.setdefault(shard.rank, []).append(_planned(item, shard.shape))
    files = [file for rank in sorted(held) for file in _files(rank, held[rank], ranks, max_bytes)]
    documents = len(msgspec.json.encode(target)) + 160 * sum(len(file.tensors) for file in files)
    return Aimed(target, tuple(files), 2 * documents)


def _written(name: str, ranks: Ranks) -> Iterator[RankShard]:
    """Yield the shards of a tensor that are written: all, or of a layout without replicas the first of each."""
    lowered = ranks.lowered(name)
    if ranks.target.layout != "dcp-safetensors":
        for shard in lowered.ranks:
            if ranks.target.layout == "ranks" and shard.padding and ranks.scattered(shard):
                reason = "it has padding between its elements"
                raise Fault("reshard.layout", tensor=name, rank=shard.rank, layout="ranks", reason=reason)
            yield shard
        return
    seen: set[tuple[int, ...]] = set()
    for shard in lowered.ranks:
        if not shard.elements and lowered.elements:
            continue
        offsets = _offsets(name, lowered.shape, shard)
        if offsets not in seen:
            seen.add(offsets)
            yield shard


def _offsets(name: str, shape: Shape, shard: RankShard) -> Shape:
    """Return where the box of a shard begins. Raises `Fault` `reshard.layout` where it is none."""
    box = None if shard.padding else box_of(shape, shard)
    if box is None:
        reason = "it has padding" if shard.padding else "its shard is no box of the tensor"
        raise Fault("reshard.layout", tensor=name, rank=shard.rank, layout="dcp-safetensors", reason=reason)
    return box.offsets


def _files(
    rank: int, tensors: Sequence[PlannedTensor], ranks: Ranks, max_bytes: int
) -> Iterator[PlannedFile]:
    match ranks.target.layout:
        case "ranks":
            yield _file(f"rank-{rank:05d}.safetensors", tensors, rank, ranks)
        case "dcp-safetensors":
            groups = _groups(tensors, max_bytes)
            for number, group in enumerate(groups, 1):
                name = f"shard-{rank + 1:05d}-model-{number:05d}-of-{len(groups):05d}.safetensors"
                yield _file(name, group, rank, ranks)
        case "vllm":
            for number, group in enumerate(_groups(tensors, max_bytes)):
                yield _file(f"model-rank-{rank}-part-{number}.safetensors", group, rank, ranks)


def _groups(tensors: Sequence[PlannedTensor], max_bytes: int) -> list[list[PlannedTensor]]:
    groups: list[list[PlannedTensor]] = [[]]
    size = 0
    for item in tensors:
        if groups[-1] and size + item.bytes > max_bytes:
            groups.append([])
            size = 0
        groups[-1].append(item)
        size += item.bytes
    return groups


def _file(name: str, tensors: Sequence[PlannedTensor], rank: int, ranks: Ranks) -> PlannedFile:
    file = PlannedFile(name, 0, tuple(tensors), rank)
    return replace(file, bytes=header.build(file.tensors, metadata(file, ranks)).size)


def _planned(item: Chosen, shape: Shape) -> PlannedTensor:
    size = DTYPES[item.dtype].bytes_of(shape)
    return PlannedTensor(item.name, item.tensor.name, item.dtype, shape, size, item.tensor.dtype)


def metadata(file: PlannedFile, ranks: Ranks) -> dict[str, str]:
    """Return what the header of a file says beside its tensors: whose shards they are, and how they lie in the whole."""
    if ranks.target.layout == "vllm" or file.rank is None:
        return {}
    if ranks.target.layout == "dcp-safetensors":
        saved = {
            item.name: {
                "saved_offsets": _offsets(
                    item.name, ranks.lowered(item.name).shape, ranks.shard(item.name, file.rank)
                ),
                "global_shape": ranks.lowered(item.name).shape,
            }
            for item in file.tensors
        }
        return {"DCP_VERSION": "1.0", _DCP: msgspec.json.encode(saved).decode()}
    kind, text = document_of(ranks.target, [item.name for item in file.tensors])
    said = {"shardscope.rank": str(file.rank), "shardscope.document": FILE}
    return {**said, kind: text.decode()} if len(text) <= MOST_METADATA else said


def document_of(target: Target, names: Sequence[str] | None = None) -> tuple[str, bytes]:
    """Return a target as a document of maps, and what kind it is: of these tensors, or of all."""
    if target.maps is not None:
        tensors = (
            target.maps.tensors if names is None else {name: target.maps.tensors[name] for name in names}
        )
        meshes = {
            name: mesh
            for name, mesh in target.maps.meshes.items()
            if names is None or any(tensor.mesh == name for tensor in tensors.values())
        }
        maps = ShardMapDocument(SHARD_MAP, meshes, tensors)
        return "shardscope.shardmap", msgspec.json.encode(maps)
    if target.lowered is None:
        raise ValueError("a target without maps")
    known = target.lowered.tensors
    lowered = LoweredDocument(LOWERED, known if names is None else {name: known[name] for name in names})
    return "shardscope.lowered", msgspec.json.encode(lowered)


def documents_beside(plan: Plan, tensors: Mapping[str, LogicalTensor]) -> dict[str, bytes]:
    """Return the documents that stand beside the files of a plan with a target, by their names."""
    if plan.target is None:
        return {}
    if plan.target.layout != "ranks":
        return {MAP_FILE: msgspec.json.format(document_of(plan.target)[1], indent=2) + b"\n"}
    return {FILE: msgspec.json.format(msgspec.json.encode(bundle(plan, tensors)), indent=1) + b"\n"}


def bundle(plan: Plan, tensors: Mapping[str, LogicalTensor]) -> BundleDocument:
    """Return the bundle that a plan's files are."""
    if plan.target is None:
        raise ValueError("a plan without a target has no bundle")
    planned: dict[str, PlannedTensor] = {}
    fragments: dict[str, list[BundleFragment]] = {}
    for file in plan.files:
        for item in file.tensors:
            planned.setdefault(item.name, item)
            fragments.setdefault(item.name, []).append(BundleFragment(file.rank or 0, file.name, item.name))
    found = {
        name: _bundled(plan.target, item, tensors[item.source], tuple(fragments[name]))
        for name, item in planned.items()
    }
    by_source = {item.source: name for name, item in planned.items()}
    for name, item in planned.items():
        other = tensors[item.source].alias_of
        if other is not None and by_source.get(other, name) != name:
            found[name] = replace(found[name], alias_of=by_source[other])
    for alias in plan.aliases:
        held = found.get(alias.tensor)
        if held is not None:
            found[alias.name] = BundleTensor(
                dtype=held.dtype,
                shape=held.shape,
                component=held.component,
                role=held.role,
                alias_of=alias.tensor,
            )
    meshes = {} if plan.target.maps is None else plan.target.maps.meshes
    producer = f"{plan.tool}: resharded from {plan.source.format}"
    return BundleDocument(BUNDLE, found, meshes, producer)


def _bundled(
    target: Target, item: PlannedTensor, tensor: LogicalTensor, fragments: tuple[BundleFragment, ...]
) -> BundleTensor:
    made = BundleTensor(
        dtype=item.dtype, shape=(), fragments=fragments, component=tensor.component, role=tensor.role
    )
    if target.maps is not None:
        known = target.maps.tensors[item.name]
        return replace(made, shape=known.shape, map=known.map, mesh=known.mesh)
    if target.lowered is None:
        raise ValueError("a target without maps")
    said = target.lowered.tensors[item.name]
    return replace(made, shape=said.shape, shards=said.shards)


def put_together(catalogue: Catalogue, document: ShardMapDocument | LoweredDocument) -> Catalogue:
    """Return a catalogue whose parts of ranks make up the tensors of a document of maps; what it does not name stays as it is."""
    parts: dict[str, list[LogicalTensor]] = {}
    found: list[LogicalTensor] = []
    for tensor in catalogue.tensors:
        if tensor.part_of is None or tensor.name not in document.tensors:
            found.append(tensor)
        else:
            parts.setdefault(tensor.name, []).append(tensor)
    for name, held in parts.items():
        made: TensorMap | Lowered
        mesh = None
        if isinstance(document, ShardMapDocument):
            made = document.tensors[name]
            mesh = document.meshes[made.mesh]
        else:
            made = lowered_of(document.tensors[name], Budget(DEFAULT))
        fragments = tuple(
            replace(fragment, label=part.part_of or 0) for part in held for fragment in part.fragments
        )
        found.append(
            replace(held[0], shape=made.shape, map=made, mesh=mesh, fragments=fragments, part_of=None)
        )
    return Catalogue(tuple(found))
