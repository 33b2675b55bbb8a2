"""Selections read through shard maps, whatever the fragments are, beside numpy's own slices."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.convert.copies.work import Written
from shardscope.engine.convert.proofs.comparing import Tiles
from shardscope.engine.looking.slices import corners, edges, layout, selection
from shardscope.engine.model.catalogue import LogicalTensor
from tests.convert.material import boxes, noise, opened, put, single
from tests.looking.test_slices import PARTS

SHAPE = (5, 3, 7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("selected")


def laid(folder: Path, way: str, dtype: str) -> tuple[LogicalTensor, np.ndarray]:
    """Return a tensor whose elements are in one piece, or in four boxes that cut each other's rows."""
    whole = noise(SHAPE, dtype, seed=5)
    if way == "alone":
        return single("t", dtype, SHAPE, put(folder, f"alone{dtype}", whole)), whole
    parts = []
    for number, (top, left) in enumerate(((0, 0), (0, 4), (2, 0), (2, 4))):
        box = whole[top : 2 if top == 0 else 5, :, left : 4 if left == 0 else 7]
        record = put(folder, f"box{dtype}{number}", np.ascontiguousarray(box), before=number)
        parts.append(((top, 0, left), box.shape, record, 0))
    return boxes("t", dtype, SHAPE, parts), whole


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(PARTS, min_size=1, max_size=3),
    way=st.sampled_from(["alone", "boxes"]),
    dtype=st.sampled_from(["F32", "BF16", "U8"]),
)
def test_what_is_read_is_what_numpy_slices(folder: Path, parts: list[str], way: str, dtype: str) -> None:
    tensor, whole = laid(folder, way, dtype)
    found = selection(",".join(parts), SHAPE, "t")
    expected = eval(f"whole[{','.join(parts)}]", {"whole": whole})
    if not found.elements:
        assert expected.size == 0
        return

    with opened(folder) as opener, Tiles(opener, 1 << 20, 1) as tiles:
        item = Written(tensor, dtype, 0, layout(found))
        data = b"".join(stretch.data[0].tobytes() for stretch in tiles.stretches([item]))
        rows = found.indices[found.kept[-2]] if len(found.kept) > 1 else range(1)
        columns = found.indices[found.kept[-1]] if found.kept else range(1)
        down, across = edges(rows, 3), edges(columns, 2)
        small = Written(tensor, dtype, 0, corners(found, down, across))
        grid = b"".join(stretch.data[0].tobytes() for stretch in tiles.stretches([small]))

    assert data == expected.tobytes()
    matrix = np.atleast_2d(expected)
    matrix = matrix.reshape(-1, *matrix.shape[-2:])[0]
    ends = [
        list(range(extent))
        if extent <= most
        else [*range((most + 1) // 2), *range(extent - most // 2, extent)]
        for extent, most in zip(matrix.shape, (3, 2), strict=True)
    ]
    assert grid == matrix[np.ix_(*ends)].tobytes()
