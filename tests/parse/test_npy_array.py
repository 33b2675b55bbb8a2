"""Any array of an `.npy` file or an `.npz` archive, told by a grammar of its own: nothing is evaluated, unpickled or unpacked whole."""

import io
import zipfile
import zlib
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.npy import NpyArray, read_array
from shardscope.engine.parse.npy_literal import read_literal
from shardscope.engine.parse.npz import read_arrays
from shardscope.engine.parse.zip import read_directory
from tests.parse.readers import MemoryReader


def saved(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def header(text: str, magic: bytes = b"\x93NUMPY\x01\x00") -> bytes:
    return magic + len(text).to_bytes(2, "little") + text.encode("latin-1")


def array_of(descr: str, shape: str = "(2,)", order: str = "False") -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")


DTYPES = [
    "?",
    "u1",
    "i1",
    ">i2",
    "<u4",
    "<i8",
    "<f2",
    ">f4",
    "<f8",
    "<c8",
    "<c16",
    "S3",
    "<U2",
    "V2",
    "<M8[ns]",
    "<f16",
]


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), max_size=4).map(tuple), st.sampled_from(DTYPES), st.booleans())
def test_what_numpy_saves_is_told(shape: tuple[int, ...], dtype: str, fortran: bool) -> None:
    array = np.zeros(shape, dtype, order="F" if fortran else "C")
    data = saved(array)
    found = read_array(MemoryReader(data))

    assert found.shape == shape
    assert found.bytes == array.nbytes == len(data) - found.begin
    assert found.fortran == (array.flags.f_contiguous and not array.flags.c_contiguous)
    assert found.big_endian == (array.dtype.byteorder == ">")
    assert not found.objects


def test_structured_arrays_are_measured() -> None:
    array = np.zeros(3, [("a", "<f4"), ("b", [("c", "<i8", (2,)), ("d", "S3")])])
    found = read_array(MemoryReader(saved(array)))
    assert (found.dtype, found.bytes, found.objects) == ("record", array.nbytes, False)


@pytest.mark.parametrize(
    "array", [np.array([{}], object), np.zeros(2, [("a", "O")]), np.zeros(2, [("a", [("b", "O", (2,))])])]
)
def test_objects_are_a_pickle_wherever_they_stand(array: Any) -> None:
    found = read_array(MemoryReader(saved(array)))
    assert found.objects
    assert found.bytes == 0


@pytest.mark.parametrize("quote", ["'", '"'])
def test_other_writers_order_and_space_it_as_they_like(quote: str) -> None:
    text = "{ 'shape':(3 , 4),'fortran_order' :True,\n 'descr':'<i4' }".replace("'", quote)
    found = read_array(MemoryReader(header(text) + bytes(48)))
    assert (found.shape, found.dtype, found.fortran) == ((3, 4), "I32", True)


MALFORMED = {
    "no bytes": b"",
    "another version": b"\x93NUMPY\x04\x00\x00\x00\x00\x00",
    "a header of 4 GiB": b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
    "a header that ends early": header("{'descr'")[:-2],
    "an empty header": header(""),
    "no mapping": header("('<f4', False, (2,))"),
    "a key too few": header("{'descr': '<f4', 'fortran_order': False}"),
    "a key too many": header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}"),
    "a key twice": header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (3,)}"),
    "a key that is a number": header("{1: '<f4', 'fortran_order': False, 'shape': (2,)}"),
    "a call": array_of("__import__('os').system('id')"),
    "a name": array_of("f4"),
    "an f-string": array_of("f'{1}'"),
    "an escape": array_of("'\\x3cf4'"),
    "an operator": array_of("'<f4'", "(1+1,)"),
    "a comprehension": array_of("'<f4'", "[i for i in (1,)]"),
    "a set": array_of("'<f4'", "{1, 2}"),
    "a power": array_of("'<f4'", "(9**9**9,)"),
    "a shape of text": array_of("'<f4'", "('2',)"),
    "a shape of truth": array_of("'<f4'", "(True,)"),
    "a shape below zero": array_of("'<f4'", "(-1,)"),
    "a shape of 65 dimensions": array_of("'<f4'", f"({'1,' * 65})"),
    "a shape beyond 63 bits": array_of("'<f4'", "(4294967296, 4294967296)"),
    "a number of 30 digits": array_of("'<f4'", f"({'9' * 30},)"),
    "an order that is a number": array_of("'<f4'", order="0"),
    "a dtype that is none": array_of("'<q9'"),
    "a dtype of nothing": array_of("[]"),
    "a field without a dtype": array_of("[('a',)]"),
    "brackets nested without end": array_of("[" * 4000),
    "brackets that close nothing": array_of("'<f4'", "(2,))"),
    "a comma too many": array_of("'<f4'", "(2,,)"),
    "something behind it": header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} 1"),
    "a string without an end": header("{'descr': '<f4"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_array_is_refused(name: str) -> None:
    with pytest.raises(Fault) as caught:
        read_array(MemoryReader(MALFORMED[name]))
    assert caught.value.finding.code == "npy.malformed"


@settings(deadline=None)
@given(st.text(alphabet="{}()[],:'\"0123456789TrueFalsNo \n-<f4", max_size=200))
def test_any_text_ends_in_a_value_or_a_clause(text: str) -> None:
    with suppress(ValueError):  # any other exception fails
        read_literal(text)


def members(data: bytes) -> list[tuple[str, NpyArray | None]]:
    reader = MemoryReader(data)
    return [(record.name, array) for record, array in read_arrays(reader, read_directory(reader, Limits()))]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_of_both_kinds_are_told(save: Any) -> None:
    buffer = io.BytesIO()
    save(buffer, a=np.zeros((2, 3), ">f4"), b=np.zeros(5, object))
    found = members(buffer.getvalue())

    assert [name for name, _ in found] == ["a.npy", "b.npy"]
    first, second = (array for _, array in found)
    assert first is not None
    assert (first.shape, first.big_endian, first.bytes) == ((2, 3), True, 24)
    assert second is not None
    assert second.objects


def test_no_more_is_unpacked_than_a_header_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, a=np.zeros(50_000_000, "u1"))
    asked = []
    real = zlib.decompressobj

    class Watched:
        def __init__(self, *arguments: Any) -> None:
            self.inner = real(*arguments)

        def decompress(self, data: bytes, most: int) -> bytes:
            asked.append(most)
            return self.inner.decompress(data, most)

    monkeypatch.setattr(zlib, "decompressobj", Watched)
    ((_, array),) = members(buffer.getvalue())
    assert array is not None
    assert array.bytes == 50_000_000
    assert asked
    assert max(asked) < 100_000


def test_a_record_that_cannot_be_unpacked_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", saved(np.zeros(100)))
    data = bytearray(buffer.getvalue())
    data[40:60] = b"\xff" * 20
    with pytest.raises(Fault) as caught:
        members(bytes(data))
    assert caught.value.finding.code == "npy.malformed"
