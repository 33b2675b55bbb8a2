"""Copies that agree and copies that do not, whatever their layouts."""

from pathlib import Path

import numpy as np
import pytest

from shardscope.engine.convert.proofs.comparing import compare, compare_copies
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side
from tests.convert.material import Array, noise, opened, put, single
from tests.convert.test_copying import columns

BUDGET = 1 << 20


def first(folder: Path, one: LogicalTensor, other: LogicalTensor) -> int | None:
    with opened(folder) as opener:
        return compare(one, other, opener=opener, budget_bytes=BUDGET)


@pytest.mark.parametrize("at", [None, 0, 12345, 512 * 4096 - 1])
def test_tied_tensors_of_two_layouts(tmp_path: Path, at: int | None) -> None:
    full = noise((512, 4096), "F32")
    shards = columns(tmp_path, full, "F32", 8)
    other = full.copy()
    if at is not None:
        other.reshape(-1)[at] += 1
    turned = put(tmp_path, "turned", np.ascontiguousarray(other.T).byteswap(), big=True)
    tied = single("tied", "F32", full.shape, turned, strides=(1, 512))

    assert first(tmp_path, shards, tied) == at
    assert first(tmp_path, tied, shards) == at


def test_bits_count_and_not_values(tmp_path: Path) -> None:
    nan, zeros = np.full(3, np.nan, "<f4"), np.array([0.0, 0.0, -0.0], "<f4")
    ones = [
        single(f"t{n}", "F32", (3,), put(tmp_path, f"f{n}", data))
        for n, data in enumerate((nan, nan, zeros, abs(zeros)))
    ]

    assert first(tmp_path, ones[0], ones[1]) is None
    assert first(tmp_path, ones[2], ones[3]) == 2


def test_other_types_and_shapes_are_not_compared(tmp_path: Path) -> None:
    record = put(tmp_path, "a", noise((4, 3), "F32"))
    one = single("a", "F32", (4, 3), record)
    for other in (single("b", "F32", (3, 4), record), single("b", "I32", (4, 3), record)):
        with pytest.raises(Fault) as caught:
            first(tmp_path, one, other)
        assert caught.value.finding.code == "convert.not_comparable"


def copies(folder: Path, tensor: LogicalTensor) -> str | None:
    with opened(folder) as opener:
        try:
            compare_copies(tensor, opener=opener, budget_bytes=BUDGET)
        except Fault as fault:
            return fault.finding.code
    return None


# R079
@pytest.mark.parametrize("at", [None, 700_001])
def test_further_copies_of_a_fragment(tmp_path: Path, at: int | None) -> None:
    full = noise((1000, 800), "BF16")
    other = full.copy()
    if at is not None:
        other.reshape(-1)[at] ^= 1
    kept, copy = put(tmp_path, "kept", full, before=64), put(tmp_path, "copy", other)
    tensor = single("w", "BF16", full.shape, kept)
    replicas = (Fragment(0, full.shape, kept, 0), Fragment(0, full.shape, copy, 0))
    tensor = LogicalTensor("w", "BF16", full.shape, tensor.map, None, tensor.fragments, replicas=replicas)

    assert copies(tmp_path, tensor) == (None if at is None else "convert.copies_differ")


# R079
@pytest.mark.parametrize("at", [None, 5, 299_999])
def test_ranks_that_hold_the_same_elements(tmp_path: Path, at: int | None) -> None:
    """The first half is on ranks 0 and 1, the second on rank 1 alone."""
    full = noise((600_000,), "F32")
    one, both = full[:300_000].copy(), full
    if at is not None:
        one[at] += 1
    tensor = held_twice(tmp_path, one, both)

    assert copies(tmp_path, tensor) == (None if at is None else "map.replicas_disagree")


def held_twice(folder: Path, one: Array, both: Array) -> LogicalTensor:
    def piece(start: int, stop: int, holders: tuple[int, ...]) -> Piece:
        return Piece((stop - start,), Side(start, (1,)), Side(start, (1,)), holders)

    half, whole = len(one), len(both)
    ranks = (
        RankShard(0, (half,), (piece(0, half, (0, 1)),)),
        RankShard(1, (whole,), (piece(0, half, (0, 1)), piece(half, whole, (1,)))),
    )
    fragments = (
        Fragment(0, (half,), put(folder, "r0", one), 0),
        Fragment(1, (whole,), put(folder, "r1", both), 0),
    )
    return LogicalTensor("w", "F32", (whole,), Lowered((whole,), ranks), None, fragments)
