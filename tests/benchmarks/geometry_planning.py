"""Planning: a model of 70 billion parameters from tensor parallelism 8 to 4, against DeepSpeed's planner where it is there.

    python tests/benchmarks/geometry_planning.py

Also: what it costs when every dimension grows 32 times, and 1,024 data-parallel partitions over the columns of 8 ranks.
DeepSpeed's planner is found where deepspeed 0.19.8 is installed (the producers' environment); without it the bar is one
second. Both sides get the maps as their own objects and prove and plan every tensor; what each remembers is its own affair.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.pairs import measure, seconds

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.transfer.compose import compose
from shardscope.engine.geometry.transfer.planning import Planner
from shardscope.engine.model.shardmap import (
    Contiguous,
    DeviceMesh,
    FlatRange,
    Interleave,
    MeshAxis,
    Node,
    Part,
    Replicate,
    SubParamConcat,
    TensorMap,
    Trim,
)

LAYER: tuple[tuple[tuple[int, ...], int | None], ...] = (
    ((8192, 8192), 0),
    ((1024, 8192), 0),
    ((1024, 8192), 0),
    ((8192, 8192), 1),
    ((28672, 8192), 0),
    ((28672, 8192), 0),
    ((8192, 28672), 1),
    ((8192,), None),
    ((8192,), None),
)
"""Shapes of one layer with the dimension that is split; null is replicated."""

TENSORS = LAYER * 80 + (((128256, 8192), 0), ((128256, 8192), 0), ((8192,), None))


def tree(shape: tuple[int, ...], dim: int | None, ranks: int) -> Node:
    return Replicate() if dim is None else Contiguous("tp", dim, (shape[dim] // ranks,) * ranks)


def mesh(**axes: int) -> DeviceMesh:
    return DeviceMesh(tuple(MeshAxis(name, size) for name, size in axes.items()))


MAPS = [
    (TensorMap(shape, tree(shape, dim, 8)), TensorMap(shape, tree(shape, dim, 4))) for shape, dim in TENSORS
]
EIGHT, FOUR = mesh(tp=8), mesh(tp=4)


def ours() -> int:
    planner = Planner()
    segments = 0
    for source, target in MAPS:
        one, other = planner.lower(source, EIGHT), planner.lower(target, FOUR)
        assert planner.check(one).invertible
        assert planner.check(other).invertible
        segments += len(planner.compose(other, one).segments)
    return segments


def ours_unremembered() -> int:
    segments = 0
    for source, target in MAPS:
        one, other = lower(source, EIGHT), lower(target, FOUR)
        assert check(one).invertible
        assert check(other).invertible
        segments += len(compose(other, one).segments)
    return segments


def theirs() -> Callable[[], int] | None:
    """Return the same work by DeepSpeed's planner, its maps made beforehand; null where it is not installed."""
    try:
        from deepspeed.checkpoint import affine, affine_transfer  # type: ignore[import-not-found]
    except ImportError:
        return None

    def made(shape: tuple[int, ...], dim: int | None, ranks: int) -> object:
        if dim is None:
            return affine.replicated_map(shape, ranks)
        return affine.contiguous_split_map(shape, [shape[dim] // ranks] * ranks, dim)

    maps = [(made(shape, dim, 4), made(shape, dim, 8)) for shape, dim in TENSORS]

    def work() -> int:
        return sum(len(affine_transfer.plan_transfer(target, source).segments) for target, source in maps)

    return work


def checking() -> None:
    """Print how long checking a parameter of 4,096 x 4,096 takes by DeepSpeed's coverage check, which walks elements."""
    from deepspeed.checkpoint import affine

    side = 4096
    walking = affine.contiguous_split_map((side, side), [side // 8] * 8, 1)
    lowered = lower(TensorMap((side, side), Contiguous("tp", 1, (side // 8,) * 8)), EIGHT)
    reference = seconds(walking.validate_coverage)
    times = sorted(seconds(lambda: check(lowered)) for _ in range(51))
    ratio = reference / times[25]
    print(
        f"checking {side:,} x {side:,}: {ratio:,.0f} times as fast as DeepSpeed's walk of {reference:.1f} s "
        f"({times[25] * 1e3:.2f} ms, median of 51)  bar 1,000: {'met' if ratio >= 1000 else 'MISSED'}"
    )


def grown(k: int) -> list[tuple[TensorMap, DeviceMesh]]:
    """Return layouts of tensors whose every dimension is `k` times as large."""
    return [
        (TensorMap((64 * k, 32 * k), Contiguous("tp", 1, (8 * k,) * 4)), mesh(tp=4)),
        (TensorMap((24 * k, 8 * k), Interleave("tp", 0, 4, k, 3)), mesh(tp=2)),
        (
            TensorMap(
                (48 * k, 8 * k),
                SubParamConcat(
                    0, (Part(32 * k, Contiguous("tp", 0, (8 * k,) * 4)), Part(16 * k, Replicate()))
                ),
            ),
            mesh(tp=4),
        ),
        (
            TensorMap((50 * k, 8 * k), Contiguous("tp", 0, (16 * k,) * 4, Trim(0, 50 * k, 64 * k))),
            mesh(tp=4),
        ),
    ]


def planned(layouts: list[tuple[TensorMap, DeviceMesh]]) -> Callable[[], None]:
    """Return work: lower and check each layout, and plan it from columns of two."""

    def work() -> None:
        for tensor, ranks in layouts * 8:
            source = TensorMap(tensor.shape, Contiguous("tp", 1, (tensor.shape[1] // 2,) * 2))
            one, other = lower(source, mesh(tp=2)), lower(tensor, ranks)
            assert check(one).invertible
            assert check(other).invertible
            compose(other, one)

    return work


def flat() -> tuple[TensorMap, DeviceMesh]:
    """Return 1,024 flat partitions of each of 8 column shards of 10^6 x 4,096 elements."""
    each = 10**6 * 512 // 1024
    starts = tuple(n * each for n in range(1024))
    split = Contiguous("tp", 1, (512,) * 8)
    return TensorMap((10**6, 4096), FlatRange("dp", starts, tuple(n + each for n in starts), split)), mesh(
        dp=1024, tp=8
    )


def main() -> None:
    """Print the measurements."""
    assert ours() == ours_unremembered()
    times = sorted(seconds(ours) for _ in range(7))
    print(f"723 tensors, 8 to 4: {times[3]:.3f} s (median of 7, {times[0]:.3f} to {times[-1]:.3f})  bar 1 s")
    plain = seconds(ours_unremembered)
    print(f"the same without remembering equal maps: {plain:.3f} s")
    reference = theirs()
    if reference is None:
        print("DeepSpeed is not installed: no reference")
    else:
        assert reference() == ours()
        measure("723 tensors, by DeepSpeed's planner", reference, ours, bar=0.5)
        measure("723 tensors unremembered, by DeepSpeed's planner", reference, ours_unremembered, pairs=7)
        checking()
    measure("every dimension 32 times as large", planned(grown(8)), planned(grown(256)), bar=1.1)
    layout = flat()
    start = time.perf_counter()
    lowered = lower(*layout)
    middle = time.perf_counter()
    assert check(lowered).invertible
    end = time.perf_counter()
    print(
        f"8,192 flat shards: {lowered.pieces:,} pieces lowered in {middle - start:.2f} s, checked in {end - middle:.2f} s"
    )


if __name__ == "__main__":
    main()
