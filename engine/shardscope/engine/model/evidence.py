"""Why we think what we think: claims with their basis, and what was weighed against them."""

from enum import StrEnum

from msgspec import Struct


class Basis(StrEnum):
    """Where a fact comes from."""

    DECLARED = "declared"
    """A field of the checkpoint says so."""
    OBSERVED = "observed"
    """Counted or measured here."""
    DERIVED = "derived"
    """Arithmetic on declared and observed facts."""
    INFERRED = "inferred"
    """From names only."""
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How much the evidence carries. Names alone never carry more than `low`."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """0 for none to 3 for high."""
        return ("none", "low", "medium", "high").index(self)


class EvidenceKind(StrEnum):
    """What kind of thing was looked at."""

    NAME = "name"
    """A file or folder name, or a set of them."""
    MAGIC = "magic"
    """The first bytes of a file."""
    HEADER = "header"
    """The header of a binary file: safetensors, GGUF."""
    JSON = "json"
    """Keys and values of a JSON document."""
    CONTAINER = "container"
    """The directory of a zip or another container."""
    STRUCTURE = "structure"
    """How files stand together: companions, numbering, folders."""
    TRACKER = "tracker"
    """A small text file that points at a step."""
    PICKLE = "pickle"
    """What a pickle says, read as data: only where decoding was asked for."""
    PAYLOAD = "payload"
    """Values of tensors that have to agree, compared with each other."""


class Evidence(Struct, frozen=True):
    """One thing that was seen and what it says."""

    kind: EvidenceKind
    subject: str
    """The path (relative, neutralised) or the pattern of paths."""
    says: str
    """One plain clause."""
    basis: Basis


class Status(StrEnum):
    """The verdict on the layout. None of them promises that anything loads or converts."""

    CONDITIONAL = "conditional"
    """Structural evidence for one format; no promise that it loads or converts."""
    AMBIGUOUS = "ambiguous"
    """Evidence for several formats that nothing here can decide between."""
    UNKNOWN = "unknown"
    """No format was recognised."""
    REFUSED = "refused"
    """Something blocks inspection."""


class Alternative(Struct, frozen=True):
    """A format that was considered and not chosen."""

    format: str
    reason: str
    evidence: tuple[Evidence, ...] = ()


class Classification(Struct, frozen=True):
    """What the checkpoint is, how sure we are, and why."""

    format: str
    status: Status
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    alternatives: tuple[Alternative, ...]
    note: str = "Structural evidence only: no promise that this checkpoint loads or converts."
