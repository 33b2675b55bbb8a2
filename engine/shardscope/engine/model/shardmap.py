"""The shard-map language: how shards lie in the full logical tensor, as data (`shardscope.shardmap/1`).

A map is a tree of nodes over named mesh axes. Every node denotes, for a rank's coordinate, the shape of a shard and where
each of its elements lies in the node's input; `of` is the node that is applied before it, so that
`FlatRange(of=Contiguous(...))` cuts the flattened shard that `Contiguous` makes. Without `of` a node works on the full
tensor. Node names follow the RFC for geometric shard maps in DeepSpeed (issue 8230); docs/geometry.md defines each.
"""

from typing import Annotated, Final

from msgspec import Meta, Struct

from shardscope.engine.model.schemas import SHARD_MAP

SCHEMA: Final = SHARD_MAP

Index = Annotated[int, Meta(ge=0)]
Extent = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1, max_length=64)]


class _Node(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="node"):
    """What all nodes share."""


class Replicate(_Node, frozen=True, tag="replicate"):
    """Every rank holds all of the input. The identity: a tree without other nodes on an axis replicates over it."""


class Contiguous(_Node, frozen=True, tag="contiguous"):
    """The rank at position r of `axis` holds `widths[r]` consecutive slices of dimension `dim`, after those of the ranks
    before it. The widths sum to the input's extent; zero is a width.
    """

    axis: Name
    dim: Index
    widths: tuple[Extent, ...]
    of: "Node | None" = None


class Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A sub-parameter: `size` slices of the input, sharded by `map` as a tensor of their own."""

    size: Extent
    map: "Node"
    name: str | None = None
    """For a person (`q`, `gate`); nothing reads it."""


class SubParamConcat(_Node, frozen=True, tag="sub_param_concat"):
    """The input is cut along `dim` into parts, each part is sharded by its own map, and a rank's shard is the
    concatenation of what it holds of each part, in order, along `dim`.
    """

    dim: Index
    parts: tuple[Part, ...]
    of: "Node | None" = None


class Interleave(_Node, frozen=True, tag="interleave"):
    """Dimension `dim` is seen as [head_grouping, parts, units, stride]: so many groups, each with all its parts one after
    the other, each part of so many units of `stride` slices (units follow from the extent). The units of all groups, in
    order, are dealt to the ranks of `axis` in equal runs, and a rank's shard holds [its units, parts, stride].
    """

    axis: Name
    dim: Index
    head_grouping: Annotated[int, Meta(ge=1)]
    stride: Annotated[int, Meta(ge=1)]
    parts: Annotated[int, Meta(ge=1)]
    of: "Node | None" = None


class Trim(_Node, frozen=True, tag="trim"):
    """Dimension `dim` of the shard has `padded_size` slices, of which only the first `logical_size`, the input's extent,
    exist in the input. The rest is padding: it never reaches the logical tensor, and is zero when a shard is made.
    """

    dim: Index
    logical_size: Extent
    padded_size: Extent
    of: "Node | None" = None


class Explicit(_Node, frozen=True, tag="explicit"):
    """The rank at position r of `axis` holds the input elements `indices[r]` (row-major addresses), in this order."""

    axis: Name
    indices: tuple[tuple[Index, ...], ...]
    shapes: tuple[tuple[Extent, ...], ...] | None = None
    """Shard shapes; null means one dimension."""
    of: "Node | None" = None


class Box(Struct, frozen=True, forbid_unknown_fields=True):
    """A box of the input: `sizes` elements from `offsets` on, in each dimension."""

    offsets: tuple[Index, ...]
    sizes: tuple[Extent, ...]


class Block(_Node, frozen=True, tag="block"):
    """The rank at the coordinate c of `axes` (row-major over them) holds the box `boxes[c]`; null means nothing."""

    axes: tuple[Name, ...]
    boxes: tuple[Box | None, ...]
    of: "Node | None" = None


class FlatRange(_Node, frozen=True, tag="flat_range"):
    """The rank at position r of `axis` holds the elements `start[r]` to `stop[r]` of the flattened input. What lies beyond
    the input's last element is padding.
    """

    axis: Name
    start: tuple[Index, ...]
    stop: tuple[Index, ...]
    of: "Node | None" = None


class Scale(_Node, frozen=True, tag="scale"):
    """The shard holds the input times `numerator / denominator`: never zero, one factor for each piece."""

    numerator: int
    denominator: Annotated[int, Meta(ge=1)] = 1
    of: "Node | None" = None


Node = Replicate | Contiguous | SubParamConcat | Interleave | Trim | Explicit | Block | FlatRange | Scale


class MeshAxis(Struct, frozen=True, forbid_unknown_fields=True):
    """One named axis of a mesh."""

    name: Name
    size: Annotated[int, Meta(ge=1)]


class DeviceMesh(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Ranks on named axes, row-major. `ranks` are their labels, in order; null means 0, 1, 2, ..."""

    axes: tuple[MeshAxis, ...]
    ranks: tuple[int, ...] | None = None


class TensorMap(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The map of one tensor on one of the document's meshes."""

    shape: tuple[Extent, ...]
    """Of the full logical tensor."""
    map: Node
    mesh: str = "dense"
    dtype: str | None = None
    derived: bool = False
    """Worked out from the map of a parameter and a partition of it, rather than recorded by a writer."""


class ShardMapDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """Shard maps of many tensors, over one or several meshes side by side."""

    schema: str
    meshes: dict[str, DeviceMesh]
    tensors: dict[str, TensorMap]
