"""Put the descriptor together from what the rooms found."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import UNSET

from shardscope.engine.capabilities.diagnosis import resolve
from shardscope.engine.capabilities.registry import REGISTRY
from shardscope.engine.capabilities.workflow import workflow_of
from shardscope.engine.formats.protocol import Claim, Facts
from shardscope.engine.formats.roles import role_of
from shardscope.engine.inspecting.classify import Candidate, Verdict, capped
from shardscope.engine.inspecting.overview import overview
from shardscope.engine.inspecting.resources import resources_of
from shardscope.engine.model import schemas
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.capability import Capability
from shardscope.engine.model.decoded import DecodedPlane
from shardscope.engine.model.descriptor import (
    Component,
    Descriptor,
    Digest,
    FileRecord,
    Planes,
    PlaneState,
    ProducerFact,
    Source,
    Tool,
    Trust,
)
from shardscope.engine.model.evidence import Classification, Confidence, Evidence, Status
from shardscope.engine.model.format_names import NOT_CONVERTED
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.source import Entry, Inventory, Kind
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.tensors import TensorTable
from shardscope.engine.model.text import counted, display_name, exact_text, path_text
from shardscope.engine.model.topology import Topology
from shardscope.engine.version import __version__

Described = Sequence[tuple[Claim, Facts]]

_OPAQUE_SUFFIXES: Final = (
    ".pt",
    ".pth",
    ".bin",
    ".ckpt",
    ".pkl",
    ".pickle",
    ".distcp",
    ".metadata",
    ".joblib",
)
_NOT_HASHED: Final = Digest(None, "not a regular file")


def ordered(blockers: Iterable[Blocker]) -> tuple[Blocker, ...]:
    """Return blockers without repetitions, worst first, then by code and subject."""
    unique = {(item.code, item.subject, item.message): item for item in blockers}
    return tuple(
        sorted(unique.values(), key=lambda b: (-b.severity.rank, b.code, b.subject or "", b.message))
    )


def descriptor(
    *,
    inventory: Inventory,
    limits: Limits,
    digest_mode: str,
    digests: Mapping[bytes, Digest],
    hf_cache: bool,
    verdict: Verdict,
    status: Status,
    facts: Described,
    tensors: TensorTable,
    headers_read: int,
    blockers: tuple[Blocker, ...],
    capabilities: Sequence[Capability] = (),
    decoded: DecodedPlane | None = None,
) -> Descriptor:
    """Return the descriptor of one inspection. `capabilities` are those that were named beside the registered ones."""
    opaque = _opaque(inventory, facts, decoded)
    classification = _classification(verdict, status, facts)
    producer = _unique(fact for _, found in facts for fact in found.producer)
    state = _state(facts)
    figures = overview(tensors, headers_read, len(opaque))
    trust = _trust(inventory, facts, opaque, decoded)
    resolution = resolve(classification, producer, (*(row.capability for row in REGISTRY), *capabilities))
    blockers = ordered([*blockers, *resolution.blockers])
    return Descriptor(
        schema=schemas.DESCRIPTOR,
        tool=Tool("shardscope", __version__),
        limits=limits,
        planes=_planes(decoded),
        source=_source(inventory, digest_mode, digests, hf_cache, {entry.path for entry in opaque}),
        classification=classification,
        components=(
            *(component for _, found in facts for component in found.components),
            *map(_candidate, verdict.candidates),
        ),
        producer=producer,
        topology=_topology(facts),
        state_scope=state,
        tensors=figures,
        trust=trust,
        resources=resources_of(inventory, facts, tensors, blockers),
        adapter=resolution.match,
        workflow=workflow_of(
            classification, state, figures, trust, resolution.match, blockers, decoded=decoded
        ),
        blockers=blockers,
        decoded=UNSET if decoded is None else decoded,
    )


def _planes(decoded: DecodedPlane | None) -> Planes:
    examined, not_examined = PlaneState.EXAMINED, PlaneState.NOT_EXAMINED
    if decoded is None:
        return Planes(examined, not_examined, not_examined)
    return Planes(examined, examined, examined if decoded.payload_bytes else not_examined)


def _candidate(candidate: Candidate) -> Component:
    return Component(
        kind="candidate",
        name=display_name(path_text(candidate.folder)),
        format=" and ".join(candidate.formats),
        files=(),
        bytes=candidate.bytes,
        note=counted(candidate.files, "file"),
        named_by=candidate.tracker,
    )


def _unique(facts: Iterable[ProducerFact]) -> tuple[ProducerFact, ...]:
    return tuple(dict.fromkeys(facts))


def _opaque(inventory: Inventory, facts: Described, decoded: DecodedPlane | None) -> list[Entry]:
    """Return the files whose content is not examined: those that formats name, and those named like pickles.

    Once decoding was asked for, a claim's files are those that its format still names.
    """
    named = {entry.path for _, found in facts for entry in found.opaque}
    read = {entry.path for claim, _ in facts for entry in claim.files} if decoded is not None else set()
    return [
        entry
        for entry in inventory.files
        if entry.path in named
        or (entry.path not in read and entry.name.casefold().endswith(_OPAQUE_SUFFIXES))
    ]


def _source(
    inventory: Inventory,
    digest_mode: str,
    digests: Mapping[bytes, Digest],
    hf_cache: bool,
    opaque: set[bytes],
) -> Source:
    files = inventory.files
    return Source(
        kind="file" if inventory.root_is_file else "folder",
        files=len(files),
        folders=sum(entry.kind is Kind.DIRECTORY for entry in inventory.entries),
        bytes=sum(entry.size for entry in files),
        allocated_bytes=sum(entry.allocated for entry in files),
        digest_mode=digest_mode,
        hf_cache=hf_cache,
        entries=tuple(
            FileRecord(
                *exact_text(entry.path),
                kind=entry.kind.value,
                role=role_of(entry.name) if entry.kind is Kind.FILE else entry.kind.value,
                size=entry.size if entry.kind is Kind.FILE else 0,
                allocated=entry.allocated if entry.kind is Kind.FILE else 0,
                links=entry.links,
                opaque=entry.path in opaque,
                digest=digests.get(entry.path, _NOT_HASHED),
            )
            for entry in inventory.entries
        ),
    )


def _classification(verdict: Verdict, status: Status, facts: Described) -> Classification:
    evidence: list[Evidence] = list(verdict.evidence)
    confidences = []
    for claim, found in facts:
        both = (*claim.evidence, *found.evidence)
        evidence += both
        confidences.append(capped(found.confidence, both))
    lowest = min(confidences, key=lambda value: value.rank, default=Confidence.NONE)
    return Classification(verdict.format, status, lowest, tuple(evidence), verdict.alternatives)


def _topology(facts: Described) -> Topology:
    """Return the first topology that has ranks, otherwise the first that says why it has none."""
    found = [each.topology for _, each in facts]
    return next(
        (each for each in found if each.meshes), next((each for each in found if each.note), Topology())
    )


def _state(facts: Described) -> StateScope:
    """Return the scope of the whole: for each part, what says most (present, opaque, unknown, absent)."""
    scopes = [found.state for _, found in facts]
    if not scopes:
        return StateScope()
    order = (Presence.PRESENT, Presence.OPAQUE, Presence.UNKNOWN, Presence.ABSENT)

    def strongest(part: str) -> StatePart:
        parts: list[StatePart] = [getattr(scope, part) for scope in scopes]
        return min(parts, key=lambda item: order.index(item.presence))

    return StateScope(**{part: strongest(part) for part in StateScope.__struct_fields__})


def _trust(
    inventory: Inventory, facts: Described, opaque: Sequence[Entry], decoded: DecodedPlane | None
) -> Trust:
    unread = {entry.path for claim, found in facts if claim.format in NOT_CONVERTED for entry in found.opaque}
    rest = sum(entry.path not in unread for entry in opaque)
    needs = []
    if rest and decoded is not None:
        needs.append(f"not decoded, and opaque still: {counted(rest, 'file')}")
    elif rest:
        needs.append(f"opaque until decoded, which must be asked for each time: {counted(rest, 'file')}")
    if unread:
        needs.append(f"recognised only, which nothing here reads: {counted(len(unread), 'file')}")
    enough = "the safe plane" if decoded is None else "what was decoded in this run"
    words = "; ".join(needs) or f"nothing here needs more than {enough}"
    requirement = f"{words[0].upper()}{words[1:]}."
    return Trust(
        opaque_files=tuple(entry.text for entry in opaque),
        code_files=tuple(entry.text for entry in inventory.files if role_of(entry.name) == "code"),
        code_references=tuple(reference for _, found in facts for reference in found.code_references),
        requirement=requirement,
    )
