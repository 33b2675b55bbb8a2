"""A descriptor as a report holds it: each field is copied by name, so that a field that comes later stays out until it is added.

Numbers, truth values and members of closed lists are kept. Every text passes `Names`: words of ours stay, the rest is tokens.
Nothing is added, so a descriptor that was made elsewhere, by a stranger even, comes out as harmless as one of this run.
"""

import re
from typing import Final

from msgspec import UNSET

from shardscope.engine.model.codes import CODES
from shardscope.engine.model.decoded import DecodedPlane, DecodedStream, Reference
from shardscope.engine.model.descriptor import (
    AdapterMatch,
    Component,
    Descriptor,
    Digest,
    FileRecord,
    ProducerFact,
    Source,
    TensorsOverview,
    Tool,
    Trust,
)
from shardscope.engine.model.escalation import IsolationProfile
from shardscope.engine.model.evidence import Alternative, Classification, Evidence
from shardscope.engine.model.resources import Estimate, Resources
from shardscope.engine.model.state import StatePart, StateScope
from shardscope.engine.model.tensors import DTypeShare, TensorSpec
from shardscope.engine.model.topology import AXES, Axis, Mesh, RankFiles, Topology
from shardscope.engine.model.workflow import Step, Workflow
from shardscope.engine.report.findings import blocker
from shardscope.engine.report.names import Names

SMALL: Final = 1 << 20
"""Bytes. What a smaller file holds can be guessed and tried against its digest: a configuration with a name in it, a token."""
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_KERNEL: Final = re.compile(r"\d{1,3}\.\d{1,4}(?:\.\d{1,5})?")


def sanitised(descriptor: Descriptor, names: Names) -> Descriptor:
    """Return a descriptor of the same checkpoint, made of figures, words of ours and tokens alone.

    The order of its lists is kept. `names` collects what was replaced.
    """
    source = _source(descriptor.source, names)  # first, so that tokens run in the order of the tree
    found = descriptor.classification
    return Descriptor(
        schema=descriptor.schema,
        tool=Tool("shardscope", names.version(descriptor.tool.version) or "unknown"),
        limits=descriptor.limits,
        planes=descriptor.planes,
        source=source,
        classification=Classification(
            names.word(found.format),
            found.status,
            found.confidence,
            _evidence(found.evidence, names),
            tuple(
                Alternative(names.word(each.format), names.text(each.reason), _evidence(each.evidence, names))
                for each in found.alternatives
            ),
        ),
        components=tuple(_component(each, names) for each in descriptor.components),
        producer=tuple(_producer(each, names) for each in descriptor.producer),
        topology=_topology(descriptor.topology, names),
        state_scope=_state(descriptor.state_scope, names),
        tensors=_tensors(descriptor.tensors, names),
        trust=_trust(descriptor.trust, names),
        resources=_resources(descriptor.resources, names),
        adapter=_adapter(descriptor.adapter, names),
        workflow=_workflow(descriptor.workflow, names),
        blockers=tuple(blocker(each, names) for each in descriptor.blockers),
        decoded=UNSET if descriptor.decoded is UNSET else _decoded(descriptor.decoded, names),
    )


def _source(source: Source, names: Names) -> Source:
    return Source(
        kind=names.word(source.kind),
        files=source.files,
        folders=source.folders,
        bytes=source.bytes,
        allocated_bytes=source.allocated_bytes,
        digest_mode=names.word(source.digest_mode),
        hf_cache=source.hf_cache,
        entries=tuple(_file(each, names) for each in source.entries),
    )


def _file(record: FileRecord, names: Names) -> FileRecord:
    return FileRecord(
        path=names.name(record.path),
        path_bytes=None,
        kind=names.word(record.kind),
        role=names.word(record.role),
        size=record.size,
        allocated=record.allocated,
        links=record.links,
        opaque=record.opaque,
        digest=_digest(record, names),
    )


def _digest(record: FileRecord, names: Names) -> Digest:
    found = record.digest
    if found.sha256 is None or _SHA256.fullmatch(found.sha256) is None:
        return Digest(None, names.text(found.reason))
    if record.size < SMALL:
        names.drop("digest of a small file")
        return Digest(None, "left out: what a small file holds could be guessed by it")
    return Digest(found.sha256, names.text(found.reason))


def _evidence(found: tuple[Evidence, ...], names: Names) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(each.kind, names.text(each.subject), names.text(each.says), each.basis) for each in found
    )


def _component(item: Component, names: Names) -> Component:
    return Component(
        kind=names.word(item.kind),
        name=names.title(item.name),
        format=None if item.format is None else names.text(item.format),
        files=tuple(map(names.name, item.files)),
        bytes=item.bytes,
        note=_optional(item.note, names),
        named_by=None if item.named_by is None else names.name(item.named_by),
    )


def _producer(fact: ProducerFact, names: Names) -> ProducerFact:
    return ProducerFact(
        names.word(fact.name), names.version(fact.version), fact.basis, names.text(fact.evidence)
    )


