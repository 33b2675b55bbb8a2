"""Flattened parameters end to end in one buffer, cut among ranks: ZeRO stages 1 to 3 and FSDP1.

The rules are those of deepspeed 0.19.8 (`runtime/zero/stage_1_and_2.py`, `runtime/zero/partition_parameters.py`) and torch
2.13 (`torch/distributed/fsdp/_flat_param.py`). Where tensor parallelism comes first, a parameter here is the shard of one
tensor-parallel rank, since each of them has a buffer of its own.
"""

import math
from collections.abc import Sequence

from msgspec import Struct

from shardscope.engine.geometry.constructors.cuts import refuse
from shardscope.engine.geometry.pieces.blocks import Block
from shardscope.engine.geometry.pieces.fold import folded
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side
from shardscope.engine.model.shardmap import FlatRange, Node, TensorMap

ALIGNED_BYTES = 16
"""Where writers align parameters at all, each begins at a multiple of so many bytes."""


class Stretch(Struct, frozen=True):
    """What a rank holds of one parameter: `count` elements, at `at` in its partition, from `start` of the parameter on."""

    at: int
    start: int
    count: int


class FlatBuffer(Struct, frozen=True):
    """Parameters in a buffer that is cut into equal partitions."""

    shapes: tuple[tuple[int, ...], ...]
    """Of the parameters, as they were given."""
    order: tuple[int, ...]
    """Numbers of the parameters in the order of the buffer."""
    starts: tuple[int, ...]
    """Where each parameter begins in the buffer, by its number."""
    used: int
    """Elements up to the end of the last parameter."""
    partition: int
    """Elements of each rank, padding included."""
    ranks: int

    def stretch(self, number: int, rank: int) -> Stretch:
        """Return what a rank holds of a parameter; a count of zero where nothing."""
        begin, size = self.starts[number], math.prod(self.shapes[number])
        low = min(max(begin, rank * self.partition), begin + size)
        high = max(low, min(begin + size, (rank + 1) * self.partition))
        return Stretch(max(0, low - rank * self.partition), low - begin, high - low)

    def tail(self, rank: int) -> int:
        """Return the padding behind the last parameter in a rank's partition."""
        return max(0, min(self.partition, (rank + 1) * self.partition - self.used))

    def parameter(self, number: int, *, axis: str = "dp", of: TensorMap | None = None) -> TensorMap:
        """Return the map of one parameter: a stretch of it for each rank, without the rest of the partition.

        `of` is the map that makes the parameter out of a full tensor (a tensor-parallel cut); the parameter's shape is
        then that of its shards, which have to be of one size.
        """
        stretches = [self.stretch(number, rank) for rank in range(self.ranks)]
        node: Node = FlatRange(
            axis,
            tuple(stretch.start for stretch in stretches),
            tuple(stretch.start + stretch.count for stretch in stretches),
            None if of is None else of.map,
        )
        if of is None:
            return TensorMap(self.shapes[number], node)
        return TensorMap(of.shape, node, of.mesh, of.dtype)

    def whole(self) -> Lowered:
        """Return the map of all parameters end to end, as one tensor, to the partitions of the ranks 0, 1, 2, ..."""
        before = [0]
        for number in self.order:
            before.append(before[-1] + math.prod(self.shapes[number]))
        shards = []
        for rank in range(self.ranks):
            blocks = []
            for position, number in enumerate(self.order):
                held = self.stretch(number, rank)
                if held.count:
                    source = Side(before[position] + held.start, (1,))
                    blocks.append(Block((held.count,), Side(held.at, (1,)), source))
            pieces = tuple(Piece(block.shape, block.b, block.a, (rank,)) for block in folded(blocks))
            padding = self.partition - sum(piece.elements for piece in pieces)
            shards.append(RankShard(rank, (self.partition,), pieces, padding))
        return Lowered((before[-1],), tuple(shards))


