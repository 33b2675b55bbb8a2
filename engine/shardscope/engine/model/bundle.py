"""A bundle: tensors that are normalised already, as a document and safetensors files of fragments (`shardscope.bundle/1`).

Whatever can read a producer's files can write one: it says where every shard of a tensor lies in the whole, and which entry of
which file holds it. Nothing in it needs a producer's code. docs/bundle.md describes it with examples.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from shardscope.engine.model.lowered import ShardGroup
from shardscope.engine.model.schemas import BUNDLE
from shardscope.engine.model.shardmap import DeviceMesh, Extent, Name, Node

SCHEMA: Final = BUNDLE
FILE: Final = "shardscope-bundle.json"
"""The name of the document."""

Text = Annotated[str, Meta(min_length=1, max_length=4096)]


class BundleFragment(Struct, frozen=True, forbid_unknown_fields=True):
    """One shard as it is stored: an entry of a safetensors file, row-major."""

    rank: int
    """The label of the shard in the tensor's map."""
    file: Text
    """Relative to the document, parts divided by `/`. It does not leave the document's folder."""
    key: Text
    """The name of the entry in that file."""


class BundleTensor(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One tensor, whole."""

    dtype: str
    """A name of safetensors: of the tensor and of all its fragments."""
    shape: tuple[Extent, ...]
    """Logical: without padding."""
    map: Node | None = None
    """How its shards lie in it, on the ranks of `mesh`. Neither a map nor `shards`: every fragment holds all of it."""
    mesh: Name | None = None
    """One of the document's meshes, for `map`."""
    shards: tuple[ShardGroup, ...] = ()
    """The map as affine pieces instead: for layouts that no node says."""
    fragments: tuple[BundleFragment, ...] = ()
    """One for each rank of the map. A tie without any has those of the tensor that it is tied to."""
    replicas: tuple[BundleFragment, ...] = ()
    """Further copies of fragments, of ranks that have one."""
    padded_shape: tuple[Extent, ...] | None = None
    """What the producer padded the tensor to, for a person."""
    component: Literal["model", "optimizer", "other"] = "model"
    role: Literal["parameter", "frozen", "buffer", "state", "other"] = "parameter"
    alias_of: Text | None = None
    """It is tied to this tensor: equal bytes, stored once."""
    note: Annotated[str, Meta(max_length=512)] | None = None
    """One clause for a person."""


class BundleDocument(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Tensors of one model, by name."""

    schema: str
    tensors: dict[Text, BundleTensor]
    meshes: dict[Name, DeviceMesh] = {}
    producer: Annotated[str, Meta(max_length=512)] | None = None
    """Who made it, and from what: one clause for a person."""
