"""Elements of less than a byte looked at wherever they begin, against the same elements taken apart bit by bit."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shardscope.engine.diffing.numbers import table
from shardscope.engine.looking.sub_byte import packed
from shardscope.engine.peeking.peek import PeekOptions, peek

WIDTHS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
SLICES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "...": lambda whole: whole,
    "5,1:8": lambda whole: whole[5, 1:8],
    ":,62": lambda whole: whole[:, 62],
    "1::7,3:60:5": lambda whole: whole[1::7, 3:60:5],
    "-1": lambda whole: whole[-1],
    "2:4": lambda whole: whole[2:4],
}


def write(path: Path, dtype: str, shape: tuple[int, ...], data: bytes) -> Path:
    header = json.dumps({"t": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path


@pytest.mark.parametrize("dtype", WIDTHS)
def test_any_part_of_a_matrix_is_that_of_its_bits(tmp_path: Path, dtype: str) -> None:
    rows, columns = 64, 63  # no row but every fourth begins with a byte
    data = np.random.default_rng(7).integers(0, 256, rows * columns * WIDTHS[dtype] // 8, np.uint8).tobytes()
    bits = int.from_bytes(data, "little")
    mask = (1 << WIDTHS[dtype]) - 1
    codes = np.array([bits >> WIDTHS[dtype] * at & mask for at in range(rows * columns)])
    whole = table(dtype)[codes].reshape(rows, columns)
    file = write(tmp_path / "m.safetensors", dtype, (rows, columns), data)

    for text, chosen in SLICES.items():
        expected = chosen(whole)
        found = peek(file, "t", PeekOptions(slice=text, statistics=True, heat=True, rows=64, columns=64))

        assert [float(word) for row in found.grid.values for word in row] == expected.reshape(-1).tolist()
        assert found.statistics is not None
        assert found.statistics.numbers == expected.size
        assert found.statistics.zeros == np.count_nonzero(expected == 0)
        assert found.statistics.l2 == pytest.approx(float(np.linalg.norm(expected)))
        assert found.heat is not None
        squares = expected.reshape(-1, expected.shape[-1]) ** 2
        (low, high), (left, right) = (edges[-2:] for edges in (found.heat.row_edges, found.heat.column_edges))
        assert found.heat.rms[-1][-1] == pytest.approx(float(squares[low:high, left:right].mean()) ** 0.5)


def test_the_edges_of_a_wide_matrix_are_shown_without_a_slice(tmp_path: Path) -> None:
    file = write(tmp_path / "m.safetensors", "F4", (4, 32), bytes([0x21]) * 64)

    found = peek(file, "t", PeekOptions())

    assert found.grid.columns == (0, 1, 2, 29, 30, 31)
    assert found.grid.values == (("0.5", "1", "0.5", "1", "0.5", "1"),) * 4


@pytest.mark.parametrize(("bits", "data"), [(4, "2143 05"), (6, "812000 07")])
def test_codes_are_packed_from_the_lowest_bit_on(bits: int, data: str) -> None:
    found = packed(np.array([1, 2, 3, 4, 5] if bits == 4 else [1, 2, 2, 0, 7], np.uint8), bits)

    assert found.tobytes() == bytes.fromhex(data)
