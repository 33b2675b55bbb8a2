"""The cuts that most layouts are made of, as nodes and maps."""

from collections.abc import Sequence
from typing import NoReturn

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.shardmap import (
    Contiguous,
    DeviceMesh,
    MeshAxis,
    Node,
    Part,
    SubParamConcat,
    TensorMap,
    Trim,
)


def refuse(reason: str, place: str = "constructor") -> NoReturn:
    """Raise `Fault` `map.invalid`: the numbers contradict each other."""
    raise Fault("map.invalid", place=place, reason=reason)


def unproven(reason: str) -> NoReturn:
    """Raise `Fault` `map.unproven`: a layout that has no map that could be trusted."""
    raise Fault("map.unproven", reason=reason)


def even(extent: int, ranks: int) -> tuple[int, ...]:
    """Return equal widths. Raises `Fault` `map.invalid` where they do not divide."""
    if ranks < 1 or extent % ranks:
        refuse(f"{extent:,} slices do not divide among {ranks:,} ranks")
    return (extent // ranks,) * ranks


def chunks(extent: int, ranks: int) -> tuple[int, ...]:
    """Return the widths of `torch.chunk`: ceil(extent / ranks) each, the last ones short or empty."""
    if ranks < 1:
        refuse(f"a cut among {ranks:,} ranks")
    width = -(-extent // ranks)
    return tuple(max(0, min(width, extent - rank * width)) for rank in range(ranks))


def grains(extent: int, ranks: int, grain: int) -> tuple[int, ...]:
    """Return widths of whole grains (heads), the first ranks one more where they do not divide.

    24 rows in 6 grains over 4 ranks are 8, 8, 4 and 4: not 6 each.
    """
    if ranks < 1 or grain < 1 or extent % grain:
        refuse(f"{extent:,} slices are not whole grains of {grain:,}")
    whole, more = divmod(extent // grain, ranks)
    return tuple((whole + (rank < more)) * grain for rank in range(ranks))


def mesh(**axes: int) -> DeviceMesh:
    """Return a mesh of named axes, row-major, with the ranks 0, 1, 2, ..."""
    return DeviceMesh(tuple(MeshAxis(name, size) for name, size in axes.items()))


def fused(axis: str, dim: int, widths: Sequence[Sequence[int]], of: Node | None = None) -> SubParamConcat:
    """Return the cut of a tensor that is several sub-parameters along `dim`: `widths[i][r]` slices of the i-th on rank r.

    Fused query, key and value, or gate and up: a rank's shard is its slice of each, one after the other. Joining such
    shards as they are gives another tensor.
    """
    parts = tuple(Part(sum(part), Contiguous(axis, dim, tuple(part))) for part in widths)
    return SubParamConcat(dim, parts, of)


def gated(shape: Sequence[int], ranks: int, *, axis: str = "tp", dim: int = 0) -> TensorMap:
    """Return the map of a gate and an up projection in one tensor, of which each rank holds [gate, up] of its own."""
    extent = extent_of(shape, dim)
    if extent % 2:
        refuse(f"{extent:,} slices are not two halves")
    return TensorMap(tuple(shape), fused(axis, dim, [even(extent // 2, ranks)] * 2))


def padded_vocabulary(
    shape: Sequence[int], ranks: int, divisible_by: int = 1, *, axis: str = "tp", dim: int = 0
) -> TensorMap:
    """Return the map of a vocabulary that is padded to a multiple of `divisible_by` x `ranks` and cut evenly."""
    extent = extent_of(shape, dim)
    step = divisible_by * ranks
    if step < 1:
        refuse(f"a vocabulary padded to multiples of {step:,}")
    padded = -(-extent // step) * step
    return TensorMap(tuple(shape), padded_cut(axis, dim, extent, even(padded, ranks)))


def padded_cut(axis: str, dim: int, extent: int, widths: Sequence[int]) -> Contiguous:
    """Return the cut of `extent` slices with padding behind them into `widths`, which sum to at least `extent`."""
    padded = sum(widths)
    of = None if padded == extent else Trim(dim, extent, padded)
    return Contiguous(axis, dim, tuple(widths), of)


def extent_of(shape: Sequence[int], dim: int) -> int:
    """Return one extent. Raises `Fault` `map.invalid` where the dimension is not there."""
    if not 0 <= dim < len(shape):
        refuse(f"dimension {dim} of a tensor of {len(shape)}")
    return shape[dim]
