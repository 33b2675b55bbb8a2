"""Damaged files tensor by tensor: what is whole, what is lost and why, and what a header alone has wrong."""

import ctypes
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
from msgspec import Struct
from safetensors.numpy import save

from shardscope.engine.convert.plans import header
from shardscope.engine.mending.headers import WeightFile, read_file
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.limits import Limits
from shardscope.engine.source.source import Source
from tests.mending.files import entry, write

TWICE = (
    b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},'
    b'"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}'
)
SAME_TWICE = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
TYPES = {
    "BOOL": "bool",
    "F4": "float4_e2m1fn_x2",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}
"""As the format's own library takes them."""


def look(path: Path) -> WeightFile:
    with Source(path, limits=Limits()) as source:
        found = source.walk().files[0]
        with source.open(found) as reader:
            return read_file(found, reader, Limits())


def whole(file: WeightFile) -> list[str]:
    return [tensor.name for tensor in file.tensors]


def lost(file: WeightFile) -> dict[str | None, str]:
    return {item.name: item.code for item in file.lost}


def repairs(file: WeightFile) -> set[tuple[str, str]]:
    return {(flaw.finding.code, flaw.repair) for flaw in file.flaws}


def test_a_sound_file_is_whole_and_can_stay(tmp_path: Path) -> None:
    found = look(write(tmp_path / "a.safetensors", {"a": entry(0, 8), "b": entry(8, 12)}, bytes(12)))

    assert whole(found) == ["a", "b"]
    assert (found.sound, found.flaws, found.lost) == (True, (), ())


def test_a_file_that_is_cut_off_has_what_lies_before_the_cut(tmp_path: Path) -> None:
    header = {"a": entry(0, 8), "b": entry(8, 16), "c": entry(16, 24), "empty": entry(24, 24, "F32", 0)}
    found = look(write(tmp_path / "a.safetensors", header, bytes(13)))

    assert whole(found) == ["a"]
    assert {item.name: (item.bytes, item.present) for item in found.lost} == {
        "b": (8, 5),
        "c": (8, 0),
        "empty": (0, 0),
    }
    assert repairs(found) == {("header.truncated", "salvage")}
    assert not found.sound


