"""Checkpoints that never were: inspections made by hand, so that screens are tested without a file system."""

import os
from collections.abc import Iterable
from typing import Final

from msgspec import UNSET, structs

from shardscope.engine.capabilities.workflow import workflow_of
from shardscope.engine.inspecting.inspection import Inspection
from shardscope.engine.model.blocker import Blocker, Blocks, Severity, Stage
from shardscope.engine.model.catalogue import Catalogue
from shardscope.engine.model.decoded import DecodedPlane
from shardscope.engine.model.descriptor import (
    SCHEMA,
    AdapterMatch,
    AdapterStatus,
    Component,
    Descriptor,
    Digest,
    FileRecord,
    Planes,
    PlaneState,
    ProducerFact,
    Source,
    TensorsOverview,
    Tool,
    Trust,
)
from shardscope.engine.model.evidence import (
    Alternative,
    Basis,
    Classification,
    Confidence,
    Evidence,
    Status,
)
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.resources import Estimate, Resources
from shardscope.engine.model.source import Entry, Identity, Inventory, Kind
from shardscope.engine.model.state import Presence, StatePart, StateScope
from shardscope.engine.model.tensors import DTypeShare, TensorTable
from shardscope.engine.model.topology import Topology
from shardscope.engine.model.workflow import Workflow

GIB: Final = 1 << 30
UNRANKED: Final = Topology(note="Files are split by whole tensors: no rank placement.")


class FakeInspection(Inspection):
    """An inspection made by hand."""

    def __init__(
        self,
        descriptor: Descriptor,
        tensors: TensorTable,
        inventory: Inventory,
        catalogue: Catalogue | None = None,
    ) -> None:
        super().__init__("run42/llama", False, descriptor, tensors, inventory, frozenset(), catalogue)


def entry(path: str, size: int = 0, kind: Kind = Kind.FILE, allocated: int | None = None) -> Entry:
    """Return an entry of a walk."""
    identity = Identity(device=1, inode=abs(hash(path)), size=size, mtime_ns=0, ctime_ns=0)
    return Entry(os.fsencode(path), kind, identity, size if allocated is None else allocated, 1)


def a_blocker(
    code: str = "layout.shard_missing",
    subject: str | None = "model-00002-of-00003.safetensors",
    *,
    severity: Severity = Severity.ERROR,
) -> Blocker:
    """Return a blocker with words of its own."""
    return Blocker(
        code=code,
        severity=severity,
        stage=Stage.DESCRIBE,
        subject=subject,
        message=f"The index names {subject}, which is not there; 96 of 291 tensors cannot be read.",
        remedy="Copy the file from where the checkpoint was made, or download it again.",
        blocks=(Blocks.CONVERT, Blocks.LOAD) if severity is Severity.ERROR else (),
    )


def tensor_table(rows: Iterable[tuple[str, str, tuple[int, ...], int, str]]) -> TensorTable:
    """Return a catalogue of (name, dtype, shape, bytes, file)."""
    table = TensorTable()
    ends: dict[str, int] = {}
    for name, dtype, shape, size, file in rows:
        begin = ends.get(file, 2048)
        ends[file] = begin + size
        table.append(file, name, dtype, shape, begin, begin + size)
    return table


def llama_rows(layers: int, files: int = 3) -> Iterable[tuple[str, str, tuple[int, ...], int, str]]:
    """Return the tensors of a decoder of `layers` layers over `files` files."""
    parts = (
        ("self_attn.q_proj", (4096, 4096)),
        ("self_attn.k_proj", (1024, 4096)),
        ("self_attn.v_proj", (1024, 4096)),
        ("self_attn.o_proj", (4096, 4096)),
        ("mlp.gate_proj", (14336, 4096)),
        ("mlp.up_proj", (14336, 4096)),
        ("mlp.down_proj", (4096, 14336)),
        ("input_layernorm", (4096,)),
        ("post_attention_layernorm", (4096,)),
    )
    for layer in range(layers):
        file = f"model-{layer * files // layers + 1:05}-of-{files:05}.safetensors"
        for part, shape in parts:
            size = 2
            for dim in shape:
                size *= dim
            yield f"model.layers.{layer}.{part}.weight", "BF16", shape, size, file


