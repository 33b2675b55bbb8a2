"""A fix before a byte of it is written: what is wrong, and every change, old and new (`shardscope.fix/1`)."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.plan import DigestKind, Plan, RenameRule, Verification
from shardscope.engine.model.repair import Lost, Repair

Kind = Literal["file", "tensor", "index", "index metadata", "metadata", "header"]
Action = Literal["added", "removed", "changed"]


class FixOptions(Struct, frozen=True):
    """What a person asked for."""

    what: tuple[Repair, ...] = ()
    """None: those of `repair.SAFE` that the checkpoint needs."""
    files: tuple[str, ...] = ()
    """Globs on names of weight files: only these are read, and they belong together. None: the files of the one weight set."""
    drop: tuple[str, ...] = ()
    """Globs on names of tensors that are left out."""
    untie: bool = False
    """A tensor that stands for another name, too, may be dropped."""
    renames: tuple[RenameRule, ...] = ()
    set: tuple[tuple[str, str], ...] = ()
    """Keys and values of metadata, in every file."""
    unset: tuple[str, ...] = ()
    strip: bool = False
    """All metadata goes but `format`, which loaders ask for, before any is set."""
    max_shard_bytes: Annotated[int, Meta(ge=1)] = 5_000_000_000
    """Of a file, with `split`."""
    carry: bool = True
    memory_bytes: Annotated[int, Meta(ge=1)] = 256 << 20
    workers: Annotated[int, Meta(ge=1)] = 2
    digest: DigestKind = "sha256"
    digest_source: bool = False
    verify: Verification = "full"


class Ailment(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that is wrong with the source, and what is done about it."""

    repair: Repair | None
    """What mends it; null where nothing here does."""
    mended: bool
    """Whether this fix does."""
    blocker: Blocker


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """One difference between source and output."""

    repair: Repair
    """What makes it."""
    kind: Kind
    action: Action
    name: str
    """Exact: of the tensor, of the key of metadata, or of the file."""
    file: str | None
    """Of the output, or of the source where it is gone; null where the name is a file's."""
    old: str | None
    """Exact; null where it is new."""
    new: str | None
    """Exact; null where it is gone."""
    why: str | None = None
    """One clause, where it was not asked for."""


class FixDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """A fix as it is previewed. Names and values are exact: neutralise before showing."""

    schema: str
    what: tuple[Repair, ...]
    """In the order in which they are applied."""
    asked: bool
    """Whether a person named them; otherwise the checkpoint needs them."""
    found: tuple[Ailment, ...]
    kept: tuple[str, ...]
    """Files of the output that are those of the source, byte for byte."""
    changes: tuple[Change, ...]
    lost: tuple[Lost, ...]
    plan: Plan
