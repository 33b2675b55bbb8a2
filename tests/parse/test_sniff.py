"""Files named by what they are: first bytes, unfinished downloads, and what a name promised."""

import bz2
import gzip
import io
import lzma
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardscope.engine.model.blocker import blocker
from shardscope.engine.model.facts import LfsPointer, Nature
from shardscope.engine.parse.sniff import HEAD, check_expected, sniff, unfinished_download

OID = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 4976698672\n".encode()
SAFETENSORS = b"\x02\0\0\0\0\0\0\0{}"


def tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("storages"))
    return buffer.getvalue()


KNOWN = [
    (b"", Nature.EMPTY),
    (SAFETENSORS, Nature.SAFETENSORS),
    (b"\x1f\x8b\0\0\0\0\0\0{}", Nature.SAFETENSORS),  # a length whose low bytes are gzip's signature
    (b"\x80\x02\0\0\0\0\0\0 {", Nature.SAFETENSORS),
    (b"PK\x03\x04\0\0\x08\x08", Nature.ZIP),
    (b"PK\x05\x06" + bytes(18), Nature.ZIP),
    (b"GGUF\x03\0\0\0", Nature.GGUF),
    (gzip.compress(b"x", mtime=0), Nature.GZIP),
    (lzma.compress(b"x"), Nature.XZ),
    (b"\x28\xb5\x2f\xfd\x04\x00", Nature.ZSTD),
    (bz2.compress(b"x"), Nature.BZIP2),
    (tar(), Nature.TAR),
    (b"\x93NUMPY\x01\0", Nature.NUMPY),
    (b"\x89HDF\r\n\x1a\n", Nature.HDF5),
    (b"\x08\x07\x12\x07pytorch\x1a\x032.1", Nature.ONNX),
    (bytes.fromhex("80028a0a6cfc9c46f9206aa850192e"), Nature.TORCH_LEGACY),
    (bytes.fromhex("80038a0a6cfc9c46f9206aa850192e"), Nature.TORCH_LEGACY),
    (bytes.fromhex("8005950d000000000000008a0a6cfc9c46f9206aa850192e"), Nature.TORCH_LEGACY),
    (b"L119547037146038801333356L\n.", Nature.TORCH_LEGACY),
    (b"\x80\x04\x95\x10\0\0\0\0\0\0\0", Nature.PICKLE),
    (b"\x80\x02}q\0.", Nature.PICKLE),
    (b"ccollections\nOrderedDict\n(", Nature.PICKLE),
    (b"(dp0\n.", Nature.PICKLE),
    (bytes(5_000), Nature.ZEROS),
    (POINTER, Nature.LFS_POINTER),
    (POINTER.replace(b"\n", b"\r\n"), Nature.LFS_POINTER),
    (b"version https://git-lfs.github.com/spec/v1\nbroken", Nature.LFS_POINTER),
    (b"\n <!DOCTYPE html>\n<html>", Nature.HTML),
    (b"\xef\xbb\xbf<HTML lang='en'>", Nature.HTML),
    (b"<!-- a --><html>", Nature.HTML),
    (b'\xef\xbb\xbf {"error": "not found"}', Nature.JSON),
    (b"[1, 2]", Nature.JSON),
    (b"<?xml version='1.0'?><Error/>", Nature.TEXT),
    (b"Invalid username or password.", Nature.TEXT),
    (("é" * HEAD).encode(), Nature.TEXT),
    (b"\x08", Nature.UNKNOWN),
    (b"\xff\xfe{\0", Nature.UNKNOWN),
    (b"\x0c\0\0\0\0\0\0\0hello, world", Nature.UNKNOWN),
]


@pytest.mark.parametrize(("head", "nature"), KNOWN)
def test_first_bytes_tell_the_nature(head: bytes, nature: Nature) -> None:
    found = sniff(head, len(head))
    assert found.nature is nature
    assert found.looked == min(len(head), HEAD)


def test_a_pointer_gives_the_real_size() -> None:
    assert sniff(POINTER, len(POINTER)).lfs == LfsPointer(OID, 4_976_698_672)


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"", "file.empty"),
        (POINTER, "file.lfs_pointer"),
        (b"<html>", "file.html"),
        (b'{"error": 1}', "file.text"),
        (b"Not found", "file.text"),
        (bytes(10), "file.zeros"),
        (gzip.compress(b"x", mtime=0), "file.compressed"),
        (b"PK\x03\x04\0\0\x08\x08", "file.wrong_format"),
        (b"GGUF\x03\0\0\0", "file.wrong_format"),
        (b"\x80\x02}q\0.", "file.wrong_format"),
    ],
)
def test_a_safetensors_name_over_something_else_is_told(head: bytes, code: str) -> None:
    finding = check_expected(sniff(head, len(head)), Nature.SAFETENSORS, len(head))
    assert finding is not None
    assert finding.code == code
    blocker(finding, "model.safetensors")


def test_the_real_size_of_a_pointer_stands_in_the_message() -> None:
    finding = check_expected(sniff(POINTER, len(POINTER)), Nature.SAFETENSORS, len(POINTER))
    assert finding is not None
    told = blocker(finding, "model.safetensors")
    assert "4.6 GiB (4,976,698,672 bytes)" in told.message
    assert "git lfs pull" in told.remedy


@pytest.mark.parametrize("head", [SAFETENSORS, b"\x08", b"\x0c\0\0\0\0\0\0\0hello"])
def test_the_parser_has_the_word_where_the_first_bytes_say_nothing(head: bytes) -> None:
    assert check_expected(sniff(head, len(head)), Nature.SAFETENSORS, len(head)) is None


def test_text_under_a_json_name_is_left_to_the_json_parser() -> None:
    assert check_expected(sniff(b"# yaml: yes", 11), Nature.JSON, 11) is None


def test_a_name_can_promise_several_natures() -> None:
    torch_file = {Nature.ZIP, Nature.TORCH_LEGACY, Nature.PICKLE}
    assert check_expected(sniff(b"\x80\x02}q\0.", 6), torch_file, 6) is None
    finding = check_expected(sniff(SAFETENSORS, 10), torch_file, 10)
    assert finding is not None
    assert finding.params["expected"] == "a bare pickle or a legacy torch.save stream or a zip archive"


@pytest.mark.parametrize(
    ("name", "marker"),
    [
        ("model.safetensors.incomplete", ".incomplete"),
        ("model.safetensors.part", ".part"),
        ("model.safetensors.crdownload", ".crdownload"),
        ("model.safetensors.tmp", ".tmp"),
        ("model.safetensors.ARIA2", ".ARIA2"),
        ("0" * 64 + ".0a1b2c3d.incomplete", ".incomplete"),
        ("model.safetensors", None),
        ("partial.json", None),
        ("config.template", None),
    ],
)
def test_names_of_unfinished_downloads(name: str, marker: str | None) -> None:
    finding = unfinished_download(name)
    assert (finding.params["marker"] if finding else None) == marker


@given(st.binary(max_size=300), st.sampled_from(sorted(Nature)))
def test_any_bytes_have_a_nature_and_a_sentence(head: bytes, expected: Nature) -> None:
    finding = check_expected(sniff(head, len(head)), Nature(expected), len(head))
    if finding is not None:
        assert blocker(finding, "file").message
