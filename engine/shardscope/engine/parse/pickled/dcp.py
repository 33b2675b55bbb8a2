"""`.metadata` of PyTorch's distributed checkpoints in columns (`torch/distributed/checkpoint/metadata.py`, `planner.py`).

A chunk is looked at once, its numbers are checked, and it becomes a row: hundreds of thousands of them fit in memory. Whatever
is not as torch writes it refuses the whole: half of the chunks would look like a checkpoint with holes.
"""

from struct import pack
from typing import Final, NamedTuple

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.pickled import DcpChunks, Items, Number, Record
from shardscope.engine.parse.pickle_stream.records import Call, Dict, Reference
from shardscope.engine.parse.pickle_stream.state import LONGEST_NAME
from shardscope.engine.parse.pickled.facts import Facts
from shardscope.engine.parse.pickled.shapes import Odd, state_fields
from shardscope.engine.parse.pickled.tensors import HIGHEST, MOST_DIMENSIONS, dtype

OLD_MODULE: Final = "torch.distributed._shard.sharded_tensor.metadata"
MODULES: Final = frozenset(
    (
        "torch.distributed.checkpoint.metadata",
        "torch.distributed.checkpoint.filesystem",
        "torch.distributed.checkpoint.planner",
        OLD_MODULE,
    )
)
"""Where the classes of a metadata are."""


class Kind(NamedTuple):
    """A class that there are many objects of, and the fields that are read."""

    name: str
    required: list[str]
    more: tuple[str, ...] = ()


CHUNK: Final = Kind("ChunkStorageMetadata", ["offsets", "sizes"])
INDEX: Final = Kind("MetadataIndex", ["fqn", "offset", "index"])
STORED: Final = Kind("_StorageInfo", ["relative_path", "offset", "length"], ("transform_descriptors",))
MOST_TRANSFORMS: Final = 16
PROPERTIES: Final = ("dtype", "layout", "requires_grad", "memory_format", "pin_memory")


def wrong(field: str, name: object) -> Fault:
    """Return the fault of a field that is not as torch writes it."""
    return Fault("pickle.metadata_field", field=field, tensor=name if isinstance(name, str) else "?")


def pairs(value: object, field: str) -> Dict | list[object]:
    """Return keys and values in turns of a dict or an `OrderedDict`."""
    if type(value) is Dict:
        return value
    if (
        type(value) is Call
        and type(value.callee) is Reference
        and (value.callee.module, value.callee.name) == ("collections", "OrderedDict")
        and not value.args
    ):
        return value.items or []
    raise wrong(field, None)


def called_name(value: object) -> str:
    """Return the name of the class that an object is of; nothing for other values."""
    return value.callee.name if type(value) is Call and type(value.callee) is Reference else ""


def fields(value: object, kind: str, name: object) -> dict[str, object]:
    """Return the fields of an object of class `kind`."""
    if type(value) is not Call or called_name(value) != kind or value.callee.module not in MODULES:  # type: ignore[union-attr]
        raise wrong(kind, name)
    try:
        return state_fields(value)
    except Odd:
        raise wrong(kind, name) from None


def some(value: object, kind: Kind, name: object) -> list[object]:
    """Return the fields of an object that `kind` names, in its order, and nothing for those that are missing.

    Nearly all objects have just these in just this order: there are hundreds of thousands of them.
    """
    if type(value) is Call:
        callee, states = value.callee, value.states
        if type(callee) is Reference and states is not None and len(states) == 1 and type(states[0]) is Dict:
            state = states[0]
            if callee.name == kind.name and callee.module in MODULES and state[::2] == kind.required:
                return state[1::2] + [None] * len(kind.more)
    found = fields(value, kind.name, name)
    return [found.get(field) for field in (*kind.required, *kind.more)]


def place(value: object, field: str, name: object) -> tuple[int, ...]:
    """Return a `torch.Size`, or a tuple of numbers."""
    if type(value) is Call and called_name(value) == "Size" and len(value.args) == 1:
        value = value.args[0]
    if type(value) is not tuple:
        raise wrong(field, name)
    if len(value) > MOST_DIMENSIONS:
        raise wrong(field, name)
    for each in value:
        if type(each) is not int or not 0 <= each <= HIGHEST:
            raise wrong(field, name)
    return value


def count(value: object, field: str, name: object) -> int:
    """Return a number of bytes or of a place."""
    if type(value) is not int or not 0 <= value <= HIGHEST:
        raise wrong(field, name)
    return value


