"""Files of shard maps, read within bounds, and what is asked of them: normal forms, checks, words, plans, differences.

A file is a document `shardscope.shardmap/1` or `shardscope.lowered/1`; DeepSpeed's own entries become maps by
`read_deepspeed`. Equal maps are worked on once. A fault about one tensor carries its name.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from shardscope.engine.capabilities.reading import read_bytes
from shardscope.engine.geometry.checking.compare import first_difference
from shardscope.engine.geometry.describing.explain import explain
from shardscope.engine.geometry.interchange.deepspeed import write_affine_map
from shardscope.engine.geometry.interchange.universal import translate_all
from shardscope.engine.geometry.interchange.universal_info import UniversalInfo, read_universal
from shardscope.engine.geometry.language.document import MapDocument, lowered_of, read_document, written
from shardscope.engine.geometry.pieces.budget import DEFAULT, Budget, Budgets
from shardscope.engine.geometry.transfer.planning import Planner
from shardscope.engine.model.blocker import Fault, Finding, blocker
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.explanation import Explanation
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.lowered import LoweredDocument, LoweredTensor
from shardscope.engine.model.mapcheck import Checked, Difference
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import DeviceMesh, ShardMapDocument, TensorMap
from shardscope.engine.model.text import display_name, path_text
from shardscope.engine.model.transfer import TransferPlan
from shardscope.engine.model.translation import Translations
from shardscope.engine.parse.json import parse_json, require_object

Path = str | os.PathLike[str]

EXACT: Final = "json.integer_range"
"""A number beyond 64 bits was read as a fraction: no offset of a map is that large, so the map is refused."""


class ShardMaps:
    """The maps of one document, each lowered when it is asked for.

    `file` is the path for messages. Every method raises `Fault` with the name of the tensor among its parameters.
    """

    def __init__(
        self, file: str, document: MapDocument, budgets: Budgets = DEFAULT, planner: Planner | None = None
    ) -> None:
        self.file = file
        self.document = document
        self._budgets = budgets
        self._planner = planner or Planner(budgets)
        self._read: dict[str, Lowered] = {}

    @property
    def shown(self) -> str:
        """The path, neutralised."""
        return display_name(self.file)

    @property
    def names(self) -> tuple[str, ...]:
        """The tensors, in the order of the document."""
        return tuple(self.document.tensors)

    def dtype(self, name: str) -> str | None:
        """Return the dtype that the document gives a tensor."""
        return self.document.tensors[name].dtype

    def tree(self, name: str) -> tuple[TensorMap, DeviceMesh] | None:
        """Return what a normal form comes from; null in a document of normal forms."""
        if isinstance(self.document, LoweredDocument):
            return None
        tensor = self.document.tensors[name]
        return tensor, self.document.meshes[tensor.mesh]

    def lowered(self, name: str) -> Lowered:
        """Return the normal form of a tensor's map. One that a document writes out is as it is there: see `sound`.

        Raises `Fault`: `map.invalid`, `map.unproven`, `map.budget`, `map.document`.
        """
        with about(name):
            if isinstance(self.document, ShardMapDocument):
                tensor = self.document.tensors[name]
                return self._planner.lower(tensor, self.document.meshes[tensor.mesh])
            if name not in self._read:
                self._read[name] = lowered_of(self.document.tensors[name], Budget(self._budgets))
            return self._read[name]

    def sound(self, name: str) -> Lowered:
        """Return the normal form of a tensor's map, which is safe to plan with wherever it comes from.

        Raises `Fault` as `lowered`, and with what is wrong first in a normal form that a document writes out; elements that
        nobody holds are no such thing.
        """
        lowered = self.lowered(name)
        if isinstance(self.document, LoweredDocument):
            for finding in self.check(name).findings:
                if finding.code != "map.uncovered":
                    raise Fault(finding.code, **{**finding.params, "tensor": name})
        return lowered

    def check(self, name: str) -> Checked:
        """Return what is wrong with a tensor's map, and who holds what. Raises `Fault` as `lowered`."""
        lowered = self.lowered(name)
        with about(name):
            return self._planner.check(lowered)

    def explain(
        self, name: str, *, rank: int | None = None, width: int = 64, height: int = 16
    ) -> Explanation:
        """Return a tensor's map in words; `rank` asks for a picture of its shard. Raises `Fault` as `lowered`."""
        lowered = self.lowered(name)
        tree = self.tree(name)
        with about(name):
            return explain(
                name,
                lowered,
                *(tree or (None, None)),
                dtype=self.dtype(name),
                rank=rank,
                width=width,
                height=height,
                budgets=self._budgets,
            )

    def plan(self, name: str, target: "ShardMaps", called: str | None = None) -> TransferPlan:
        """Return the copies from the shards of a tensor to those of `target` (`called` is its name there).

        Raises `Fault` as `sound` and `compose`.
        """
        source, wanted = self.sound(name), target.sound(called or name)
        with about(name):
            return self._planner.compose(wanted, source)

    def difference(self, name: str, other: "ShardMaps") -> Difference | None:
        """Return where the maps of a tensor differ first. Raises `Fault` as `sound`."""
        one, two = self.sound(name), other.sound(name)
        with about(name):
            return None if one is two else first_difference(one, two, Budget(self._budgets))

    def written(self, name: str) -> LoweredTensor:
        """Return the normal form of a tensor's map as an entry of a document."""
        return written(self.lowered(name), self.dtype(name))


