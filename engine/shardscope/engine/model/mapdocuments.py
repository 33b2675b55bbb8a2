"""What the map commands print beside the maps themselves: checks, words, plans, differences and what was written."""

from msgspec import Struct

from shardscope.engine.model.blocker import Blocker
from shardscope.engine.model.explanation import Explanation
from shardscope.engine.model.mapcheck import Difference, Padding, ReplicaSet
from shardscope.engine.model.transfer import TransferPlan


class CheckedTensor(Struct, frozen=True, forbid_unknown_fields=True):
    """What the checks say of one tensor's map. Facts that could not be proven are null."""

    file: str
    """Neutralised."""
    name: str
    shape: tuple[int, ...]
    """As the document says it."""
    invertible: bool
    """The full tensor can be assembled from the shards, each element from exactly one place."""
    elements: int | None
    pieces: int | None
    ranks: int | None
    padding: tuple[Padding, ...]
    uncovered: int | None
    replicas: tuple[ReplicaSet, ...] | None
    scaled: bool
    indexed_elements: int
    blockers: tuple[Blocker, ...]


class MapCheckDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """What `shardscope map check` found."""

    schema: str
    valid: bool
    tensors: tuple[CheckedTensor, ...]


class MapExplanationDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """Maps in words, as `shardscope map explain` has them."""

    schema: str
    tensors: tuple[Explanation, ...]


class TransferDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """Copies from the shards of one layout to those of another, for each tensor."""

    schema: str
    tensors: dict[str, TransferPlan]


class TensorDifference(Struct, frozen=True, forbid_unknown_fields=True):
    """One tensor that differs."""

    name: str
    difference: Difference


class MapDifferenceDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """How the maps of two files differ."""

    schema: str
    same: bool
    compared: int
    differ: tuple[TensorDifference, ...]
    only_one: tuple[str, ...]
    """Tensors that the second file does not have."""
    only_other: tuple[str, ...]


class WrittenFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One file that was written."""

    path: str
    """Neutralised."""
    rank: int | None
    """Whose shard it is; null for a full tensor."""
    bytes: int


class MapAppliedDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """What `shardscope map apply` wrote."""

    schema: str
    tensor: str
    dtype: str
    files: tuple[WrittenFile, ...]
