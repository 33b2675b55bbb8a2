"""Gathered shards as logical tensors: one map from the full tensor to what each rank keeps of it.

Tensor-parallel shards and packed experts are put together as their metadata says, affine maps before categories; the
data-parallel partition is laid over that. A tensor whose cut is not known is refused by name, never joined along a guessed
dimension.
"""

from collections.abc import Mapping
from math import prod
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.formats.decode.deepspeed_flat import Run, Shard
from shardscope.engine.formats.decode.deepspeed_gather import Place
from shardscope.engine.formats.decode.deepspeed_save import Degrees
from shardscope.engine.geometry.constructors.experts import Placement, placed
from shardscope.engine.geometry.constructors.partitioned import Slice, partitioned
from shardscope.engine.geometry.interchange.universal import translate
from shardscope.engine.geometry.interchange.universal_info import UniversalInfo
from shardscope.engine.model.blocker import Fault, Finding
from shardscope.engine.model.catalogue import Fragment
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side, row_major
from shardscope.engine.model.shardmap import DeviceMesh, FlatRange, MeshAxis, Replicate, TensorMap
from shardscope.engine.model.translation import Translation

Shape = tuple[int, ...]
_WHOLE: Final = Replicate()
_UNMATCHED: Final = "universal.unmatched"
BY_CONVENTION: Final = (
    "in no category: taken as cut along dimension 0, which is what its writer means by that"
)


class Layout(Struct, frozen=True):
    """What the metadata of a save says of how tensors are cut, beside the data-parallel partition."""

    degrees: Degrees
    info: Mapping[int, UniversalInfo]
    """By pipeline stage; a stage without `universal_checkpoint_info` is not there."""
    placements: Mapping[str, Placement]
    """Of packed expert tensors, by their name."""


class Placed(Struct, frozen=True):
    """Where a tensor is."""

    shape: Shape
    dtype: str
    map: TensorMap | Lowered
    mesh: DeviceMesh | None
    fragments: tuple[Fragment, ...]
    translation: Translation | None = None
    """What the metadata made of its tensor-parallel shards."""

    @property
    def scaled(self) -> bool:
        """Whether shards hold it times a factor."""
        return isinstance(self.map, Lowered) and any(shard.scaled for shard in self.map.ranks)


class CutUnknown(Exception):  # noqa: N818 - an answer that is gathered over all tensors
    """Nothing in the save says how tensor-parallel shards make up the tensor."""


def place(
    name: str, layout: Layout, shards: Mapping[Place, Shard], *, copies: bool = False, single: bool = False
) -> Placed:
    """Return where a tensor is that these shards make up.

    `copies` says that every tensor-parallel rank holds it whole where nothing else is said, as it is with buffers: their bytes
    have to agree. `single` says that each shard of a packed expert tensor is one expert. Raises `Fault` where the metadata does not allow it, `CutUnknown` where there is none.
    """
    stages = sorted({at[0] for at in shards})
    first = {at: shard for at, shard in shards.items() if at[0] == stages[0]}
    dtypes = {shard.dtype for shard in shards.values()}
    if len(dtypes) > 1:
        raise Fault("deepspeed.shards_differ", tensor=name, what="types", found=", ".join(sorted(dtypes)))
    (dtype,) = dtypes
    for stage in stages[1:]:
        other = {at[1:]: shard.shape for at, shard in shards.items() if at[0] == stage}
        if other != {at[1:]: shard.shape for at, shard in first.items()}:
            raise Fault(
                "deepspeed.shards_differ", tensor=name, what="shapes", found=f"stages {stages[0]} and {stage}"
            )
    info = layout.info.get(stages[0])
    trimmed = info is not None and info.vocabulary is not None and bool(info.matching("vocabulary", name))
    if layout.degrees.tp == 1 and len(shards) == 1 and name not in layout.placements and not trimmed:
        ((at, shard),) = shards.items()
        return _alone(layout.degrees, at, shard, dtype)
    base, translation = _base(name, layout, first, copies=copies, single=single)
    slices, fragments = _sliced(name, layout, shards, single=single)
    lowered = partitioned(base, slices)
    return Placed(lowered.shape, dtype, lowered, None, tuple(fragments), translation)


def _alone(degrees: Degrees, at: Place, shard: Shard, dtype: str) -> Placed:
    """Return a tensor that one group of data-parallel ranks keeps: whole on one of them, or in stretches."""
    labels = [degrees.label(at[0], at[1], run.rank) for run in shard.runs]
    axis = (MeshAxis("dp", max(1, len(labels))),)
    mesh = DeviceMesh(axis, tuple(labels) or (degrees.label(at[0], at[1], 0),))
    if len(shard.runs) <= 1:
        fragments = [
            _shaped(run, label, shard) for run, label in zip(shard.runs, labels, strict=True) if run.fragment
        ]
        return Placed(shard.shape, dtype, TensorMap(shard.shape, _WHOLE), mesh, tuple(fragments))
    node = FlatRange(
        "dp",
        tuple(run.start for run in shard.runs),
        tuple(run.start + run.count for run in shard.runs),
    )
    stretches = [
        replace(run.fragment, label=label)
        for run, label in zip(shard.runs, labels, strict=True)
        if run.fragment is not None
    ]
    return Placed(shard.shape, dtype, TensorMap(shard.shape, node, derived=True), mesh, tuple(stretches))


