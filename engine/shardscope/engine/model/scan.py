"""What stands out in the numbers of a checkpoint (`shardscope.scan/1`)."""

from msgspec import Struct

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.decoded import Listed


class Hole(Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes of a file that the file system never stored, so that they read as zeros, where tensors should be."""

    file: str
    """Relative and neutralised."""
    begin: int
    bytes: int


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
    """Whose numbers could not be read: findings name them."""
    opaque_files: int
    """Whose tensors, if they hold any, were not listed: they need decoding."""
    findings: tuple[Blocker, ...]
    """Errors of inspection first, on account of which something may not have been read; then what is wrong with files, with the file as
    its subject; then, in the order of the tensors, what stands out, with the name of a tensor as its subject. What tensors whose
    names differ in numbers alone have in common is one finding, and its subject is the first of them."""
    holes: tuple[Hole, ...] = ()
    """The first ones; a finding for each file tells how many bytes there are in all."""
    unexamined_files: int = 0
    """Of which the file system does not tell what is stored: holes, if they have any, were not found."""
