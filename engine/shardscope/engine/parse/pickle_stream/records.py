"""What opcodes build beyond plain values: records that stand for what a loader would have looked up, called or loaded.

All compare by identity, none is ever hashed by its contents, and nothing here resolves a name. Cycles are legal: walk
these without recursion and each once.
"""

from msgspec import Struct


class Reference(Struct, eq=False):
    """A module and a name in it, as GLOBAL and its kin give them. One for each pair of a stream."""

    module: str
    name: str
    named: int = 0
    """How often an opcode gives it."""
    called: int = 0
    """How often an opcode would have called it."""


class Call(Struct, eq=False):
    """What a call would make, by REDUCE, NEWOBJ, NEWOBJ_EX, OBJ or INST. Nothing is called."""

    callee: "Reference | Call | Persistent"
    args: tuple[object, ...]
    kwargs: "Dict | None" = None
    states: list[object] | None = None
    """Of each BUILD."""
    items: list[object] | None = None
    """Of SETITEM and SETITEMS: keys and values in turns."""
    appends: list[object] | None = None
    """Of APPEND, APPENDS and ADDITEMS."""


class Persistent(Struct, eq=False):
    """An object that lies outside of the pickle, by its id."""

    id: object


class Dict(list[object]):
    """A dict: keys and values in turns, in the order of the stream."""

    __slots__ = ()


class Set(list[object]):
    """A set, with repetitions."""

    __slots__ = ()


class FrozenSet(list[object]):
    """A frozenset, with repetitions."""

    __slots__ = ()
