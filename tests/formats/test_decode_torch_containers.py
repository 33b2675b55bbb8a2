"""Containers of torch.save decoded: storages, checksums, the older streams, sizes."""

import io
import os
import tarfile
import zipfile
from pathlib import Path

import msgspec
import pytest

from shardscope.engine import inspect
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.decoded import DecodedPlane
from shardscope.engine.model.descriptor import Descriptor
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.limits import DecodeLimits
from tests.formats.decoding import decode
from tests.formats.looking import FIXTURES, copied, the
from tests.formats.torch_decoding import checked, named, value_of
from tests.torchfiles import Record, Tensor, floats, legacy, pickled, save, write_archive

TORCH = FIXTURES / "torch"


def test_one_bad_storage_leaves_the_others_readable(tmp_path: Path) -> None:
    value = {"a": Tensor("0", 2, [2]), "b": Tensor("1", 2, [2]), "c": Tensor("2", 2, [2])}
    found = decode(save(tmp_path / "m.pt", value, {"0": floats(1, 2), "1": floats(3), "2": floats(5, 6)}))
    assert value_of(found, "a") + value_of(found, "c") == floats(1, 2, 5, 6)
    assert named(found, "torch.storage_size") == {
        "file": "m.pt",
        "count": 1,
        "key": "1",
        "size": 4,
        "expected": 8,
    }
    assert named(found, "torch.tensor_lost")["tensor"] == "b"


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor("0", 4, [5]),
        Tensor("0", 4, [2], offset=3),
        Tensor("0", 4, [2], offset=-1),
        Tensor("0", 4, [2, 2], [3, 2]),
        Tensor("0", 4, [2], [-1], offset=3),
        Tensor("0", 4, [2, 2], [1]),
        Tensor("0", 4, [1 << 62, 1 << 62]),
    ],
)
def test_a_view_beyond_its_storage_is_not_followed(tmp_path: Path, tensor: Tensor) -> None:
    found = decode(
        save(tmp_path / "m.pt", {"bad": tensor, "good": Tensor("0", 4, [4])}, {"0": floats(1, 2, 3, 4)})
    )
    assert named(found, "torch.tensor_malformed")["tensor"] == "bad"
    assert [item.name for item in found.tensors] == ["good"]
    assert value_of(found, "good") == floats(1, 2, 3, 4)


def test_encrypted_and_foreign_compression_are_refused(tmp_path: Path) -> None:
    records = [
        Record(
            "m/data.pkl",
            pickled({"a": Tensor("0", 1, [1]), "b": Tensor("1", 1, [1]), "c": Tensor("2", 1, [1])}),
        ),
        Record("m/data/0", floats(1), flags=0x0809),
        Record("m/data/1", floats(2), method=12),
        Record("m/data/2", floats(3)),
        Record("m/version", b"3\n"),
    ]
    found = decode(write_archive(tmp_path / "m.pt", records))
    assert value_of(found, "c") == floats(3)
    assert named(found, "torch.storage_missing")["count"] == 2
    assert named(found, "torch.tensor_lost")["count"] == 2
    records[0] = Record("m/data.pkl", records[0].data, method=12)
    assert "torch.pickle_unreadable" in decode(write_archive(tmp_path / "m.pt", records)).errors


def test_a_record_that_was_reserved_and_not_written_is_no_damage(tmp_path: Path) -> None:
    path = write_archive(
        tmp_path / "m.pt",
        [
            Record("m/data.pkl", pickled({"a": Tensor("0", 2, [2])})),
            Record("m/data/0", bytes(8), crc=0),
            Record("m/version", b"3\n"),
        ],
    )
    found = decode(path)
    assert "torch.storage_unwritten" in found.errors
    assert checked(path, found).damaged == ()


def test_the_checksum_of_the_structure_is_compared_before_it_is_read(tmp_path: Path) -> None:
    records = [
        Record("m/data.pkl", pickled({"a": Tensor("0", 1, [1])}), crc=1),
        Record("m/data/0", floats(1)),
        Record("m/version", b"3\n"),
    ]
    found = decode(write_archive(tmp_path / "m.pt", records))
    assert "torch.record_crc" in found.errors
    assert not found.tensors


# -- checksums of storages, on request


