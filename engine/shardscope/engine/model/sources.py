"""The register of sources: what each one supports, and how far it may be leaned on. Claims cite its ids."""

from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

SourceId = Annotated[str, Meta(pattern=r"^R[0-9]{2}$(?!\n)")]
Text = Annotated[str, Meta(min_length=1, max_length=600)]


class SourceGroup(StrEnum):
    """What a source speaks about."""

    UPSTREAM = "upstream"
    """How other software behaves. Never what this product supports."""
    CONTAINMENT = "containment"
    """What opening foreign data risks, and what bounds a process."""
    PROJECT = "project"
    """This product's own code and tests."""


class SourceKind(StrEnum):
    """What kind of document it is."""

    REFERENCE = "reference"
    """Describes an interface or a format."""
    IMPLEMENTATION = "implementation"
    TUTORIAL = "tutorial"
    """Illustrates; never the only ground of a claim."""
    GUIDANCE = "guidance"
    ADVISORY = "advisory"
    ISSUE = "issue"
    OS_CONTROL = "operating-system control"


class SourceConfidence(StrEnum):
    """How much weight a source carries for the use that is named."""

    LOW_TO_MODERATE = "low to moderate"
    MODERATE = "moderate"
    MODERATE_TO_HIGH = "moderate to high"
    HIGH = "high"


class Standing(StrEnum):
    """Whether a document speaks of today."""

    CURRENT = "current"
    HISTORICAL = "historical"
    """Archived or of one old version: it shows what was, and grounds no claim about what is."""


class SourceEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One source."""

    id: SourceId
    title: Text
    url: Annotated[str, Meta(pattern=r"^https://[^\s]+$(?!\n)", max_length=300)] | None
    """Where it can be read; null for this project's own code."""
    group: SourceGroup
    kind: SourceKind
    confidence: SourceConfidence
    standing: Standing
    supported_use: Text
    qualification: Text
    """What has to be said with it."""


class ClaimRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that every claim keeps."""

    number: Annotated[int, Meta(ge=1)]
    rule: Text


class SourceRegister(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole register, with the head that says which one it is."""

    schema: Literal["shardscope.sources/1"]
    artifact_id: Text
    version: Text
    status: Text
    accessed: Annotated[str, Meta(pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$(?!\n)")]
    """The day on which the sources were last read."""
    baseline: Annotated[str, Meta(pattern=r"^[0-9a-f]{40}$(?!\n)")]
    """The commit of this project that its own evidence was taken from."""
    note: Text
    rules: tuple[ClaimRule, ...]
    entries: tuple[SourceEntry, ...]
