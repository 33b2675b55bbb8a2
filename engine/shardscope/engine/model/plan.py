"""The plan of a conversion: what will be written, from what, and everything that was decided on the way.

A plan is data (`shardscope.plan/1`): it is printed, saved, edited and run. Its list of files is what counts: an edited name,
type or omission there is carried out as it stands, and checked as if it had been planned. It is bound to its source by
`PlanSource.identity`.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.decoded import Listed
from shardscope.engine.model.lowered import LoweredDocument
from shardscope.engine.model.repair import PlannedFix
from shardscope.engine.model.resources import Estimate
from shardscope.engine.model.shardmap import ShardMapDocument

Cast = Literal["keep", "BF16", "F16", "F32"]
Ties = Literal["once", "both"]
Verification = Literal["full", "sample", "headers"]
DigestKind = Literal["sha256", "none"]
RankLayout = Literal["ranks", "dcp-safetensors", "vllm"]


class RenameRule(Struct, frozen=True, forbid_unknown_fields=True):
    """One rule of renaming: a whole name, a prefix, or a pattern in which `*` stands for part of a name between dots and `**`
    for anything; `{1}`, `{2}`, ... in `to` are what those stood for. Of several rules each sees what the one before it made.
    """

    to: str
    name: str | None = None
    prefix: str | None = None
    pattern: str | None = None


class PlanOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What a person asked for; the defaults are what nobody has to ask for."""

    component: Listed = "model"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    renames: tuple[RenameRule, ...] = ()
    dtype: Cast = "keep"
    max_shard_bytes: Annotated[int, Meta(ge=1)] = 5_000_000_000
    ties: Ties = "once"
    vocab_size: int | None = None
    mapping: str | None = None
    """Of the tables that ship, or the path of one; null keeps the producer's names."""
    fuse: str | None = None
    """A naming whose other direction is taken: a model's own tensors become those that the naming is made of."""
    carry: bool = True
    """Configuration and tokenizer files come along."""
    memory_bytes: Annotated[int, Meta(ge=1)] = 256 << 20
    """Buffers of all workers together."""
    workers: Annotated[int, Meta(ge=1)] = 2
    digest: DigestKind = "sha256"
    digest_source: bool = False
    """The source is hashed, too, before and after."""
    verify: Verification = "sample"
    check_crc: bool = True


class PlanSource(Struct, frozen=True, forbid_unknown_fields=True):
    """What a plan is for."""

    format: str
    identity: str
    """SHA-256 over the relative path, size, inode and times of every file: another folder, or a changed one, has another."""
    files: int
    bytes: int
    decoded: bool
    """Pickles were decoded for it, and have to be again."""


class PlannedTensor(Struct, frozen=True, forbid_unknown_fields=True):
    """One tensor of an output file."""

    name: str
    source: str
    """Its name in the source's catalogue, or in what the mapping made of it."""
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    stored_dtype: str
    """In the source. Another one than `dtype` is cast, round to nearest even."""


class PlannedFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One output file: tensors in the order in which they will lie."""

    name: str
    bytes: int
    """With its header."""
    tensors: tuple[PlannedTensor, ...]
    rank: int | None = None
    """Whose shards it holds; null for a file of whole tensors."""
    metadata: dict[str, str] | None = None
    """Of a header as the safetensors library lays it out; null for one as a conversion writes it."""
    kept: str | None = None
    """The file of the source whose header it has byte for byte, as it has its tensors; null for a header that is made."""


class Target(Struct, frozen=True, forbid_unknown_fields=True):
    """A topology that is written: one of two documents says how its ranks cut every tensor, by the names of the output."""

    layout: RankLayout
    maps: ShardMapDocument | None = None
    lowered: LoweredDocument | None = None
    """The maps as affine pieces: for layouts that no node says."""


class CarriedFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that is copied as it is."""

    name: str
    """In the output."""
    source: str
    """Relative, neutralised."""
    bytes: int
    note: str | None = None


class Decision(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that was not forced: what was chosen, why, and what changes it."""

    kind: str
    """`ties`, `vocabulary`, `frozen`, `extra_state`, `buffers`, `rename`, `prefix`, `cast`, `component`, `replicas`, `mapping`, ..."""
    choice: str
    """One clause."""
    evidence: str
    """One clause: what it rests on."""
    option: str | None
    """Of the command line; null where nothing changes it."""
    tensors: int = 0
    examples: tuple[str, ...] = ()
    """The first names, neutralised."""


class LeftOut(Struct, frozen=True, forbid_unknown_fields=True):
    """State that is not in the output."""

    what: str
    """`optimizer`, `scheduler`, `rng`, `scaler`, `progress`, `data position`, `extra state`, `excluded`, ..."""
    tensors: int
    bytes: int | None
    why: str


class Alias(Struct, frozen=True, forbid_unknown_fields=True):
    """A name that stands for another tensor's bytes and is not written."""

    name: str
    tensor: str


class PlanEstimates(Struct, frozen=True, forbid_unknown_fields=True):
    """The five figures of a plan, and the part of the last one that a budget bounds."""

    source_bytes: Estimate
    logical_bytes: Estimate
    output_bytes: Estimate
    temporary_bytes: Estimate
    peak_ram_bytes: Estimate
    buffer_bytes: Estimate
    """Of the peak: tiles of the copies, which `memory_bytes` bounds."""


Verdict = Literal["admitted", "denied", "unknown"]


COUNTS: Final = frozenset({"files", "quota of files", "open files"})
"""Checks of numbers; those of all others are bytes."""


class AdmissionCheck(Struct, frozen=True, forbid_unknown_fields=True):
    """One figure of the plan held against one of this machine."""

    what: str
    needs: int | None
    has: int | None
    verdict: Verdict
    basis: str
    """One clause: where both figures come from."""


class Admission(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the plan may start here and now. Denied and unknown start nothing."""

    verdict: Verdict
    checks: tuple[AdmissionCheck, ...]


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """A conversion before a byte of it is written."""

    schema: str
    tool: str
    """Name and version."""
    source: PlanSource
    options: PlanOptions
    files: tuple[PlannedFile, ...]
    aliases: tuple[Alias, ...]
    carried: tuple[CarriedFile, ...]
    decisions: tuple[Decision, ...]
    left_out: tuple[LeftOut, ...]
    estimates: PlanEstimates
    blockers: tuple[Blocker, ...]
    """Of severity error and blocking conversion: nothing starts."""
    notes: tuple[Blocker, ...] = ()
    """What stops nothing, and has to be known before the output is used: what was inferred, what stands in the way of loading."""
    admission: Admission | None = None
    """As it was when the plan was printed; asked again before anything starts."""
    target: Target | None = None
    """Whose ranks' shards are written; null for whole tensors."""
    fix: PlannedFix | None = None
    """What is mended; null for a conversion."""