def test_checksums_of_sound_files_agree_stored_and_deflated() -> None:
    for fixture, records in (("zip_dtypes", 20), ("zip_deflated", 5), ("zip_shared_storage", 3)):
        path = TORCH / fixture / "checkpoint"
        result = checked(path, decode(path))
        assert result.damaged == ()
        assert result.records >= records - 5
        assert result.unrecorded == 0


def test_checksums_that_were_not_recorded_are_no_damage() -> None:
    path = TORCH / "zip_crc_disabled" / "checkpoint"
    result = checked(path, decode(path))
    assert (result.records, result.unrecorded, result.damaged) == (0, 2, ())


@pytest.mark.parametrize("fixture", ["zip_shared_storage", "zip_deflated"])
def test_one_changed_byte_of_a_tensor_is_found(tmp_path: Path, fixture: str) -> None:
    copied(f"torch/{fixture}", tmp_path)
    found = decode(tmp_path)
    record = found.tensors[0].fragments[0].record
    data = bytearray((tmp_path / "model.pt").read_bytes())
    data[record.begin + record.length // 2] ^= 0x10
    (tmp_path / "model.pt").write_bytes(data)
    result = checked(tmp_path, found)
    assert [item.begin for item in result.damaged] == [record.begin]
    assert named(found, "torch.record_crc")["count"] == 1
    assert found.tensors[0].name in str(named(found, "torch.record_crc")["record"])


def test_a_changed_byte_in_a_distributed_save_is_found() -> None:
    path = FIXTURES / "dcp" / "bad_payload_byte" / "checkpoint"
    found = decode(path)
    if not found.tensors:
        pytest.skip("the family is not decoded")
    result = checked(path, found)
    assert len(result.damaged) == 1
    assert "torch.record_crc" in found.errors


# -- the older stream


def test_a_stream_whose_counts_and_keys_disagree_is_refused(tmp_path: Path) -> None:
    value = {"a": Tensor("7", 2, [2], legacy=True)}
    good = {"7": (2, floats(1, 2))}
    cases = {
        "torch.stream_count": legacy(value, {"7": (3, floats(1, 2))}),
        "torch.stream_cut": legacy(value, good)[:-1],
        "torch.stream_rest": legacy(value, good) + b"\0",
        "torch.stream_keys": legacy(value, good, keys=["8"]),
    }
    for code, data in cases.items():
        (tmp_path / "m.pt").write_bytes(data)
        found = decode(tmp_path / "m.pt")
        assert code in found.errors, code
        assert not found.tensors
        assert "trust.opaque_pickle" in found.codes
    (tmp_path / "m.pt").write_bytes(legacy(value, good, keys=[]))
    assert "torch.stream_keys" in decode(tmp_path / "m.pt").errors


def test_views_of_storages_in_very_old_streams(tmp_path: Path) -> None:
    value = {
        "a": Tensor("7", 4, [4], legacy=True),
        "b": Tensor("7", 4, [2], legacy=True, view=("9", 1, 2)),
        "c": Tensor("7", 4, [2], legacy=True, view=("10", 3, 2)),
    }
    (tmp_path / "m.pt").write_bytes(legacy(value, {"7": (4, floats(1, 2, 3, 4))}))
    found = decode(tmp_path / "m.pt")
    assert value_of(found, "a") == floats(1, 2, 3, 4)
    assert value_of(found, "b") == floats(2, 3)
    assert named(found, "torch.tensor_lost")["tensor"] == "c"


def test_a_long_structure_of_a_stream_is_read_in_growing_windows(tmp_path: Path) -> None:
    value = {"note": "x" * (3 << 20), "a": Tensor("7", 1, [1], legacy=True)}
    (tmp_path / "m.pt").write_bytes(legacy(value, {"7": (1, floats(1))}))
    assert value_of(decode(tmp_path / "m.pt"), "a") == floats(1)
    found = decode(tmp_path / "m.pt", DecodeLimits(pickle_bytes=1 << 20))
    assert "limit.pickle_bytes" in found.errors


def test_the_oldest_form_is_recognised_and_refused(tmp_path: Path) -> None:
    for name, code in (
        ("sys_info pickle storages tensors", "torch.tar_form"),
        ("weights.bin", "torch.not_torch"),
    ):
        with tarfile.open(tmp_path / "m.pt", "w") as archive:
            for member in name.split():
                info = tarfile.TarInfo(member)
                info.size = 3
                archive.addfile(info, io.BytesIO(b"abc"))
        found = decode(tmp_path / "m.pt")
        assert code in found.errors
        assert "trust.opaque_pickle" in found.codes


# -- sizes


def test_five_gibibytes_in_one_storage(tmp_path: Path) -> None:
    size = 5 << 30
    value = {"big": Tensor("0", size // 4, [size // 4]), "after": Tensor("1", 2, [2])}
    path = write_archive(
        tmp_path / "m.pt",
        [
            Record("m/data.pkl", pickled(value)),
            Record("m/data/0", hole=size, crc=1),
            Record("m/data/1", floats(1, 2)),
            Record("m/version", b"3\n"),
        ],
    )
    found = decode(path)
    assert not found.errors
    (fragment,) = found.named("after").fragments
    with path.open("rb") as file:
        file.seek(fragment.record.begin + fragment.offset)
        assert file.read(8) == floats(1, 2)
    assert fragment.record.begin > size
    assert found.named("big").fragments[0].record.size == size


def test_a_hundred_gigabytes_are_decoded_from_less_than_twenty_megabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # R087
    layers, size = 1000, 100_000_000
    value = {f"layers.{n}.weight": Tensor(str(n), size // 4, [size // 4]) for n in range(layers)}
    records = [Record("m/data.pkl", pickled(value))]
    records += [Record(f"m/data/{n}", hole=size, crc=1) for n in range(layers)]
    try:
        path = write_archive(tmp_path / "m.pt", [*records, Record("m/version", b"3\n")])
    except OSError:
        pytest.skip("the file system takes no file of 100 GB")
    assert path.stat().st_size > 100_000_000_000
    read = 0
    pread = os.pread

    def counting(descriptor: int, length: int, offset: int) -> bytes:
        nonlocal read
        data = pread(descriptor, length, offset)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counting)
    found = decode(path)
    assert len(found.tensors) == layers
    assert 0 < read < 20_000_000
    assert not found.errors


def test_containers_shared_many_times_over_end(tmp_path: Path) -> None:
    """Forty lists, each twice in the next one: 2^40 ways to one tensor."""
    level = b"(" + b"](" + _tensor_opcodes() + b"eq\0"
    data = b"\x80\x02" + level[1:]
    for number in range(1, 40):
        data += b"0](" + bytes([ord("h"), number - 1]) * 2 + b"e" + bytes([ord("q"), number])
    records = [Record("m/data.pkl", data + b"."), Record("m/data/0", floats(1)), Record("m/version", b"3\n")]
    found = decode(write_archive(tmp_path / "m.pt", records))
    assert "torch.names_unbounded" in found.errors
    assert 1 <= len(found.tensors) < 100_000


def _tensor_opcodes() -> bytes:
    return pickled(Tensor("0", 1, [1]))[2:-1]


def test_our_archives_are_read_by_the_standard_library_too(tmp_path: Path) -> None:
    path = save(tmp_path / "m.pt", {"a": Tensor("0", 2, [2])}, {"0": floats(1, 2)})
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.read("archive/data/0") == floats(1, 2)
    assert msgspec.structs.asdict(Record("x"))["crc"] is None


def test_checksums_are_compared_where_a_person_asks_for_it(tmp_path: Path) -> None:
    copied("torch/zip_shared_storage", tmp_path)

    def looked_at() -> Descriptor:
        wish = Decoding(Intent("inspect", "command line"), checksums=True)  # an intent is good for one run
        return inspect(tmp_path, digest="none", decoding=wish).descriptor

    descriptor = looked_at()
    assert the(descriptor, "torch.records_checked").params["count"] == 2
    assert isinstance(descriptor.decoded, DecodedPlane)
    assert descriptor.decoded.payload_bytes == the(descriptor, "torch.records_checked").params["size"]
    record = decode(tmp_path).tensors[0].fragments[0].record
    data = bytearray((tmp_path / "model.pt").read_bytes())
    data[record.begin] ^= 1
    (tmp_path / "model.pt").write_bytes(data)
    descriptor = looked_at()
    assert the(descriptor, "torch.record_crc").blocks == ("convert", "load")
    assert the(descriptor, "torch.records_checked").params["count"] == 1
