"""What stops a copy: sources that do not hold what they say, outputs that cannot be written, and the person."""

import errno
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardscope.engine.convert.copies import work
from shardscope.engine.convert.copies.copying import copy_file
from shardscope.engine.convert.copies.decompress import Decoded
from shardscope.engine.geometry.transfer.compose import whole
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.catalogue import Fragment, LogicalTensor, Record
from shardscope.engine.model.piece import Lowered, Piece, RankShard, Side
from shardscope.engine.model.progress import Cancelled, Progress
from tests.convert import material
from tests.convert.material import boxes, convert, deflated, noise, plain, put, single
from tests.convert.test_copying import columns, read, rounded


def refusal(folder: Path, tensor: LogicalTensor, dtype: str, **options: Any) -> str:
    with pytest.raises(Fault) as caught:
        convert(folder, folder / "out", [(tensor, dtype)], **options)
    return caught.value.finding.code


def test_integers_are_not_multiplied(tmp_path: Path) -> None:
    record = put(tmp_path, "a", np.arange(4, dtype="<i4"))
    piece = Piece((4,), Side(0, (1,)), Side(0, (1,)), (0,), (1, 2))
    layout = Lowered((4,), (RankShard(0, (4,), (piece,)),))
    tensor = LogicalTensor("b", "I32", (4,), layout, None, (Fragment(0, (4,), record, 0),))

    assert refusal(tmp_path, tensor, "I32") == "map.scale_dtype"


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    full = noise((8, 8), "F32")
    record = put(tmp_path, "a", full)
    whole_one = single("w", "F32", (8, 8), record)
    beyond = single("w", "F32", (8, 8), record, 4)
    strange = single("w", "F32", (8, 8), record, strides=(1,))
    backwards = single("w", "F32", (8, 8), record, strides=(-8, 1))
    integers = single("w", "I32", (8, 8), record)
    half = boxes("w", "F32", (8, 8), [((0, 0), (4, 8), record, 0)])
    lost = LogicalTensor(
        "w", "F32", (8, 8), half.map, None, (*half.fragments, Fragment(3, (8, 8), record, 0))
    )
    elsewhere = boxes("w", "F32", (8, 8), [((0, 0), (4, 8), record, 0), ((4, 0), (4, 8), record, 0)])
    absent = LogicalTensor("w", "F32", (8, 8), elsewhere.map, None, elsewhere.fragments[:1])
    wrong = LogicalTensor("w", "F32", (8, 8), whole((8, 8)), None, (Fragment(0, (8, 7), record, 0),))

    assert refusal(tmp_path, beyond, "F32") == "convert.outside_record"
    assert refusal(tmp_path, strange, "F32") == "convert.strides"
    assert refusal(tmp_path, backwards, "F32") == "map.unproven"
    assert refusal(tmp_path, integers, "F32") == "convert.cast"
    assert refusal(tmp_path, half, "F32") == "map.uncovered"
    assert refusal(tmp_path, lost, "F32") == "map.uncovered"
    assert refusal(tmp_path, absent, "F32") == "convert.fragment_missing"
    assert refusal(tmp_path, wrong, "F32") == "map.shard_size"
    assert refusal(tmp_path, whole_one, "complex32") == "convert.dtype"


