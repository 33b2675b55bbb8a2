"""Digests: which files, the right bytes, in constant memory, with progress, until they are cancelled."""

import errno
import hashlib
import os
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.progress import Cancelled, Progress
from shardscope.engine.model.source import Entry, Identity, Kind
from shardscope.engine.source import digest, read
from shardscope.engine.source.digest import Mode, choose
from shardscope.engine.source.source import Source
from tests.source.trees import make, picture, walked

TILE = 1 << 20


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_digests_are_those_of_the_bytes(tmp_path: Path, workers: int) -> None:
    sizes = (0, 1, TILE - 1, TILE, TILE + 1, 3 * TILE + 7)
    contents = {f"a/{size}.bin": os.urandom(size) for size in sizes}
    make(tmp_path, contents)
    with Source(tmp_path) as source:
        digests = source.digests(source.walk().files, workers=workers)

    assert digests == {name.encode(): hashlib.sha256(data).hexdigest() for name, data in contents.items()}


@pytest.mark.parametrize("offset", [0, 4_096, TILE, 5 * TILE + 4_096, 9 * TILE])
def test_holes_are_hashed_as_the_zeros_that_they_read_as(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    path = tmp_path / "model.bin"
    with path.open("wb") as file:
        file.truncate(10 * TILE + 11)
        os.pwrite(file.fileno(), os.urandom(TILE // 2), offset)
    wanted = hashlib.sha256(path.read_bytes()).hexdigest()
    counted: list[Progress] = []
    with Source(tmp_path) as source:
        files = source.walk().files
        assert source.digests(files, progress=counted.append) == {b"model.bin": wanted}
        assert counted[-1].done == 10 * TILE + 11
        monkeypatch.setattr(os, "lseek", unsupported)
        assert source.digests(files) == {b"model.bin": wanted}


def unsupported(*_: object) -> int:
    """A file system that cannot tell where its holes are."""
    raise OSError(errno.EINVAL, "Invalid argument")


def test_nothing_to_hash_is_no_error(tmp_path: Path) -> None:
    with Source(tmp_path) as source:
        assert source.digests([]) == {}


# R027
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    with (tmp_path / "large.bin").open("wb") as file:
        file.truncate(64 * TILE)
    with Source(tmp_path) as source:
        files = source.walk().files
        tracemalloc.start()
        try:
            digests = source.digests(files)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert digests == {b"large.bin": hashlib.sha256(bytes(64 * TILE)).hexdigest()}
    assert peak < 4 * TILE


def test_progress_counts_bytes_up_to_the_total(tmp_path: Path) -> None:
    make(tmp_path, {f"{n}.bin": bytes(n * TILE) for n in range(1, 6)})
    reports: list[Progress] = []
    with Source(tmp_path) as source:
        source.digests(source.walk().files, progress=reports.append)

    done = [report.done for report in reports]
    assert done == sorted(done)
    assert done[-1] == 15 * TILE
    assert {(report.stage, report.total, report.unit) for report in reports} == {
        ("digests", 15 * TILE, "bytes")
    }


def test_the_largest_file_is_taken_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, {"a": b"1", "b": b"333", "c": b"22"})
    order: list[bytes] = []
    with Source(tmp_path) as source:
        real = source.open

        def recording(entry: Entry) -> read.OpenFile:
            order.append(entry.path)
            return real(entry)

        monkeypatch.setattr(source, "open", recording)
        source.digests(source.walk().files, workers=1)

    assert order == [b"b", b"c", b"a"]


def test_cancelling_ends_at_once(tmp_path: Path) -> None:
    with (tmp_path / "large.bin").open("wb") as file:
        file.truncate(1 << 43)  # hours of hashing
    cancel = threading.Event()
    with Source(tmp_path) as source:
        files = source.walk().files
        timer = threading.Timer(0.1, cancel.set)
        timer.start()
        start = time.monotonic()
        with pytest.raises(Cancelled):
            source.digests(files, cancel=cancel)
        assert time.monotonic() - start < 2, "0.1 s until the event, and generous room for a busy machine"
        timer.join()
        deadline = time.monotonic() + 5
        while any(thread.name.startswith("digest-") for thread in threading.enumerate()):
            assert time.monotonic() < deadline, "a thread goes on after it was cancelled"
            time.sleep(0.01)


def test_a_disk_that_hangs_does_not_hold_up_cancelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, {"a.bin": b"1"})
    held, cancel = threading.Event(), threading.Event()

    def hang(*_: object) -> int:
        held.wait(30)
        return 0

    monkeypatch.setattr(os, "preadv", hang)
    with Source(tmp_path) as source:
        files = source.walk().files
        cancel.set()
        start = time.monotonic()
        with pytest.raises(Cancelled):
            source.digests(files, cancel=cancel)
        took = time.monotonic() - start
    held.set()

    assert took < 5


# R043
def test_a_file_that_changes_is_left_out_with_its_fault(tmp_path: Path) -> None:
    make(tmp_path, {"good.bin": b"1", "bad.bin": b"2"})
    faults: list[tuple[bytes, str]] = []
    with Source(tmp_path) as source:
        files = source.walk().files
        (tmp_path / "bad.bin").write_bytes(b"222")
        digests = source.digests(
            files, on_fault=lambda entry, fault: faults.append((entry.path, fault.finding.code))
        )
        with pytest.raises(Fault) as caught:
            source.digests(files)

    assert list(digests) == [b"good.bin"]
    assert faults == [(b"bad.bin", "source.changed")]
    assert caught.value.finding.code == "source.changed"


# R043
def test_a_file_that_is_written_while_it_is_hashed_has_no_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, {"model.bin": bytes(3 * TILE)})
    real = os.preadv

    def write_then_read(file: int, buffers: list[memoryview], offset: int) -> int:
        if offset == TILE:
            with (tmp_path / "model.bin").open("r+b") as other:
                other.write(b"X")
        return real(file, buffers, offset)

    with Source(tmp_path) as source:
        files = source.walk().files
        monkeypatch.setattr(os, "preadv", write_then_read)
        with pytest.raises(Fault) as caught:
            source.digests(files)

    assert caught.value.finding.code == "source.changed"


