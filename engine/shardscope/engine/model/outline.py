"""What one stream of pickles says, as a tree to look at: bounded, and every text harmless."""

from typing import Literal

from msgspec import Struct

from shardscope.engine.model.schemas import PICKLES

OutlineKind = Literal["mapping", "sequence", "record", "tensor", "value", "name", "shared"]


class OutlineNode(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One key with its value. A node stands behind its parent."""

    parent: int
    """Its place in the outline; -1 for the object that a pickle makes."""
    key: str
    """Neutralised and cut."""
    kind: OutlineKind
    """`shared` is what another node shows already: a pickle is a graph, and a cycle in it ends there."""
    words: str
    """Neutralised and cut: the value, the type and the shape, or how much it holds."""
    foreign: bool = False
    """A name outside the closed table. Nothing resolves it."""
    left_out: int = 0
    """How many of its members are not in the outline."""


class Outline(Struct, frozen=True, forbid_unknown_fields=True):
    """One stream."""

    file: str
    """Relative path, neutralised."""
    begin: int
    """Where its container begins in the file."""
    nodes: tuple[OutlineNode, ...]
    """The outermost first: those of one depth stand before those below them."""
    left_out: bool = False
    """Whether anything was left out, for want of room."""


class PicklesDocument(Struct, frozen=True, forbid_unknown_fields=True):
    """What the pickles of a checkpoint say, stream by stream."""

    outlines: tuple[Outline, ...]
    streams: int
    """How many were decoded: beyond a bound they have no outline."""
    schema: str = PICKLES
