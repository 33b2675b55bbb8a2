"""The decoded plane as the descriptor tells of it: what was read, by which worker, what it refers to, and what it lists."""

from typing import Literal

from msgspec import Struct

from shardscope.engine.model.escalation import IsolationProfile
from shardscope.engine.model.limits import DecodeLimits

Component = Literal["model", "optimizer", "other"]
"""`other` is a tensor of neither: of a random state, a scheduler, an extra state."""

Listed = Literal["model", "optimizer", "other", "all"]
"""Which tensors are listed: those of one component, or all."""


class DecodedStream(Struct, frozen=True, forbid_unknown_fields=True):
    """One stream of pickles that was decoded."""

    file: str
    begin: int
    """Where its container begins in the file."""
    protocol: int
    opcodes: int


class Reference(Struct, frozen=True, forbid_unknown_fields=True):
    """A module and a name that pickles refer to, over all of them. Nothing here resolves it."""

    module: str
    name: str
    use: Literal["called", "named"]
    count: int
    known: bool
    """In the closed table of what is understood. Others are foreign: a loader would have imported them."""
    streams: int
    first: str
    """The first file that has it."""


class ComponentFigures(Struct, frozen=True, forbid_unknown_fields=True):
    """The tensors of one component."""

    component: Component
    tensors: int
    fragments: int
    replicas: int
    aliases: int
    bytes: int | None
    """Of the full tensors, aliases counted once; null where a type has no known size."""


class DecodedPlane(Struct, frozen=True, forbid_unknown_fields=True):
    """What decoding did in this invocation. Nothing of the checkpoint was executed: opcodes were read as data."""

    listed: Listed
    isolation: IsolationProfile | None
    """Of the worker, as it was measured in the worker itself; null where no pickle had to be read."""
    limits: DecodeLimits
    streams: tuple[DecodedStream, ...]
    references: tuple[Reference, ...]
    """Foreign ones first."""
    components: tuple[ComponentFigures, ...]
    payload_bytes: int
    """Bytes of tensors that were read to compare them. None was interpreted as anything but numbers."""
    note: str = (
        "Decoded is not trusted: opcodes were read as data by a contained worker, which is containment and no proof. What "
        "was listed is what the files say of themselves."
    )
