"""What a conversion leaves beside its output: what was made from what (the same for every run), and how this run went."""

from typing import Literal

from msgspec import Struct

from shardscope.engine.model.plan import (
    Admission,
    Alias,
    Decision,
    LeftOut,
    PlanEstimates,
    PlanOptions,
    RenameRule,
)
from shardscope.engine.model.repair import PlannedFix

MANIFEST_NAME = "shardscope-manifest.json"
RUN_NAME = "shardscope-run.json"


class SourceFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of the source, by its relative path."""

    path: str
    bytes: int
    sha256: str | None
    """Null unless `--digest-source` asked for it."""


class OutputTensor(Struct, frozen=True, forbid_unknown_fields=True):
    """One tensor that was written."""

    name: str
    source: str
    dtype: str
    shape: tuple[int, ...]
    map_sha256: str
    """Of the normal form of its map, as a document: which elements came from which fragment."""
    overflowed: int = 0
    """Finite values that the cast made infinite."""


class OutputFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One file that was written."""

    name: str
    bytes: int
    sha256: str | None
    """Null with `--digest none`."""
    tensors: tuple[OutputTensor, ...] = ()


class Validation(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that was proven or compared, and how much of it."""

    what: str
    result: Literal["held", "not recorded", "not asked", "differs"]
    says: str


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The manifest (`shardscope.manifest/1`): no clock, no host, no user and no absolute path, so that two runs are equal."""

    schema: str
    tool: str
    format: str
    """Of the source."""
    source: tuple[SourceFile, ...]
    options: PlanOptions
    outputs: tuple[OutputFile, ...]
    aliases: tuple[Alias, ...]
    decisions: tuple[Decision, ...]
    left_out: tuple[LeftOut, ...]
    estimates: PlanEstimates
    validation: tuple[Validation, ...]
    fix: PlannedFix | None = None
    """What was mended; null for a conversion."""
    note: str = "Model weights, not a training run: an output is not an exact resume, and nothing here promises that a model is any good."


class Run(Struct, frozen=True, forbid_unknown_fields=True):
    """How one run went (`shardscope.run/1`): the only file that differs between two runs. What was not measured is null."""

    schema: str
    admission: Admission
    staged_bytes: int
    peak_rss_bytes: int | None
    seconds: float
    seconds_by_stage: dict[str, float]
    workers_peak_rss_bytes: int | None = None
    """The most that a process on another executor had resident; null where all work was done in this one."""
    resumed_bytes: int = 0
    """Of files that an earlier run had finished: they were verified, and not made again."""


class RenamesDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """Ordered rules of renaming, as `--rename FILE` takes them."""

    schema: str
    rules: tuple[RenameRule, ...]


class Difference(Struct, frozen=True, forbid_unknown_fields=True):
    """One tensor that is not the same on both sides."""

    name: str
    problem: str
    offset: int | None = None
    """First byte of the tensor that differs."""


class VerificationDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """What `shardscope verify` looked at and what it found."""

    schema: str
    same: bool
    tensors: int
    compared_bytes: int
    total_bytes: int
    validation: tuple[Validation, ...]
    differences: tuple[Difference, ...]