@pytest.mark.parametrize(("size", "kind"), [(40, "run"), (3 << 20, "kernel"), (3 << 20, "tile")])
def test_a_record_beyond_the_end_of_its_file_is_missed(tmp_path: Path, size: int, kind: str) -> None:
    (tmp_path / "a").write_bytes(bytes(size - 4))
    shape = (size // 4,)
    tensor = single("w", "F32", shape, plain("a", 0, size))

    assert refusal(tmp_path, tensor, "BF16" if kind == "tile" else "F32") == "convert.short_record"


@pytest.mark.parametrize("coding", ["deflate", "zstd"])
@pytest.mark.parametrize("wrong", ["cut", "short", "long", "garbage"])
def test_coded_records_that_do_not_hold_what_they_say(tmp_path: Path, coding: str, wrong: str) -> None:
    full = noise((50_000,), "F32")
    data = full.tobytes()
    coded = coded_as(coding, {"short": data[:-8], "long": data + b"12345678"}.get(wrong, data))
    if wrong == "cut":
        coded = coded[:-100]
    if wrong == "garbage":
        coded = b"\xff" * len(coded)
    (tmp_path / "a").write_bytes(coded)
    record = Record("a", 0, len(coded), len(data), coding)  # type: ignore[arg-type]
    tensor = single("w", "F32", full.shape, record)

    found = refusal(tmp_path, tensor, "F32", checks=[record])

    expected = {"short": {"convert.short_record"}, "cut": {"convert.record_damaged", "convert.short_record"}}
    assert found in expected.get(wrong, {"convert.record_damaged"})


def coded_as(coding: str, data: bytes) -> bytes:
    if coding == "deflate":
        return deflated(data)
    import zstandard

    half = len(data) // 2  # two frames
    return zstandard.compress(data[:half]) + zstandard.compress(data[half:])


@pytest.mark.parametrize("coding", ["deflate", "zstd"])
def test_many_tensors_in_one_coded_record_are_decoded_once(
    tmp_path: Path, coding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition with parameters in another order than their names, read by columns too."""
    full = noise((200, 1000), "F32")
    coded = coded_as(coding, full.tobytes())
    (tmp_path / "a").write_bytes(b"x" + coded)
    record = Record("a", 1, len(coded), full.nbytes, coding, zlib.crc32(full))  # type: ignore[arg-type]
    rows = [single(f"t{n}", "F32", (20, 1000), record, 4 * 1000 * 20 * (9 - n)) for n in range(10)]
    starts: list[int] = []
    fresh = Decoded._fresh

    def counted(decoded: Decoded) -> Any:
        starts.append(1)
        return fresh(decoded)

    monkeypatch.setattr(Decoded, "_fresh", counted)

    convert(tmp_path, tmp_path / "out", [(row, "BF16") for row in rows], workers=3, budget_bytes=1 << 20)

    assert len(starts) == 1
    assert read(tmp_path / "out") == {
        f"t{n}": rounded(full[20 * (9 - n) : 20 * (10 - n)]).tobytes() for n in range(10)
    }


def test_without_a_decoder_of_zstd_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coded = coded_as("zstd", bytes(64))
    (tmp_path / "a").write_bytes(coded)
    tensor = single("w", "F32", (16,), Record("a", 0, len(coded), 64, "zstd"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)

    assert refusal(tmp_path, tensor, "F32") == "convert.zstd_missing"


@pytest.mark.parametrize("kind", ["plain", "deflate"])
def test_a_checksum_that_does_not_match_stops_everything(tmp_path: Path, kind: str) -> None:
    full = noise((3 << 18,), "F32")
    data = bytearray(full.tobytes())
    crc = zlib.crc32(data)
    data[1 << 20] ^= 1
    stored = deflated(data) if kind == "deflate" else bytes(data)
    (tmp_path / "a").write_bytes(stored)
    record = Record("a", 0, len(stored), len(data), kind, crc)  # type: ignore[arg-type]
    tensor = single("w", "F32", full.shape, record)

    assert refusal(tmp_path, tensor, "F32", checks=[record]) == "torch.record_crc"
    convert(tmp_path, tmp_path / "out", [(tensor, "F32")])  # it was not asked for
    assert read(tmp_path / "out") == {"w": bytes(data)}


def test_a_source_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    full = noise((3 << 18,), "F32")
    tensor = columns(tmp_path, full.reshape(-1, 1024), "F32", 2)
    with material.opened(tmp_path) as opener:
        (tmp_path / "tp1").write_bytes(b"\0" * (tmp_path / "tp1").stat().st_size)
        with material.output(tmp_path / "out", full.nbytes) as file, pytest.raises(Fault) as caught:
            copy_file([work.Written(tensor, "F32", 0)], file, b"", opener=opener, budget_bytes=1 << 20)
    assert caught.value.finding.code == "source.changed"


def test_cancelling_stops_within_a_tenth_of_a_second_of_work(tmp_path: Path) -> None:
    size = 256 << 20
    with (tmp_path / "a").open("wb") as file:
        file.truncate(size)
    tensor = single("w", "F32", (size // 4,), plain("a", 0, size))
    cancel = threading.Event()
    asked: list[float] = []

    def seen(report: Progress) -> None:
        assert report.unit == "bytes"
        if report.done and not asked:
            asked.append(time.process_time())  # which other work on the machine does not lengthen
            cancel.set()

    with pytest.raises(Cancelled):
        convert(tmp_path, tmp_path / "out", [(tensor, "F16")], cancel=cancel, progress=seen)
    assert time.process_time() - asked[0] < 0.3  # two threads and their end
    assert threading.active_count() == 1 or not [
        thread for thread in threading.enumerate() if thread.name.startswith(("copy-", "digest", "checksums"))
    ]


def test_progress_ends_with_every_byte(tmp_path: Path) -> None:
    full = noise((3 << 18,), "F32")
    reports: list[Progress] = []
    made = convert(
        tmp_path,
        tmp_path / "out",
        [(single("w", "F32", full.shape, put(tmp_path, "a", full)), "F32")],
        progress=reports.append,
        digest=False,
    )
    assert made.sha256 is None
    assert reports[-1].done == reports[-1].total == made.bytes == (tmp_path / "out").stat().st_size
    assert [report.done for report in reports] == sorted(report.done for report in reports)


def written_into(folder: Path, tensor: LogicalTensor, size: int) -> str:
    with (
        material.opened(folder) as opener,
        material.output(folder / "out", size) as file,
        pytest.raises(Fault) as caught,
    ):
        copy_file([work.Written(tensor, "F32", 0)], file, b"", opener=opener, budget_bytes=1 << 20)
    return caught.value.finding.code


# R106
def test_a_source_cannot_deliver_more_than_was_planned(tmp_path: Path) -> None:
    full = noise((3 << 18,), "F32")
    tensor = single("w", "F32", full.shape, put(tmp_path, "a", full))
    assert written_into(tmp_path, tensor, full.nbytes - 4) == "stage.over_budget"
    assert (tmp_path / "out").stat().st_size <= full.nbytes - 4


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = noise((3 << 18,), "F32")
    tensor = single("w", "F32", full.shape, put(tmp_path, "a", full))

    def refused(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr("os.copy_file_range", refused)
    monkeypatch.setattr("os.pwrite", refused)
    assert written_into(tmp_path, tensor, full.nbytes) == "stage.no_space"
