"""Pickles put together from opcodes: names, calls and ids of things that are not there."""

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from shardscope.engine.model.limits import DecodeLimits
from shardscope.engine.model.pickled import Bytes, Items, Long, Named, Pairs, Pickled, Plain, Record
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


ODICT = Called(Ref("collections", "OrderedDict"))
STRIDED = Called(Ref("torch.serialization", "_get_layout"), ("torch.strided",))
CPU = Called(Ref("torch", "device"), ("cpu",))


def node(value: object) -> Any:
    """Return the fact that a value comes to."""
    tree = tree_of(value)
    return tree.node(tree.root)


def shown(tree: Tree, number: int | None) -> Any:
    """Return a value of facts in plain words."""
    match tree.node(number):
        case Plain(value=value) | Bytes(value=value):
            return value
        case Long(digits=digits):
            return int(digits, 16)
        case Items(kind=kind, items=items):
            return (kind, [shown(tree, each) for each in items])
        case Pairs(keys=keys, values=values):
            return {shown(tree, key): shown(tree, each) for key, each in zip(keys, values, strict=True)}
        case Record(kind=kind, names=names, values=values):
            return (kind, {name: shown(tree, each) for name, each in zip(names, values, strict=True)})
        case Named(module=module, name=name, called=called):
            return f"{module}.{name}" + ("()" if called else "")
        case other:
            return other


def show(value: object) -> Any:
    """Return what a value comes to in plain words."""
    tree = tree_of(value)
    return shown(tree, tree.root)


def codes(value: object) -> set[str]:
    """Return the codes of what is said of a value."""
    return {each.code for each in facts_of(value).findings}
