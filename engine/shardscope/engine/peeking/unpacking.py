"""Packed weights of a checkpoint as the numbers that they stand for.

What comes out is a tensor of 32-bit floats that is read window by window, like any other: nothing is unpacked on disk or kept in memory.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, Final

from shardscope.engine.anatomy.items import Item
from shardscope.engine.anatomy.packing import modules_of
from shardscope.engine.anatomy.schemes import packed_of
from shardscope.engine.convert.copies.entries import opener_of
from shardscope.engine.formats.decode.whole import whole
from shardscope.engine.inspecting.sides import Side
from shardscope.engine.looking.packed.recipe import Recipe, Unpacked
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.ggml import BLOCK_TYPES
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.peek import PackedWeight
from shardscope.engine.model.tensors import array_bytes
from shardscope.engine.modelling import packing_of
from shardscope.engine.parse.gguf import is_big_endian
from shardscope.engine.parse.json import parse_json
from shardscope.engine.source.source import Source

if TYPE_CHECKING:
    from shardscope.engine.looking.packed.reading import Unpacking

DTYPE: Final = "F32"
"""Of the numbers that packed weights stand for."""
LONGEST: Final = 64 << 10
"""Bytes of a tensor that says how others are packed."""
_BUDGET: Final = 4 << 20
_HEAD: Final = 8


def unpacked(side: Side, name: str) -> Unpacked:
    """Return a packed weight, by its exact name, that of its weight or that of its module, as the numbers that it stands for.

    Raises `Fault`: `peek.not_packed`, `peek.packing`, and those of reading.
    """
    tensor = next((each for each in side.catalogue.tensors if each.name == name), None)
    if tensor is None or tensor.dtype not in BLOCK_TYPES:
        return _of_module(side, name)
    found = of_blocks(side, tensor)
    if found is None:
        why = "its blocks are not taken apart here, not all there, or those of a big-endian file"
        raise Fault("peek.packing", tensor=name, scheme=f"GGUF {tensor.dtype}", why=why)
    return found


def of_blocks(side: Side, tensor: LogicalTensor) -> Unpacked | None:
    """Return a tensor of a type of ggml as its numbers; null where it is none, or is not taken apart. Raises `Fault`: those of reading."""
    return _Blocks(side).of(tensor) if tensor.dtype in BLOCK_TYPES else None


def readable(side: Side, tensors: Iterable[LogicalTensor]) -> Iterator[LogicalTensor]:
    """Yield tensors, those of types of ggml that are taken apart as their numbers. Raises `Fault`: those of reading."""
    blocks: _Blocks | None = None
    for tensor in tensors:
        if tensor.dtype in BLOCK_TYPES:
            blocks = blocks or _Blocks(side)
            yield blocks.of(tensor) or tensor
        else:
            yield tensor


def stored_bytes(tensor: LogicalTensor) -> int:
    """Return the bytes of a tensor as it is stored; 0 where that is not known."""
    found = tensor.recipe.weight if isinstance(tensor, Unpacked) and tensor.recipe is not None else tensor
    return array_bytes(found.dtype, found.shape) or 0


class _Blocks:
    """The tensors of types of ggml that a checkpoint has."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._rows = {row.name: row for row in side.found.tensors if row.dtype in BLOCK_TYPES}
        self._files: dict[str, tuple[bool, int]] = {}
        """Of each file whether it is big-endian, and its size."""

    def _file(self, name: str) -> tuple[bool, int]:
        if name not in self._files:
            with (
                Source(self._side.path, limits=Limits(), hf_cache=self._side.found.hf_cache) as source,
                opener_of(source, self._side.found.inventory)(name) as file,
            ):
                self._files[name] = is_big_endian(file.pread(0, _HEAD)), file.size
        return self._files[name]

    def of(self, tensor: LogicalTensor) -> Unpacked | None:
        """Return a tensor as its numbers; null where it is not taken apart, or not all there."""
        from shardscope.engine.looking.packed.ggml import DECODERS

        kind, row = BLOCK_TYPES[tensor.dtype], self._rows.get(tensor.name)
        if tensor.dtype not in DECODERS or not tensor.shape or tensor.shape[-1] % kind.block or row is None:
            return None
        size = array_bytes(tensor.dtype, tensor.shape) or 0
        swapped, length = self._file(row.file)
        if swapped or row.end > length or row.end - row.begin != size:
            return None  # writers of big-endian files swap the scales within blocks, or do not
        fragment = Fragment(0, (size,), Record(row.file, 0, length, length), row.begin, dtype="U8")
        formula = f"blocks of {kind.block} numbers in {kind.bytes} bytes, as ggml takes them apart"
        weight = whole(tensor.name, "U8", (size,), fragment)
        return _as_numbers(tensor, Recipe("ggml", tensor.dtype, formula, tensor.shape, weight))


