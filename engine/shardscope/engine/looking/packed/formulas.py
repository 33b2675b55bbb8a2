"""The arithmetic of packed weights, a window at a time: rows and inputs of the logical matrix, in 32-bit floats.

Formulas are those of the libraries that load such weights: AutoGPTQ and GPTQModel, AutoAWQ, bitsandbytes, compressed-tensors, TensorRT Model
Optimizer, DeepSeek-V3, transformers for gpt-oss, ggml. Where these work in 16 bits, the numbers here are those before rounding.
"""

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.diffing.numbers import table
from shardscope.engine.looking.packed.ggml import DECODERS
from shardscope.engine.looking.packed.recipe import Recipe
from shardscope.engine.looking.statistics import Bytes, narrow
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.ggml import BLOCK_TYPES
from shardscope.engine.model.tensors import DTYPES

Numbers = NDArray[np.float32]
Codes = NDArray[np.int32]
Window = Callable[[LogicalTensor, tuple[int, int], range, range], Bytes]
"""Reads rows and columns of a tensor that is looked at as a matrix."""
Formula = Callable[[Recipe, Window, range, range], Numbers]

WORD: Final = 32
"""Bits of a word."""
_AWQ: Final = np.array([0, 4, 1, 5, 2, 6, 3, 7])
"""Where AutoAWQ puts the outputs of a word, in nibbles from the lowest on."""


def _numbers(tensor: LogicalTensor, data: Bytes, rows: int) -> Numbers:
    """Return the elements of a window in 32 bits."""
    found: Numbers = narrow(data, tensor.dtype) if DTYPES[tensor.dtype].bits > 8 else _small(tensor, data)
    return found.astype(np.float32, copy=False).reshape(rows, -1)


def _small(tensor: LogicalTensor, data: Bytes) -> NDArray[Any]:
    kind = DTYPES[tensor.dtype].kind
    if kind in ("int", "uint", "bool"):
        return data.view(np.int8) if kind == "int" else data
    found: NDArray[Any] = table(tensor.dtype).astype(np.float32)[data]
    return found


def stream(words: NDArray[Any], bits: int, places: NDArray[np.int64], first: int) -> Codes:
    """Return numbers of so many bits out of the last dimension of 32-bit words, the lowest bits first; they may cross words.

    `places` are those of the numbers in all words, `first` is the number of the first word here.
    """
    at = places * bits - first * WORD
    low, shift = at // WORD, (at % WORD).astype(np.uint64)
    pairs = words[..., low].astype(np.uint64)
    if WORD % bits:
        high = np.minimum(low + 1, words.shape[-1] - 1)
        pairs |= words[..., high].astype(np.uint64) << np.uint64(WORD)
    found: Codes = ((pairs >> shift) & np.uint64((1 << bits) - 1)).astype(np.int32)
    return found