def _shaped(run: Run, label: int, shard: Shard) -> Fragment:
    """Return the fragment of a run; one that is the whole shard has the shard's shape."""
    fragment = run.fragment
    if fragment is None:
        raise AssertionError("only runs with a fragment have a shape")
    if run.count == shard.elements and fragment.strides is None:
        return replace(fragment, label=label, shape=shard.shape)
    return replace(fragment, label=label)


def _sliced(
    name: str, layout: Layout, shards: Mapping[Place, Shard], *, single: bool
) -> tuple[list[Slice], list[Fragment]]:
    slices, fragments = [], []
    experts = name in layout.placements
    for (stage, tp, expert), shard in sorted(shards.items()):
        for run in shard.runs:
            label = expert if experts and single else layout.degrees.label(stage, tp, run.rank)
            number = expert if experts else tp
            slices.append(Slice(label, number, run.start, run.start + run.count))
            if run.fragment is not None:
                fragments.append(_shaped(run, label, shard))
    return slices, fragments


def _base(
    name: str, layout: Layout, shards: Mapping[Place, Shard], *, copies: bool, single: bool
) -> tuple[Lowered, Translation | None]:
    """Return the map from the full tensor to shards as if each were whole on one rank."""
    stage = min(at[0] for at in shards)
    placement = layout.placements.get(name)
    if placement is not None:
        return _experts(name, layout, placement, shards, single=single), None
    by_rank = {at[1]: shard for at, shard in shards.items()}
    ranks = layout.degrees.tp
    if by_rank.keys() != set(range(ranks)):
        missing = min(set(range(ranks)) - by_rank.keys(), default=0)
        raise Fault("deepspeed.shard_absent", tensor=name, rank=missing, total=ranks)
    shapes = [by_rank[rank].shape for rank in range(ranks)]
    info = layout.info.get(stage)
    if ranks == 1 and not (info is not None and info.matching("vocabulary", name)):
        return _held_by(shapes[0], 1), None
    if info is None and not copies:
        raise CutUnknown(name)
    if info is not None and not (copies and not _said(info, name)):
        translation = translate(info, name, shapes)
        if translation.lowered is None and translation.refusal and translation.refusal.code == _UNMATCHED:
            # The writers mean a cut along dimension 0 by saying nothing; that it was not said is told with the tensor.
            translation = replace(translate(info, name, shapes, unmatched_dim=0), decided=BY_CONVENTION)
        if translation.lowered is None:
            finding = translation.refusal or Finding(_UNMATCHED, {"tensor": name, "shapes": ""})
            raise Fault(finding.code, **finding.params)
        return translation.lowered, translation
    if len(set(shapes)) > 1:
        raise CutUnknown(name)
    return _held_by(shapes[0], ranks), None


def _said(info: UniversalInfo, name: str) -> bool:
    return name in info.affine or any(info.matching(category, name) for category in info.patterns)


def _held_by(shape: Shape, ranks: int) -> Lowered:
    """Return the map of a tensor that every rank holds whole."""
    holders = tuple(range(ranks))
    every = Side(0, row_major(shape))
    pieces = (Piece(shape, every, every, holders),) if prod(shape) else ()
    return Lowered(shape, tuple(RankShard(rank, shape, pieces) for rank in holders))


def _experts(
    name: str, layout: Layout, placement: Placement, shards: Mapping[Place, Shard], *, single: bool
) -> Lowered:
    if layout.degrees.tp > 1 or layout.degrees.pp > 1:
        raise Fault("deepspeed.experts_folded", tensor=name, tp=layout.degrees.tp, pp=layout.degrees.pp)
    if single:
        # Files count experts by rank and place on it (deepspeed `runtime/engine.py`, `_save_moe_checkpoint`).
        placement = Placement(placement.experts, tuple((one,) for held in placement.held for one in held))
    inner = {shard.shape[1:] for shard in shards.values()}
    ranks = {at[2] for at in shards}
    counts = {at[2]: shard.shape[0] if shard.shape else 0 for at, shard in shards.items()}
    if len(inner) != 1 or ranks != set(range(len(placement.held))):
        raise Fault("deepspeed.experts_absent", tensor=name, found=len(ranks), total=len(placement.held))
    if any(counts[rank] != len(held) for rank, held in enumerate(placement.held)):
        raise Fault(
            "deepspeed.shards_differ", tensor=name, what="numbers of experts", found="placement and shapes"
        )
    return placed(placement, (placement.experts, *next(iter(inner))))