def _topology(topology: Topology, names: Names) -> Topology:
    return Topology(
        meshes=tuple(
            Mesh(
                names.word(mesh.name),
                tuple(
                    Axis(
                        axis.name if axis.name in AXES else names.token(axis.name),
                        axis.size,
                        axis.basis,
                        _optional(axis.evidence, names),
                    )
                    for axis in mesh.axes
                ),
                mesh.ranks_seen,
                mesh.ranks_missing,
                mesh.ranks_duplicate,
            )
            for mesh in topology.meshes
        ),
        rank_files=tuple(
            RankFiles(names.word(each.mesh), each.coordinate, tuple(map(names.name, each.files)))
            for each in topology.rank_files
        ),
        note=_optional(topology.note, names),
    )


def _state(scope: StateScope, names: Names) -> StateScope:
    def part(item: StatePart) -> StatePart:
        return StatePart(
            item.presence, item.basis, names.text(item.reason), tuple(map(names.name, item.files))
        )

    return StateScope(
        weights=part(scope.weights),
        optimizer=part(scope.optimizer),
        scheduler=part(scope.scheduler),
        rng=part(scope.rng),
        scaler=part(scope.scaler),
        progress=part(scope.progress),
        data_position=part(scope.data_position),
    )


def _tensors(found: TensorsOverview, names: Names) -> TensorsOverview:
    return TensorsOverview(
        count=found.count,
        elements=found.elements,
        logical_bytes=found.logical_bytes,
        dtypes=tuple(
            DTypeShare(names.word(each.dtype), each.count, each.elements, each.bytes) for each in found.dtypes
        ),
        largest=tuple(
            TensorSpec(
                name=names.name(each.name),
                dtype=names.word(each.dtype),
                shape=each.shape,
                bytes=each.bytes,
                file=names.name(each.file),
                begin=each.begin,
                end=each.end,
            )
            for each in found.largest
        ),
        files_examined=found.files_examined,
        files_opaque=found.files_opaque,
    )


def _trust(trust: Trust, names: Names) -> Trust:
    return Trust(
        opaque_files=tuple(map(names.name, trust.opaque_files)),
        code_files=tuple(map(names.name, trust.code_files)),
        code_references=tuple(map(names.name, trust.code_references)),
        requirement=names.text(trust.requirement),
    )


def _resources(found: Resources, names: Names) -> Resources:
    def estimate(item: Estimate) -> Estimate:
        return Estimate(item.bytes, item.basis, names.text(item.note))

    return Resources(
        source_bytes=estimate(found.source_bytes),
        logical_bytes=estimate(found.logical_bytes),
        output_bytes=estimate(found.output_bytes),
        temporary_bytes=estimate(found.temporary_bytes),
        peak_ram_bytes=estimate(found.peak_ram_bytes),
    )


def _adapter(match: AdapterMatch, names: Names) -> AdapterMatch:
    """Return what the registry says; what is installed here for it is left out."""
    return AdapterMatch(
        status=match.status,
        candidates=tuple(map(names.word, match.candidates)),
        producer_agrees=match.producer_agrees,
        version_agrees=match.version_agrees,
        note=names.text(match.note),
    )


def _workflow(workflow: Workflow, names: Names) -> Workflow:
    return Workflow(
        steps=tuple(
            Step(
                step.name,
                step.state,
                step.stopped_by if step.stopped_by in CODES else None,
                names.text(step.says),
            )
            for step in workflow.steps
        ),
        stops_at=workflow.stops_at,
    )


def _decoded(plane: DecodedPlane, names: Names) -> DecodedPlane:
    return DecodedPlane(
        listed=plane.listed,
        isolation=None if plane.isolation is None else _isolation(plane.isolation, names),
        limits=plane.limits,
        streams=tuple(
            DecodedStream(names.name(each.file), each.begin, each.protocol, each.opcodes)
            for each in plane.streams
        ),
        references=tuple(_reference(each, names) for each in plane.references),
        components=plane.components,
        payload_bytes=plane.payload_bytes,
    )


def _reference(found: Reference, names: Names) -> Reference:
    """Return a reference; names outside the closed table of what is understood are tokens, whatever they look like."""
    shown = names.word if found.known else names.token
    return Reference(
        module=shown(found.module),
        name=shown(found.name),
        use=found.use,
        count=found.count,
        known=found.known,
        streams=found.streams,
        first=names.name(found.first),
    )


def _isolation(profile: IsolationProfile, names: Names) -> IsolationProfile:
    kernel = _KERNEL.match(profile.kernel)
    return IsolationProfile(
        kernel="unknown" if kernel is None else kernel[0],
        machine=names.word(profile.machine),
        root=profile.root,
        no_new_privs=profile.no_new_privs,
        dumpable=profile.dumpable,
        system_calls=tuple(map(names.word, profile.system_calls)),
        landlock=profile.landlock,
        ceilings=profile.ceilings,
        variables=profile.variables,
        probes=profile.probes,
    )


def _optional(text: str | None, names: Names) -> str | None:
    return None if text is None else names.text(text)
