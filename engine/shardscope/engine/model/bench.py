"""What `shardscope bench` measures on this machine, and what was measured elsewhere."""

from typing import Literal

from msgspec import Struct


class BenchRow(Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of work: plainly done by this machine, and done by shardscope with its checks."""

    name: str
    unit: Literal["bytes", "files"]
    plain: float
    """In units a second: the median of the runs that fitted into the time."""
    plain_is: str
    """What was run for it."""
    ours: float | None
    """The same by shardscope; null where it adds nothing of its own."""
    ours_is: str | None
    ratio: float | None
    """`ours` by `plain`."""
    runs: int
    """Of the one that ran less often."""
    elsewhere: str | None
    """What is claimed or was measured on other machines, with where."""
    script: str | None
    """In the repository, which measures it properly."""


class BenchDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """What this machine does in a few seconds beside the figures of the documents: an indication, no benchmark."""

    schema: str
    bytes: int
    """Of the tensors that were written for it, and removed."""
    seconds: float
    """For each measurement, at the least one run."""
    rows: tuple[BenchRow, ...]
    notes: tuple[str, ...]
    """What the figures do not say."""