def _words(places: range, bits: int) -> range:
    """Return the words that hold numbers."""
    return range(places.start * bits // WORD, ((places[-1] + 1) * bits - 1) // WORD + 1)


def _scales(recipe: Recipe, read: Window, rows: range, columns: range) -> Numbers:
    """Return the scale of each number, or what spreads to that, in its place: by rows and groups of inputs."""
    scale = recipe.scale
    if scale is None:
        return np.ones((1, 1), np.float32)
    found = _spread(recipe, scale, read, rows, columns, powers=recipe.powers)
    if recipe.whole is not None:
        whole = _per_expert(recipe, recipe.whole, read, rows)
        found = found / whole if recipe.divided else found * whole
    return found


def _per_expert(recipe: Recipe, tensor: LogicalTensor, read: Window, rows: range) -> Numbers:
    """Return one number for each row: that of the whole tensor, or of its expert."""
    count = prod(tensor.shape)
    every = _line(tensor, read, range(count))
    found: Numbers = every if count == 1 else every[np.asarray(rows) // recipe.rows]
    return found.reshape(-1, 1)


def _spread(
    recipe: Recipe, tensor: LogicalTensor, read: Window, rows: range, columns: range, *, powers: bool
) -> Numbers:
    """Return a companion that has a number for so many rows and inputs, one for each of a window."""
    down, across = recipe.group
    tall, wide = -(-recipe.rows // down), -(-recipe.inputs // across)
    experts = recipe.every_row // recipe.rows
    places = np.asarray(rows)
    lines = places // recipe.rows * tall + places % recipe.rows // down
    cells = np.asarray(columns) // across
    some = _evenly(lines)
    groups = range(int(cells[0]), int(cells[-1]) + 1)
    data = read(tensor, (experts * tall, wide), some, groups)
    found = table("F8_E8M0").astype(np.float32)[data] if powers else _numbers(tensor, data, len(some))
    found = found.reshape(len(some), len(groups))
    picked: Numbers = found[(lines - some.start) // some.step][:, cells - groups.start]
    return picked


def _evenly(places: NDArray[np.int64]) -> range:
    """Return a range that has all of some rising places, and no others where they are evenly spaced."""
    steps = np.diff(places)
    step = int(steps[0]) if len(steps) and steps[0] and (steps == steps[0]).all() else 1
    return range(int(places[0]), int(places[-1]) + 1, step)


def _scaled(recipe: Recipe, read: Window, rows: range, columns: range) -> Numbers:
    """Numbers as they are stored, times a scale."""
    view = (recipe.every_row, recipe.inputs)
    found = _numbers(recipe.weight, read(recipe.weight, view, rows, columns), len(rows))
    if recipe.zeros is not None:
        found = found - _spread(recipe, recipe.zeros, read, rows, columns, powers=False)
    found = found * _scales(recipe, read, rows, columns)
    if recipe.factor != 1:
        found *= np.float32(recipe.factor)
    return found


def _floats(recipe: Recipe, read: Window, rows: range, columns: range) -> Numbers:
    """Floats of four bits, two in a byte, or of six, four in three bytes; the first one lowest."""
    bits = recipe.bits
    unit = 2 if bits == 4 else 4
    first, last = columns.start // unit, columns[-1] // unit + 1
    width = unit * bits // 8
    view = (recipe.every_row, recipe.inputs // unit * width)
    data = read(recipe.weight, view, rows, range(first * width, last * width)).reshape(len(rows), -1)
    codes = _fours(data) if bits == 4 else _sixes(data)
    kind = "F4" if bits == 4 else "F6_E2M3"
    begin = columns.start - first * unit
    found: Numbers = table(kind).astype(np.float32)[codes[:, begin : begin + len(columns)]]
    return found * _scales(recipe, read, rows, columns)


def _fours(data: Bytes) -> Bytes:
    return np.stack([data & np.uint8(15), data >> np.uint8(4)], axis=-1).reshape(len(data), -1)


def _sixes(data: Bytes) -> NDArray[np.int32]:
    three = data.reshape(len(data), -1, 3).astype(np.int32)
    words = three[..., 0] | three[..., 1] << 8 | three[..., 2] << 16
    found: NDArray[np.int32] = (words[..., None] >> np.array([0, 6, 12, 18])) & 63
    return found.reshape(len(data), -1)


def _groups(recipe: Recipe, read: Window, columns: range) -> NDArray[np.int64]:
    """Return the group of each input."""
    if recipe.order is None:
        return np.asarray(columns) // recipe.group[1]
    data = read(recipe.order, (1, recipe.inputs), range(1), columns)
    found: NDArray[np.int64] = narrow(data, recipe.order.dtype).astype(np.int64)
    if found.min() < 0 or found.max() >= -(-recipe.inputs // recipe.group[1]):
        why = f"{recipe.order.name.rpartition('.')[2]} has a group that is not there"
        raise Fault("peek.packing", tensor=recipe.weight.name, scheme=recipe.scheme, why=why)
    return found


def _rows_of_words(recipe: Recipe, read: Window, rows: range, columns: range) -> Numbers:
    """Words that hold the inputs of a row one after the other (compressed-tensors)."""
    bits, wide = recipe.bits, -(-recipe.inputs // recipe.group[1])
    words, groups = _words(columns, bits), _groups(recipe, read, columns)
    every = -(-recipe.inputs * bits // WORD)
    data = read(recipe.weight, (recipe.every_row, every), rows, words).view("<u4").reshape(len(rows), -1)
    codes = stream(data, bits, np.asarray(columns), words.start)
    zeros: Codes = np.full((1, 1), recipe.zero, np.int32)
    if recipe.zeros is not None:
        down, some = _words(rows, bits), _within(groups)
        tall = -(-recipe.rows * bits // WORD)
        data = read(recipe.zeros, (tall, wide), down, some).view("<u4").reshape(len(down), -1).T
        zeros = stream(data, bits, np.asarray(rows), down.start).T[:, groups - some.start]
    return (codes - zeros).astype(np.float32) * _by_group(
        recipe, (recipe.every_row, wide), read, rows, groups
    )


def _by_group(
    recipe: Recipe, view: tuple[int, int], read: Window, rows: range, groups: NDArray[np.int64]
) -> Numbers:
    """Return the scale of each row and input of a window."""
    if recipe.scale is None:
        raise AssertionError("words without scales")
    some = _within(groups)
    found = _numbers(recipe.scale, read(recipe.scale, view, rows, some), len(rows))
    picked: Numbers = found[:, groups - some.start]
    return picked


def _within(groups: NDArray[np.int64]) -> range:
    return range(int(groups.min()), int(groups.max()) + 1)


def _columns_of_words(recipe: Recipe, read: Window, rows: range, columns: range) -> Numbers:
    """Words in columns: GPTQ has the inputs of an output one below the other, AWQ eight outputs side by side. Zero points lie side by
    side in both, and scales have a row for each group.
    """
    if rows.step > 1 and recipe.interleaved:  # eight outputs are read for one
        return np.concatenate([_columns_of_words(recipe, read, range(row, row + 1), columns) for row in rows])
    bits, groups = recipe.bits, _groups(recipe, read, columns)
    some, wide = _within(groups), recipe.every_row
    every = -(-wide * bits // WORD)
    if recipe.interleaved:
        across = _words(rows, bits)
        data = read(recipe.weight, (recipe.inputs, every), columns, across).view("<u4")
        codes = _unlaced(data.reshape(len(columns), -1), across, rows).T
    else:
        down = _words(columns, bits)
        tall = -(-recipe.inputs * bits // WORD)
        data = read(recipe.weight, (tall, wide), down, rows).view("<u4").reshape(len(down), -1)
        codes = stream(data.T, bits, np.asarray(columns), down.start)
    zeros: Codes = np.full((1, 1), recipe.zero, np.int32)
    tall = int(_tall(recipe))
    if recipe.zeros is not None:
        across = _words(rows, bits)
        data = read(recipe.zeros, (tall, every), some, across).view("<u4").reshape(len(some), -1)
        if recipe.interleaved:
            found = _unlaced(data, across, rows)
        else:
            found = stream(data, bits, np.asarray(rows), across.start)
        zeros = found.T[:, groups - some.start] + recipe.zero
    if recipe.scale is None:
        raise AssertionError("words without scales")
    scales = _numbers(recipe.scale, read(recipe.scale, (tall, wide), some, rows), len(some))
    return (codes - zeros).astype(np.float32) * scales.T[:, groups - some.start]


def _tall(recipe: Recipe) -> int:
    """Return how many groups of inputs there are."""
    return recipe.scale.shape[0] if recipe.scale is not None else 1


def _unlaced(words: NDArray[Any], across: range, rows: range) -> Codes:
    """Return outputs out of the words of AWQ."""
    shifts = (4 * _AWQ).astype(np.uint32)
    found = ((words[..., None] >> shifts) & np.uint32(15)).astype(np.int32).reshape(len(words), -1)
    begin = rows.start - across.start * len(_AWQ)
    picked: Codes = found[:, begin : begin + len(rows)]
    return picked


def _bitsandbytes(recipe: Recipe, read: Window, rows: range, columns: range) -> Numbers:
    """Codes of four bits, two in a byte, the first one highest, in blocks that go on from row to row."""
    if len(rows) > 1 and (rows.step > 1 or len(columns) < recipe.inputs):
        return np.concatenate([_bitsandbytes(recipe, read, range(row, row + 1), columns) for row in rows])
    first = rows.start * recipe.inputs + columns.start
    last = rows[-1] * recipe.inputs + columns[-1]
    every = recipe.every_row * recipe.inputs
    data = read(recipe.weight, (1, -(-every // 2)), range(1), range(first // 2, last // 2 + 1))
    codes = np.stack([data >> np.uint8(4), data & np.uint8(15)], axis=-1).reshape(-1)
    codes = codes[first % 2 : first % 2 + last + 1 - first]
    if recipe.table is None:
        raise AssertionError("codes without a table")
    known = _line(recipe.table, read, range(16))
    blocks = np.arange(first, last + 1) // recipe.block
    some = range(int(blocks[0]), int(blocks[-1]) + 1)
    found: Numbers = known[codes] * _sizes(recipe, read, some)[blocks - some.start]
    return found.reshape(len(rows), -1)


def _line(tensor: LogicalTensor, read: Window, places: range) -> Numbers:
    """Return some elements of a tensor, whatever its shape."""
    return _numbers(tensor, read(tensor, (1, prod(tensor.shape)), range(1), places), 1).reshape(-1)


def _sizes(recipe: Recipe, read: Window, blocks: range) -> Numbers:
    """Return the largest number of each block."""
    if recipe.scale is None:
        raise AssertionError("blocks without their sizes")
    if recipe.nested is None:
        return _line(recipe.scale, read, blocks)
    sizes, known = recipe.nested
    codes = read(recipe.scale, (1, prod(recipe.scale.shape)), range(1), blocks)
    outer = np.asarray(blocks) // recipe.nested_block
    some = range(int(outer[0]), int(outer[-1]) + 1)
    found: Numbers = _line(known, read, range(256))[codes] * _line(sizes, read, some)[outer - some.start]
    return found + np.float32(recipe.offset)


def _ggml(recipe: Recipe, read: Window, rows: range, columns: range) -> Numbers:
    """Blocks of ggml."""
    kind = BLOCK_TYPES[recipe.scheme]
    first, last = columns.start // kind.block, columns[-1] // kind.block + 1
    view = (recipe.every_row, recipe.inputs // kind.block * kind.bytes)
    data = read(recipe.weight, view, rows, range(first * kind.bytes, last * kind.bytes))
    found = DECODERS[kind.name](data.reshape(-1, kind.bytes))
    begin = columns.start - first * kind.block
    return found.reshape(len(rows), -1)[:, begin : begin + len(columns)]


FORMULAS: Final[dict[str, Formula]] = {
    "scaled": _scaled,
    "floats": _floats,
    "rows of words": _rows_of_words,
    "columns of words": _columns_of_words,
    "bitsandbytes": _bitsandbytes,
    "ggml": _ggml,
}
"""By the method of a recipe."""
