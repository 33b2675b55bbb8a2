"""Zip directories and torch archives: what real writers write is read, and no change makes two readers disagree."""

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.model.blocker import Fault, blocker
from shardscope.engine.model.facts import TorchArchive, ZipDirectory
from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.torch_archive import describe
from shardscope.engine.parse.zip import read_directory
from tests.parse.readers import FileReader, MemoryReader

LIMITS = Limits()
FIXTURES = Path(__file__).parents[1] / "fixtures" / "torch"
RECORDS = {
    "archive/data.pkl": b"N.",
    "archive/data/0": bytes(16),
    "archive/data/1": b"x" * 70,
    "archive/version": b"3\n",
}


def zip_of(records: dict[str, bytes], method: int = zipfile.ZIP_STORED, comment: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.comment = comment
        for name, data in records.items():
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def directory_of(data: bytes, limits: Limits = LIMITS) -> ZipDirectory:
    return read_directory(MemoryReader(data), limits)


def archive_of(records: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> TorchArchive:
    reader = MemoryReader(zip_of(records, method))
    return describe(reader, read_directory(reader, LIMITS), LIMITS)


def code_of(data: bytes, limits: Limits = LIMITS) -> str:
    reader = MemoryReader(data)
    with pytest.raises(Fault) as caught:
        describe(reader, read_directory(reader, limits), limits)
    return blocker(caught.value.finding, "file").code


def test_entries_are_placed_where_their_bytes_are() -> None:
    data = zip_of(RECORDS)
    directory = directory_of(data)
    assert [entry.name for entry in directory.entries] == list(RECORDS)
    for entry in directory.entries:
        assert entry.data_offset is not None
        assert data[entry.data_offset : entry.data_offset + entry.size] == RECORDS[entry.name]
        assert entry.crc == zlib.crc32(RECORDS[entry.name])
    assert (directory.zip64, directory.comment_bytes, directory.notes) == (False, 0, ())


def test_no_content_is_read_but_version_and_byte_order() -> None:  # R030 R032
    content = {"archive/data.pkl": b"\x80\x02N." * 2_000, "archive/data/0": bytes(100_000)}
    reader = MemoryReader(
        zip_of(
            {
                **content,
                "archive/version": b"3\n",
                "archive/byteorder": b"little",
                "archive/pad": bytes(70_000),
            }
        )
    )
    directory = read_directory(reader, LIMITS)
    describe(reader, directory, LIMITS)
    read = {at for offset, length in reader.reads for at in range(offset, offset + length)}
    for entry in directory.entries[:2]:
        assert entry.data_offset is not None
        assert not read & set(range(entry.data_offset, entry.data_offset + entry.compressed))


def test_limits_stop_before_the_directory_is_read() -> None:  # R045
    data = zip_of(RECORDS)
    assert code_of(data, Limits(zip_entries=3)) == "limit.zip_entries"
    assert code_of(data, Limits(zip_directory_bytes=100)) == "limit.zip_directory_bytes"


def test_a_cut_anywhere_is_told() -> None:  # R044
    data = zip_of(RECORDS)
    for length in range(len(data)):
        with pytest.raises(Fault) as caught:
            directory_of(data[:length])
        assert caught.value.finding.code.startswith("zip.")


def test_bytes_in_front_are_told_whether_offsets_count_them_or_not() -> None:
    data = zip_of(RECORDS)
    assert code_of(b"#!/bin/sh\n" + data) == "zip.prefix"
    buffer = io.BytesIO(b"#!/bin/sh\n")
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("archive/data.pkl", b"N.")
    assert code_of(buffer.getvalue()) == "zip.prefix"


def test_bytes_behind_and_comments_are_notes() -> None:
    trailing = directory_of(zip_of(RECORDS) + bytes(30))
    assert [(note.code, note.params) for note in trailing.notes] == [("zip.trailing", {"extra": 30})]
    comment = directory_of(zip_of(RECORDS, comment=b"\x1b[2J"))
    assert [(note.code, note.params) for note in comment.notes] == [("zip.comment", {"length": 4})]
    assert comment.comment_bytes == 4


def test_a_name_twice_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/data.pkl", b"N.")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a/data.pkl", b"K\x01.")
    assert code_of(buffer.getvalue()) == "zip.duplicate"


def test_bytes_between_entries_that_no_listing_shows_are_told() -> None:
    data = zip_of({"a/data.pkl": b"N.", "a/version": b"3\n"})
    second = data.index(b"PK\x03\x04", 4)
    central = data.index(b"PK\x01\x02")
    at = data.index(b"PK\x01\x02", central + 4)
    hidden = bytearray(data[:second] + b"hidden" * 10 + data[second:])
    struct.pack_into("<I", hidden, at + 60 + 42, second + 60)
    struct.pack_into("<I", hidden, len(hidden) - 6, central + 60)
    assert [(note.code, note.params) for note in directory_of(bytes(hidden)).notes] == [
        ("zip.unclaimed", {"extra": 60})
    ]


def test_a_torch_archive_is_told_by_its_records() -> None:
    archive = archive_of({**RECORDS, "archive/byteorder": b"little"})
    assert (archive.root, archive.pickle.name) == ("archive", "archive/data.pkl")
    assert (archive.storages, archive.storage_bytes, archive.byteorder) == (2, 86, "little")
    assert (archive.stored, archive.torchscript, archive.crc_recorded, archive.notes) == (
        True,
        False,
        True,
        (),
    )


def test_without_a_record_the_byte_order_is_not_made_up() -> None:
    assert archive_of(RECORDS).byteorder is None


def test_deflated_archives_are_described_too() -> None:
    archive = archive_of({**RECORDS, "archive/byteorder": b"big"}, zipfile.ZIP_DEFLATED)
    assert (archive.stored, archive.byteorder) == (False, "big")
    assert [note.code for note in archive.notes] == ["torch.big_endian"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"archive/version": b"99"}, "torch.version"),
        ({"archive/version": b"three"}, "torch.version"),
        ({"archive/version": b"3" * 100}, "torch.version"),
        ({"archive/version": None}, "torch.version"),
        ({"archive/byteorder": b"pdp"}, "torch.byteorder"),
        ({"archive/constants.pkl": b"N."}, "torch.torchscript"),
        ({"archive/code/__torch__.py": b""}, "torch.torchscript"),
    ],
)
def test_oddities_of_a_torch_archive_are_notes(change: dict[str, bytes | None], code: str) -> None:
    records = {name: data for name, data in {**RECORDS, **change}.items() if data is not None}
    archive = archive_of(records)
    assert [blocker(note, "file").code for note in archive.notes] == [code]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        ({"a.txt": b"a"}, "torch.no_data_pkl"),
        ({}, "torch.no_data_pkl"),
        ({"a/b/data.pkl": b"N."}, "torch.no_data_pkl"),
        ({**RECORDS, "other/data.pkl": b"N."}, "torch.multiple_roots"),
        ({**RECORDS, "archive/data.pkl": b""}, "torch.empty_pickle"),
    ],
)
def test_a_zip_that_is_no_torch_archive_is_refused(records: dict[str, bytes], code: str) -> None:  # R044
    assert code_of(zip_of(records)) == code


