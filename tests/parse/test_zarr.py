"""One `.zarray`: what it declares, and why it declares nothing."""

from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.parse.zarr import BYTES, ZarrArray, zarr3_array, zarr_array


def declared(**values: Any) -> dict[str, Any]:
    return {
        "zarr_format": 2,
        "shape": [4, 6],
        "chunks": [2, 4],
        "dtype": "<f4",
        "order": "C",
        "compressor": None,
        "filters": None,
        "fill_value": None,
        **values,
    }


def test_grid_and_bytes_follow_from_shape_and_chunks() -> None:
    array = zarr_array(declared())

    assert isinstance(array, ZarrArray)
    assert (array.grid, array.bytes, array.chunk_bytes, array.plain) == ((2, 2), 96, 32, True)


@pytest.mark.parametrize(
    ("word", "name", "big_endian"),
    [
        ("bfloat16", "BF16", False),
        ("<f8", "F64", False),
        ("|b1", "BOOL", False),
        ("|u1", "U8", False),
        (">i8", "I64", True),
        (">i1", "I8", False),
    ],
)
def test_dtypes_have_one_name_each(word: str, name: str, big_endian: bool) -> None:
    array = zarr_array(declared(dtype=word))

    assert isinstance(array, ZarrArray)
    assert (array.dtype, array.big_endian, array.plain) == (name, big_endian, not big_endian)


def test_an_array_without_dimensions_has_one_chunk() -> None:
    array = zarr_array(declared(shape=[], chunks=[]))

    assert isinstance(array, ZarrArray)
    assert (array.grid, prod(array.grid), array.bytes) == ((), 1, 4)


def test_an_empty_array_has_no_chunk() -> None:
    array = zarr_array(declared(shape=[0, 6]))

    assert isinstance(array, ZarrArray)
    assert (array.grid, prod(array.grid), array.bytes) == ((0, 2), 0, 0)


@pytest.mark.parametrize(
    "value",
    [
        [],
        declared(zarr_format=3),
        declared(zarr_format=True),
        declared(shape=None),
        declared(shape=[4, True]),
        declared(shape=[4, -1]),
        declared(shape=[1.5, 2]),
        declared(shape=[1] * 65, chunks=[1] * 65),
        declared(chunks=[2]),
        declared(chunks=[0, 1]),
        declared(dtype="<f3"),
        declared(dtype=[["a", "<f4"]]),
        declared(dtype=""),
        declared(dimension_separator="-"),
        declared(shape=[1 << 40, 1 << 40], chunks=[1 << 40, 1 << 40]),
        declared(shape=[1 << 50, 1], chunks=[1, 1]),
        declared(shape=[1], chunks=[1 << 62]),
    ],
)
def test_what_cannot_be_an_array_is_refused_with_a_reason(value: object) -> None:
    assert isinstance(zarr_array(value), str)


@pytest.mark.parametrize(
    "changed",
    [
        {"order": "F"},
        {"compressor": {"id": "zstd"}},
        {"filters": [{"id": "delta"}]},
        {"dimension_separator": "/"},
    ],
)
def test_other_encodings_are_no_plain_arrays(changed: dict[str, Any]) -> None:
    array = zarr_array(declared(**changed))

    assert isinstance(array, ZarrArray)
    assert not array.plain


SIZES = st.integers(-2, 1 << 64)
JSON = (
    st.none()
    | st.booleans()
    | SIZES
    | st.text(max_size=4)
    | st.lists(SIZES, max_size=4)
    | st.just({"id": "zstd"})
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(declared(), JSON)))
def test_no_document_raises_and_no_array_is_beyond_64_bits(changed: dict[str, Any]) -> None:
    array = zarr_array(declared(**changed))

    if isinstance(array, ZarrArray):
        assert 0 <= array.bytes <= BYTES
        assert all(size >= 0 for size in array.grid)
    else:
        assert array


V3: dict[str, Any] = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [5, 6],
    "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 4]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "fill_value": 1.5,
}


def test_a_description_of_version_3_is_read() -> None:
    array = zarr3_array(V3)
    assert isinstance(array, ZarrArray)
    assert (array.grid, array.dtype, array.separator, array.prefix) == ((3, 2), "F32", "/", "c")
    assert (array.direct, array.big_endian, array.fill) == (True, False, "1.5")


@pytest.mark.parametrize(
    ("changed", "compressor"),
    [
        ({"codecs": [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 1}}]}, "zstd"),
        (
            {
                "codecs": [
                    {
                        "name": "sharding_indexed",
                        "configuration": {"codecs": [{"name": "bytes"}, {"name": "gzip"}]},
                    }
                ]
            },
            "shards of gzip",
        ),
        ({"codecs": [{"name": "sharding_indexed"}]}, "shards of unknown codecs"),
        ({"codecs": ["bytes", 7]}, "one without a name"),
    ],
)
def test_what_packs_a_chunk_is_named(changed: dict[str, Any], compressor: str) -> None:
    array = zarr3_array(V3 | changed)
    assert isinstance(array, ZarrArray)
    assert (array.direct, array.compressor) == (False, compressor)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "complex64", "bool", "uint64"])
def test_extended_types_of_version_3_are_known(dtype: str) -> None:
    assert isinstance(zarr3_array(V3 | {"data_type": dtype}), ZarrArray)


@pytest.mark.parametrize(
    "changed",
    [
        {"zarr_format": 2},
        {"zarr_format": True},
        {"node_type": "group"},
        {"shape": None},
        {"shape": [-1, 2]},
        {"shape": [1 << 62, 1 << 62]},
        {"shape": [1] * 65},
        {"shape": [1 << 50, 6]},
        {"data_type": "string"},
        {"data_type": {"name": "numpy.datetime64"}},
        {"data_type": ["float32"]},
        {"chunk_grid": {"name": "rectilinear"}},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0, 4]}}},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}},
        {"chunk_grid": None},
        {"chunk_key_encoding": {"name": "fancy"}},
        {"chunk_key_encoding": {"name": ["default"]}},
        {"chunk_key_encoding": {"name": "default", "configuration": {"separator": "../"}}},
        {"codecs": []},
        {"codecs": None},
        {"codecs": ["bytes"] * 65},
    ],
)
def test_what_describes_no_array_of_version_3_says_why(changed: dict[str, Any]) -> None:
    assert isinstance(zarr3_array(V3 | changed), str)
    assert isinstance(zarr3_array([]), str)