def inspection(
    entries: Iterable[Entry],
    *,
    table: TensorTable | None = None,
    format: str = "hf_safetensors",  # noqa: A002 - the word of the descriptor
    status: Status = Status.CONDITIONAL,
    confidence: Confidence = Confidence.HIGH,
    evidence: tuple[Evidence, ...] = (),
    alternatives: tuple[Alternative, ...] = (),
    blockers: tuple[Blocker, ...] = (),
    topology: Topology = UNRANKED,
    producer: tuple[ProducerFact, ...] = (),
    components: tuple[Component, ...] = (),
    opaque: tuple[str, ...] = (),
    plane: DecodedPlane | None = None,
    catalogue: Catalogue | None = None,
) -> FakeInspection:
    """Return an inspection of `entries`."""
    entries = tuple(sorted(entries, key=lambda each: each.path))
    table = table if table is not None else TensorTable()
    files = [each for each in entries if each.kind is Kind.FILE]
    size = sum(each.size for each in files)
    logical = sum(table.column("end")) - sum(table.column("begin"))
    records = tuple(
        FileRecord(
            path=each.text,
            path_bytes=None,
            kind=str(each.kind),
            role="weights" if each.path.endswith(b".safetensors") else "config",
            size=each.size,
            allocated=each.allocated,
            links=each.links,
            opaque=each.text in opaque,
            digest=Digest(None, "digests are off"),
        )
        for each in entries
    )
    known = Basis.OBSERVED if len(table) else Basis.UNKNOWN
    descriptor = Descriptor(
        schema=SCHEMA,
        tool=Tool("shardscope", "0"),
        limits=Limits(),
        planes=Planes(
            PlaneState.EXAMINED,
            PlaneState.NOT_EXAMINED if plane is None else PlaneState.EXAMINED,
            PlaneState.NOT_EXAMINED,
        ),
        source=Source(
            kind="folder",
            files=len(files),
            folders=sum(each.kind is Kind.DIRECTORY for each in entries),
            bytes=size,
            allocated_bytes=sum(each.allocated for each in files),
            digest_mode="none",
            hf_cache=False,
            entries=records,
        ),
        classification=Classification(format, status, confidence, evidence, alternatives),
        components=components,
        producer=producer,
        topology=topology,
        state_scope=StateScope(
            weights=StatePart(Presence.PRESENT, Basis.OBSERVED, "tensors in safetensors headers")
            if len(table)
            else StatePart(Presence.UNKNOWN)
        ),
        tensors=TensorsOverview(
            count=len(table),
            elements=logical // 2,
            logical_bytes=logical,
            dtypes=(DTypeShare("BF16", len(table), logical // 2, logical),) if len(table) else (),
            largest=tuple(table[: min(5, len(table))]),
            files_examined=len(table.files),
            files_opaque=len(opaque),
        ),
        trust=Trust(opaque, (), (), "Nothing needs a decision."),
        resources=Resources(
            Estimate(size, Basis.OBSERVED, "sizes of the files"),
            Estimate(logical if len(table) else None, known, "shapes times dtypes"),
            Estimate(logical if len(table) else None, known, "one copy of each tensor"),
            Estimate(None, Basis.UNKNOWN, "needs a plan"),
            Estimate(None, Basis.UNKNOWN, "needs a plan"),
        ),
        adapter=AdapterMatch(AdapterStatus.NONE),
        workflow=Workflow((), None),
        blockers=blockers,
        decoded=UNSET if plane is None else plane,
    )
    steps = workflow_of(
        descriptor.classification,
        descriptor.state_scope,
        descriptor.tensors,
        descriptor.trust,
        descriptor.adapter,
        blockers,
        decoded=plane,
    )
    descriptor = structs.replace(descriptor, workflow=steps)
    inventory = Inventory(root_is_file=False, entries=entries, blockers=())
    return FakeInspection(descriptor, table, inventory, catalogue)