def zero_group(
    shapes: Sequence[Sequence[int]],
    ranks: int,
    *,
    paddings: Sequence[int] | None = None,
    item_bytes: int | None = None,
    round_robin: bool = False,
) -> FlatBuffer:
    """Return the buffer of one parameter group of ZeRO stage 1 or 2.

    The buffer is padded to a multiple of 2 x `ranks`. `paddings` are the elements behind each parameter, as
    `param_alignment_paddings` records them; or `item_bytes` of the model's type, where writers align parameters and
    nothing is recorded. `round_robin` reorders: every `ranks`-th parameter from the first on, then from the second on, and
    so forth (shapes recorded in a checkpoint are in the order of the buffer already). Raises `Fault` `map.invalid`.
    """
    order = tuple(range(len(shapes)))
    if ranks < 1:
        refuse(f"{ranks} ranks")
    if round_robin:
        order = tuple(number for first in range(ranks) for number in range(first, len(shapes), ranks))
    if paddings is not None and (len(paddings) != len(shapes) or min(paddings, default=0) < 0):
        refuse(f"{len(paddings)} paddings for {len(shapes)} parameters")
    aligned = 1 if item_bytes is None else _aligned(item_bytes, common=True)
    starts, end, used = [0] * len(shapes), 0, 0
    for position, number in enumerate(order):
        starts[number] = end
        used = end = end + _elements(shapes[number])
        if paddings is not None:
            end += paddings[position]
        elif position + 1 < len(order):
            end += -end % aligned
    step = 2 * ranks
    padded = -(-end // step) * step
    return FlatBuffer(_shapes(shapes), order, tuple(starts), used, padded // ranks, ranks)


def flat_parameter(
    shapes: Sequence[Sequence[int]], ranks: int, *, item_bytes: int | None = None
) -> FlatBuffer:
    """Return the flat parameter of one FSDP1 unit.

    `item_bytes` of the type is given where addresses are aligned (`use_orig_params`). Raises `Fault` `map.invalid`.
    """
    if ranks < 1:
        refuse(f"{ranks} ranks")
    aligned = 1 if item_bytes is None else _aligned(item_bytes, common=False)
    starts, end = [], 0
    for shape in shapes:
        end += -end % aligned
        starts.append(end)
        end += _elements(shape)
    return FlatBuffer(_shapes(shapes), tuple(range(len(shapes))), tuple(starts), end, -(-end // ranks), ranks)


def zero3(shape: Sequence[int], ranks: int, *, axis: str = "dp") -> TensorMap:
    """Return the map of a parameter of ZeRO stage 3: ceil(elements / ranks) for each rank, what exceeds them is padding.

    Raises `Fault` `map.invalid`.
    """
    return TensorMap(tuple(shape), zero3_range(_elements(shape), ranks, axis=axis))


def zero3_range(elements: int, ranks: int, *, axis: str = "dp", of: Node | None = None) -> FlatRange:
    """Return the cut of a flattened tensor of `elements`; `of` is what makes it, a tensor-parallel cut for instance.

    Shards of different sizes need a cut each. Raises `Fault` `map.invalid`.
    """
    if ranks < 1:
        refuse(f"{ranks} ranks")
    each = -(-elements // ranks)
    return FlatRange(
        axis,
        tuple(rank * each for rank in range(ranks)),
        tuple((rank + 1) * each for rank in range(ranks)),
        of,
    )


def zero3_starts(shapes: Sequence[Sequence[int]], ranks: int) -> tuple[int, ...]:
    """Return where each parameter begins in every rank's flat group of ZeRO stage 3, and last where the group ends."""
    starts = [0]
    for shape in shapes:
        starts.append(starts[-1] + -(-_elements(shape) // ranks))
    return tuple(starts)


def _aligned(item_bytes: int, *, common: bool) -> int:
    """Return the elements to a multiple of which parameters are aligned, in DeepSpeed's way or (not `common`) in FSDP's."""
    if item_bytes < 1:
        refuse(f"items of {item_bytes} bytes")
    if common:
        return ALIGNED_BYTES // math.gcd(ALIGNED_BYTES, item_bytes)
    return max(1, ALIGNED_BYTES // item_bytes)


def _elements(shape: Sequence[int]) -> int:
    if min(shape, default=0) < 0:
        refuse("a negative extent")
    return math.prod(shape)


def _shapes(shapes: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(shape) for shape in shapes)