class Chunks:
    """The columns while they are filled."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.names: list[str] = []
        self.dtypes: list[str | None] = []
        self.shapes: list[tuple[int, ...]] = []
        self.counts: list[int] = []
        self.properties: list[Number | None] = []
        self.offsets: list[tuple[int, ...]] = []
        self.sizes: list[tuple[int, ...]] = []
        self.file: list[int] = []
        self.begin: list[int] = []
        self.length: list[int] = []
        self.transforms: list[int] = []
        self.writer: list[int] = []
        self.files: dict[str, int] = {}
        self.transform_lists: dict[str, tuple[int, tuple[str, ...]]] = {"": (0, ())}
        self.strays: dict[str, None] = {}
        self.tensors: dict[str, int] = {}
        self.firsts: list[int] = []
        """By tensor: its first chunk."""
        self.rows: dict[bytes, int] = {}
        """Chunk by the number of its tensor and its offsets, packed: bytes hash alike for nobody's choosing."""
        self._properties: dict[tuple[str, ...], Number] = {}

    # --- tensors

    def tensor(self, name: object, described: object) -> None:
        """Add a tensor with its chunks, or an item of bytes."""
        if type(name) is not str:
            raise wrong("state_dict_metadata", None)
        if name in self.tensors:
            raise wrong("state_dict_metadata", name)
        number = self.tensors[name] = len(self.names)
        self.names.append(name)
        self.firsts.append(len(self.file))
        if called_name(described) == "BytesStorageMetadata":
            self.dtypes.append(None)
            self.shapes.append(())
            self.properties.append(None)
            self.counts.append(1)
            self.chunk(number, (), ())
            return
        found = fields(described, "TensorStorageMetadata", name)
        shape = place(found.get("size"), "size", name)
        kind, properties = self.property(found.get("properties"), name)
        chunks = found.get("chunks")
        if type(chunks) is not list:
            raise wrong("chunks", name)
        self.dtypes.append(kind)
        self.shapes.append(shape)
        self.properties.append(properties)
        self.counts.append(len(chunks))
        for each in chunks:
            own = fields(each, "ChunkStorageMetadata", name)
            offsets, sizes = (
                place(own.get("offsets"), "offsets", name),
                place(own.get("sizes"), "sizes", name),
            )
            if not len(offsets) == len(sizes) == len(shape):
                raise wrong("chunks", name)
            self.chunk(number, offsets, sizes)

    def chunk(self, tensor: int, offsets: tuple[int, ...], sizes: tuple[int, ...]) -> None:
        """Add a chunk whose storage is not known yet."""
        key = pack(f"<{len(offsets) + 1}q", tensor, *offsets)
        self.rows.setdefault(key, len(self.file))
        self.offsets.append(offsets)
        self.sizes.append(sizes)
        self.file.append(-1)
        self.begin.append(0)
        self.length.append(0)
        self.transforms.append(0)
        self.writer.append(-1)

    def property(self, value: object, name: str) -> tuple[str, Number]:
        """Return the dtype of a tensor, and the record of its properties, one for equal ones."""
        if called_name(value) != "TensorProperties":
            raise wrong("properties", name)
        state = value.states[-1] if value.states else None  # type: ignore[attr-defined]
        if type(state) is tuple and len(state) == len(PROPERTIES):
            found: dict[str, object] = dict(zip(PROPERTIES, state, strict=True))
        else:
            found = fields(value, "TensorProperties", name)
        try:
            kind = dtype(found.get("dtype"))
        except Odd:
            raise wrong("dtype", name) from None
        key = tuple(f"{field}={_spelled(each)}" for field, each in found.items())
        if key not in self._properties:
            self._properties[key] = self.facts.fresh(
                Record("TensorProperties", tuple(found), self.facts.numbers(list(found.values())))
            )
        return kind, self._properties[key]

    # --- storage

    def stored(self, index: object, info: object) -> None:
        """Say of a chunk where it is stored."""
        name, offsets, _ = some(index, INDEX, None)
        if type(name) is not str:
            raise wrong("fqn", None)
        path, begin, length, coding = some(info, STORED, name)
        if type(path) is not str:
            raise wrong("relative_path", name)
        first, size = count(begin, "offset", name), count(length, "length", name)
        row = self.row(name, offsets)
        if row is None:
            self.strays[name] = None
            return
        self.file[row] = self.files.setdefault(path, len(self.files))
        self.begin[row] = first
        self.length[row] = size
        if coding:
            self.transforms[row] = self.transform_list(coding, name)

    def row(self, name: str, offsets: object) -> int | None:
        """Return the row of a chunk by its name and offsets; null where there is none."""
        tensor = self.tensors.get(name)
        if tensor is None:
            return None
        if offsets is None:
            return self.firsts[tensor] if self.counts[tensor] == 1 else None
        at = place(offsets, "offset", name)
        return self.rows.get(pack(f"<{len(at) + 1}q", tensor, *at))

    def transform_list(self, value: object, name: str) -> int:
        """Return the place of a list of `transform_descriptors`."""
        if type(value) is not list and type(value) is not tuple:
            raise wrong("transform_descriptors", name)
        if len(value) > MOST_TRANSFORMS:
            raise wrong("transform_descriptors", name)
        words = tuple(word for word in value if type(word) is str and len(word) <= LONGEST_NAME)
        if len(words) < len(value):
            raise wrong("transform_descriptors", name)
        return self.transform_lists.setdefault("\n".join(words), (len(self.transform_lists), words))[0]

    # --- plans

    def plans(self, value: list[object]) -> Number:
        """Note which rank wrote what, and return a list with a record for each rank's plan.

        Raises `Fault` for plans of another shape.
        """
        ranks = []
        for rank, plan in enumerate(value):
            items = fields(plan, "SavePlan", None).get("items")
            if type(items) is not list:
                raise wrong("items", None)
            for item in items:
                self.written(rank, item)
            ranks.append(self.facts.fresh(Record("SavePlan", ("writes",), (self.facts.plain(len(items)),))))
        return self.facts.fresh(Items("list", ranks))

    def written(self, rank: int, item: object) -> None:
        """Note one item of a rank's plan."""
        index = fields(item, "WriteItem", None).get("index")
        name, offsets, _ = some(index, INDEX, None)
        if type(name) is not str:
            raise wrong("fqn", None)
        row = self.row(name, offsets)
        if row is not None and self.writer[row] < 0:
            self.writer[row] = rank