@contextmanager
def about(tensor: str) -> Iterator[None]:
    """Give faults inside the block the name of the tensor, unless they are about a file or have one."""
    try:
        yield
    except Fault as fault:
        if "file" in fault.finding.params:
            raise
        raise Fault(fault.finding.code, **{"tensor": tensor, **fault.finding.params}) from fault


def read_shard_map(
    path: Path, limits: Limits | None = None, budgets: Budgets = DEFAULT, planner: Planner | None = None
) -> ShardMaps:
    """Return the maps of a file. Files that share a `planner` share the work on equal maps.

    Raises `Fault`: what reading a document raises, `map.not_a_map`, `map.version`, `map.document`.
    """
    file, value = _read(path, limits or Limits())
    with _in(file):
        return ShardMaps(file, read_document(value, file), budgets, planner)


def read_deepspeed(path: Path, limits: Limits | None = None, budgets: Budgets = DEFAULT) -> UniversalInfo:
    """Return what a JSON file has from DeepSpeed: `universal_checkpoint_info`, or an `affine_map` container alone.

    Either may stand under its own name. Raises `Fault`: what reading a document raises, and the codes `affine.*`
    and `universal.*`.
    """
    file, value = _read(path, limits or Limits())
    with _in(file):
        value = value.get("universal_checkpoint_info", value)
        if isinstance(value, Mapping) and "params" in value:
            value = {"affine_map": value}
        return read_universal(value, budgets)


def read_shapes(path: Path, limits: Limits | None = None) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the shard shapes of a JSON file: an object of lists of shapes, by parameter and tensor-parallel rank.

    Raises `Fault`: what reading a document raises, `universal.malformed`.
    """
    file, value = _read(path, limits or Limits())
    with _in(file):
        return {name: _shapes(entry, name) for name, entry in value.items()}


def _shapes(value: object, name: str) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list) or not all(isinstance(shape, list) for shape in value):
        raise Fault("universal.malformed", place=name, reason="it is no list of shapes, one for each rank")
    if not all(type(extent) is int and extent >= 0 for shape in value for extent in shape):
        raise Fault("universal.malformed", place=name, reason="an extent is not a whole number of at least 0")
    return tuple(tuple(shape) for shape in value)


def translate_deepspeed(
    found: UniversalInfo,
    shapes: Mapping[str, Sequence[tuple[int, ...]]],
    *,
    strict: bool = True,
    unmatched_dim: int | None = None,
    budgets: Budgets = DEFAULT,
) -> Translations:
    """Return the maps of all parameters whose shard shapes are given or that have an affine map.

    Raises `Fault` `universal.pattern` and `map.budget`.
    """
    known: dict[str, Sequence[tuple[int, ...]]] = {
        name: [shard.shape for shard in lowered.ranks] for name, lowered in found.affine.items()
    }
    return translate_all(
        found, {**known, **shapes}, strict=strict, unmatched_dim=unmatched_dim, budgets=budgets
    )


def to_deepspeed(maps: ShardMaps) -> dict[str, object]:
    """Return DeepSpeed's `affine_map` container for every map of a file.

    Raises `Fault` `affine.unwritable`, and what is wrong first in a map.
    """
    found = {}
    for name in maps.names:
        lowered = maps.lowered(name)
        for finding in maps.check(name).findings:
            raise Fault(finding.code, **{**finding.params, "tensor": name})
        found[name] = lowered
    return write_affine_map(found)


def _read(path: Path, limits: Limits) -> tuple[str, dict[str, Any]]:
    """Return the path for messages and the JSON object at it."""
    file = path_text(os.fsencode(path))
    with _in(file):
        try:
            document = parse_json(read_bytes(path, limits), limits)
            value = require_object(document)
        except Fault as fault:
            if CODES[fault.finding.code].exit is not None:
                raise
            finding = Finding(fault.finding.code, {"file": file, **fault.finding.params})
            raise Fault("map.unreadable", file=file, problem=blocker(finding).message) from fault
        if any(note.code == EXACT for note in document.notes):
            raise Fault("map.document", place="the document", problem="a number has more than 64 bits")
        return file, value


@contextmanager
def _in(file: str) -> Iterator[None]:
    """Give faults inside the block the path of the file, unless they have one."""
    try:
        yield
    except Fault as fault:
        raise Fault(fault.finding.code, **{"file": file, **fault.finding.params}) from fault
