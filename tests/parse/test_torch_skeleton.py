"""An archive that is equal to a checked one but for its elements: every other byte counts."""

import zlib
from pathlib import Path

from shardscope.engine.model.limits import Limits
from shardscope.engine.parse.torch_skeleton import Skeleton, skeleton
from shardscope.engine.parse.zip import read_directory
from tests.checkpoints import write_torch_zip
from tests.dcp_saves import Item, item_of, tensor_pickle
from tests.parse.readers import MemoryReader

KIND = ("bfloat16", (4, 6))


def made(item: Item, elements: bytes) -> Skeleton | None:
    reader = MemoryReader(item.head + elements + item.tail)
    directory = read_directory(reader, Limits())
    (entry,) = (entry for entry in directory.entries if entry.name == "archive/data/0")
    return skeleton(reader, directory, entry, Limits())


def test_another_archive_of_the_kind_has_its_own_checksum() -> None:
    one = item_of(KIND)
    elements = bytes(range(48))
    other = Item(tensor_pickle(*KIND), 48, zlib.crc32(elements), identity="7" * 40)
    form = made(one, bytes(48))
    assert form is not None
    assert other.head == form.head
    assert form.checksum(one.tail) == zlib.crc32(bytes(48))
    assert form.checksum(other.tail) == zlib.crc32(elements)


def test_no_byte_may_differ_but_checksums_that_agree_and_the_identity() -> None:
    item = item_of(KIND)
    form = made(item, bytes(48))
    assert form is not None
    free = item.tail.index(b"1" * 40)
    for at in range(len(item.tail)):
        changed = item.tail[:at] + bytes([item.tail[at] ^ 0x10]) + item.tail[at + 1 :]
        assert (form.checksum(changed) is None) is not (free <= at < free + 40), at
    assert form.checksum(item.tail[:-1]) is None
    assert form.checksum(item.tail + b"\0") is None


def test_both_checksums_of_the_elements_have_to_agree() -> None:
    item = item_of(KIND)
    form = made(item, bytes(48))
    assert form is not None
    crc = zlib.crc32(bytes(48)).to_bytes(4, "little")
    assert item.tail.count(crc) == 2
    assert form.checksum(item.tail.replace(crc, b"\1\2\3\4")) == 0x04030201
    assert form.checksum(item.tail.replace(crc, b"\1\2\3\4", 1)) is None


def test_archives_with_checksums_before_their_data_are_none_to_compare_with(tmp_path: Path) -> None:
    path = write_torch_zip(tmp_path / "model.pt")  # Python's zipfile: no descriptors
    reader = MemoryReader(path.read_bytes())
    directory = read_directory(reader, Limits())
    (entry,) = (entry for entry in directory.entries if entry.name.endswith("/data/0"))
    assert skeleton(reader, directory, entry, Limits()) is None
