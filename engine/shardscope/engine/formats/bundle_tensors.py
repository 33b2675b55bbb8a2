"""The tensors of a bundle, each held against its map and the entries of the files that it names.

Nothing is taken on trust: a map is lowered and checked as if a stranger had written it, and a fragment has to be an entry of
the type and shape that the map gives its rank.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Final

from msgspec import Struct

from shardscope.engine.formats.bundle import is_below
from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.language.document import lowered_of
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.language.padding import padded_inside
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.bundle import BundleDocument, BundleFragment, BundleTensor
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record, Shape
from shardscope.engine.model.lowered import LoweredTensor
from shardscope.engine.model.piece import Lowered, RankShard
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis, Replicate, TensorMap
from shardscope.engine.model.source import Entry
from shardscope.engine.model.tensors import DTYPES, TensorTable
from shardscope.engine.model.text import display_name

_COPY: Final = "copy"
"""The axis of fragments that each hold all of a tensor."""

Place = tuple[str, str]
"""File, as the document names it, and key of an entry."""


class _Stored(Struct, frozen=True, gc=False):
    """An entry of a file."""

    dtype: str
    shape: Shape
    record: Record
    begin: int


class _Sound(Struct, frozen=True):
    """A map that has passed its checks."""

    lowered: Lowered
    shards: dict[int, RankShard]
    """By rank."""


class Bundle:
    """A document and the entries of its files."""

    def __init__(self, document: BundleDocument, files: Mapping[str, Entry], table: TensorTable) -> None:
        """`files` are those that are here, by the names that the document has for them; `table` has their entries."""
        self.document = document
        self.findings: list[Finding] = []
        """What is wrong with tensors: the first thing of each."""
        self._files = files
        self._stored = _stored(files, table)
        self._held: dict[tuple[Place, ...], str] = {}
        self._checked: dict[object, _Sound | Finding] = {}

    def tensors(self) -> list[LogicalTensor]:
        """Return the tensors that hold together; `findings` has the others."""
        found: list[LogicalTensor] = []
        self.findings, self._held = [], {}
        for name, tensor in self.document.tensors.items():
            try:
                found.append(self._tensor(name, tensor))
            except Fault as fault:
                self.findings.append(fault.finding)
        return found

    def unused(self) -> list[Place]:
        """Return the entries that no tensor refers to."""
        named = {
            (item.file, item.key)
            for tensor in self.document.tensors.values()
            for item in (*tensor.fragments, *tensor.replicas)
        }
        return [place for place in self._stored if place not in named]

    def _tensor(self, name: str, tensor: BundleTensor) -> LogicalTensor:
        if tensor.dtype not in DTYPES:
            reason = f"its type, {shown(tensor.dtype, 40)}, does not exist in safetensors"
            raise Fault("convert.tensor", tensor=name, reason=reason)
        _check_padded(name, tensor)
        holder = self._holder(name, tensor)
        sound = self._sound(name, holder)
        fragments = self._fragments(name, holder, sound)
        replicas = tuple(self._fragment(name, holder.dtype, item, sound) for item in holder.replicas)
        self._check_ties(name, tensor, holder.fragments)
        return LogicalTensor(
            name=name,
            dtype=tensor.dtype,
            shape=tensor.shape,
            map=sound.lowered,
            mesh=None,
            fragments=fragments,
            component=tensor.component,
            role=tensor.role,
            alias_of=tensor.alias_of,
            stored_shape=tensor.padded_shape,
            replicas=replicas,
            note=None if tensor.note is None else display_name(tensor.note, 160),
        )

    def _holder(self, name: str, tensor: BundleTensor) -> BundleTensor:
        """Return what has the fragments of a tensor: itself, or what it is tied to."""
        if tensor.alias_of is None:
            return tensor
        other = self.document.tensors.get(tensor.alias_of)
        problem = None
        if other is None:
            problem = "there is none of that name"
        elif other is tensor or other.alias_of is not None:
            problem = "that is a tie itself"
        elif (other.dtype, other.shape) != (tensor.dtype, tensor.shape):
            problem = "they differ in type or shape"
        if other is None or problem is not None:
            raise Fault("bundle.alias", tensor=name, other=tensor.alias_of, problem=problem)
        return tensor if tensor.fragments else other

    def _check_ties(self, name: str, tensor: BundleTensor, fragments: Iterable[BundleFragment]) -> None:
        """Raise `Fault` `bundle.tie_undeclared` where an earlier tensor has the same fragments and nothing is said of it."""
        first = self._held.setdefault(tuple((item.file, item.key) for item in fragments), name)
        if (self.document.tensors[first].alias_of or first) != (tensor.alias_of or name):
            raise Fault("bundle.tie_undeclared", tensor=name, other=first)

    def _sound(self, name: str, tensor: BundleTensor) -> _Sound:
        """Return the map of a tensor, checked once for all that are laid out alike."""
        labels = () if tensor.map or tensor.shards else tuple(item.rank for item in tensor.fragments)
        key = (tensor.shape, tensor.map, tensor.mesh, tensor.shards, labels)
        if key not in self._checked:
            try:
                self._checked[key] = _checked(self._normal_form(tensor, labels))
            except Fault as fault:
                self._checked[key] = fault.finding
        found = self._checked[key]
        if isinstance(found, _Sound):
            return found
        if found.code == "bundle.padding":
            raise Fault(found.code, tensor=name, **found.params)
        reason = ", ".join(f"{word} {value}" for word, value in found.params.items())
        raise Fault("bundle.unsound", tensor=name, check=found.code, reason=display_name(reason, 160))

    def _normal_form(self, tensor: BundleTensor, labels: tuple[int, ...]) -> Lowered:
        if tensor.shards:
            if tensor.map is not None or tensor.mesh is not None:
                raise _invalid("shards", "there is a map beside them")
            return lowered_of(LoweredTensor(tensor.shape, tensor.shards))
        if tensor.map is None:
            if not labels or tensor.mesh is not None:
                raise _invalid("fragments", "there is none" if not labels else "there is a mesh and no map")
            if len(set(labels)) < len(labels):
                raise _invalid("fragments", "a rank has two")
            mesh = DeviceMesh((MeshAxis(_COPY, len(labels)),), labels)
            return lower(TensorMap(tensor.shape, Replicate()), mesh)
        known = self.document.meshes.get(tensor.mesh or "")
        if known is None:
            raise _invalid("mesh", "there is no such mesh")
        return lower(TensorMap(tensor.shape, tensor.map), known)

    def _fragments(self, name: str, tensor: BundleTensor, sound: _Sound) -> tuple[Fragment, ...]:
        found: dict[int, Fragment] = {}
        for item in tensor.fragments:
            if item.rank in found:
                raise Fault("bundle.rank", tensor=name, rank=item.rank, problem="has two fragments")
            found[item.rank] = self._fragment(name, tensor.dtype, item, sound)
        lacking = next((rank for rank in sound.shards if rank not in found), None)
        if lacking is not None:
            raise Fault("bundle.rank", tensor=name, rank=lacking, problem="has no fragment")
        return tuple(found.values())

    def _fragment(self, name: str, dtype: str, item: BundleFragment, sound: _Sound) -> Fragment:
        if item.file not in self._files:
            code = "bundle.file_missing" if is_below(item.file) else "bundle.path_unsafe"
            raise Fault(code, tensor=name, target=item.file)
        stored = self._stored.get((item.file, item.key))
        if stored is None:
            raise Fault("bundle.key_missing", tensor=name, target=item.file, key=item.key)
        if stored.dtype != dtype:
            raise Fault("bundle.dtype", tensor=name, target=item.file, expected=dtype, found=stored.dtype)
        shard = sound.shards.get(item.rank)
        if shard is None:
            problem = "has a fragment and no place in the map"
            raise Fault("bundle.rank", tensor=name, rank=item.rank, problem=problem)
        if stored.shape != shard.shape:
            found, expected = _extents(stored.shape), _extents(shard.shape)
            raise Fault("bundle.shape", tensor=name, rank=item.rank, found=found, expected=expected)
        return Fragment(item.rank, shard.shape, stored.record, stored.begin)


def _stored(files: Mapping[str, Entry], table: TensorTable) -> dict[Place, _Stored]:
    """Return the rows of a table that are in some files. A row whose bytes are not those of its type and shape is none."""
    names = {entry.text: name for name, entry in files.items()}
    records = {entry.text: Record(entry.text, 0, entry.size, entry.size) for entry in files.values()}
    dtypes, shapes, paths = table.dtypes, table.shapes, table.files
    found: dict[Place, _Stored] = {}
    columns = zip(
        table.names,
        table.column("dtype"),
        table.column("shape"),
        table.column("file"),
        table.column("begin"),
        table.sizes(),
        strict=True,
    )
    for key, dtype, shape, file, begin, size in columns:
        path = paths[file]
        known = DTYPES.get(dtypes[dtype])
        if path in names and known is not None and prod(shapes[shape]) * known.bits == 8 * size:
            place = names[path], key
            found[place] = _Stored(dtypes[dtype], shapes[shape], records[path], begin)
    return found


def _checked(lowered: Lowered) -> _Sound | Finding:
    """Return a map that holds together; otherwise the first thing that is wrong with it. Raises `Fault`: those of checking."""
    for finding in check(lowered).findings:
        return finding
    for shard in lowered.ranks:
        if padded_inside(shard):
            return Finding("bundle.padding", {"problem": f"rank {shard.rank:,} has padding between elements"})
    return _Sound(lowered, {shard.rank: shard for shard in lowered.ranks})


def _check_padded(name: str, tensor: BundleTensor) -> None:
    padded = tensor.padded_shape
    if padded is None:
        return
    if len(padded) != len(tensor.shape) or any(p < s for p, s in zip(padded, tensor.shape, strict=True)):
        problem = f"its padded shape, {_extents(padded)}, does not hold {_extents(tensor.shape)}"
        raise Fault("bundle.padding", tensor=name, problem=problem)


def _extents(shape: Sequence[int]) -> str:
    return " x ".join(f"{extent:,}" for extent in shape) or "a scalar"


def _invalid(place: str, reason: str) -> Fault:
    return Fault("map.invalid", place=place, reason=reason)
