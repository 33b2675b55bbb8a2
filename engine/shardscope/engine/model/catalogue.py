"""The catalogue of decoded tensors: what each is as a whole, which fragment is where, and how they make it up.

One language for every family: a logical tensor has a shard map over the labels of its fragments, and a fragment is a shard of
that map in bytes of a file. Comparing, converting and drawing need nothing else.
"""

from typing import Literal

from msgspec import Struct

from shardscope.engine.model.decoded import Component
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.secrets import shown
from shardscope.engine.model.shardmap import DeviceMesh, TensorMap
from shardscope.engine.model.tensors import DTYPES

Role = Literal["parameter", "frozen", "buffer", "state", "other"]

Shape = tuple[int, ...]


class Record(Struct, frozen=True, gc=False):
    """A stretch of a file that one container stores as one thing: a record of a zip, a frame, a chunk file."""

    file: str
    """Relative path, neutralised: `Entry.text`."""
    begin: int
    length: int
    """Bytes in the file."""
    size: int
    """Bytes after decoding: those of `length` where nothing is coded."""
    coding: Literal["plain", "deflate", "zstd"] = "plain"
    crc: int | None = None
    """CRC-32 of the decoded bytes, where it is recorded."""
    big_endian: bool = False


class Fragment(Struct, frozen=True, gc=False):
    """One shard of a tensor as it is stored."""

    label: int
    """Of the shard in the tensor's map: a rank, or the number of a chunk."""
    shape: Shape
    """Of the shard."""
    record: Record
    """Shared by all fragments in it."""
    offset: int
    """Of its first element: bytes into the decoded record."""
    strides: Shape | None = None
    """In elements, where it is not row-major."""
    dtype: str | None = None
    """Where it is stored in another type than the tensor's."""


class LogicalTensor(Struct, frozen=True):
    """One tensor of the checkpoint, whole."""

    name: str
    """Exact: neutralise before showing."""
    dtype: str
    """A name of `DTYPES`, or torch's own word for a type that safetensors does not have."""
    shape: Shape
    map: TensorMap | Lowered
    """From the full tensor to its fragments. Of this shape."""
    mesh: DeviceMesh | None
    """Of a `TensorMap`: the ranks whose labels fragments have; null beside a `Lowered`."""
    fragments: tuple[Fragment, ...]
    component: Component = "model"
    role: Role = "parameter"
    alias_of: str | None = None
    """It shares all its bytes with this earlier tensor."""
    stored_shape: Shape | None = None
    """Where the writer padded it (a vocabulary): the shape with its padding. `shape` is then the true one."""
    replicas: tuple[Fragment, ...] = ()
    """Further copies of fragments, under the labels of those: they must hold the same bytes."""
    part_of: int | None = None
    """It is what this rank holds under the name, and nothing here tells how the ranks make a whole: every rank has such a tensor."""
    apart: bool = False
    """State that is kept apart from the model's: in files or partitions of its own, under names that are made here."""
    note: str | None = None
    """One clause for a person."""

    @property
    def unwritable(self) -> str | None:
        """Why it has no elements that safetensors could hold; null where it has."""
        if self.dtype not in DTYPES:
            return f"its type, {shown(self.dtype, 40)}, does not exist in safetensors"
        if not self.fragments and 0 not in self.shape:
            return "it has no bytes in this checkpoint"
        return None


class Catalogue(Struct, frozen=True):
    """All that decoding listed."""

    tensors: tuple[LogicalTensor, ...]

    def of(self, component: str) -> tuple[LogicalTensor, ...]:
        """Return the tensors of one component, or of `all`: everything under the checkpoint's own names.

        State that is kept apart is not in the model's namespace; only its component lists it.
        """
        if component == "all":
            return tuple(tensor for tensor in self.tensors if not tensor.apart)
        return tuple(tensor for tensor in self.tensors if tensor.component == component)

    def listed(self, component: str) -> tuple[LogicalTensor, ...]:
        """Return those of `of(component)` that have elements, in the order of the rows of a table. A blocker names each other."""
        return tuple(tensor for tensor in self.of(component) if tensor.unwritable is None)
