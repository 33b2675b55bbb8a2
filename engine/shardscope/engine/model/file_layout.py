"""What stands where in one file: the stretches of its bytes, in order, and the holes that were never written."""

from typing import Final, Literal

from msgspec import Struct

from shardscope.engine.model.schemas import LAYOUT

RangeKind = Literal[
    "header",
    "tensor",
    "storage",
    "pickle",
    "member",
    "local header",
    "directory",
    "end",
    "padding",
    "gap",
    "trailing",
    "unknown",
]

KINDS: Final[dict[RangeKind, str]] = {
    "header": "the header of the file",
    "tensor": "elements of a tensor",
    "storage": "a record with the elements of tensors",
    "pickle": "a pickle: structure, opaque until decoded",
    "member": "another record of the archive",
    "local header": "the header before a record, or the checksum and sizes behind it",
    "directory": "the directory of the archive",
    "end": "the records behind the directory, and a comment",
    "padding": "filled up so that what follows is aligned",
    "gap": "bytes that nothing claims, between others that are claimed",
    "trailing": "bytes behind everything that is claimed",
    "unknown": "not looked into",
}
"""Every kind of stretch, with what it is."""


class ByteRange(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One stretch of a file, half open."""

    begin: int
    end: int
    kind: RangeKind
    name: str = ""
    """Of the tensor or the record, exact: neutralise before showing."""
    note: str = ""
    """What else there is to say: type and shape, or which tensors a record holds. Neutralised."""
    hole: int = 0
    """Bytes of it that the file system never stored."""


class FileLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """One file as stretches of bytes."""

    file: str
    """Relative path, neutralised."""
    size: int
    allocated: int
    """Bytes that the file system keeps for it."""
    container: str
    """`safetensors`, `torch archive`, `zip`, `tensors` (known from elsewhere), or `unknown`."""
    ranges: tuple[ByteRange, ...]
    """By their begin. They cover the file; only tensors of a broken header overlap."""
    holes: tuple[tuple[int, int], ...] = ()
    """Begin and end of each stretch that was never stored, as far as the file system tells; it reads as zeros."""
    says: tuple[str, ...] = ()
    """What is wrong or was left out, a sentence each."""
    schema: str = LAYOUT
