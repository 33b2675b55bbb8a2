"""Pickles put together from opcodes: names, calls and ids of things that are not there."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import Pickled
from shardscope.engine.parse.pickled import read_pickles
from shardscope.engine.parse.pickled.tree import Tree


class Ref(NamedTuple):
    """A module and a name in it."""

    module: str
    name: str


class Called(NamedTuple):
    """A call of a name, or of the result of a call, with what is done to its result."""

    callee: object
    args: tuple[object, ...] = ()
    states: Sequence[object] = ()
    items: Sequence[tuple[object, object]] = ()
    appends: Sequence[object] = ()
    kwargs: dict[str, object] | None = None
    new: bool = False


class Outside(NamedTuple):
    """An object outside of the pickle, by its id."""

    id: object


def opcodes(value: object) -> bytes:  # noqa: C901 - one case for each type
    """Return the opcodes that build a value."""
    match value:
        case None:
            return b"N"
        case bool():
            return b"\x88" if value else b"\x89"
        case int() if -(1 << 31) <= value < 1 << 31:
            return b"J" + struct.pack("<i", value)
        case int():
            raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            return b"\x8b" + struct.pack("<i", len(raw)) + raw
        case float():
            return b"G" + struct.pack(">d", value)
        case str():
            raw = value.encode("utf-8", "surrogatepass")
            return b"X" + struct.pack("<I", len(raw)) + raw
        case bytes():
            return b"B" + struct.pack("<I", len(value)) + value
        case Ref():
            return opcodes(value.module) + opcodes(value.name) + b"\x93"
        case Called():
            return _call(value)
        case Outside():
            return opcodes(value.id) + b"Q"
        case tuple():
            return b"(" + b"".join(map(opcodes, value)) + b"t"
        case list():
            return b"](" + b"".join(map(opcodes, value)) + b"e"
        case set() | frozenset():
            inner = b"".join(map(opcodes, value))
            return b"(" + inner + b"\x91" if isinstance(value, frozenset) else b"\x8f(" + inner + b"\x90"
        case dict():
            return b"}(" + b"".join(opcodes(key) + opcodes(each) for key, each in value.items()) + b"u"
    raise TypeError(type(value))


def _call(value: Called) -> bytes:
    made = opcodes(value.callee) + opcodes(value.args)
    if value.kwargs is not None:
        made += opcodes(value.kwargs) + b"\x92"
    else:
        made += b"\x81" if value.new else b"R"
    if value.appends:
        made += b"(" + b"".join(map(opcodes, value.appends)) + b"e"
    if value.items:
        made += b"(" + b"".join(opcodes(key) + opcodes(each) for key, each in value.items) + b"u"
    return made + b"".join(opcodes(state) + b"b" for state in value.states)


def assembled(value: object) -> bytes:
    """Return a whole pickle of protocol 4 without frames."""
    return b"\x80\x04" + opcodes(value) + b"."


def tree_of(value: object, limits: DecodeLimits | None = None) -> Tree:
    """Return the facts of a value."""
    return Tree(facts_of(value, limits))


def facts_of(value: object, limits: DecodeLimits | None = None) -> Pickled:
    """Return everything that is said of a value."""
    return read_pickles(assembled(value), limits or DecodeLimits())


def instance(module: str, name: str, *states: object, args: tuple[object, ...] = ()) -> Called:
    """Return an object as NEWOBJ and BUILD make it."""
    return Called(Ref(module, name), args, states, new=True)


def storage(
    key: str = "0", elements: int = 4, kind: str = "FloatStorage", location: str = "cpu", *view: object
) -> Outside:
    """Return a storage as torch.save writes it."""
    module = "torch.storage" if kind == "UntypedStorage" else "torch"
    return Outside(("storage", Ref(module, kind), key, location, elements, *view))


def tensor(
    *,
    place: object = None,
    offset: object = 0,
    size: object = (2, 2),
    strides: object = (2, 1),
    grad: object = False,
) -> Called:
    """Return a tensor as torch.save writes it."""
    hooks = Called(Ref("collections", "OrderedDict"))
    where = storage() if place is None else place
    return Called(Ref("torch._utils", "_rebuild_tensor_v2"), (where, offset, size, strides, grad, hooks))