@pytest.mark.parametrize(
    ("header", "data", "wrong"),
    [
        ({"a": entry(4, 8)}, 8, "header.gap"),
        ({"a": entry(0, 4), "b": entry(8, 12)}, 12, "header.gap"),
        ({"a": entry(0, 4)}, 7, "header.overlong"),
        ({"a": entry(0, 8), "e": entry(3, 3, "F32", 0)}, 8, "header.overlap"),
        ({"a": {**entry(0, 4), "more": 1}}, 4, "header.field_extra"),
        (SAME_TWICE, 4, "header.name_duplicate"),
        (b' {"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 4, "header.leading_space"),
    ],
)
def test_what_a_header_alone_has_wrong_costs_no_tensor(
    header: Any, data: int, wrong: str, tmp_path: Path
) -> None:
    found = look(write(tmp_path / "a.safetensors", header, bytes(data)))

    assert "a" in whole(found)
    assert found.lost == ()
    assert (wrong, "header") in repairs(found)
    assert not found.sound


def test_padding_that_is_none_costs_no_tensor(tmp_path: Path) -> None:
    found = look(write(tmp_path / "a.safetensors", {"ab": entry(0, 4)}, bytes(4), pad=b"\0"))

    assert whole(found) == ["ab"]
    assert repairs(found) == {("header.padding", "header")}


@pytest.mark.parametrize(
    ("header", "gone", "kept"),
    [
        ({"a": entry(0, 8), "b": entry(4, 12), "c": entry(12, 16)}, {"a", "b"}, ["c"]),
        ({"a": entry(0, 8), "b": entry(0, 8), "c": entry(8, 16)}, {"a", "b"}, ["c"]),
        (
            {"a": entry(0, 16), "b": entry(2, 6), "c": entry(10, 14), "d": entry(16, 20)},
            {"a", "b", "c"},
            ["d"],
        ),
        ({"a": entry(0, 8, "F32", 3), "b": entry(8, 12)}, {"a"}, ["b"]),
        ({"a": entry(8, 4, "F32", 1), "b": entry(8, 12)}, {"a"}, ["b"]),
        ({"a": entry(0, 8, "WHAT", 2), "b": entry(8, 12)}, {"a"}, ["b"]),
        ({"a": entry(0, 8, "F32", 2**40, 2**40), "b": entry(8, 12)}, {"a"}, ["b"]),
        ({"a": entry(0, 1, "F4", 3), "b": entry(8, 12)}, {"a"}, ["b"]),
        ({"a": 7, "b": entry(8, 12)}, {"a"}, ["b"]),
        ({"a": {"dtype": "F32"}, "b": entry(8, 12)}, {"a"}, ["b"]),
        ({"a": {**entry(0, 4), "shape": [1.5]}, "b": entry(8, 12)}, {"a"}, ["b"]),
        (TWICE, {"a"}, ["b"]),
    ],
)
def test_what_contradicts_itself_or_another_is_lost_by_name_and_nothing_else(
    header: Any, gone: set[str], kept: list[str], tmp_path: Path
) -> None:
    found = look(write(tmp_path / "a.safetensors", header, bytes(20)))

    assert set(lost(found)) == gone
    assert whole(found) == kept
    assert "salvage" in {repair for _, repair in repairs(found)}


def test_metadata_that_are_no_text_cost_themselves_alone(tmp_path: Path) -> None:
    header = {"__metadata__": {"format": "pt", "step": 5, "deep": {"x": [1]}}, "a": entry(0, 4)}
    found = look(write(tmp_path / "a.safetensors", header, bytes(4)))

    assert whole(found) == ["a"]
    assert found.metadata == {"format": "pt"}
    assert set(found.unread) == {"step", "deep"}
    assert repairs(found) == {("header.metadata_type", "metadata")}


@pytest.mark.parametrize("data", [b"", b"\xff" * 8, struct.pack("<Q", 10) + b"{", b"\2\0\0\0\0\0\0\0[]"])
def test_a_header_that_is_none_is_refused_with_its_code(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(data)

    with pytest.raises(Fault) as refused:
        look(tmp_path / "a.safetensors")
    assert refused.value.finding.code.startswith("header.")


class Item(Struct, frozen=True):
    name: str
    dtype: str
    shape: tuple[int, ...]


def test_a_header_is_that_of_the_formats_own_library_byte_for_byte() -> None:
    words = {
        "F32": "<f4",
        "F16": "<f2",
        "I8": "i1",
        "U8": "u1",
        "I64": "<i8",
        "F64": "<f8",
        "BOOL": "?",
        "U16": "<u2",
    }
    names = ["z", "a.b", 'quo"te\\', "tab\tnew\n\x1b\x7f", "ünï", "\U0001f600", "[red]x[/red]", ""]
    items = [
        Item(f"{name}{dtype}", dtype, shape)
        for name in names
        for dtype, shape in zip(words, [(3,), (2, 2), (), (0, 4), (1,), (5,), (2,), (3,)], strict=True)
    ]
    arrays = {item.name: np.zeros(item.shape, words[item.dtype]) for item in items}

    for metadata in ({}, {"format": "pt\n\u202e"}):
        made = header.canonical(header.canonically(items), metadata)
        theirs = save(arrays, metadata or None)
        assert theirs[: len(made.data)] == made.data
        assert made.size == len(theirs)


def test_types_lie_in_the_order_of_the_formats_own_library() -> None:
    room = (ctypes.c_char * 64)()
    items = [Item(f"n{number}", dtype, (8,)) for number, dtype in enumerate(sorted(TYPES))]
    specs = {
        item.name: safetensors.TensorSpec(
            dtype=TYPES[item.dtype],
            shape=[4 if item.dtype == "F4" else 8],
            data_ptr=ctypes.addressof(room),
            data_len=header.size_of(item),
        )
        for item in items
    }
    made = header.canonical(header.canonically(items), {})

    assert safetensors.serialize(specs)[: len(made.data)] == made.data


@pytest.mark.parametrize("seed", range(8))
def test_every_tensor_of_a_header_is_whole_or_lost_and_no_byte_is_shared(seed: int, tmp_path: Path) -> None:
    """Headers with ranges, shapes and types at random, held against rules of their own."""
    chance = random.Random(seed)
    for number in range(40):
        header = {}
        for name in "abcdef"[: chance.randint(1, 6)]:
            begin = chance.choice([0, 4, 8, 12, 16, 20, 24])
            end = begin + chance.choice([0, 4, 4, 8, 8, 16, -4])
            dtype = chance.choice(["F32", "F32", "F32", "F16", "U8", "ODD"])
            width = {"F32": 4, "F16": 2, "U8": 1, "ODD": 1}[dtype]
            count = max(0, end - begin) // width + chance.choice([0, 0, 0, 0, 1])
            header[name] = {"dtype": dtype, "shape": [count], "data_offsets": [max(0, begin), max(0, end)]}
        size = chance.choice([0, 8, 16, 24, 40])
        path = write(tmp_path / f"{number}.safetensors", header, bytes(size))
        found = look(path)

        assert set(whole(found)) | set(lost(found)) == set(header)
        assert not set(whole(found)) & set(lost(found))
        covered: set[int] = set()
        for tensor in found.tensors:
            said = header[tensor.name]
            assert [tensor.begin - found.data_begin, tensor.end - found.data_begin] == said["data_offsets"]
            ours = set(range(tensor.begin, tensor.end))
            assert len(ours) == tensor.shape[0] * {"F32": 4, "F16": 2, "U8": 1}[tensor.dtype]
            assert not ours & covered
            assert tensor.end <= path.stat().st_size
            covered |= ours
        if found.sound:
            assert covered == set(range(found.data_begin, path.stat().st_size))
            assert not found.lost
