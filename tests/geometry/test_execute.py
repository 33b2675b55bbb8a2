"""Shards to the full tensor and back, in memory."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from shardscope.engine.geometry.checking.check import check
from shardscope.engine.geometry.execution.execute import assemble, slice_
from shardscope.engine.geometry.language.lower import lower
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.piece import ONE, IndexedPiece, Lowered, Piece, RankShard, Side
from shardscope.engine.model.progress import Cancelled, Progress
from shardscope.engine.model.shardmap import Contiguous, DeviceMesh, Interleave, Replicate, Scale, TensorMap
from tests.geometry.layouts import LAYOUTS, Array, lowered, noise, one_by_one, padding, same
from tests.geometry.trees import PADDING, maps, shown

BOTH = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
COLUMNS = LAYOUTS["columns"]


def cut(layout: Lowered, full: Array, **options: Any) -> dict[int, Array]:
    return {shard.rank: slice_(layout, full, shard.rank, **options) for shard in layout.ranks}


def refused(code: str, layout: Lowered, shards: dict[int, Any], **options: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        assemble(layout, shards, **options)
    assert caught.value.finding.code == code
    return caught.value


# R148 R149 R168
@BOTH
def test_a_tensor_comes_back_from_its_shards_bit_for_bit(layout: Lowered) -> None:
    full = noise(layout.shape)
    shards = cut(layout, full)

    for rank, shard in shards.items():
        assert same(shard, one_by_one(layout, full, rank))
    assert same(assemble(layout, shards), full)
    assert same(assemble(layout, shards, workers=2), full)


# R148 R149 R168
@given(maps(), st.sampled_from(["u1", "<f2", "<f4", "<f8", "c16", "V2", "V3"]))
@settings(max_examples=200, deadline=None)
def test_any_map_is_followed_in_any_dtype(drawn: tuple[TensorMap, DeviceMesh], dtype: str) -> None:
    layout = unscaled(lower(*drawn))
    full = noise(layout.shape, dtype)
    shards = cut(layout, full)
    expected = shown(*drawn)
    held: set[int] = set()
    for rank, shard in shards.items():
        places = expected[rank].elements
        assert (shard.shape, shard.dtype) == (places.shape, full.dtype)
        assert shard.tobytes() == bytes_of(full, places)
        held |= set(places.reshape(-1).tolist())

    if held >= set(range(full.size)):
        assert same(assemble(layout, shards), full)
        assert same(assemble(layout, shards, choose=highest), full)
    else:
        refused("map.uncovered", layout, shards)


def unscaled(layout: Lowered) -> Lowered:
    """The same layout of values that are not multiplied."""
    return replace(
        layout,
        ranks=tuple(
            replace(
                shard,
                pieces=tuple(replace(piece, scale=ONE) for piece in shard.pieces),
                indexed=tuple(replace(piece, scale=ONE) for piece in shard.indexed),
            )
            for shard in layout.ranks
        ),
    )


def bytes_of(full: Array, places: Array) -> bytes:
    """The elements at some places, zero where there is padding, as bytes."""
    lines = full.reshape(-1).view(np.uint8).reshape(full.size, full.dtype.itemsize)
    return np.where((places == PADDING)[..., None], 0, lines[places]).astype(np.uint8).tobytes()


def highest(holders: tuple[int, ...], target: int) -> int:
    return holders[-1]


# R150 R178
@given(maps(), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_factors_of_any_map_are_applied_and_undone(drawn: tuple[TensorMap, DeviceMesh], seed: int) -> None:
    layout = lower(*drawn)
    full = np.random.default_rng(seed).integers(1, 1 << 20, layout.shape).astype("<f8")
    shards = cut(layout, full)
    expected = shown(*drawn)

    for rank, shard in shards.items():
        one = expected[rank]
        values = np.where(one.elements == PADDING, 0, full.reshape(-1)[one.elements])
        assert np.allclose(shard, values * float(one.scale), rtol=1e-15)
    if not check(layout).findings:
        assert np.allclose(assemble(layout, shards), full, rtol=1e-15)


# R155 R192
@BOTH
def test_padding_is_zero_in_a_shard_and_never_reaches_the_tensor(layout: Lowered) -> None:
    full = noise(layout.shape)
    shards = cut(layout, full)
    for rank, shard in shards.items():
        blank = padding(layout, rank)
        assert not shard[blank].any()
        shard[blank] = 0xDEADBEEF

    assert same(assemble(layout, shards), full)


def test_an_array_that_is_given_for_the_result_is_filled_padding_and_all() -> None:
    layout = LAYOUTS["padded vocabulary"]
    full = noise(layout.shape)
    out = noise((3, 3), seed=5)

    assert slice_(layout, full, 3, out=out) is out
    assert same(out, one_by_one(layout, full, 3))
    into = noise(layout.shape, seed=6)
    assert assemble(layout, cut(layout, full), out=into) is into
    assert same(into, full)


def test_results_are_not_written_where_they_cannot_lie() -> None:
    full = noise(COLUMNS.shape)
    shards = cut(COLUMNS, full)

    for out in (np.empty((12, 7), "<u4").T, np.broadcast_to(np.uint32(0), COLUMNS.shape)):
        with pytest.raises(ValueError, match="row-major"):
            assemble(COLUMNS, shards, out=out)
    refused("map.array", COLUMNS, shards, out=np.empty((12, 7), "<u4"))


# R154 R176
@pytest.mark.parametrize("name", ["replicas", "everywhere", "parts, one of them everywhere", "a scalar"])
def test_replicas_that_disagree_are_refused_with_the_ranks_and_the_place(name: str) -> None:
    layout = LAYOUTS[name]
    full = noise(layout.shape)
    shards = cut(layout, full)
    last = max(shards)
    place = shards[last].size - 1
    shards[last].reshape(-1)[place] ^= 1 << 20
    holders = next(piece.holders for piece in layout.ranks[-1].pieces if len(piece.holders) > 1)

    fault = refused("map.replicas_disagree", layout, shards)

    assert fault.finding.params["rank"] == holders[0]
    assert fault.finding.params["other"] == last
    offset = fault.finding.params["offset"]
    assert isinstance(offset, int)
    wrong = one_by_one(layout, np.arange(full.size, dtype="<u4").reshape(full.shape), last)
    assert offset == wrong.reshape(-1)[place]


# R176
def test_the_first_of_many_differences_is_found_in_a_large_tensor() -> None:
    layout = lowered((3000, 700), Contiguous("tp", 1, (300, 400)), tp=2, dp=2)
    full = noise(layout.shape)
    shards = cut(layout, full)
    shards[1][2999, 5] ^= 1
    shards[1][2000, 299] ^= 1

    for workers in (1, 2):
        fault = refused("map.replicas_disagree", layout, shards, workers=workers)
        assert fault.finding.params["offset"] == 2000 * 700 + 299


def test_another_holder_may_be_chosen_and_nobody_else() -> None:
    layout = LAYOUTS["everywhere"]
    full = noise(layout.shape)
    shards = cut(layout, full)
    shards[0][1, 1] ^= 1

    fault = refused("map.replicas_disagree", layout, shards, choose=highest)
    assert (fault.finding.params["rank"], fault.finding.params["other"]) == (2, 0)
    for answer in (3, True, 1.0, None):
        refused("map.replica_choice", layout, shards, choose=lambda *_, answer=answer: answer)


# R177
def test_a_shard_of_another_size_is_refused() -> None:
    full = noise(COLUMNS.shape)
    shards = cut(COLUMNS, full)

    fault = refused("map.shard_size", COLUMNS, {**shards, 2: np.concatenate([shards[2], shards[2]])})
    assert fault.finding.params == {"rank": 2, "found": 42, "expected": 21}
    refused("map.shard_size", COLUMNS, {**shards, 2: shards[2][:-1]})
    refused("map.array", COLUMNS, {**shards, 2: shards[2].T})
    refused("map.array", COLUMNS, {rank: shard.tobytes() for rank, shard in shards.items()}, dtype="F64")
    with pytest.raises(Fault) as caught:
        slice_(COLUMNS, full[:-1], 0)
    assert caught.value.finding.code == "map.array"


def test_every_rank_has_its_shard_and_every_shard_its_rank() -> None:
    shards = cut(COLUMNS, noise(COLUMNS.shape))

    refused("map.shard_unknown", COLUMNS, {rank: shards[rank] for rank in (0, 1, 2)})
    refused("map.shard_unknown", COLUMNS, {**shards, 4: shards[3]})
    with pytest.raises(Fault) as caught:
        slice_(COLUMNS, noise(COLUMNS.shape), 4)
    assert caught.value.finding.code == "map.shard_unknown"


# R184
def test_views_into_larger_arrays_are_read_where_they_lie() -> None:
    full = noise(COLUMNS.shape)
    shards = cut(COLUMNS, full)
    larger = {rank: np.pad(shard, 4, constant_values=9) for rank, shard in shards.items()}
    views = {rank: array[4:-4, 4:-4] for rank, array in larger.items()}
    turned = {rank: np.asfortranarray(shard) for rank, shard in shards.items()}
    backwards = {rank: shard[::-1, ::-1].copy()[::-1, ::-1] for rank, shard in shards.items()}
    buffers = {rank: b"head" + shard.tobytes() + b"tail" for rank, shard in shards.items()}
    inner = {rank: memoryview(buffer)[4:-4] for rank, buffer in buffers.items()}

    for given_ in (views, turned, backwards):
        assert same(assemble(COLUMNS, given_), full)
    assert same(assemble(COLUMNS, inner, dtype="U32"), full)
    assert same(slice_(COLUMNS, np.pad(full, 1)[1:-1, 1:-1], 1), shards[1])


# R196
@pytest.mark.parametrize(("dtype", "item"), [("BF16", 2), ("F8_E4M3", 1), ("F8_E8M0", 1), ("F64", 8)])
def test_opaque_elements_are_moved_as_they_are(dtype: str, item: int) -> None:
    full = noise((7, 12), f"V{item}")
    shards = cut(COLUMNS, full)
    flat = cut(COLUMNS, np.frombuffer(full.tobytes(), np.uint8), dtype=dtype)

    for rank, shard in shards.items():
        assert shard.dtype == full.dtype
        assert flat[rank].shape == shard.shape
        assert flat[rank].tobytes() == shard.tobytes() == one_by_one(COLUMNS, full, rank).tobytes()
    assert same(assemble(COLUMNS, shards), full)
    assert same(assemble(COLUMNS, {r: s.tobytes() for r, s in shards.items()}, dtype=dtype), full)


# R196
def test_packed_elements_are_moved_where_whole_bytes_move() -> None:
    layout = lowered((6, 8), Contiguous("tp", 1, (4, 4)), tp=2)
    full = noise((6, 4), "u1")
    shards = cut(layout, full.reshape(-1), dtype="F4")

    assert same(shards[1], full[:, 2:].reshape(-1).copy())
    assert same(assemble(layout, shards, dtype="F4"), full.reshape(-1))
    sixes = noise((6 * 8 * 6 // 8,), "u1")
    halves = cut(layout, sixes, dtype="F6_E2M3")
    assert same(halves[0], sixes.reshape(6, 6)[:, :3].reshape(-1))
    odd = lowered((6, 8), Contiguous("tp", 1, (3, 5)), tp=2)
    for rank in (0, 1):
        with pytest.raises(Fault) as caught:
            slice_(odd, full.reshape(-1), rank, dtype="F4")
        assert caught.value.finding.code == "map.sub_byte"


def test_elements_that_are_no_plain_numbers_are_refused() -> None:
    layout = lowered((2,), Contiguous("tp", 0, (1, 1)), tp=2)
    one, two = np.array([1.0]), np.array([1], "<u4")

    refused("map.dtype", layout, {0: np.array([None]), 1: np.array([None])})
    refused("map.dtype", layout, {0: one, 1: two})
    refused("map.dtype", layout, {0: b"1234", 1: b"1234"})
    refused("map.dtype", layout, {0: b"1234", 1: b"1234"}, dtype="F33")
    refused("map.dtype", layout, {0: one, 1: np.array([None])}, dtype="F64")


# R179
def test_factors_are_refused_for_the_state_of_an_optimizer() -> None:
    layout = lowered((4,), Scale(1, 2, of=Contiguous("tp", 0, (2, 2))), tp=2)
    full = np.arange(4, dtype="<f4")
    shards = cut(layout, full)

    fault = refused("map.scaled", layout, shards, kind="state")
    assert fault.finding.params["factor"] == "1/2"
    with pytest.raises(Fault) as caught:
        slice_(layout, full, 0, kind="state")
    assert caught.value.finding.code == "map.scaled"
    assert same(assemble(COLUMNS, cut(COLUMNS, noise((7, 12))), kind="state"), noise((7, 12)))


def piece(shape: tuple[int, ...], source: Side, dest: Side) -> Piece:
    return Piece(shape, source, dest, (0,))


# R175
def test_nothing_is_assembled_by_a_map_that_fails_its_checks() -> None:
    twice = Lowered(
        (4,),
        (RankShard(0, (4,), (piece((2,), Side(0, (1,)), Side(0, (1,))), piece((2,), Side(2, (1,)), Side(0, (1,))))),),
    )  # fmt: skip
    hole = Lowered((4,), (RankShard(0, (2,), (piece((2,), Side(0, (1,)), Side(0, (1,))),)),))

    refused("map.destination_collision", twice, {0: np.arange(4)})
    refused("map.uncovered", hole, {0: np.arange(2)})
    refused("map.incomplete", hole, {0: np.arange(2)}, checked=True)
    assert same(slice_(hole, np.arange(4), 0), np.arange(2))


@pytest.mark.parametrize(
    "wrong",
    [
        piece((4,), Side(1, (1,)), Side(0, (1,))),
        piece((4,), Side(0, (1,)), Side(1, (1,))),
        piece((4,), Side(-1, (1,)), Side(0, (1,))),
        piece((2, 2), Side(0, (1 << 60, 1)), Side(0, (2, 1))),
        piece((1 << 62, 4), Side(0, (4, 1)), Side(0, (4, 1))),
    ],
)
def test_nothing_outside_an_array_is_touched_whatever_a_map_says(wrong: Piece) -> None:
    layout = Lowered((4,), (RankShard(0, (4,), (wrong,)),))

    with pytest.raises(Fault) as caught:
        assemble(layout, {0: np.arange(4)}, checked=True)
    assert caught.value.finding.code in {"map.outside", "map.incomplete"}
    with pytest.raises(Fault):
        assemble(layout, {0: np.arange(4)})


def test_an_index_that_leads_outside_is_refused() -> None:
    for source, dest in (([0, 4], [0, 1]), ([-1, 0], [0, 1]), ([0, 1], [0, 2])):
        held = IndexedPiece(np.array(source, "<i8").tobytes(), np.array(dest, "<i8").tobytes(), (0,))
        layout = Lowered((2,), (RankShard(0, (2,), (), 0, (held,)),))
        with pytest.raises(Fault) as caught:
            assemble(layout, {0: np.arange(2)}, checked=True)
        assert caught.value.finding.code == "map.outside"


@pytest.mark.parametrize("workers", [1, 2])
def test_work_can_be_stopped_and_says_how_far_it_is(workers: int) -> None:
    layout = lowered((1 << 20, 24), Contiguous("tp", 1, (8, 16)), tp=2)
    full = np.ones(layout.shape, "<u4")
    shards = cut(layout, full)
    reports: list[Progress] = []
    assemble(layout, shards, workers=workers, progress=reports.append)

    assert (reports[-1].done, reports[-1].total, reports[-1].unit) == (full.nbytes, full.nbytes, "bytes")
    assert [report.done for report in reports] == sorted(report.done for report in reports)
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        assemble(layout, shards, workers=workers, cancel=stop)


def test_a_fault_in_one_thread_ends_the_work() -> None:
    layout = lowered((1 << 21, 4), Replicate(), dp=2)
    shards = {0: np.zeros(layout.shape, "<u4"), 1: np.ones(layout.shape, "<u4")}

    assert refused("map.replicas_disagree", layout, shards, workers=3).finding.params["offset"] == 0


def test_shards_of_heads_are_what_reshaping_gives() -> None:
    heads, parts, width, inner = 8, 3, 4, 6
    layout = lowered((heads * parts * width, inner), Interleave("tp", 0, 2, width, parts), tp=4)
    full = noise(layout.shape)
    # [2 groups, parts, 4 heads, width] -> [rank, 2 heads, parts, width]
    expected = full.reshape(2, parts, 4, width, inner).transpose(0, 2, 1, 3, 4).reshape(4, -1, inner)

    for rank in range(4):
        assert same(slice_(layout, full, rank), np.ascontiguousarray(expected[rank]))
