"""Padding behind the elements of a shard, and padding between them: against every small shard, element by element."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.geometry.language.padding import padded_inside
from shardscope.engine.model.piece import Piece, RankShard, Side, row_major


def shard_of(mask: np.ndarray) -> RankShard:
    """Return the shard whose elements are those that a mask marks, a piece for each run of a row."""
    pieces = []
    flat = mask.reshape(-1, mask.shape[-1])
    for row, marks in enumerate(flat):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], marks.astype(np.int8), [0]])))
        for low, high in edges.reshape(-1, 2).tolist():
            at = row * mask.shape[-1] + low
            pieces.append(Piece((high - low,), Side(at, (1,)), Side(at, (1,)), (0,)))
    return RankShard(0, mask.shape, tuple(pieces), int(mask.size - mask.sum()))


def inside(mask: np.ndarray) -> bool:
    """Tell the same by looking at every element."""
    if not mask.any() or mask.all():
        return False
    reach = tuple(slice(0, int(np.max(axis)) + 1) for axis in np.nonzero(mask))
    return not mask[reach].all()


# R080
@given(
    st.lists(st.booleans(), min_size=24, max_size=24), st.sampled_from([(24,), (4, 6), (2, 3, 4), (2, 12)])
)
def test_any_shard(marks: list[bool], shape: tuple[int, ...]) -> None:
    mask = np.array(marks).reshape(shape)
    assert padded_inside(shard_of(mask)) is inside(mask)


@given(st.data())
def test_boxes_at_the_origin(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    reach = tuple(data.draw(st.integers(0, extent)) for extent in shape)
    mask = np.zeros(shape, bool)
    mask[tuple(slice(0, extent) for extent in reach)] = True
    assert not padded_inside(shard_of(mask))


# R080
@pytest.mark.parametrize(("offset", "expected"), [(0, False), (1, True), (1 << 20, True)])
def test_the_work_does_not_follow_the_elements(offset: int, expected: bool) -> None:
    shape = (1 << 30, 1 << 12)
    rows = (1 << 29, 1 << 11)
    piece = Piece(rows, Side(0, row_major(rows)), Side(offset, row_major(shape)), (0,))
    padding = (1 << 42) - (1 << 40)
    assert padded_inside(RankShard(0, shape, (piece,), padding)) is expected
