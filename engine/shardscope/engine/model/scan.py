"""What stands out in the numbers of a checkpoint (`shardscope.scan/1`)."""

from msgspec import Struct

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.decoded import Listed


class ScanDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """Every number of a checkpoint read once. Nothing in it says where the checkpoint is."""

    schema: str
    format: str
    component: Listed
    tensors: int
    """Whose numbers were read."""
    bytes: int
    """Of their numbers, as they are stored."""
    unread: int
    """Whose numbers could not be read: a finding names each."""
    opaque_files: int
    """Whose tensors, if they hold any, were not listed: they need decoding."""
    findings: tuple[Blocker, ...]
    """Errors of inspection first, on account of which something may not have been read; then, in the order of the tensors, what stands
    out, with the name of a tensor as its subject."""
