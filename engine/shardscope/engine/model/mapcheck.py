"""What a check of a shard map says, and how two maps differ."""

from msgspec import Struct

from shardscope.engine.model.blocker import Finding


class ReplicaSet(Struct, frozen=True):
    """Elements of the logical tensor that the same ranks hold."""

    holders: tuple[int, ...]
    elements: int
    """Logical elements, each counted once. None of another set's."""


class Padding(Struct, frozen=True):
    """Elements of a rank's shard that stand for nothing."""

    rank: int
    elements: int


class Checked(Struct, frozen=True):
    """All that was found wrong with a map, and what is known of it. Facts that could not be proven are null."""

    findings: tuple[Finding, ...]
    elements: int
    """Of the logical tensor."""
    pieces: int
    """Of all ranks, indexed ones included."""
    padding: tuple[Padding, ...]
    """As the map declares it, for ranks that have any."""
    uncovered: int | None
    """Elements that no rank holds."""
    replicas: tuple[ReplicaSet, ...] | None
    """Whose shards have what, whatever the pieces say of their holders; largest set of elements first."""
    scaled: bool
    """Whether a piece has a factor other than 1."""
    indexed_elements: int
    """Elements that only an index describes: zero unless an `Explicit` could not be compressed."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def invertible(self) -> bool:
        """Whether the full tensor can be assembled from the shards, each element from exactly one place."""
        return self.ok and self.uncovered == 0


class Difference(Struct, frozen=True):
    """The first place where two maps of one tensor differ. `one` and `other` are what each side says there."""

    what: str
    """`shape`, `ranks`, `shard_shape`, `padding`, `mapped`, `address`, `scale` or `holders`."""
    one: str
    other: str
    rank: int | None = None
    element: int | None = None
    """Address in the rank's shard."""
