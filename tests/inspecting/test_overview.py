"""The figures of a catalogue, against what counting tensor by tensor gives."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.inspecting import overview as figures
from shardscope.engine.inspecting.overview import overview
from shardscope.engine.model.tensors import DTYPES, TensorTable

SHAPES = st.sampled_from([(), (0,), (2,), (2, 3), (3, 2), (6,), (4, 4), (16,), (128, 2), (2, 128)])
ROWS = st.lists(st.tuples(st.sampled_from(["BF16", "F32", "U8", "NF4", "X4_K"]), SHAPES, st.integers(-1, 1)))


def table_of(rows: list[tuple[str, tuple[int, ...], int]]) -> TensorTable:
    """A catalogue of tensors whose bytes are what dtype and shape ask for, plus a few."""
    table = TensorTable()
    for number, (dtype, shape, more) in enumerate(rows):
        bits = DTYPES[dtype].bits if dtype in DTYPES else 4
        table.append(
            f"{number % 3}.safetensors", str(number), dtype, shape, 0, max(0, prod(shape) * bits // 8 + more)
        )
    return table


@given(ROWS, st.booleans(), st.sampled_from([0, 2, 16]))
def test_figures_are_those_of_the_single_tensors(
    rows: list[tuple[str, tuple[int, ...], int]], exact: bool, few: int
) -> None:
    if exact:
        rows = [(dtype, shape, 0) for dtype, shape, _ in rows]
    table = table_of(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "_FEW", few)
        found = overview(table, 1, 0)

    tensors = list(table)
    assert found.count == len(rows)
    assert found.logical_bytes == sum(tensor.bytes for tensor in tensors)
    known = all(tensor.dtype in DTYPES for tensor in tensors)
    assert found.elements == (sum(prod(tensor.shape) for tensor in tensors) if known else None)
    assert sum(share.count for share in found.dtypes) == len(rows)
    largest = sorted(range(len(rows)), key=lambda row: (-tensors[row].bytes, row))[:5]
    assert [tensor.name for tensor in found.largest] == [str(row) for row in largest]
    assert table.regular == all(
        tensor.dtype in DTYPES and 8 * tensor.bytes == prod(tensor.shape) * DTYPES[tensor.dtype].bits
        for tensor in tensors
    )


def test_nothing_listed_is_not_nothing_there() -> None:
    assert overview(TensorTable(), 0, 2).count is None
    assert overview(TensorTable(), 0, 0).count == 0
    assert overview(TensorTable(), 1, 0).count == 0


def test_a_catalogue_holds_any_number_of_words_for_dtypes() -> None:
    """A header of 100 MB has room for a million of them."""
    table = TensorTable()
    for number in range(70_000):
        table.append("model.safetensors", str(number), f"X{number}", (1,), number, number + 1)

    assert table[69_999].dtype == "X69999"
    assert table.sizes() == [1] * 70_000