def test_an_error_of_our_own_in_a_thread_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, {"a.bin": b"1", "b.bin": b"2"})

    def broken(*_: object) -> str:
        raise RuntimeError("ours")

    monkeypatch.setattr(digest, "sha256", broken)
    with Source(tmp_path) as source, pytest.raises(RuntimeError, match="ours"):
        source.digests(source.walk().files)


def test_one_inode_is_read_once(tmp_path: Path) -> None:
    make(tmp_path, {"a.bin": b"12345"})
    (tmp_path / "b.bin").hardlink_to(tmp_path / "a.bin")
    reports: list[Progress] = []
    with Source(tmp_path) as source:
        digests = source.digests(source.walk().files, progress=reports.append)

    assert digests[b"a.bin"] == digests[b"b.bin"]
    assert reports[-1].total == 5


# R046
def test_hashing_leaves_the_source_as_it_was(tmp_path: Path) -> None:
    make(tmp_path, {"a/b.bin": b"1" * 100})
    before = picture(tmp_path)
    with Source(tmp_path) as source:
        source.digests(source.walk().files)

    assert picture(tmp_path) == before


def entry(path: str, size: int, kind: Kind = Kind.FILE, inode: int | None = None) -> Entry:
    """An entry as a walk would give it."""
    return Entry(path.encode(), kind, Identity(1, inode or hash(path), size, 0, 0), size, 1)


@pytest.mark.parametrize(
    ("mode", "limit", "hashed"),
    [
        ("none", 1000, set()),
        ("all", 1, {b"config.json", b"model.bin"}),
        ("auto", 110, {b"config.json", b"model.bin"}),
        ("auto", 109, {b"config.json"}),
    ],
)
def test_which_files_are_hashed(mode: Mode, limit: int, hashed: set[bytes]) -> None:
    entries = [entry("config.json", 10), entry("model.bin", 100), entry("folder", 5, Kind.DIRECTORY)]
    choices = choose(entries, mode, limit, {b"config.json"})

    assert set(choices) == {b"config.json", b"model.bin"}
    assert {path for path, choice in choices.items() if choice.hashed} == hashed
    assert all(choice.reason for choice in choices.values())


def test_the_reason_holds_the_numbers() -> None:
    choices = choose([entry("model.bin", 2000)], "auto", 1000, set())

    assert (
        choices[b"model.bin"].reason == "all files together have 2,000 bytes, more than digest_bytes (1,000)"
    )


def test_a_blob_under_two_names_counts_once() -> None:
    entries = [entry("a", 80, inode=7), entry("b", 80, inode=7)]

    assert all(choice.hashed for choice in choose(entries, "auto", 100, set()).values())


def test_a_walked_folder_can_be_chosen_from(tmp_path: Path) -> None:
    make(tmp_path, {"a/b.bin": b"1"})

    assert list(choose(walked(tmp_path).entries, "auto", 1 << 30, set())) == [b"a/b.bin"]
