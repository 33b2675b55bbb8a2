"""Numbers that a checkpoint holds twice, once in full precision and once rounded: a truth check that needs no other source.

A family names the pairs while it decodes. Inspection compares a bounded part of them, conversion and verification all.
"""

from math import prod

from msgspec import Struct

from shardscope.engine.model.catalogue import Fragment


class Twin(Struct, frozen=True, gc=False):
    """Numbers in F32, and the same numbers rounded to nearest: of one shape, each with its dtype and its strides."""

    name: str
    """Of the tensor. Exact: neutralise before showing."""
    exact: Fragment
    rounded: Fragment
    """Of the same shape; F32 too where nothing was rounded."""

    @property
    def bytes(self) -> int:
        """Of the exact side."""
        return prod(self.exact.shape) * 4


class Oracle(Struct, frozen=True):
    """Pairs that have to agree, and what it means where they do not."""

    code: str
    """Of the blocker, with the parameters `count`, `total`, `first` and `said`."""
    subject: str
    """What the blocker is about: a relative path, neutralised."""
    pairs: tuple[Twin, ...]


class Compared(Struct, frozen=True):
    """What a comparison saw."""

    compared: int
    """Bytes of exact numbers."""
    total: int
    tensors: int
    read: int
    """Bytes of both sides, as they were read."""
    differing: dict[str, int]
    """Elements that are not rounded from the other side, by the tensor's name; those that agree are not there."""

    @property
    def says(self) -> str:
        """In one clause how much was looked at."""
        return f"compared {self.compared:,} of {self.total:,} bytes"
