"""Shard to shard through bounded buffers, without the full tensor."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.execution.execute import assemble, slice_
from shardscope.engine.geometry.execution.filling import Filling
from shardscope.engine.geometry.execution.stream import compare_replicas, transfer
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.geometry.transfer.compose import compose, invert, whole
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import Lowered
from shardscope.engine.model.progress import Cancelled, Progress
from shardscope.engine.model.shardmap import Contiguous, DeviceMesh, Node, Replicate, Scale, TensorMap, Trim
from shardscope.engine.model.transfer import IndexedSegment, PlanStatistics, TransferPlan
from tests.geometry.layouts import LAYOUTS, Array, addresses, lowered, noise, padding, same, shares
from tests.geometry.trees import pairs_of_maps


class Store:
    """The shards of one layout, read and written as files are, with a record of it."""

    def __init__(self, layout: Lowered, full: Array | None = None, item: int = 4) -> None:
        self.layout = layout
        self.files = {
            shard.rank: bytearray(b"\xaa" * (shard.elements * item))
            if full is None
            else bytearray(slice_(layout, full, shard.rank, checked=True).tobytes())
            for shard in layout.ranks
        }
        self.written = dict.fromkeys(self.files, 0)
        self.reads: list[tuple[int, int, int]] = []

    def read(self, rank: int, offset: int, length: int) -> bytes:
        self.reads.append((rank, offset, length))
        return bytes(self.files[rank][offset : offset + length])

    def write(self, rank: int, offset: int, data: memoryview) -> None:
        assert offset == self.written[rank], "out of order, or with a gap"
        assert len(data) > 0
        self.files[rank][offset : offset + len(data)] = data
        self.written[rank] += len(data)


def moved(source: Lowered, target: Lowered, full: Array, dtype: str = "U32", **options: Any) -> Store:
    given_ = Store(source, full, full.dtype.itemsize)
    made = Store(target, item=full.dtype.itemsize)
    plan = compose(target, source)
    transfer(plan, source, target, dtype=dtype, read=given_.read, write=made.write, **options)
    expected = Store(target, full, full.dtype.itemsize)
    assert made.files == expected.files
    assert made.written == {rank: len(data) for rank, data in made.files.items()}
    return given_


DEGREES = (1, 2, 3, 4, 8)


def grid(kind: str, degree: int) -> Lowered:
    """A layout of one 12 x 20 tensor over so many ranks."""
    nodes: dict[str, Node] = {
        "rows": Contiguous("tp", 0, shares(12, degree)),
        "columns": Contiguous("tp", 1, shares(20, degree)),
        "uneven": Contiguous(
            "tp", 1, (0, *shares(20, degree))[:degree] if degree > 5 else shares(20, degree)[::-1]
        ),
        "padded": Contiguous(
            "tp", 0, (-(-12 // degree) + 1,) * degree, of=Trim(0, 12, degree * (-(-12 // degree) + 1))
        ),
        "everywhere": Replicate(),
    }
    return lowered((12, 20), nodes[kind], tp=degree, dp=2)


# R150 R168 R172
@pytest.mark.parametrize("source", DEGREES)
@pytest.mark.parametrize("target", DEGREES)
def test_every_degree_becomes_every_other(source: int, target: int) -> None:
    full = noise((12, 20))
    kinds = ("rows", "columns", "padded", "everywhere")
    for one in kinds:
        for other in kinds:
            moved(grid(one, source), grid(other, target), full)


# R150
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_made_whole_and_made_from_the_whole(name: str) -> None:
    layout = LAYOUTS[name]
    full = noise(layout.shape)
    one = whole(layout.shape)

    moved(layout, one, full)
    moved(one, layout, full, workers=2)
    moved(layout, layout, full)


# R150 R168 R172 R192
@given(pairs_of_maps())
@settings(max_examples=150, deadline=None)
def test_any_map_becomes_any_other(
    drawn: tuple[tuple[TensorMap, DeviceMesh], tuple[TensorMap, DeviceMesh]],
) -> None:
    source, target = (lower(*side) for side in drawn)
    full = np.random.default_rng(0).integers(1, 1 << 20, source.shape).astype("<f8")
    held, made = Store(source, full, 8), Store(target, item=8)
    for shard in source.ranks:
        view = np.frombuffer(held.files[shard.rank], "<f8")
        view[padding(source, shard.rank).reshape(-1)] = np.nan
    elements = {
        place: {address for shard in side.ranks for piece in shard.held for address, _ in addresses(piece)}
        for place, side in (("source", source), ("target", target))
    }
    assume(elements["target"] <= elements["source"])

    plan = compose(target, source)
    transfer(plan, source, target, dtype="F64", read=held.read, write=made.write, scales=True)

    for rank, expected in Store(target, full, 8).files.items():
        assert np.allclose(np.frombuffer(made.files[rank], "<f8"), np.frombuffer(expected, "<f8"), rtol=1e-14)
    if check(source).ok:
        compare_replicas(compose(source, source), source, dtype="F64", read=held.read)


# Large enough for several steps, tiles and reads, in shapes that divide into nothing evenly.
LARGE = (2999, 1501)
LARGER: dict[str, Lowered] = {
    "rows": lowered(LARGE, Contiguous("tp", 0, shares(2999, 3)), tp=3),
    "columns": lowered(LARGE, Contiguous("tp", 1, shares(1501, 5)), tp=5),
    "few columns": lowered(LARGE, Contiguous("tp", 1, (1, 1500)), tp=2),
    "whole": whole(LARGE),
    "padded": lowered(LARGE, Contiguous("tp", 1, (800, 800), of=Trim(1, 1501, 1600)), tp=2),
    "every other": lowered(
        LARGE, Contiguous("tp", 1, (1001, 500), of=Contiguous("dp", 0, (2, 2997))), dp=2, tp=2
    ),
}


@pytest.mark.parametrize("target", LARGER)
@pytest.mark.parametrize("source", LARGER)
def test_tensors_larger_than_the_buffers_move_in_pieces(source: str, target: str) -> None:
    full = noise(LARGE)

    given_ = moved(LARGER[source], LARGER[target], full, budget_bytes=1 << 20, workers=2)

    assert max(length for _, _, length in given_.reads) <= 1 << 20


@pytest.mark.parametrize("target", ["rows", "columns", "whole"])
@pytest.mark.parametrize("source", ["rows", "columns", "whole", "few columns"])
def test_targets_that_share_a_source_read_it_once(source: str, target: str) -> None:
    full = noise(LARGE)

    given_ = moved(LARGER[source], LARGER[target], full)

    read = sum(length for _, _, length in given_.reads)
    assert read <= 1.05 * full.nbytes
    assert len(given_.reads) <= 180


def test_columns_with_wide_gaps_are_read_without_the_gaps() -> None:
    shape = (40, 1 << 16)
    source = whole(shape)
    target = lowered(shape, Contiguous("tp", 1, (100, (1 << 16) - 100)), tp=2)
    plan = compose(target, source)
    needed = TransferPlan(
        plan.shape,
        tuple(item for item in plan.segments if item.target_rank == 0),
        (),
        plan.traffic,
        plan.statistics,
    )
    alone = Lowered(shape, target.ranks[:1])
    full = noise(shape)
    given_, made = Store(source, full), Store(alone)

    transfer(needed, source, alone, dtype="U32", read=given_.read, write=made.write)

    assert made.files[0] == np.ascontiguousarray(full[:, :100]).tobytes()
    assert [length for _, _, length in given_.reads] == [400] * 40


def test_steps_of_too_many_reads_are_done_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardscope.engine.geometry.execution.filling.GAP", 64)
    monkeypatch.setattr("shardscope.engine.geometry.execution.filling.MOST_READS", 50)
    shape = (3000, 100)
    narrow = lowered(shape, Contiguous("tp", 1, (3, 40, 57)), tp=3)
    full = noise(shape)
    planned: list[int] = []
    serve = Filling._serve

    def counted(filling: Filling, rank: int, requests: list[Any]) -> None:
        planned.append(len(requests))
        serve(filling, rank, requests)

    monkeypatch.setattr(Filling, "_serve", counted)
    moved(whole(shape), narrow, full, workers=2)

    # The grain of 4 KiB has some 340 rows of the narrowest shard.
    assert max(planned) <= 3 * 400


def test_more_targets_than_tiles_fit_are_filled_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardscope.engine.geometry.execution.tiles.TILE", 256 << 10)
    full = noise((999, 500))
    target = lowered((999, 500), Contiguous("tp", 1, shares(500, 8)), tp=8)

    moved(whole((999, 500)), target, full, budget_bytes=1 << 20)


# R157
@pytest.mark.parametrize("workers", [1, 2])
def test_what_only_an_index_describes_is_moved_through_buffers_too(workers: int) -> None:
    order = np.random.default_rng(3).permutation(600_000)
    shape = (600_000,)
    one = whole(shape)
    dense, index = np.arange(len(order), dtype="<i8").tobytes(), order.astype("<i8").tobytes()
    full = noise(shape)
    statistics = PlanStatistics(0, 0, 0, 0, 0, 0, 0)
    held, made = Store(one, full), Store(one)

    plan = TransferPlan(shape, (), (IndexedSegment(0, 0, index, dense),), (), statistics)
    transfer(
        plan, one, one, dtype="U32", read=held.read, write=made.write, budget_bytes=1 << 20, workers=workers
    )

    assert made.files[0] == full[order].tobytes()
    assert max(length for _, _, length in held.reads) <= 1 << 20
    beyond = dense[8:] + (600_000).to_bytes(8, "little")
    for source, target, code in ((index, index, "unproven"), (beyond, dense, "outside")):
        wrong = TransferPlan(shape, (), (IndexedSegment(0, 0, source, target),), (), statistics)
        with pytest.raises(Fault) as caught:
            transfer(wrong, one, one, dtype="U32", read=held.read, write=made.write)
        assert caught.value.finding.code == f"map.{code}"


def test_factors_are_applied_on_the_way_if_they_are_allowed() -> None:
    shape = (300, 500)
    source = lowered(shape, Scale(1, 4, of=Contiguous("tp", 0, (100, 200))), tp=2)
    target = lowered(shape, Scale(-8, of=Contiguous("tp", 1, (250, 250))), tp=2)
    full = np.random.default_rng(0).standard_normal(shape).astype("<f4")

    given_ = moved(source, target, full, "F32", scales=True)
    assert np.frombuffer(given_.files[0], "<f4")[0] == full[0, 0] / 4
    with pytest.raises(Fault) as caught:
        moved(source, target, full, "F32")
    assert caught.value.finding.code == "map.scaled"


# R154 R176
def test_replicas_are_compared_through_buffers() -> None:
    layout = lowered((500, 300), Contiguous("tp", 1, (100, 200)), dp=3, tp=2)
    held = Store(layout, noise(layout.shape))
    plan = compose(layout, layout)
    compare_replicas(plan, layout, dtype="U32", read=held.read)

    # Rank 5 is the last copy of the second part of the columns, whose first holder is rank 1.
    held.files[5][4 * (200 * 123 + 45)] ^= 1
    for workers in (1, 2):
        with pytest.raises(Fault) as caught:
            compare_replicas(plan, layout, dtype="U32", read=held.read, budget_bytes=1 << 20, workers=workers)
        assert caught.value.finding.code == "map.replicas_disagree"
        assert caught.value.finding.params == {
            "rank": 1, "other": 5, "place": "shard", "offset": 200 * 123 + 45,
        }  # fmt: skip


def test_padding_of_replicas_may_differ() -> None:
    layout = lowered((10, 3), Contiguous("tp", 0, (6, 6), of=Trim(0, 10, 12)), dp=2, tp=2)
    held = Store(layout, noise(layout.shape))
    held.files[3][-1] ^= 1

    compare_replicas(compose(layout, layout), layout, dtype="U32", read=held.read)


def test_a_file_that_ends_early_is_refused() -> None:
    layout = LAYOUTS["columns"]
    held, made = Store(layout, noise(layout.shape)), Store(whole(layout.shape))
    del held.files[2][-1:]

    with pytest.raises(Fault) as caught:
        transfer(invert(layout), layout, whole(layout.shape), dtype="U32", read=held.read, write=made.write)
    assert caught.value.finding.code == "map.short_read"
    assert caught.value.finding.params["rank"] == 2


def test_a_plan_is_held_against_the_shards_that_it_is_used_with() -> None:
    source, target = LAYOUTS["columns"], whole((7, 12))
    plan = compose(target, source)
    held, made = Store(source, noise((7, 12))), Store(target)
    smaller = lowered((7, 11), Contiguous("tp", 1, (3, 3, 3, 2)), tp=4)
    three = Lowered(source.shape, source.ranks[:3])
    part = TransferPlan(plan.shape, plan.segments[:3], (), plan.traffic, plan.statistics)
    more = whole((7, 13))

    for code, given_plan, one, other in (
        ("map.outside", plan, smaller, target),
        ("map.outside", plan, source, whole((7, 11))),
        ("map.shard_unknown", plan, three, target),
        ("map.incomplete", part, source, target),
        ("map.incomplete", plan, source, more),
    ):
        with pytest.raises(Fault) as caught:
            transfer(given_plan, one, other, dtype="U32", read=held.read, write=made.write)
        assert caught.value.finding.code == code
    assert held.reads == []
    assert made.written == {0: 0}


def test_work_can_be_stopped_and_says_how_far_it_is() -> None:
    source, target = LARGER["rows"], LARGER["columns"]
    reports: list[Progress] = []
    moved(source, target, noise(LARGE), budget_bytes=1 << 20, progress=reports.append)
    assert reports[-1].done == reports[-1].total == 4 * 2999 * 1501
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        moved(source, target, noise(LARGE), cancel=stop)


def test_assembling_in_memory_and_through_buffers_is_the_same() -> None:
    layout = LARGER["every other"]
    full = noise(LARGE)
    held, made = Store(layout, full), Store(whole(LARGE))
    transfer(invert(layout), layout, whole(LARGE), dtype="U32", read=held.read, write=made.write)
    shards = {shard.rank: slice_(layout, full, shard.rank) for shard in layout.ranks}

    assert same(np.frombuffer(made.files[0], "<u4").reshape(LARGE), assemble(layout, shards))


MEMORY = Path(__file__).parent / "transfer_memory.py"


# The bar is the budget and 32 MiB, whatever the tensor: 4 GiB here, of which each byte is made up as it is read.
@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_tensor_of_gigabytes_moves_through_a_budget_of_megabytes(workers: str) -> None:
    for case in ("columns", "rows"):
        ran = subprocess.run(
            [sys.executable, str(MEMORY), case, "16", workers],
            capture_output=True,
            text=True,
            check=False,
            timeout=110,
        )
        assert ran.returncode == 0, ran.stderr
        grown = int(ran.stdout)
        assert grown <= (16 + 32) << 20