def _spelled(value: object) -> str:
    """Return a property in words, equal for equal ones."""
    if type(value) is Reference:
        return f"{value.module}.{value.name}"
    if type(value) is Call and len(value.args) == 1:
        argument = value.args[0]
        if type(argument) is int or (type(argument) is str and len(argument) <= LONGEST_NAME):
            return f"{called_name(value)}({argument!r})"
    return repr(value) if value is None or type(value) is bool else f"#{id(value)}"


def metadata(facts: Facts, call: Call) -> DcpChunks:
    """`Metadata` and its state."""
    if call.args or call.items or call.appends or call.kwargs:
        raise Odd
    found = state_fields(call)
    chunks = Chunks(facts)
    described = pairs(found.pop("state_dict_metadata", None), "state_dict_metadata")
    for name, each in zip(described[::2], described[1::2], strict=True):
        chunks.tensor(name, each)
    planner = found.pop("planner_data", None)
    stored = found.pop("storage_data", None)
    if stored is not None:
        flat = pairs(stored, "storage_data")
        for index, info in zip(flat[::2], flat[1::2], strict=True):
            chunks.stored(index, info)
    version = found.pop("version", None)
    if version is not None and type(version) is not str:
        raise wrong("version", None)
    storage_meta = found.pop("storage_meta", None)
    extra: dict[str, Number] = {}
    writers: int | None = None
    plans = found.get("all_local_plans")
    if type(plans) is list:
        try:
            extra["all_local_plans"] = chunks.plans(plans)
            writers = len(found.pop("all_local_plans"))  # type: ignore[arg-type]
        except Fault:  # evidence that nothing depends on: shown as it is
            facts.odd(("torch.distributed.checkpoint.planner", "SavePlan"))
    facts.spend(sum(map(len, found)))
    extra |= {name: facts.number(value) for name, value in found.items()}
    return DcpChunks(
        names=chunks.names,
        dtypes=chunks.dtypes,
        shapes=chunks.shapes,
        counts=chunks.counts,
        offsets=chunks.offsets,
        sizes=chunks.sizes,
        files=list(chunks.files),
        file=chunks.file,
        begin=chunks.begin,
        length=chunks.length,
        transforms=chunks.transforms,
        transform_lists=[words for _, words in chunks.transform_lists.values()],
        strays=list(chunks.strays),
        properties=chunks.properties,
        planner=None if planner is None else facts.number(planner),
        storage_meta=None if storage_meta is None else facts.number(storage_meta),
        version=version,
        extra=extra,
        writers=writers,
        writer=chunks.writer if writers is not None else (),
    )
