"""The map of one tensor of a checkpoint: to be looked at, told in words, and held against a target.

The explorer draws what these functions return, and `shardscope tensors --map` prints it.
"""

from msgspec import Struct

from shardscope.engine.convert.plans.ranks import Ranks
from shardscope.engine.converting.resharding import Aim, target_of
from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.describing.explain import DRAWABLE, axes, explain, sentences
from shardscope.engine.geometry.drawing.atlas import Atlas
from shardscope.engine.geometry.drawing.guide import Guide
from shardscope.engine.geometry.language.layout import normal_form
from shardscope.engine.geometry.pieces.budget import DEFAULT, Budget, Budgets
from shardscope.engine.geometry.transfer.compose import compose
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.blocker import Blocker, blocker
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.explanation import Explanation
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.mapcheck import Checked
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.shardmap import DeviceMesh, MeshAxis, Replicate, TensorMap
from shardscope.engine.model.tensors import TensorSpec
from shardscope.engine.model.transfer import TransferPlan
from shardscope.engine.shardmaps.reading import about

ALONE = DeviceMesh((MeshAxis("file", 1),))
"""One file has all of it."""

QUICK = Budgets(pieces=1_024, pair_checks=16_384, slices=256, cells=16_384, explicit_bytes=8_192)
"""What the map of nearly every tensor costs at the most: some milliseconds."""


class Chart(Struct, frozen=True):
    """One map, ready to be looked at."""

    lowered: Lowered
    checked: Checked
    guide: Guide | None
    """Null where the map is too broken to be drawn."""
    mesh: str
    """In words: `tp 4`, `64 shards`."""
    says: tuple[str, ...]
    """What the checks found to hold."""
    blockers: tuple[Blocker, ...]
    """What they found wrong."""


def whole_of(spec: TensorSpec) -> LogicalTensor:
    """Return a tensor that one header describes as what it is there: a single holder, in one stretch of one file."""
    size = spec.end - spec.begin
    record = Record(spec.file, spec.begin, size, size)
    return LogicalTensor(
        spec.name,
        spec.dtype,
        spec.shape,
        TensorMap(spec.shape, Replicate()),
        ALONE,
        (Fragment(0, spec.shape, record, 0),),
        role="other",
    )


def chart(tensor: LogicalTensor, budgets: Budgets = DEFAULT) -> Chart:
    """Return a tensor's map. Raises `Fault`: `map.invalid`, `map.unproven`, `map.budget`."""
    with about(tensor.name):
        lowered = normal_form(tensor, Budget(budgets))
        tree = tensor.map if isinstance(tensor.map, TensorMap) else None
        return _chart(lowered, tensor, tree, tensor.mesh, tensor, budgets)


def target_chart(found: Inspection, tensor: LogicalTensor, aim: Aim, limits: Limits | None = None) -> Chart:
    """Return the map that a tensor of a checkpoint has in a target. Raises `Fault` as `prepare_reshard` does for a target."""
    target = target_of(found, tensor, aim, limits)
    lowered = Ranks(target).lowered(tensor.name)
    tree = mesh = None
    if target.maps is not None:
        tree = target.maps.tensors[tensor.name]
        mesh = target.maps.meshes[tree.mesh]
    with about(tensor.name):
        return _chart(lowered, tensor, tree, mesh, None, DEFAULT)


def transfer(source: Chart, target: Chart) -> TransferPlan:
    """Return the copies that make the target's shards of the source's. Raises `Fault` as `compose`."""
    lowered = target.lowered
    if lowered.shape != source.lowered.shape:
        lowered = Lowered(source.lowered.shape, lowered.ranks, lowered.explicit)
    return compose(lowered, source.lowered)


def explained(
    tensor: LogicalTensor, *, rank: int | None = None, width: int = 64, height: int = 16
) -> Explanation:
    """Return a tensor's map in words, with a picture; and with one of the shard of `rank`, if it has one. Raises `Fault` as `chart`."""
    with about(tensor.name):
        lowered = normal_form(tensor)
        if all(shard.rank != rank for shard in lowered.ranks):
            rank = None
        tree = tensor.map if isinstance(tensor.map, TensorMap) else None
        return explain(
            tensor.name, lowered, tree, tensor.mesh, dtype=tensor.dtype, rank=rank, width=width, height=height
        )


def _chart(
    lowered: Lowered,
    tensor: LogicalTensor,
    tree: TensorMap | None,
    mesh: DeviceMesh | None,
    stored: LogicalTensor | None,
    budgets: Budgets,
) -> Chart:
    checked = check(lowered, Budget(budgets))
    drawable = all(finding.code in DRAWABLE for finding in checked.findings)
    guide = None
    if drawable:
        atlas = Atlas(lowered)
        atlas.prepare()
        guide = Guide(atlas, tensor.dtype, tree, mesh, stored)
    return Chart(
        lowered,
        checked,
        guide,
        topology(len(lowered.ranks), mesh),
        tuple(sentences(lowered, checked)),
        tuple(blocker(finding, tensor.name) for finding in checked.findings),
    )


def topology(shards: int, mesh: DeviceMesh | None) -> str:
    """Return in words what a tensor is divided among."""
    if mesh is None:
        return f"{shards:,} shards" if shards > 1 else "one shard"
    return axes(mesh)
