"""What planning costs does not depend on how large a tensor is: nothing that plans walks its elements."""

import itertools
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from types import ModuleType

import pytest

from shardscope.engine.geometry.checking import check, compare
from shardscope.engine.geometry.language import holders, lower, nodes
from shardscope.engine.geometry.pieces import blocks, budget, cells, digits, explicit, fold, sweep, wellformed
from shardscope.engine.geometry.pieces.budget import Budget
from shardscope.engine.geometry.transfer import compose, replicas
from shardscope.engine.model.piece import Lowered, Side
from shardscope.engine.model.shardmap import (
    Contiguous,
    FlatRange,
    Interleave,
    Node,
    Part,
    Replicate,
    SubParamConcat,
    TensorMap,
    Trim,
)
from tests.geometry.trees import mesh_of

PLANNING = (
    blocks,
    budget,
    cells,
    check,
    compare,
    compose,
    digits,
    explicit,
    fold,
    holders,
    lower,
    nodes,
    replicas,
    sweep,
    wellformed,
)

MOST = 100_000


def guarded(*arguments: int) -> range:
    made = range(*arguments)
    assert len(made) <= MOST, f"a walk over {len(made):,} elements"
    return made


def guarded_product(*iterables: range) -> Iterator[tuple[int, ...]]:
    count = 1
    for one in iterables:
        count *= len(one)
    assert count <= MOST, f"a walk over {count:,} elements"
    return itertools.product(*iterables)


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every loop over numbers and every product of loops in the rooms that plan is refused beyond a small size."""
    for module in PLANNING:
        assert isinstance(module, ModuleType)
        monkeypatch.setattr(module, "range", guarded, raising=False)
        if hasattr(module, "product"):
            monkeypatch.setattr(module, "product", guarded_product)
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


ROWS = 10**9

HUGE: dict[str, tuple[Node, int]] = {
    "rows": (Contiguous("tp", 0, (ROWS // 8,) * 8), 8),
    "columns": (Contiguous("tp", 1, (512,) * 8), 8),
    "uneven": (Contiguous("tp", 0, (ROWS - 7, 0, 7)), 3),
    "interleaved": (Interleave("tp", 0, 1000, 125, 4), 4),
    "fused": (
        SubParamConcat(
            0,
            (
                Part(ROWS // 2, Contiguous("tp", 0, (ROWS // 4,) * 2)),
                Part(ROWS // 4, Contiguous("tp", 0, (ROWS // 4, 0))),
                Part(ROWS // 4, Replicate()),
            ),
        ),
        2,
    ),
    "padded": (Contiguous("tp", 0, (ROWS // 4 + 32,) * 4, Trim(0, ROWS, ROWS + 128)), 4),
    "flat": (
        FlatRange(
            "tp",
            tuple(ROWS * 4096 * n // 3 for n in range(3)),
            tuple(ROWS * 4096 * (n + 1) // 3 for n in range(3)),
        ),
        3,
    ),
}


def made(name: str) -> Lowered:
    tree, ranks = HUGE[name]
    return lower.lower(TensorMap((ROWS, 4096), tree), mesh_of(tp=ranks))


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("name", HUGE)
def test_a_parameter_of_a_billion_rows_is_lowered_and_checked(name: str) -> None:
    # R190
    lowered = made(name)
    assert check.check(lowered).invertible
    assert compare.same(lowered, made(name))


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("target", HUGE)
@pytest.mark.parametrize("source", HUGE)
def test_a_parameter_of_a_billion_rows_is_planned(source: str, target: str) -> None:
    # R190
    one, other = made(source), made(target)
    plan = compose.compose(other, one)
    assert plan.elements == sum(shard.elements - shard.padding for shard in other.ranks)
    assert compose.invert(one).elements == ROWS * 4096


@pytest.mark.usefixtures("poisoned")
def test_the_poison_works() -> None:
    with pytest.raises(AssertionError, match="a walk over 1,000,000 elements"):
        explicit.walked([blocks.Block((1000, 1000), Side(0, (2000, 2)), Side(0, (1000, 1)))])


def test_planning_needs_no_numpy() -> None:
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "from shardscope.engine.geometry.checking import check, compare\n"
        "from shardscope.engine.geometry.transfer import compose\n"
        "from shardscope.engine.geometry.language import lower\n"
        "from shardscope.engine.model.shardmap import *\n"
        "mesh = DeviceMesh((MeshAxis('tp', 2),))\n"
        "rows, columns = (lower.lower(TensorMap((8, 8), Contiguous('tp', d, (4, 4))), mesh) for d in (0, 1))\n"
        "assert check.check(rows).ok and compose.compose(rows, columns).elements == 64\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def layouts(k: int) -> dict[str, tuple[TensorMap, int]]:
    """Layouts of a tensor whose every dimension is `k` times as large."""
    return {
        "columns": (TensorMap((64 * k, 32 * k), Contiguous("tp", 1, (8 * k,) * 4)), 4),
        "bloom": (TensorMap((48 * k, 8 * k), Interleave("tp", 0, 4, 4 * k, 3)), 2),
        "codegen": (TensorMap((24 * k, 8 * k), Interleave("tp", 0, 4, k, 3)), 2),
        "gptbigcode": (
            TensorMap(
                (48 * k, 8 * k),
                SubParamConcat(
                    0, (Part(32 * k, Contiguous("tp", 0, (8 * k,) * 4)), Part(16 * k, Replicate()))
                ),
            ),
            4,
        ),
        "flat": (
            TensorMap(
                (6 * k, 10 * k),
                FlatRange(
                    "dp",
                    (0, 15 * k * k + 1),
                    (15 * k * k + 1, 36 * k * k),
                    Contiguous("tp", 1, (4 * k, 6 * k)),
                ),
            ),
            2,
        ),
        "vocabulary": (
            TensorMap((50 * k, 8 * k), Contiguous("tp", 0, (16 * k,) * 4, Trim(0, 50 * k, 64 * k))),
            4,
        ),
    }


@pytest.mark.parametrize("name", layouts(1))
def test_growing_every_dimension_changes_neither_pieces_nor_work(name: str) -> None:
    # R182
    def cost(k: int) -> tuple[object, ...]:
        tensor, ranks = layouts(k)[name]
        lowering, checking, planning = Budget(), Budget(), Budget()
        lowered = lower.lower(tensor, mesh_of(dp=2, tp=ranks), lowering)
        checked = check.check(lowered, checking)
        assert checked.invertible
        plan = compose.compose(compose.whole(tensor.shape), lowered, planning)
        counts = [len(shard.pieces) for shard in lowered.ranks]
        return counts, len(plan.segments), lowering.spent, checking.spent, planning.spent["pair_checks"]

    assert cost(4) == cost(128) == cost(4096)


def test_pieces_per_rank_of_known_layouts() -> None:
    gptbigcode, ranks = layouts(1)["gptbigcode"]
    lowered = lower.lower(gptbigcode, mesh_of(tp=ranks))
    assert [len(shard.pieces) for shard in lowered.ranks] == [2] * 4
    assert [shard.shape for shard in lowered.ranks] == [(24, 8)] * 4
    assert {piece.holders for shard in lowered.ranks for piece in shard.pieces} == {
        (0,),
        (1,),
        (2,),
        (3,),
        (0, 1, 2, 3),
    }


def test_merging_works_in_every_dimension() -> None:
    # R183: 256 blocks, 64 of each source rank in an 8 x 8 lattice, to 4; merging neighbours or one dimension leaves 32 and more
    singles = [
        blocks.Block(
            (2, 3), Side(700 * i + 10 * j + 100_000 * rank, (100, 1)), Side(64 * i + 8 * j, (4, 1)), rank
        )
        for rank in range(4)
        for i in range(8)
        for j in range(8)
    ]
    merged = fold.folded(reversed(singles))
    assert [(block.tag, block.elements) for block in merged] == [(rank, 64 * 6) for rank in range(4)]


@pytest.mark.parametrize("heads", [32, 64, 256, 1024])
def test_a_plan_between_interleaved_and_separate_parts_does_not_grow_with_the_heads(heads: int) -> None:
    # R183: 2 x 2 pairs of ranks, one segment each, whatever the number of heads
    rows = 2 * heads * 4
    paired = Interleave("tp", 0, heads, 4, 2)
    halves = Contiguous("tp", 0, (rows // 2,) * 2, Interleave("tp2", 0, heads, 4, 2))
    mesh = mesh_of(tp=2, tp2=1)
    source = lower.lower(TensorMap((rows, 8), paired), mesh)
    target = lower.lower(TensorMap((rows, 8), halves), mesh)
    plan = compose.compose(target, source)
    assert len(plan.segments) <= 4
    assert plan.elements == rows * 8