def _of_module(side: Side, name: str) -> Unpacked:
    from shardscope.engine.looking.packed.finding import Finder

    by_name: dict[str, LogicalTensor] = {}
    for tensor in side.catalogue.tensors:
        by_name.setdefault(tensor.name, tensor)
    items = [Item(each.name, each.dtype, each.shape, 0) for each in by_name.values()]
    module, leaves = _module(modules_of(items), name)
    declared = packing_of(side.found)
    sized = {
        leaf: Item(each.name, each.dtype, each.shape, array_bytes(each.dtype, each.shape) or 0)
        for leaf, each in leaves.items()
    }
    packed = packed_of(sized, declared)
    with opened(side) as tiles:
        small = _Small(tiles)
        finder = Finder(declared, small.integers, small.fields)
        recipe = finder.recipe(module, {leaf: by_name[each.name] for leaf, each in leaves.items()}, packed)
    return _as_numbers(recipe.weight, recipe)


def _module(modules: Mapping[str, Mapping[str, Item]], name: str) -> tuple[str, Mapping[str, Item]]:
    """Return the module that a name is of: its own, that of its weight, or that of one of its tensors."""
    for module in (name, name.removesuffix(".weight")):
        if module in modules:
            return module, modules[module]
    for module, leaves in modules.items():
        if any(item.name == name for item in leaves.values()):
            return module, leaves
    raise Fault("peek.not_packed", tensor=name)


def _as_numbers(tensor: LogicalTensor, recipe: Recipe) -> Unpacked:
    plain = whole(tensor.name, DTYPE, recipe.shape, None)
    return Unpacked(
        name=tensor.name,
        dtype=DTYPE,
        shape=recipe.shape,
        map=plain.map,
        mesh=plain.mesh,
        fragments=recipe.weight.fragments,
        component=tensor.component,
        role=tensor.role,
        part_of=tensor.part_of,
        recipe=recipe,
    )


def described(tensor: LogicalTensor) -> PackedWeight | None:
    """Return what is said of a packed weight; null where a tensor is none."""
    recipe = tensor.recipe if isinstance(tensor, Unpacked) else None
    if recipe is None:
        return None
    weight = recipe.weight
    dtype = recipe.scheme if recipe.method == "ggml" else weight.dtype
    shape = recipe.shape if recipe.method == "ggml" else weight.shape
    names = tuple(each.name for each in recipe.companions)
    scheme = f"GGUF {recipe.scheme}" if recipe.method == "ggml" else recipe.scheme
    return PackedWeight(scheme, recipe.formula, weight.name, dtype, shape, names)


@contextmanager
def opened(side: Side, budget_bytes: int = _BUDGET) -> "Iterator[Unpacking]":
    """Open what packed weights are read with. Leaving it verifies every file (`source.changed`)."""
    from shardscope.engine.looking.packed.reading import Unpacking

    with (
        Source(side.path, limits=Limits(), hf_cache=side.found.hf_cache) as source,
        Unpacking(opener_of(source, side.found.inventory), budget_bytes, 1) as tiles,
    ):
        yield tiles


class _Small:
    """Reads tensors that say how others are packed."""

    def __init__(self, tiles: "Unpacking") -> None:
        self._tiles = tiles

    def _bytes(self, tensor: LogicalTensor) -> bytes:
        size = array_bytes(tensor.dtype, tensor.shape)
        if tensor.unwritable is not None or size is None or size > LONGEST:
            why = tensor.unwritable or "a tensor that describes it is too long"
            raise Fault("peek.packing", tensor=tensor.name, scheme="unknown", why=why)
        count = prod(tensor.shape)
        return self._tiles.window(tensor, (1, count), range(1), range(count)).tobytes() if size else b""

    def integers(self, tensor: LogicalTensor) -> tuple[int, ...]:
        """Return the elements of a tensor of integers."""
        width = {"I64": 8, "I32": 4}.get(tensor.dtype)
        if width is None:
            raise Fault("peek.packing", tensor=tensor.name, scheme="unknown", why="it is not of integers")
        data = self._bytes(tensor)
        return tuple(
            int.from_bytes(data[at : at + width], "little", signed=True) for at in range(0, len(data), width)
        )

    def fields(self, tensor: LogicalTensor) -> Mapping[str, Any]:
        """Return the object that a tensor of bytes holds as JSON."""
        value = parse_json(self._bytes(tensor), Limits()).value
        return value if isinstance(value, dict) else {}
