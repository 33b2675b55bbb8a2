"""Records of the machine turned into typed facts: each object once, without recursion, what was shared stays shared."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.pickled import (
    Bytes,
    Items,
    Long,
    Named,
    Node,
    Number,
    Pairs,
    PickledStorage,
    Plain,
    Record,
)
from shardscope.engine.parse.pickle_stream.records import Call, Dict, FrozenSet, Persistent, Reference, Set
from shardscope.engine.parse.pickle_stream.state import Stream
from shardscope.engine.parse.pickled.shapes import (
    Key,
    Odd,
    class_parts,
    described_id,
    nested_class,
    state_fields,
    unhashable,
)

INT64: Final = range(-(1 << 63), 1 << 63)
NESTED_RULES: Final = 16
"""Rules within rules: a parameter of a tensor of a type is three."""
BLOCK: Final = 4_096
"""Facts between two looks at the limits."""
LINK_BYTES: Final = 16
"""What a fact is taken to need for each other fact that it holds."""

Rule = Callable[["Facts", Call], Node]
"""Turns a call of an understood name into a fact. Raises `Odd` where the call is not as that name takes it."""


class Table(NamedTuple):
    """The closed table of understood names."""

    calls: dict[tuple[str, str], Rule]
    """Names that are called."""
    names: frozenset[tuple[str, str]]
    """Names that are only named: dtypes, layouts, classes as arguments."""
    enumerations: frozenset[tuple[str, str]]
    """Those of the calls whose members may also be named by `getattr`."""
    persistent: Callable[["Facts", Persistent], Node]
    """What an object outside of the pickle comes to."""

    def knows(self, key: tuple[str, str]) -> bool:
        """Tell whether a name is understood."""
        return key in self.calls or key in self.names


class Facts:
    """The facts of one stream while they are collected."""

    def __init__(self, stream: Stream, table: Table) -> None:
        self.stream = stream
        self.table = table
        self.nodes: list[Node | None] = []
        self.storages: list[PickledStorage] = []
        self.storage_places: dict[tuple[str, str | None], int] = {}
        """By key, and by the key of the view of that storage that it is."""
        self.explained: dict[int, Call] = {}
        """Calls of `getattr` that stand for a name of the table, by identity."""
        self.remade: dict[int, tuple[Call, Reference]] = {}
        """Calls that make an object of a name by way of a reconstructor, by identity."""
        self._numbers: dict[int, Number] = {}
        self._found: list[tuple[object, Number]] = []
        self._keys: set[int] = set()
        """Tuples that are known to be good as keys, by identity: a large one may be the key of many."""
        self.odd_calls: dict[str, int] = {}
        """Calls of understood names with other arguments than those take, by name."""
        self.duplicates = 0
        """Keys that come again in one mapping."""
        self.persistent_ids = 0
        """Objects outside of the pickle that are no storages."""
        self._nested = 0

    # --- numbers

    def root(self, value: object) -> Number:
        """Collect everything that hangs on `value`, which the caller keeps alive, and return its number."""
        number = self.number(value)
        todo = [(*each, 1) for each in self._taken()]
        steps = 0
        while todo:
            at, its_number, depth = todo.pop()
            if self.nodes[its_number] is not None:
                continue
            node = self.nodes[its_number] = self._node(at)
            self.spend(_weight(node))
            if found := self._taken():
                self.stream.check("pickle_depth", depth)
                todo += [(child, its, depth + 1) for child, its in reversed(found)]
            steps += 1
            if steps % BLOCK == 0:
                self.stream.check_clock()
        self.stream.check_clock()
        return number

    def number(self, value: object) -> Number:
        """Return the number of an object of the stream, which is looked at later where it is new.

        Objects are told apart by identity: one that does not hang on a root may be gone, and its place taken, when it is looked at.
        """
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = self.fresh(_plain(value))
        if self.nodes[number] is None:
            self._found.append((value, number))
        return number

    def numbers(self, values: Sequence[object]) -> list[Number]:
        """Return the numbers of several objects."""
        self.spend(len(values) * LINK_BYTES)
        return [self.number(value) for value in values]

    def spend(self, size: int) -> None:
        """Count memory that grows with what facts repeat: large arguments may be those of many calls."""
        self.stream.built += size
        self.stream.check_built()

    def fresh(self, node: Node | None) -> Number:
        """Return the number of a fact that no object of the stream has."""
        number = len(self.nodes)
        if number >= self.stream.limits.pickle_nodes:
            self.stream.check("pickle_nodes", number + 1)
        self.nodes.append(node)
        return number

    def plain(self, value: bool | int | float | str | bytes | None) -> Number:
        """Return the number of a value that no object of the stream has."""
        node = _plain(value)
        self.spend(_weight(node))
        return self.fresh(node)

    def _taken(self) -> list[tuple[object, Number]]:
        found, self._found = self._found, []
        return found

    # --- nodes

    def _node(self, value: object) -> Node:
        kind = type(value)
        if kind is Call:
            return self.called(value)  # type: ignore[arg-type]
        if kind is Dict:
            return self.mapping("dict", value)  # type: ignore[arg-type]
        if kind is list or kind is tuple:
            return Items(kind.__name__, self.numbers(value))  # type: ignore[arg-type]
        if kind is Set or kind is FrozenSet:
            return self.collection("set" if kind is Set else "frozenset", value)  # type: ignore[arg-type]
        if kind is Reference:
            return Named(value.module, value.name, called=False)  # type: ignore[attr-defined]
        if kind is Persistent:
            return self.table.persistent(self, value)  # type: ignore[arg-type]
        raise AssertionError(f"no object of a stream: {kind}")

    def called(self, call: Call) -> Node:
        """Return what a call would make: by its rule, or opaque."""
        key = self.callee(call)
        rule = self.table.calls.get(key)
        if rule is None:
            return self.opaque(key, call)
        if self._nested >= NESTED_RULES:
            raise Odd
        self._nested += 1
        try:
            return rule(self, call)
        except Odd:
            self.odd(key)
            return self.opaque(key, call)
        finally:
            self._nested -= 1

    def callee(self, call: Call) -> Key:
        """Return the name behind a call. What is called may itself be the result of a call."""
        callee: object = call.callee
        if type(callee) is Call:
            inner = nested_class(callee)
            if inner is not None and self.table.knows(inner):
                self.explained[id(callee)] = callee
                return inner
            for _ in range(NESTED_RULES):
                if type(callee) is Call:
                    callee = callee.callee
        if isinstance(callee, Persistent):  # the class of a module in a stream from before 1.6
            callee = next((part for part in class_parts(callee.id) if isinstance(part, Reference)), callee)
            return Key(callee.module, callee.name) if isinstance(callee, Reference) else Key("", "?")
        if isinstance(callee, Reference):
            return Key(callee.module, callee.name if callee is call.callee else f"{callee.name}()")
        return Key("", "?")

    def opaque(self, key: tuple[str, str], call: Call) -> Named:
        """Return a call that nothing is known of, with what is put into it: that is data like any other."""
        others: list[object] = [*call.args, *(call.kwargs or ())[1::2]]
        try:
            fields = state_fields(call)
        except Odd:
            fields = {}
            others += call.states or ()
        others += call.appends or ()
        self.spend(len(key[0]) + len(key[1]) + sum(map(len, fields)))
        state: Number | None = None
        items: Number | None = None
        if fields:
            state = self.fresh(
                Pairs("dict", [self.plain(name) for name in fields], self.numbers(list(fields.values())))
            )
        if call.items:
            items = self.fresh(self.mapping("dict", call.items))
        rest: Number | None = None
        if any(type(each) in _HOLDING for each in others):
            rest = self.fresh(Items("tuple", self.numbers(others)))
        return Named(*key, called=True, state=state, items=items, others=rest)

    def odd(self, key: tuple[str, str]) -> None:
        """Count a call whose arguments are not those of its name."""
        name = ".".join(key)
        self.odd_calls[name] = self.odd_calls.get(name, 0) + 1

    def mapping(
        self, kind: Literal["dict", "OrderedDict", "defaultdict", "Counter"], flat: list[object]
    ) -> Pairs:
        """Return a mapping of keys and values in turns. Raises `Fault` for keys that no key can be."""
        keys, values = flat[::2], flat[1::2]
        self._check_keys(keys)
        return Pairs(kind, self.numbers(keys), self.numbers(values))

    def collection(self, kind: Literal["set", "frozenset"], items: Sequence[object]) -> Items:
        """Return a set. Raises `Fault` for elements that none can be."""
        self._check_keys(items)
        return Items(kind, self.numbers(items))

    def _check_keys(self, keys: Sequence[object]) -> None:
        texts = {key for key in keys if type(key) is str}
        others = [key for key in keys if type(key) is not str]
        if not others:
            self.duplicates += len(keys) - len(texts)
            return
        self.duplicates += len(keys) - len(others) - len(texts)
        numbers = [f"{int(key):x}" for key in others if isinstance(key, int | float) and key == key // 1]
        self.duplicates += len(numbers) - len(set(numbers))
        for key in others:
            if wrong := unhashable(key, self._keys):
                raise Fault("pickle.key", kind=wrong)

    def persistent(self, value: Persistent) -> Named:
        """Return an id that is no storage."""
        kind, name = described_id(value.id)
        if kind != "module":
            self.persistent_ids += 1
        self.spend(len(kind) + len(name))
        return Named(kind, name, called=False, persistent=True)

    def done(self) -> list[Node]:
        """Return the facts; every number has one."""
        return self.nodes  # type: ignore[return-value]  # `root` leaves none open


def _plain(value: object) -> Node | None:
    kind = type(value)
    if kind is int:
        return Plain(value) if value in INT64 else Long(f"{value:x}")  # type: ignore[arg-type]
    if kind is bytes:
        return Bytes(value)  # type: ignore[arg-type]
    if kind in _VALUES:
        return Plain(value)  # type: ignore[arg-type]
    return None


def _weight(node: Node | None) -> int:
    """Return what a fact holds beyond its links and names."""
    if isinstance(node, Bytes):
        return len(node.value)
    return len(node.value) if isinstance(node, Plain) and isinstance(node.value, str) else 0


_VALUES: Final = frozenset({type(None), bool, float, str})
_HOLDING: Final = frozenset({Call, Dict, Set, FrozenSet, list, tuple})
"""What may hold a tensor, or be one."""


def record(facts: Facts, kind: str, fields: dict[str, object]) -> Record:
    """Return an object of an understood class by its fields."""
    facts.spend(sum(map(len, fields)))
    return Record(kind, tuple(fields), facts.numbers(list(fields.values())))
