"""FSDP rank files, decoded: the tensors that all ranks hold together."""

from collections.abc import Sequence
from math import prod
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.formats import fsdp
from shardscope.engine.formats.decode.dtensors import coordinates
from shardscope.engine.formats.decode.rank_tensors import RankState, Trouble, gather
from shardscope.engine.formats.decode.rank_wholes import Wholes
from shardscope.engine.formats.decode.torch_components import parts_of
from shardscope.engine.formats.decoder import Decoder
from shardscope.engine.formats.fsdp import RankSet
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.torch_files import report_opaque
from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.decoded import Component
from shardscope.engine.model.evidence import Basis, Confidence, Evidence, EvidenceKind
from shardscope.engine.model.source import Entry
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.text import counted, display_name
from shardscope.engine.model.topology import Axis, Mesh, RankFiles, Topology

ANSWERED: Final = ("trust.opaque_pickle", "fsdp.world_unproven", "fsdp.flat_pieces")
"""What the safe plane says of rank files that decoding answers."""


class DecodedSet(Struct, frozen=True):
    """The files of one stem, decoded."""

    ranks: RankSet
    state: RankState
    tensors: tuple[LogicalTensor, ...]


def decode(decoder: Decoder, claim: Claim, facts: Facts) -> Facts:
    """List the tensors of every set of rank files."""
    before = _errors(decoder)
    named = fsdp.rank_sets(decoder.probe.folder(claim.folder))
    sets = [decode_set(decoder, each) for each in readable(named, facts.opaque)]
    read = {entry.path for each in sets for entry in each.state.read}
    if not read:
        return facts
    decoder.settle(claim, *ANSWERED)
    opaque = tuple(entry for entry in facts.opaque if entry.path not in read)
    report_opaque(decoder.probe, opaque)
    for each in sets:
        for tensor in each.tensors:
            decoder.add(tensor)
    return replace(
        facts,
        confidence=Confidence.HIGH if _errors(decoder) == before else Confidence.MEDIUM,
        evidence=(*facts.evidence, *(evidence_of(each) for each in sets if each.state.read)),
        components=tuple(
            replace(item, note=None) if not {entry.text for entry in opaque} & {*item.files} else item
            for item in facts.components
        ),
        topology=topology_of(sets, facts.topology),
        state=scope_of_sets(facts.state, sets),
        opaque=opaque,
    )


def readable(sets: Sequence[RankSet], opaque: Sequence[Entry]) -> list[RankSet]:
    """Return sets without the files that the safe plane found to be something else, and reported."""
    pickled = {entry.path for entry in opaque}
    kept = [
        replace(each, files=tuple(item for item in each.files if item.entry.path in pickled)) for each in sets
    ]
    return [each for each in kept if each.files]


def decode_set(decoder: Decoder, each: RankSet) -> DecodedSet:
    """Return the tensors of the rank files of one stem; what is wrong is reported. Nothing is added to the catalogue."""
    trouble = Trouble()
    state = gather(decoder, each, trouble)
    if each.kind == "extra state":
        return DecodedSet(each, state, ())
    tensors: list[LogicalTensor] = []
    if not trouble.alone("fsdp.local_state"):
        component: Component = "optimizer" if each.kind == "optimizer" else "model"
        prefix = "optimizer." if component == "optimizer" else ""
        wholes = Wholes(trouble, component, prefix, decoder.probe.limits.fragment_steps)
        tensors = wholes.tensors(state.tensors)
    trouble.report(decoder, each.entries[0], each.pattern)
    return DecodedSet(each, state, tuple(tensors))


def evidence_of(each: DecodedSet) -> Evidence:
    """Return what the files of one stem hold in one clause."""
    says = f"{counted(len(each.tensors), 'tensor')} put together from {counted(len(each.state.read), 'rank file')}"
    return Evidence(EvidenceKind.PICKLE, each.ranks.pattern, says, Basis.OBSERVED)


def topology_of(sets: Sequence[DecodedSet], names: Topology) -> Topology:
    """Return the largest mesh that DTensors are on and every rank has a place on; otherwise what names tell."""
    meshes: dict[tuple[tuple[str, ...], tuple[int, ...]], dict[int, int]] = {}
    for each in sets:
        meshes |= each.state.meshes
    if not meshes:
        return names
    axes, sizes = max(meshes, key=lambda key: (len(key[0]), key[1]))
    places = meshes[axes, sizes]
    by_rank: dict[int, list[Entry]] = {}
    for each in sets:
        for item in each.ranks.files:
            by_rank.setdefault(item.rank, []).append(item.entry)
    if not by_rank.keys() <= places.keys() or len(set(places.values())) < len(places):
        return names
    says = "the mesh of its DTensors"
    at = {rank: tuple(coordinates(sizes, place)) for rank, place in places.items()}
    seen = tuple(sorted(at[rank] for rank in by_rank))
    absent = set(range(prod(sizes))) - {places[rank] for rank in by_rank}
    world = tuple(axis for mesh in names.meshes for axis in mesh.axes if axis.name == "world")
    mesh = Mesh(
        name="dense",
        axes=(
            *world[:1],
            *(Axis(name, size, Basis.DECLARED, says) for name, size in zip(axes, sizes, strict=True)),
        ),
        ranks_seen=seen,
        ranks_missing=tuple(tuple(coordinates(sizes, place)) for place in sorted(absent)[:256]),
    )
    files = tuple(
        RankFiles("dense", at[rank], tuple(entry.text for entry in by_rank[rank])) for rank in sorted(by_rank)
    )
    return Topology((mesh,), files)


def scope_of_sets(state: StateScope, sets: Sequence[DecodedSet]) -> StateScope:
    """Return the state scope with what the files hold."""
    found: dict[str, StatePart] = {}
    for each in sets:
        if not each.state.read:
            continue
        files = tuple(entry.text for entry in each.ranks.entries[:8])
        for part, key in parts_of(each.state.top).items():
            says = f"{each.ranks.pattern} has the key {display_name(key, 80)}"
            found.setdefault(part, StatePart(Presence.PRESENT, Basis.OBSERVED, says, files))
        if each.ranks.kind == "extra state":
            continue
        says = counted(len(each.tensors), "tensor")
        if not each.tensors and each.state.read:
            says = "parts that cannot be put together, see the blockers"
        part = "optimizer" if each.ranks.kind == "optimizer" else "weights"
        found[part] = StatePart(Presence.PRESENT, Basis.OBSERVED, says, files)
    return replace(state, **found)


def _errors(decoder: Decoder) -> int:
    return sum(item.severity is Severity.ERROR for item in decoder.probe.blockers)
