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


class StoredShard(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a checkpoint has a shard of a tensor."""

    label: int
    """Of the shard: the source rank of segments."""
    file: str
    """Neutralised."""
    begin: int
    """Its first byte: in the file, where the record is not compressed."""


class Run(Struct, frozen=True, forbid_unknown_fields=True):
    """Segments of one tensor that follow each other."""

    tensor: str
    first: int
    """Among the segments of the tensor's plan."""
    count: int
    """Zero where the plan has indexed segments for the pair."""


class PairOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """All that one source rank gives one target rank, in the order in which both go through it."""

    source_rank: int
    target_rank: int
    bytes: int
    runs: tuple[Run, ...]


class TransferDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """Copies from the shards of one layout to those of another, for each tensor."""

    schema: str
    tensors: dict[str, TransferPlan]
    dtypes: dict[str, str] = {}
    """As the source stores them; of tensors of a checkpoint."""
    stored: dict[str, tuple[StoredShard, ...]] = {}
    """Where the source shards of each tensor are; of tensors of a checkpoint."""
    pairs: tuple[PairOrder, ...] = ()
    """Of tensors of a checkpoint: one entry for each pair of ranks that exchange anything."""


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
