"""From an address in a shard to bytes: where a fragment of a file has it. Arithmetic on a few numbers."""

from collections.abc import Sequence

from shardscope.engine.model.catalogue import Fragment
from shardscope.engine.model.piece import Side, row_major
from shardscope.engine.model.shardview import Stored
from shardscope.engine.model.tensors import DTYPES


def indexed(address: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return an address of a row-major tensor as an index in each dimension."""
    index = []
    for stride in row_major(shape):
        at, address = divmod(address, stride)
        index.append(at)
    return tuple(index)


def stored(fragment: Fragment, dtype: str, addresses: Sequence[int]) -> Stored | None:
    """Return the bytes from the first to the last of some elements of a shard; null for a type of unknown size."""
    known = DTYPES.get(fragment.dtype or dtype)
    if known is None:
        return None
    places = [_element(fragment, address) for address in addresses]
    begin = min(places) * known.bits // 8
    end = -(-(max(places) + 1) * known.bits // 8)
    record = fragment.record
    if record.coding == "plain":
        base = record.begin + fragment.offset
        return Stored(record.file, base + begin, base + end)
    return Stored(
        record.file, fragment.offset + begin, fragment.offset + end, f"{record.coding} at {record.begin:,}"
    )


def _element(fragment: Fragment, address: int) -> int:
    if fragment.strides is None:
        return address
    index = indexed(address, fragment.shape)
    return sum(n * step for n, step in zip(index, fragment.strides, strict=True))


def ends(side: Side, extents: tuple[int, ...]) -> tuple[int, int]:
    """Return the lowest and the highest address of a block."""
    return side.offset, side.offset + sum(
        (n - 1) * step for n, step in zip(extents, side.strides, strict=True)
    )
