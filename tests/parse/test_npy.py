"""Headers of `.npy` files: as numpy writes them, matched and never evaluated."""

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.model.blocker import Fault
from shardscope.engine.parse.npy import npy_header, read_npy
from tests.parse.readers import MemoryReader

SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


def saved(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, **options)
    return buffer.getvalue()


@given(SHAPES, st.sampled_from(["|b1", "|u1", "<i2", "<f4", ">f8", "<c8", "|S3", "<U2", "|V2"]))
def test_what_numpy_writes_is_read(shape: tuple[int, ...], dtype: str) -> None:
    array = np.zeros(shape, dtype)
    for version in ((1, 0), (2, 0), (3, 0)):
        data = saved(array, version=version)
        header = read_npy(MemoryReader(data))

        assert (header.shape, header.descr, header.item) == (shape, array.dtype.str, array.dtype.itemsize)
        assert data[header.begin :] == array.tobytes()


@given(SHAPES, st.sampled_from(["|u1", "<f4", "<f8"]))
def test_what_is_written_is_what_numpy_writes(shape: tuple[int, ...], dtype: str) -> None:
    array = np.zeros(shape, dtype)

    assert npy_header(dtype, shape) + array.tobytes() == saved(array, version=(1, 0))


def test_the_order_of_dimensions_is_told() -> None:
    assert read_npy(MemoryReader(saved(np.zeros((2, 3), order="F")))).fortran is True


def header(text: str, magic: bytes = b"\x93NUMPY\x01\x00") -> bytes:
    return magic + len(text).to_bytes(2, "little") + text.encode("latin-1")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "npy.malformed"),
        (b"\x93NUMPY\x09\x00\x00\x00", "npy.malformed"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "npy.malformed"),
        (saved(np.zeros(3))[:40], "npy.malformed"),
        (saved(np.zeros(3))[:-1], "npy.truncated"),
        (saved(np.zeros(3)) + b"x", "npy.truncated"),
        (saved(np.array([{}], dtype=object)), "npy.objects"),
        (saved(np.zeros(2, [("a", "<f4")])), "npy.malformed"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os'),), }"), "npy.malformed"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "npy.malformed"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (1 2,), }"), "npy.malformed"),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,,), }"), "npy.malformed"),
        (header("{'shape': (1,), 'descr': '<f4', 'fortran_order': False, }"), "npy.malformed"),
    ],
)
def test_what_is_no_plain_array_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(Fault) as caught:
        read_npy(MemoryReader(data))
    assert caught.value.finding.code == code
