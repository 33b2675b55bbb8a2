"""What records of the machine look like: the names behind calls, the fields behind states, keys that no key can be."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from shardscope.engine.parse.pickle_stream.records import Call, Dict, Reference
from shardscope.engine.parse.pickle_stream.state import LONGEST_NAME


class Odd(Exception):  # noqa: N818 - no error: the object stays opaque
    """A call of an understood name has other arguments than that name takes."""


class Key(NamedTuple):
    """A name in the table."""

    module: str
    name: str


GETATTR: Final = frozenset({("__builtin__", "getattr"), ("builtins", "getattr")})
"""Understood only where it stands for a name of the table."""


def nested_class(call: Call) -> Key | None:
    """Return the name that `getattr(Outer, "Inner")` stands for: how protocols below 4 name nested classes."""
    callee = call.callee
    if type(callee) is not Reference or (callee.module, callee.name) not in GETATTR or len(call.args) != 2:
        return None
    outer, inner = call.args
    if type(outer) is not Reference or type(inner) is not str or len(inner) > LONGEST_NAME:
        return None
    return Key(outer.module, f"{outer.name}.{inner}")


def unhashable(value: object, known: set[int]) -> str | None:
    """Return what keeps a value from being a key, by itself or within tuples; null where it can be one.

    `known` has the tuples that are, by identity; the caller keeps them alive.
    """
    todo: list[object] = [value]
    seen: set[int] = set()
    while todo:
        at = todo.pop()
        if isinstance(at, list):  # dicts and sets are lists here
            return type(at).__name__.lower()
        if type(at) is tuple and id(at) not in known and id(at) not in seen:
            seen.add(id(at))
            todo += at
    known |= seen
    return None


def class_parts(value: object) -> tuple[object, ...]:
    """Return the class in a persistent id of one: `("module", class, source file, source)` (`torch/serialization.py`)."""
    return value[1:2] if isinstance(value, tuple) and value and value[0] == "module" else ()


def described_id(value: object) -> tuple[str, str]:
    """Return what a persistent id says of itself in two words, and none of the source text that some have."""
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        word = value[0]
        for part in value[1:]:
            if isinstance(part, Reference):
                return word, f"{part.module}.{part.name}"
        return word, ""
    return "", value if isinstance(value, str) else type(value).__name__


def state_fields(call: Call) -> dict[str, object]:
    """Return the attributes that the states of a call set, by name: a dict, or a pair of one and the slots' one.

    Raises `Odd` for a state of another shape.
    """
    found: dict[str, object] = {}
    for state in call.states or ():
        parts: Sequence[object] = state if type(state) is tuple and len(state) == 2 else (state,)
        for part in parts:
            if part is None:
                continue
            if type(part) is not Dict:
                raise Odd
            names = part[::2]
            if any(type(name) is not str for name in names):
                raise Odd
            found.update(zip(names, part[1::2], strict=True))  # type: ignore[arg-type]
    return found
