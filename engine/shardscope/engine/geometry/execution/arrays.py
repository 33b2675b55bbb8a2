"""Arrays and buffers as they are handed in: looked at once, then flat bytes of exactly the size that the map says."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shardscope.engine.geometry.execution.move import PLAIN, Bytes
from shardscope.engine.geometry.execution.scale import Element, element_of, named
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered

Array: TypeAlias = NDArray[Any]
Buffer: TypeAlias = bytes | bytearray | memoryview


def element(given: Iterable[Array | Buffer], dtype: str | None) -> Element:
    """Return the one element that arrays consist of: the dtype that is named, or else that of the arrays.

    Raises `Fault` `map.dtype` where it is unknown, holds Python objects or differs between arrays.
    """
    if dtype is not None:
        return named(dtype)
    dtypes = {array.dtype for array in given if isinstance(array, np.ndarray)}
    if len(dtypes) != 1:
        found = ", ".join(sorted(map(str, dtypes))) or "bytes without a dtype"
        raise Fault("map.dtype", found=found)
    return element_of(dtypes.pop())


def flat(given: Array | Buffer, shape: tuple[int, ...], of: Element, rank: int | None) -> Bytes:
    """Return the bytes of an array of `shape`, row-major. An array that is a view with gaps is copied without them.

    Taken as they are: arrays of the shape whose elements have the size, and one-dimensional bytes of the exact length. `rank`
    is whose shard it is, null for the full tensor. Raises `Fault`: `map.shard_size`, `map.array`, `map.dtype`,
    `map.sub_byte`.
    """
    array = given if isinstance(given, np.ndarray) else np.frombuffer(given, np.uint8)
    if array.dtype.hasobject:
        raise Fault("map.dtype", found=str(array.dtype))
    expected = of.bytes_of(math.prod(shape))
    is_shaped = array.shape == shape and array.dtype.itemsize * 8 == of.bits
    is_bytes = array.ndim == 1 and array.dtype == np.uint8 and array.size == expected
    if not (is_shaped or is_bytes):
        if rank is not None and array.dtype.itemsize * 8 == of.bits and array.size != math.prod(shape):
            raise Fault("map.shard_size", rank=rank, found=array.size, expected=math.prod(shape))
        subject = "full tensor" if rank is None else f"shard of rank {rank}"
        found = f"{list(array.shape)} of {array.dtype.itemsize * 8} bits"
        raise Fault("map.array", subject=subject, found=found, expected=f"{list(shape)} of {of.bits} bits")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def all_flat(lowered: Lowered, shards: Mapping[int, Array | Buffer], of: Element) -> dict[int, Bytes]:
    """Return the bytes of the shard of every rank.

    Raises `Fault`: `map.shard_unknown`, and those of `flat`.
    """
    for rank in {shard.rank for shard in lowered.ranks} ^ shards.keys():
        raise Fault("map.shard_unknown", rank=rank)
    return {shard.rank: flat(shards[shard.rank], shard.shape, of, shard.rank) for shard in lowered.ranks}


def output(shape: tuple[int, ...], out: Array | None, of: Element, like: Iterable[Array | Buffer]) -> Array:
    """Return the array that results go to: `out`, or a new one of `shape`.

    A new one has the inputs' dtype, or, if they are flat bytes, unsigned integers of the elements' size; elements smaller
    than a byte stay flat bytes. Raises `Fault` `map.array`, and `ValueError` for an array that cannot be written in
    place.
    """
    if out is not None:
        if not out.flags.c_contiguous or not out.flags.writeable:
            raise ValueError("results go to a row-major, writable array")
        flat(out, shape, of, None)
        return out
    if of.bits % 8:
        return np.empty(of.bytes_of(math.prod(shape)), np.uint8)
    for array in like:
        if isinstance(array, np.ndarray) and array.dtype.itemsize * 8 == of.bits:
            return np.empty(shape, array.dtype)
    return np.empty(shape, PLAIN.get(of.bits // 8) or f"V{of.bits // 8}")


def raw(array: Array) -> Bytes:
    """Return the bytes of a row-major array, to be written in place."""
    return array.reshape(-1).view(np.uint8)
