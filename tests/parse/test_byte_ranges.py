"""Stretches of bytes: whole files are covered, and what is wrong in a header is laid out and said."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.file_layout import ByteRange
from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.byte_ranges import safetensors_ranges, tensor_ranges, with_holes, zip_ranges
from tests import torchfiles
from tests.checkpoints import LLAMA, safetensors_bytes, write_torch_zip
from tests.parse.readers import FileReader, MemoryReader

LIMITS = Limits()
Row = tuple[str, int, int]


def broken(*tensors: tuple[str, int, int], size: int) -> bytes:
    """Return a safetensors file of byte tensors at any offsets, with `size` bytes of data."""
    header = {
        name: {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}
        for name, begin, end in tensors
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(size)


def data_rows(ranges: list[ByteRange], data: bytes) -> list[Row]:
    """Return kind, begin and end of what is behind the header, from its end."""
    begin = 8 + int.from_bytes(data[:8], "little")
    return [
        (each.name or each.kind, each.begin - begin, each.end - begin)
        for each in ranges
        if each.begin >= begin
    ]


def assert_covers(ranges: list[ByteRange], size: int) -> None:
    at = 0
    for each in ranges:
        assert each.begin == at
        at = each.end
    assert at == size


def test_a_sound_file_is_header_padding_and_tensors() -> None:
    data = safetensors_bytes(LLAMA)
    reader = MemoryReader(data)
    ranges, said = safetensors_ranges(reader, LIMITS)
    assert_covers(ranges, len(data))
    assert not said
    assert [each.name for each in ranges if each.kind == "tensor"] == list(LLAMA)
    assert ranges[-1].note == "F32 [4]"
    assert {each.kind for each in ranges} <= {"header", "padding", "tensor"}
    assert sum(length for _, length in reader.reads) == 8 + int.from_bytes(data[:8], "little")


def test_a_gap_and_what_is_behind_the_end_are_stretches() -> None:
    data = broken(("a", 0, 4), ("b", 10, 14), size=20)
    ranges, said = safetensors_ranges(MemoryReader(data), LIMITS)
    assert data_rows(ranges, data) == [("a", 0, 4), ("gap", 4, 10), ("b", 10, 14), ("trailing", 14, 20)]
    assert not said


def test_tensors_that_overlap_or_go_too_far_are_said() -> None:
    data = broken(("b", 2, 6), ("a", 0, 4), ("c", 6, 12), size=8)
    ranges, said = safetensors_ranges(MemoryReader(data), LIMITS)
    assert data_rows(ranges, data) == [("a", 0, 4), ("b", 2, 6), ("c", 6, 8)]
    notes = {each.name: each.note for each in ranges}
    assert notes["b"].endswith("overlaps what is before it by 2 bytes")
    assert notes["c"].endswith("4 bytes of it are missing")
    assert said == ["1 tensors overlap others.", "1 tensors reach beyond the end of the file."]


def test_a_tensor_that_ends_before_it_begins_takes_no_room() -> None:
    text = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[4,1]}}'
    data = len(text).to_bytes(8, "little") + text + bytes(4)
    ranges, _ = safetensors_ranges(MemoryReader(data), LIMITS)
    assert data_rows(ranges, data) == [("gap", 0, 4), ("a", 4, 4)]
    assert "ends 3 bytes before it begins" in ranges[-1].note


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6), st.integers(0, 40))
def test_any_offsets_are_laid_out_in_order_and_nothing_is_left_out(
    spans: list[tuple[int, int]], size: int
) -> None:
    data = broken(*((f"t{n}", min(span), max(span)) for n, span in enumerate(spans)), size=size)
    ranges, _ = safetensors_ranges(MemoryReader(data), LIMITS)
    at = 0
    for each in ranges:
        assert each.begin <= at or not each.name
        assert each.begin <= each.end <= len(data)
        at = max(at, each.end)
    assert at == len(data)
    assert sum(each.kind == "tensor" for each in ranges) == len(spans)


def test_what_has_no_header_is_a_fault() -> None:  # R044
    with pytest.raises(Fault, match=r"header\.past_eof"):
        safetensors_ranges(MemoryReader(b"\xff" * 16), LIMITS)


def test_an_archive_of_torch_is_records_with_what_is_around_them(tmp_path: Path) -> None:
    tensor = torchfiles.Tensor("0", 4, (4,))
    path = torchfiles.save(tmp_path / "a.pt", {"w": tensor}, {"0": bytes(16), "1": bytes(40)})
    with FileReader(str(path)) as reader:
        begin = path.read_bytes().index(b"archive/data/0")
        data = begin + len(b"archive/data/0")
        data += -data % 64
        ranges, container = zip_ranges(reader, LIMITS, {data: ["w", "v", "u"]})
        assert container == "torch archive"
        assert_covers(ranges, reader.size)
    by_name = {each.name: each for each in ranges if each.kind in ("pickle", "storage", "member")}
    assert by_name["archive/data.pkl"].kind == "pickle"
    assert by_name["archive/data/0"].kind == "storage"
    assert by_name["archive/data/0"].begin % 64 == 0
    assert by_name["archive/data/0"].note == "w, v and 1 more"
    assert by_name["archive/version"].kind == "member"
    assert {"local header", "padding", "directory", "end"} <= {each.kind for each in ranges}
    assert "gap" not in {each.kind for each in ranges}


def test_another_zip_has_members(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.txt", b"a" * 1_000)
        archive.comment = b"hello"
    with FileReader(str(path)) as reader:
        ranges, container = zip_ranges(reader, LIMITS, {})
        assert container == "zip"
        assert_covers(ranges, reader.size)
    assert next(each.note for each in ranges if each.kind == "member") == "deflated from 1,000 bytes"
    assert ranges[-1].note == "comment"
    assert ranges[-1].end - ranges[-1].begin == 5


def test_a_save_of_torch_has_no_gap(tmp_path: Path) -> None:
    path = write_torch_zip(tmp_path / "x.pt", storages=3)
    with FileReader(str(path)) as reader:
        assert_covers(zip_ranges(reader, LIMITS, {})[0], reader.size)


def test_tensors_known_from_elsewhere_leave_the_rest_unknown() -> None:
    ranges = tensor_ranges([ByteRange(20, 30, "tensor", "b"), ByteRange(4, 8, "tensor", "a")], 40)
    assert [(each.name or each.kind, each.begin, each.end) for each in ranges] == [
        ("unknown", 0, 4),
        ("a", 4, 8),
        ("unknown", 8, 20),
        ("b", 20, 30),
        ("unknown", 30, 40),
    ]


def test_holes_are_counted_in_every_stretch_that_has_a_part_in_them() -> None:
    ranges = [ByteRange(0, 10, "header"), ByteRange(10, 20, "tensor", "a"), ByteRange(20, 30, "tensor", "b")]
    found = with_holes(ranges, [(5, 12), (18, 30)])
    assert [each.hole for each in found] == [5, 4, 10]
    assert with_holes(ranges, []) == ranges
