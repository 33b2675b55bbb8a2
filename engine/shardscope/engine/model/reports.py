"""The documents of a report bundle: what a person can send to a stranger, and what holds it together."""

from typing import Final, Literal

from msgspec import Struct

from shardscope.engine.model.blocker import Stage
from shardscope.engine.model.descriptor import Descriptor, ProducerFact
from shardscope.engine.model.evidence import Confidence, Status

Desired = Literal["inspect", "convert", "run-surgery", "export", "infer", "resume"]
"""What the person who reports wanted to come of the checkpoint."""
DESIRED: Final[tuple[Desired, ...]] = ("inspect", "convert", "run-surgery", "export", "infer", "resume")
ReportPart = Literal["descriptor", "tree", "topology", "blockers", "versions"]
"""What can be left out of a report. Of blockers the codes stay."""
PARTS: Final[tuple[ReportPart, ...]] = ("descriptor", "tree", "topology", "blockers", "versions")
MODEL_ID: Final = r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?"
"""What the id of a public model looks like: NAME or ORGANISATION/NAME."""
REVISION: Final = "[0-9a-f]{40}(?:[0-9a-f]{24})?"
"""What an immutable revision looks like: a full commit, since a branch or a tag can move."""


class ReportTool(Struct, frozen=True, forbid_unknown_fields=True):
    """What made the report."""

    name: str
    version: str
    commit: str | None
    """Of the source that was installed, where the installation's metadata record it."""


class ModelReference(Struct, frozen=True, forbid_unknown_fields=True):
    """The public model that the checkpoint comes from, where the person names it."""

    id: str | None
    revision: str | None
    """A full commit: a branch or a tag can move."""


class ReportOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """How the report was made."""

    names: Literal["keep", "hash"]
    digest: str
    hf_cache: bool
    descriptor: Literal["made for this report", "made earlier", "none"]
    decoded: bool
    """The descriptor was made by decoding. Making a report decodes nothing."""
    without: tuple[ReportPart, ...] = ()
    """What the person left out."""


class ReportEnvironment(Struct, frozen=True, forbid_unknown_fields=True):
    """Versions of this installation, from the metadata of distributions: nothing was imported. Null is not installed."""

    os: str
    kernel: str | None
    distribution: str | None
    machine: str | None
    python: str
    torch: str | None
    transformers: str | None
    accelerate: str | None
    deepspeed: str | None
    megatron_core: str | None
    safetensors: str | None


class Degrees(Struct, frozen=True, forbid_unknown_fields=True):
    """The topology in figures; null where it is not known. The descriptor has it in full, with what says so."""

    nodes: int | None = None
    world: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    cp: int | None = None
    ep: int | None = None
    etp: int | None = None
    zero_stage: int | None = None


class OffsetMeaning(Struct, frozen=True, forbid_unknown_fields=True):
    """What "offset" means in a format: the word has several meanings, and a report that leaves it open is of little use."""

    field: str
    """The metadata field or the interface."""
    unit: Literal["bytes", "elements"]
    meaning: str


class ReportFailure(Struct, frozen=True, forbid_unknown_fields=True):
    """The failure of a command, by its code."""

    code: str
    message: str
    remedy: str
    subject: str | None
    params: dict[str, int | str | None]
    stage: str


class Report(Struct, frozen=True, forbid_unknown_fields=True):
    """What a report says beside the descriptor."""

    schema: str
    tool: ReportTool
    command: tuple[str, ...]
    """As it was given, with a word in capitals for each path and each value of one's own."""
    options: ReportOptions
    desired: Desired | None
    model: ModelReference
    environment: ReportEnvironment | None
    """Null where the person left it out."""
    format: str | None
    status: Status | None
    confidence: Confidence | None
    producer: tuple[ProducerFact, ...]
    topology: Degrees
    offsets: tuple[OffsetMeaning, ...]
    first_failing_stage: Stage | None
    """Of the errors among the blockers, and of the failure."""
    failure: ReportFailure | None
    """Why a command ended, where the person gave its document, or why nothing could be examined."""
    replaced: dict[str, int]
    """How many different texts were replaced by tokens, and how many were left out, by reason."""
    note: str = (
        "Structural evidence, sanitised. A token such as {1} stands for one text throughout this report. No value of a tensor, "
        "no absolute path and no name of a person or a machine is in here."
    )


class ReportFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a bundle."""

    name: str
    bytes: int
    sha256: str


class ReportManifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The other files of a bundle, to tell whether one was changed."""

    schema: str
    files: tuple[ReportFile, ...]


class ReportBundle(Struct, frozen=True, forbid_unknown_fields=True):
    """A bundle as one document, as `shardscope report show --json` prints it."""

    schema: str
    report: Report
    descriptor: Descriptor | None


class ReportChange(Struct, frozen=True, forbid_unknown_fields=True):
    """One place where two bundles differ. Null is not there."""

    place: str
    one: str | None
    other: str | None


class ReportDifference(Struct, frozen=True, forbid_unknown_fields=True):
    """Two bundles side by side."""

    schema: str
    same: bool
    changes: tuple[ReportChange, ...]
