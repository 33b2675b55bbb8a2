"""Our maps against torch's own placements and flat parameters, fed with marked data."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.constructors.cuts import mesh
from shardscope.engine.geometry.constructors.dtensor import Placement, Shard, Whole, dtensor
from shardscope.engine.geometry.constructors.flat import flat_parameter
from shardscope.engine.geometry.language.lower import lower
from tests.geometry.trees import elements_of

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.producers, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]


def marked(*shape: int) -> Any:
    return torch.arange(math.prod(shape), dtype=torch.int64).reshape(shape)


def theirs(placement: Placement) -> Any:
    from torch.distributed.tensor.placement_types import Replicate, _StridedShard
    from torch.distributed.tensor.placement_types import Shard as TorchShard

    if not isinstance(placement, Shard):
        return Replicate()
    if placement.split_factor > 1:
        return _StridedShard(placement.dim, split_factor=placement.split_factor)
    return TorchShard(placement.dim)


def local(full: Any, placements: Sequence[Placement], sizes: Sequence[int], at: Sequence[int]) -> Any:
    """What torch's placements leave of a tensor at a coordinate, from left to right."""
    held = full
    for placement, size, position in zip(placements, sizes, at, strict=True):
        if isinstance(placement, Shard):
            parts, _ = theirs(placement)._split_tensor(held, size, with_padding=False, contiguous=True)
            held = parts[position]
    return held


GRIDS: list[tuple[tuple[int, ...], list[Placement], list[int]]] = [
    ((11, 6), [Shard(0), Shard(1)], [2, 2]),
    ((11, 6), [Shard(0), Shard(0)], [2, 3]),
    ((5, 6), [Shard(0), Shard(0)], [4, 2]),
    ((7, 5, 9), [Shard(2), Shard(0), Shard(2)], [2, 2, 3]),
    ((3, 4), [Whole(), Shard(0)], [2, 4]),
    ((9,), [Shard(0, 2)], [4]),
    ((30, 4), [Shard(0, 3), Shard(1)], [4, 2]),
    ((29, 6), [Shard(0, 2), Shard(0)], [2, 2]),
    ((24,), [Shard(0, 6), Shard(0, 3), Shard(0)], [2, 2, 3]),
]


# R150 R151
@pytest.mark.parametrize(("shape", "placements", "sizes"), GRIDS)
def test_placements_cut_as_torch_cuts(
    shape: tuple[int, ...], placements: list[Placement], sizes: list[int]
) -> None:
    from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset

    grid = mesh(**{f"axis{k}": size for k, size in enumerate(sizes)})
    lowered = lower(dtensor(shape, grid, placements), grid)
    told = elements_of(lowered)

    assert check(lowered).findings == ()
    for rank, at in enumerate(product(*[range(size) for size in sizes])):
        assert told[rank] == local(marked(*shape), placements, sizes, at).reshape(-1).tolist()
        extents, _ = _compute_local_shape_and_global_offset(
            shape, sizes, list(at), [theirs(placement) for placement in placements]
        )
        assert lowered.ranks[rank].shape == tuple(extents)


@pytest.mark.parametrize(("rows", "dp", "tp"), [(10, 2, 2), (11, 3, 3), (5, 2, 4), (64, 4, 2)])
def test_fsdp_over_tensor_parallelism_is_chunk_after_chunk(rows: int, dp: int, tp: int) -> None:
    grid = mesh(dp=dp, tp=tp)
    told = elements_of(lower(dtensor((rows, 3), grid, [Shard(0, tp), Shard(0)]), grid))
    full = marked(rows, 3)

    for rank, (d, t) in enumerate(product(range(dp), range(tp))):
        first = full.chunk(tp, 0)
        held = first[t].chunk(dp, 0) if t < len(first) else ()
        assert told[rank] == (held[d].reshape(-1).tolist() if d < len(held) else [])


@pytest.fixture
def fake_ranks() -> Iterator[Any]:
    """Start a process group of a given size that answers at once and moves nothing."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    def start(rank: int, ranks: int) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ranks)

    yield start
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_flat_parameters_are_laid_out_as_fsdp1_does(aligned: bool, ranks: int, fake_ranks: Any) -> None:
    import torch.distributed as dist
    from torch.distributed.fsdp._flat_param import FlatParamHandle, HandleShardingStrategy

    shapes = [(3, 5), (7,), (2, 2, 3)]
    buffer = flat_parameter(shapes, ranks, item_bytes=4 if aligned else None)
    for rank in range(ranks):
        fake_ranks(rank, ranks)
        module = torch.nn.Module()
        first = 1
        for number, shape in enumerate(shapes):
            values = torch.arange(first, first + math.prod(shape), dtype=torch.float32).reshape(shape)
            module.register_parameter(f"p{number}", torch.nn.Parameter(values))
            first += math.prod(shape)
        handle = FlatParamHandle(
            list(module.parameters()),
            module,
            torch.device("cpu"),
            HandleShardingStrategy.FULL_SHARD,
            False,
            None,
            None,
            False,
            dist.distributed_c10d._get_default_group(),
            aligned,
        )
        whole = handle.flat_param.detach().clone()
        shard, _ = FlatParamHandle._get_shard(whole, rank, ranks)
        assert shard.numel() == buffer.partition
        begin = 1
        for number, shape in enumerate(shapes):
            held = buffer.stretch(number, rank)
            taken = shard[held.at : held.at + held.count].tolist()
            assert taken == list(range(begin + held.start, begin + held.start + held.count))
            begin += math.prod(shape)
