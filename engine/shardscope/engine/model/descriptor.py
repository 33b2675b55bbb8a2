"""The descriptor: one strict JSON document that says everything inspection found.

Schema `shardscope.descriptor/1`. It holds facts of the checkpoint and of this tool alone: no clock, no host, no
absolute path; two runs on the same bytes give the same bytes.
"""

from enum import StrEnum

import msgspec
from msgspec import UNSET, Struct, UnsetType

from shardscope.engine.model import schemas
from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.decoded import DecodedPlane
from shardscope.engine.model.evidence import Basis, Classification
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.resources import Resources
from shardscope.engine.model.state import StateScope
from shardscope.engine.model.tensors import TensorSummary
from shardscope.engine.model.text import json_escape
from shardscope.engine.model.topology import Topology
from shardscope.engine.model.workflow import Workflow

SCHEMA = schemas.DESCRIPTOR


class Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """Who wrote the document."""

    name: str
    version: str


class PlaneState(StrEnum):
    """Whether a plane of trust was entered."""

    EXAMINED = "examined"
    NOT_EXAMINED = "not examined"


class Planes(Struct, frozen=True, forbid_unknown_fields=True):
    """The three planes of trust. Nothing is ever executed in any of them."""

    safe: PlaneState
    decoded: PlaneState
    payload: PlaneState


class Digest(Struct, frozen=True, forbid_unknown_fields=True):
    """The SHA-256 of a file's bytes, or why there is none."""

    sha256: str | None
    reason: str


class FileRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the inventory."""

    path: str
    """Relative, exact where it is UTF-8, otherwise with `\\xNN` for the bytes that are not."""
    path_bytes: str | None
    """The path's bytes in hexadecimal where it is not UTF-8."""
    kind: str
    role: str
    """What its name says it is for: weights, index, config, tokenizer, optimizer, tracker, code, ..."""
    size: int
    allocated: int
    links: int
    opaque: bool
    """Its content is not examined in the safe plane."""
    digest: Digest


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """What was inventoried."""

    kind: str
    """`file` or `folder`."""
    files: int
    folders: int
    bytes: int
    allocated_bytes: int
    digest_mode: str
    hf_cache: bool
    entries: tuple[FileRecord, ...]


class Component(Struct, frozen=True, forbid_unknown_fields=True):
    """One part of the checkpoint: a weight set, an adapter, a configuration, a tokenizer, a step folder, ..."""

    kind: str
    name: str
    format: str | None
    files: tuple[str, ...]
    bytes: int
    note: str | None = None
    named_by: str | None = None
    """Of a candidate: the tracker that names it."""


class ProducerFact(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that tells which software wrote the checkpoint."""

    name: str
    version: str | None
    basis: Basis
    evidence: str


class Trust(Struct, frozen=True, forbid_unknown_fields=True):
    """What is opaque, and what would be needed to read it."""

    opaque_files: tuple[str, ...]
    code_files: tuple[str, ...]
    """Python files and code references: reported, never run."""
    code_references: tuple[str, ...]
    requirement: str
    """One sentence."""
    note: str = (
        "Nothing of the checkpoint was executed. Not examined is not clean. A checksum, a familiar name, an earlier "
        "scan or weights_only=True is not trust."
    )


class AdapterStatus(StrEnum):
    """How far a capability matches the checkpoint."""

    NONE = "none"
    CANDIDATE = "candidate"
    """The format is the one that the capability is for; no more than that."""
    EXACT = "exact"
    """Producer and version, each observed in the checkpoint, agree as well, and every dependency is met."""
    AMBIGUOUS = "ambiguous"
    """Several capabilities match; none is chosen."""


class DependencyState(StrEnum):
    """Whether a distribution is there in the version that is needed."""

    MET = "met"
    MISSING = "missing"
    MISMATCHED = "mismatched"


class Dependency(Struct, frozen=True, forbid_unknown_fields=True):
    """One distribution that a capability needs, as the metadata of this installation has it."""

    distribution: str
    required: str
    observed: str | None
    """The installed version, neutralised; null where the distribution is not installed."""
    state: DependencyState


class DependencyReport(Struct, frozen=True, forbid_unknown_fields=True):
    """What a capability needs, and what is there. Read from metadata: nothing was imported or installed."""

    capability: str
    extra: str
    """The exact extra, as an installer takes it: `shardscope[NAME]`."""
    project: Dependency
    """shardscope itself, in the version that the capability is for."""
    requires: tuple[Dependency, ...]


class AdapterMatch(Struct, frozen=True, forbid_unknown_fields=True):
    """What the closed capability registry, and the capabilities that were named, say about this checkpoint.

    A match is a diagnosis. It authorises no trust, calls no reader and claims no support. `dependencies` are facts of
    this installation: they are there only where a capability was named or is registered.
    """

    status: AdapterStatus
    candidates: tuple[str, ...] = ()
    """The ids of the capabilities for this format."""
    producer_agrees: bool | None = None
    """Of a single candidate: whether the checkpoint names its producer. Null where the checkpoint names none."""
    version_agrees: bool | None = None
    """The same of the version."""
    dependencies: tuple[DependencyReport, ...] = ()
    note: str = "The registry of qualified producer adapters is empty."


class TensorsOverview(TensorSummary, frozen=True, forbid_unknown_fields=True):
    """The tensors in figures; `shardscope tensors` lists them."""


class Descriptor(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that inspection found out."""

    schema: str
    tool: Tool
    limits: Limits
    planes: Planes
    source: Source
    classification: Classification
    components: tuple[Component, ...]
    producer: tuple[ProducerFact, ...]
    topology: Topology
    state_scope: StateScope
    tensors: TensorsOverview
    trust: Trust
    resources: Resources
    adapter: AdapterMatch
    workflow: Workflow
    blockers: tuple[Blocker, ...]
    decoded: DecodedPlane | UnsetType = UNSET
    """Absent unless decoding was asked for."""


def to_json(document: Struct, *, indent: int = 2) -> str:
    r"""Return a document as JSON text that is safe to print: unsafe characters stand as `\\uXXXX` escapes."""
    encoded = msgspec.json.format(msgspec.json.encode(document), indent=indent)
    return json_escape(encoded.decode()) + "\n"
