"""Objects of Python's own library, and objects that are nothing but their fields."""

from collections.abc import Sequence
from typing import Final, Literal

from shardscope.engine.model.pickled import Bytes, Items, Named, Node, Pairs, Plain, Record
from shardscope.engine.parse.pickle_stream.records import Call, Dict, FrozenSet, Reference, Set
from shardscope.engine.parse.pickled.facts import Facts, Rule, record
from shardscope.engine.parse.pickled.shapes import Odd, nested_class, state_fields
from shardscope.engine.parse.pickled.tensors import is_reference, nothing_more, size

SEQUENCES: Final = (list, tuple, Set, FrozenSet)


def fields(kind: str, arguments: Sequence[str] = (), state: Sequence[str] = ()) -> Rule:
    """Return the rule of a class that is nothing but its fields.

    `arguments` names what its maker takes by position, `state` what a state holds that is a tuple; a state that is a dict, or
    a pair of one and the slots' one, names its fields itself.
    """

    def rule(facts: Facts, call: Call) -> Record:
        if call.items or call.appends or len(call.args) > len(arguments):
            raise Odd
        found: dict[str, object] = dict(zip(arguments, call.args, strict=False))
        if call.kwargs:
            found |= state_fields(Call(call.callee, (), states=[call.kwargs]))
        last = call.states[-1] if call.states else None
        if state and type(last) is tuple and len(last) >= len(state) - 1:
            return record(facts, kind, found | dict(zip(state, last, strict=False)))
        return record(facts, kind, found | state_fields(call))

    return rule


def mapping(kind: Literal["OrderedDict", "defaultdict", "Counter", "dict"]) -> Rule:
    """Return the rule of a mapping that is made empty and then filled, or made of a mapping or of pairs."""

    def rule(facts: Facts, call: Call) -> Pairs:
        if call.appends or call.kwargs:
            raise Odd
        state_fields(call)
        args = call.args[1:] if kind == "defaultdict" else call.args
        if len(args) > 1:
            raise Odd
        flat: list[object] = list(_pairs(args[0])) if args else []
        return facts.mapping(kind, flat + (call.items or []))

    return rule


def _pairs(value: object) -> Sequence[object]:
    """Return keys and values in turns of what a mapping can be made of."""
    if type(value) is Dict:
        return value
    if type(value) not in (list, tuple):
        raise Odd
    flat: list[object] = []
    for pair in value:  # type: ignore[attr-defined]
        if type(pair) not in (list, tuple) or len(pair) != 2:
            raise Odd
        flat += pair
    return flat


def sequence(kind: Literal["list", "tuple", "set", "frozenset"]) -> Rule:
    """Return the rule of a sequence or a set that is made of another one."""

    def rule(facts: Facts, call: Call) -> Items:
        if call.items or call.kwargs or len(call.args) > 1:
            raise Odd
        state_fields(call)
        items: Sequence[object] = ()
        if call.args:
            if type(call.args[0]) not in SEQUENCES:
                raise Odd
            items = call.args[0]  # type: ignore[assignment]
        items = [*items, *(call.appends or ())]
        if kind in ("set", "frozenset"):
            return facts.collection(kind, items)
        return Items(kind, facts.numbers(items))

    return rule


def torch_size(facts: Facts, call: Call) -> Items:
    """`torch.Size((2, 3))`."""
    return Items("tuple", facts.numbers(size(call)))


def device(facts: Facts, call: Call) -> Record:
    """`torch.device("cuda", 1)`."""
    kind, *index = nothing_more(call, 1, 2)
    if type(kind) is not str or (index and type(index[0]) is not int):
        raise Odd
    return Record("device", ("type", "index")[: len(call.args)], facts.numbers(call.args))


def path(facts: Facts, call: Call) -> Plain:
    """`pathlib.PosixPath("a", "b")`: text."""
    parts = nothing_more(call, *range(len(call.args) + 1))
    if not all(type(part) is str for part in parts):
        raise Odd
    first, *others = parts or (".",)
    return Plain(str(first) + "".join(_joined_part(str(first), others)))


def _joined_part(first: str, others: Sequence[object]) -> list[str]:
    separator = "" if first.endswith("/") else "/"
    return [(separator if place == 0 else "/") + str(part) for place, part in enumerate(others)]


def text_bytes(facts: Facts, call: Call) -> Bytes:
    """`bytes()`, `bytearray(b"..")`, `bytearray("..", "latin-1")`."""
    args = nothing_more(call, 0, 1, 2)
    if not args:
        return Bytes(b"")
    if len(args) == 1 and type(args[0]) is bytes:
        return Bytes(args[0])
    if len(args) == 1 and type(args[0]) is Call:
        inner = facts.called(args[0])
        if isinstance(inner, Bytes):
            return inner
    if len(args) == 1 and type(args[0]) in (list, tuple):
        try:
            return Bytes(bytes(args[0]))  # type: ignore[call-overload]  # numbers below 256, or an error
        except (TypeError, ValueError):
            raise Odd from None
    if type(args[0]) is str and args[1:] in (("latin-1",), ("latin1",)):
        try:
            return Bytes(args[0].encode("latin-1"))
        except UnicodeEncodeError:
            raise Odd from None
    raise Odd


def attribute(facts: Facts, call: Call) -> Named | Record:
    """`getattr(Outer, "Inner")`: a nested class of the table, as protocols below 4 name it, or a member of an enumeration."""
    found = nested_class(call)
    if found is not None and facts.table.knows(found):
        facts.explained[id(call)] = call
        return Named(*found, called=False)
    if found is not None:
        outer, _, member = found.name.rpartition(".")
        if (found.module, outer) in facts.table.enumerations:
            facts.explained[id(call)] = call
            return Record(outer, ("name",), (facts.plain(member),))
    return facts.opaque(facts.callee(call), call)


def nested(facts: Facts, call: Call) -> Record:
    """`torch.storage._load_from_bytes(data)`: a file of torch.save within the pickle. It is kept as bytes and not read."""
    facts.stream.note("pickle.nested", reference="torch.storage._load_from_bytes")
    return Record("Nested", ("data",), facts.numbers(nothing_more(call, 1)))


def remade(facts: Facts, call: Call) -> Node:
    """`copyreg._reconstructor(cls, base, state)` and `copyreg.__newobj__(cls, *args)`: a `cls` by another way."""
    kind, *args = call.args
    if type(kind) is not Reference:
        raise Odd
    if is_reference(call.callee, "copyreg", "_reconstructor") or is_reference(
        call.callee, "copy_reg", "_reconstructor"
    ):
        if len(args) != 2:
            raise Odd
        base, content = args
        args = (
            []
            if is_reference(base, "builtins", "object") or is_reference(base, "__builtin__", "object")
            else [content]
        )
    facts.remade[id(call)] = call, kind
    made = Call(kind, tuple(args), None, call.states, call.items, call.appends)
    return facts.called(made)