WRITTEN = sorted(
    path for path in FIXTURES.rglob("*.pt") if path.parts[-3] not in ("legacy_stream", "zip_truncated")
)


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.parts[-3])
def test_what_torch_save_wrote_is_read(path: Path) -> None:  # R032
    with FileReader(str(path)) as reader, zipfile.ZipFile(path) as reference:
        directory = read_directory(reader, LIMITS)
        archive = describe(reader, directory, LIMITS)
        rows = [
            (each.filename, each.file_size, each.compress_size, each.CRC, each.header_offset)
            for each in reference.infolist()
        ]
    assert [
        (each.name, each.size, each.compressed, each.crc, each.header_offset) for each in directory.entries
    ] == rows
    assert archive.crc_recorded == ("crc_disabled" not in str(path))
    assert archive.byteorder == ("big" if "big_endian" in str(path) else "little")
    assert not archive.torchscript
    data = path.read_bytes()
    for each in directory.entries:
        assert each.data_offset is not None
        if each.crc and not each.method:
            assert zlib.crc32(data[each.data_offset : each.data_offset + each.size]) == each.crc


def listing(data: bytes) -> list[tuple[Any, ...]] | None:
    try:
        directory = directory_of(data)
    except Fault as fault:
        blocker(fault.finding, "file")
        return None
    for note in directory.notes:
        blocker(note, "file")
    return [
        (each.name, each.method, each.crc, each.compressed, each.size, each.data_offset)
        for each in directory.entries
    ]


@settings(max_examples=400, deadline=2_000)
@given(st.sampled_from(["plain", "torch"]), st.integers(0, 1 << 20), st.integers(0, 255), st.booleans())
def test_one_changed_byte_of_the_structure_never_moves_a_record(
    which: str, place: int, value: int, cut: bool
) -> None:
    # R044
    """Whatever byte is changed or taken out, the archive is refused or every record's bytes stay where they were."""
    path = FIXTURES / "zip_dtypes" / "checkpoint" / "model.pt"
    data = zip_of(RECORDS) if which == "plain" else path.read_bytes()
    at = place % len(data)
    changed = data[:at] + (b"" if cut else bytes([value])) + data[at + 1 :]
    before, after = listing(data), listing(changed)
    assert before is not None
    if after is not None:
        assert [row[5] for row in after] == [row[5] for row in before]


@given(st.binary(max_size=200), st.binary(max_size=60))
def test_no_bytes_make_it_fail(body: bytes, tail: bytes) -> None:  # R044
    listing(body + b"PK\x01\x02" + body + b"PK\x05\x06" + tail)
    listing(body + b"PK\x06\x06" + tail + b"PK\x06\x07" + bytes(16) + b"PK\x05\x06" + bytes(18))
