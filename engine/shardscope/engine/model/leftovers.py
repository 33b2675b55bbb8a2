"""What runs have left beside their targets, as `shardscope clean` lists it."""

from typing import Literal

from msgspec import Struct

Holds = Literal["staged files", "old output", "nothing", "lock"]


class LeftoverEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A staging folder or a lock of ours on the disk."""

    folder: str
    """That holds it, as it was asked for."""
    name: str
    target: str
    """Name of the output that it is for, in the same folder."""
    holds: Holds
    """`old output`: what stood at the target before it was replaced, kept on purpose."""
    bytes: int
    """On the disk."""
    finished_files: int
    """Of the staged files: those that --resume of the same command would verify and take."""
    finished_bytes: int
    age_seconds: int
    """Since anything in it was written last, by this machine's clock."""
    stays: str | None
    """Why it is not removed, in one clause; null for what may be."""


class LeftoversDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """`shardscope clean`: what was found, and what of it was removed."""

    schema: str
    found: tuple[LeftoverEntry, ...]
    removed: tuple[str, ...]
    """Names, in the order of `found`."""
    removed_bytes: int
