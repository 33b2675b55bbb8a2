"""Tensors that both sides store alike, compared as the bytes that they are: most tensors of most comparisons.

Where maps, shapes, types and byte orders agree, the same bytes are the same tensor. No map is walked for that, nothing is put in
order, and no array library is loaded: it goes as fast as files are read. Other bytes may still be the same tensor (padding), so
that what is found different here is looked at tile by tile (`tilewise`).
"""

import threading
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Final

from shardscope.engine.convert.copies.contents import Contents
from shardscope.engine.geometry.language.layout import in_normal_form, is_plain
from shardscope.engine.geometry.transfer.compose import compose, whole
from shardscope.engine.model.catalogue import Fragment, LogicalTensor
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.progress import check
from shardscope.engine.model.shardmap import DeviceMesh, TensorMap
from shardscope.engine.model.tensors import DTYPES

TILE: Final = 1 << 20
"""Bytes that are read of either side at one time, so that they are still in cache when they are compared."""
BUFFERS: Final = 2 * TILE

OnBytes = Callable[[int], None]
"""Hears how many bytes of a tensor were compared so far."""


class Alike:
    """Compares bytes. For one thread: it keeps its two buffers."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._rooms = bytearray(TILE), bytearray(TILE)
        self._views = memoryview(self._rooms[0]), memoryview(self._rooms[1])

    def same(
        self,
        one: LogicalTensor,
        other: LogicalTensor,
        *,
        cancel: threading.Event | None = None,
        on_bytes: OnBytes | None = None,
    ) -> bool:
        """Tell whether two tensors that are `stored_alike` are the same bytes. Raises `Fault`: those of reading; `Cancelled`."""
        done = 0
        for here, there in zip(one.fragments, other.fragments, strict=True):
            size = _bytes(here, one.dtype)
            for low in range(0, size, TILE):
                check(cancel)
                length = min(TILE, size - low)
                if not self._read_same(here, there, low, length):
                    return False
                done += length
                if on_bytes is not None:
                    on_bytes(done)
        return True

    def _read_same(self, here: Fragment, there: Fragment, low: int, length: int) -> bool:
        first, second = (view[:length] for view in self._views)
        self._contents.read_into(here.record, here.offset + low, first)
        self._contents.read_into(there.record, there.offset + low, second)
        # Two views are compared entry by entry; a bytearray and anything else in one go.
        return (self._rooms[0] if length == TILE else bytearray(first)) == second


def stored_alike(one: LogicalTensor, other: LogicalTensor) -> bool:
    """Tell whether the same bytes in the fragments of two tensors make the same tensor, and all of it.

    Raises `Fault`: those of lowering and composing.
    """
    return (
        (one.dtype, one.shape, one.mesh) == (other.dtype, other.shape, other.mesh)
        and len(one.fragments) == len(other.fragments)
        and all(
            _alike(here, there, one.dtype) for here, there in zip(one.fragments, other.fragments, strict=True)
        )
        and one.map == other.map
        and _is_complete(one)
    )


def _alike(here: Fragment, there: Fragment, dtype: str) -> bool:
    """Tell whether two shards are stored in one form, as they are: neither coded, nor a view of something larger."""
    return (
        (here.label, here.shape, here.dtype) == (there.label, there.shape, there.dtype)
        and here.strides is there.strides is None
        and here.record.big_endian == there.record.big_endian
        and here.record.coding == there.record.coding == "plain"
        and (here.dtype or dtype) in DTYPES
    )


def _is_complete(tensor: LogicalTensor) -> bool:
    """Tell whether every element is in a fragment, and fragments are of the sizes that their map gives them."""
    sizes = tuple([(fragment.label, prod(fragment.shape)) for fragment in tensor.fragments])
    return _covers(tensor.map, tensor.mesh, sizes)


@lru_cache(256)
def _covers(layout: TensorMap | Lowered, mesh: DeviceMesh | None, sizes: tuple[tuple[int, int], ...]) -> bool:
    """Tell whether shards of these sizes hold every element. Asked once for all layers of a model that are laid out alike."""
    lowered = in_normal_form(layout, mesh)
    if len(sizes) == 1 and is_plain(lowered):
        return sizes[0][1] == lowered.elements
    if dict(sizes) != {shard.rank: shard.elements for shard in lowered.ranks if shard.held}:
        return False
    plan = compose(whole(lowered.shape), lowered)
    found = sum(segment.elements for segment in plan.segments)
    return found + sum(segment.elements for segment in plan.indexed) == lowered.elements


def _bytes(fragment: Fragment, dtype: str) -> int:
    return -(-prod(fragment.shape) * DTYPES[fragment.dtype or dtype].bits // 8)
