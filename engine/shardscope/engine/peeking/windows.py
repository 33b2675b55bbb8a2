"""Some numbers of a tensor in words: only the bytes that hold them are read, through its shard map."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from shardscope.engine.convert.copies.entries import opener_of
from shardscope.engine.inspecting.sides import Side
from shardscope.engine.looking.slices import Selection, layout
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import LogicalTensor
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.tensors import DTYPES
from shardscope.engine.model.window import Window
from shardscope.engine.source.source import Source

if TYPE_CHECKING:
    from shardscope.engine.convert.proofs.comparing import Tiles
    from shardscope.engine.looking.statistics import Bytes

LEAST: Final = 1 << 20
"""Bytes of buffers below which no budget goes."""
RUN: Final = 4 << 10
SCATTERED: Final = 256 << 10
"""Bytes of buffers where runs are shorter than `RUN` bytes: each may be a read of its own, and who stops it waits for a tile."""
SCRATCH: Final = 4 << 20
"""Bytes that working on numbers takes beside the tiles, at most."""


def check_readable(tensor: LogicalTensor, bits: int | None = None) -> None:
    """Raise `Fault` where no number of a tensor can be read: `peek.unreadable`; or not taken apart into numbers of `bits`: `peek.bits`."""
    if tensor.unwritable is not None:
        raise Fault("peek.unreadable", tensor=tensor.name, why=tensor.unwritable)
    if bits is not None and DTYPES[tensor.dtype].kind not in ("int", "uint"):
        raise Fault("peek.bits", tensor=tensor.name, dtype=tensor.dtype, bits=bits)


@contextmanager
def opened(side: Side, tensor: LogicalTensor, chosen: Selection, memory_bytes: int = 0) -> "Iterator[Tiles]":
    """Open what a selection of a tensor is read with. Leaving it verifies every file (`source.changed`)."""
    from shardscope.engine.convert.proofs.comparing import Tiles
    from shardscope.engine.looking.packed.reading import Unpacking
    from shardscope.engine.looking.packed.recipe import Unpacked
    from shardscope.engine.looking.sub_byte import Picking

    budget = max(LEAST, memory_bytes - SCRATCH)
    if chosen.run * DTYPES[tensor.dtype].bits // 8 < RUN:
        budget = SCATTERED
    small = DTYPES[tensor.dtype].bits < 8
    kind = Unpacking if isinstance(tensor, Unpacked) else Picking if small else Tiles
    with (
        Source(side.path, limits=Limits(), hf_cache=side.found.hf_cache) as source,
        kind(opener_of(source, side.found.inventory), budget, 1) as tiles,
    ):
        yield tiles


def window(
    side: Side,
    tensor: LogicalTensor,
    chosen: Selection,
    bits: int | None = None,
    *,
    cancel: threading.Event | None = None,
) -> Window:
    """Return the numbers of a selection of at most two dimensions, in rows of its last one; `bits` as of `PeekOptions`.

    Raises `Fault`: those of `check_readable`, of maps and of reading; `Cancelled`.
    """
    check_readable(tensor, bits)
    width = chosen.shape[-1] if chosen.shape else 1
    words: list[str] = []
    hexes: list[str] = []
    if chosen.elements:
        word, code = _writers(tensor.dtype, bits)
        with opened(side, tensor, chosen) as tiles:
            for element in elements(tensor, layout(chosen), tiles, cancel):
                words.append(word(element))
                hexes.append(code(element))
    return Window(_rows(words, width), _rows(hexes, width))


def _rows(items: list[str], width: int) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(items[at : at + width]) for at in range(0, len(items), max(1, width)))


def _writers(dtype: str, bits: int | None) -> "tuple[Callable[[Bytes], str], Callable[[Bytes], str]]":
    """Return what writes an element in decimal, and its bits."""
    from shardscope.engine.diffing.numbers import parts

    width = DTYPES[dtype].bits // parts(dtype)
    digits = -(-width // 4)

    def code(element: "Bytes") -> str:
        data = element.tobytes()
        size = max(1, width // 8)
        each = (data[at : at + size] for at in range(0, len(data), size))
        return " ".join(f"{int.from_bytes(part, 'little'):0{digits}x}" for part in each)

    return word_of(dtype, bits), code


def word_of(dtype: str, bits: int | None) -> "Callable[[Bytes], str]":
    """Return what writes one element in decimal, or the numbers of `bits` that it holds, as `numbers.singles` hands elements out."""
    from shardscope.engine.diffing.numbers import in_words
    from shardscope.engine.looking.statistics import apart

    if bits is None:
        return lambda element: in_words(element, dtype)
    return lambda element: " ".join(map(str, apart(element, bits)))


def elements(
    tensor: LogicalTensor, part: Lowered | None, tiles: "Tiles", cancel: threading.Event | None = None
) -> "Iterator[Bytes]":
    """Yield the elements of a tensor, or of the part of it that a map of one rank has, one by one."""
    from shardscope.engine.convert.copies.work import Written
    from shardscope.engine.diffing.numbers import singles

    for stretch in tiles.stretches([Written(tensor, tensor.dtype, 0, part)], cancel):
        yield from singles(stretch.data[0], tensor.dtype, stretch.elements)
