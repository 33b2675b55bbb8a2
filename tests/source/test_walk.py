"""The walk: everything is listed, nothing is opened, and what cannot be listed is said."""

import os
import resource
import threading
from pathlib import Path

import pytest

from shardscope.engine.model.blocker import Severity
from shardscope.engine.model.limits import Limits
from shardscope.engine.model.progress import Cancelled, Progress
from shardscope.engine.model.source import Kind
from shardscope.engine.source.source import Source
from tests.source.trees import (
    as_nobody,
    codes,
    deep,
    make,
    names,
    null_device_at,
    open_to_all,
    paths,
    picture,
    socket_at,
    walked,
)


def test_everything_is_listed_by_path_with_its_facts(tmp_path: Path, resolution: str) -> None:
    make(tmp_path, {"b/c/d.bin": b"123", "b-c": b"", "a": b"x" * 5000, "b/c0": b""})
    (tmp_path / "e").mkdir()
    inventory = walked(tmp_path)

    assert [entry.path for entry in inventory.entries] == sorted(
        [b"a", b"b", b"b-c", b"b/c", b"b/c/d.bin", b"b/c0", b"e"]
    )
    entry = inventory.by_path[b"b/c/d.bin"]
    status = (tmp_path / "b/c/d.bin").stat()
    assert entry.kind is Kind.FILE
    assert entry.size == 3
    assert (entry.identity.device, entry.identity.inode) == (status.st_dev, status.st_ino)
    assert (entry.identity.mtime_ns, entry.identity.ctime_ns) == (status.st_mtime_ns, status.st_ctime_ns)
    assert entry.allocated == status.st_blocks * 512
    assert entry.links == 1
    assert inventory.by_path[b"e"].kind is Kind.DIRECTORY
    assert inventory.blockers == ()
    assert not inventory.root_is_file


def test_an_empty_folder_has_an_empty_inventory(tmp_path: Path) -> None:
    inventory = walked(tmp_path)

    assert inventory.entries == ()
    assert inventory.blockers == ()


# R026 R030
def test_the_walk_opens_folders_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, {"a/x.safetensors": b"1" * 100, "a/b/y.bin": b"2", "z.json": b"{}"})
    opened: list[int] = []
    real = os.open

    def recording(path: bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        opened.append(flags)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", recording)
    monkeypatch.setattr(os, "pread", None)
    monkeypatch.setattr("builtins.open", None)
    inventory = walked(tmp_path)

    assert len(inventory.files) == 3
    assert opened
    assert all(flags & os.O_DIRECTORY for flags in opened)


# R042
def test_what_is_no_regular_file_is_an_error_and_is_not_opened(tmp_path: Path) -> None:
    make(tmp_path, {"good.bin": b"1"})
    os.mkfifo(tmp_path / "model.safetensors")
    socket_at(tmp_path / "model.bin")
    inventory = walked(tmp_path)

    assert codes(inventory) == {"source.not_regular": ["model.bin", "model.safetensors"]}
    assert [row.severity for row in inventory.blockers] == [Severity.ERROR] * 2
    assert inventory.by_path[b"model.safetensors"].kind is Kind.FIFO
    assert inventory.by_path[b"model.bin"].kind is Kind.SOCKET
    assert "is a FIFO, not a regular file" in inventory.blockers[1].message


# R042
def test_a_device_in_the_folder_is_an_error(tmp_path: Path) -> None:
    null_device_at(tmp_path / "model.pt")
    inventory = walked(tmp_path)

    assert codes(inventory) == {"source.not_regular": ["model.pt"]}
    assert inventory.entries[0].kind is Kind.DEVICE


# R045
def test_a_tree_of_300_folders_is_cut_at_the_limit_and_read_beyond_it(
    tmp_path: Path, resolution: str
) -> None:
    with deep(tmp_path / "root", b"d", 300):
        cut = walked(tmp_path / "root")
        whole = walked(tmp_path / "root", path_depth=300)

    assert list(codes(cut)) == ["limit.path_depth"]
    assert cut.blockers[0].params["found"] == 65
    assert len(cut.entries) == 65
    assert whole.blockers == ()
    assert whole.entries[-1].path == b"d/" * 300 + b"weights.bin"


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_depth_counts_the_folders_above_a_file(tmp_path: Path, limit: int) -> None:
    make(tmp_path, {"1/2/3/file": b""})
    inventory = walked(tmp_path, path_depth=limit)

    assert (b"1/2/3/file" in inventory.by_path) == (limit == 3)
    assert ("limit.path_depth" in codes(inventory)) == (limit < 3)


# R045
def test_paths_beyond_the_systems_own_limit_are_cut_or_read(tmp_path: Path, resolution: str) -> None:
    name = b"p" * 250
    with deep(tmp_path / "root", name, 40):
        cut = walked(tmp_path / "root")
        with Source(tmp_path / "root", limits=Limits(path_bytes=20_000)) as source:
            whole = source.walk()
            with source.open(whole.entries[-1]) as file:
                size = file.size
            again = source.recheck(whole)

    assert list(codes(cut)) == ["limit.path_bytes"]
    assert len(cut.entries) == 16
    assert whole.blockers == ()
    assert len(whole.entries[-1].path) == 40 * 251 + len(b"weights.bin")
    assert size == 0
    assert again == []


# R045
@pytest.mark.parametrize(("limit", "cut"), [(5, True), (6, False)])
def test_the_number_of_entries_is_limited(tmp_path: Path, limit: int, cut: bool) -> None:
    make(tmp_path, {"a/1": b"", "a/2": b"", "b/1": b"", "b/2": b""})
    inventory = walked(tmp_path, files=limit)

    assert len(inventory.entries) == limit
    assert ("limit.files" in codes(inventory)) == cut


def test_findings_are_counted_beyond_their_limit(tmp_path: Path) -> None:
    for number in range(30):
        os.mkfifo(tmp_path / f"{number:02}")
    inventory = walked(tmp_path, findings=10)

    assert len(codes(inventory)["source.not_regular"]) == 10
    assert inventory.blockers[-1].message == "20 more findings of the kind source.not_regular are not listed."


def test_few_descriptors_suffice(tmp_path: Path) -> None:
    make(tmp_path, {f"{'/'.join('abcdefghij')}/{n}/x.bin": b"1" for n in range(100)})

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 8, hard))
    try:
        with Source(tmp_path) as source:
            inventory = source.walk()
            digests = source.digests(inventory.files)
            changed = source.recheck(inventory)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert inventory.blockers == ()
    assert len(digests) == 100
    assert changed == []


def test_folders_that_cannot_be_listed_leave_the_rest(tmp_path: Path, resolution: str) -> None:
    make(tmp_path / "r", {"closed/in/a": b"", "listed/in/b": b"", "passed/in/c": b"", "good/in/d": b""})
    modes = {"closed": 0o000, "listed": 0o444, "passed": 0o111}
    for name, mode in modes.items():
        (tmp_path / "r" / name).chmod(mode)
    (tmp_path / "r").chmod(0o755)
    open_to_all(tmp_path / "r")

    with as_nobody():
        inventory = walked(tmp_path / "r")
        assert codes(inventory) == {"source.unreadable": ["closed", "listed/in", "passed"]}
        assert b"good/in/d" in inventory.by_path
        assert inventory.by_path[b"listed/in"].kind is Kind.UNKNOWN
        assert "Permission denied" in inventory.blockers[0].message
    for name in modes:
        (tmp_path / "r" / name).chmod(0o700)


def test_holes_are_reported_with_both_sizes(tmp_path: Path) -> None:
    make(tmp_path, {"dense": os.urandom(200_000), "small": b"1"})
    with (tmp_path / "sparse").open("wb") as file:
        file.write(b"head")
        file.truncate(1 << 40)
    inventory = walked(tmp_path)

    assert codes(inventory) == {"source.hole": ["sparse"]}
    assert inventory.blockers[0].params == {
        "allocated": inventory.by_path[b"sparse"].allocated,
        "file": "sparse",
        "size": 1 << 40,
    }
    assert "1.0 TiB (1,099,511,627,776 bytes)" in inventory.blockers[0].message


@pytest.mark.parametrize(
    ("seconds", "when"), [(-2_000_000_000, "before 1980"), (0, "before 1980"), (7_258_118_400, "after 2099")]
)
def test_times_that_say_nothing_are_noted(tmp_path: Path, seconds: int, when: str) -> None:
    make(tmp_path, {"old": b"", "new": b""})
    os.utime(tmp_path / "old", (seconds, seconds))
    inventory = walked(tmp_path)

    assert codes(inventory) == {"source.mtime_odd": ["old"]}
    assert when in inventory.blockers[0].message


# R041
def test_two_names_of_one_file_are_an_error(tmp_path: Path) -> None:
    make(tmp_path / "root", {"b/model.bin": b"1", "alone": b"2"})
    (tmp_path / "root" / "a.bin").hardlink_to(tmp_path / "root" / "b" / "model.bin")
    (tmp_path / "root" / "c.bin").hardlink_to(tmp_path / "root" / "b" / "model.bin")
    (tmp_path / "elsewhere").hardlink_to(tmp_path / "root" / "b" / "model.bin")
    inventory = walked(tmp_path / "root")

    assert codes(inventory) == {"source.hardlink_alias": ["a.bin"], "source.hardlink_outside": ["a.bin"]}
    alias, outside = inventory.blockers
    assert alias.message == "a.bin is one file under 3 names here, b/model.bin among them."
    assert alias.severity is Severity.ERROR
    assert outside.message == "a.bin has further names outside of this folder: 1."
    assert outside.severity is Severity.INFO


def test_hidden_entries_are_listed_and_named_once(tmp_path: Path) -> None:
    make(tmp_path, {".git/refs/.x": b"", ".metadata": b"", ".secret.bin": b"", "a/.b": b""})
    inventory = walked(tmp_path)

    assert codes(inventory) == {"source.hidden": [".git", ".secret.bin", "a/.b"]}
    assert b".git/refs/.x" in inventory.by_path


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (b"a\x1b[2Jb", "control characters"),
        ("a\u009bb".encode(), "control characters"),
        ("a\u202eb".encode(), "direction of writing"),
        ("a\u200bb".encode(), "invisible"),
        (("a" + "\u0301" * 50).encode(), "stacked"),
        (b" a", "spaces"),
        (b"a ", "spaces"),
        ("m\u043edel.bin".encode(), "different alphabets"),
    ],
)
def test_names_that_deceive_are_a_warning(tmp_path: Path, name: bytes, what: str) -> None:
    inventory = walked(names(tmp_path / "r", name))

    assert list(codes(inventory)) == ["source.name_odd"]
    assert what in inventory.blockers[0].message
    assert inventory.blockers[0].message.isprintable()
    assert inventory.entries[0].path == name


@pytest.mark.parametrize(
    "name",
    ["модель.bin", "モデル.bin", "café.bin", "-rf", "[red]x", "$(id)", "a b", "..w", "%s%n", "e\u0301"],
)
def test_names_of_any_language_are_in_order(tmp_path: Path, name: str) -> None:
    inventory = walked(names(tmp_path / "r", name.encode()))

    assert {row.code for row in inventory.blockers} <= {"source.hidden"}


def test_names_that_are_no_text_keep_their_bytes(tmp_path: Path) -> None:
    inventory = walked(names(tmp_path / "r", b"w\xff.bin", b"\xed\xa0\x80", b"w\\xff.bin"))

    assert codes(inventory) == {
        "source.name_not_utf8": ["w\\xff.bin", "\\xed\\xa0\\x80"],
        "source.name_collision": ["w\\xff.bin"],
    }
    assert [entry.path for entry in inventory.entries] == [b"w\\xff.bin", b"w\xff.bin", b"\xed\xa0\x80"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Model.bin", "model.bin"),
        ("caf\u00e9", "cafe\u0301"),
        ("STRASSE", "stra\u00dfe"),
        ("a\x1bb", "a\u241bb"),
    ],
)
def test_names_that_look_alike_are_a_warning(tmp_path: Path, one: str, other: str) -> None:
    inventory = walked(names(tmp_path / "r", one.encode(), other.encode(), b"third"))

    assert len(codes(inventory)["source.name_collision"]) == 1


def test_equal_names_in_different_folders_are_in_order(tmp_path: Path) -> None:
    make(tmp_path, {"a/model.bin": b"", "b/Model.bin": b""})

    assert walked(tmp_path).blockers == ()


def test_the_walk_is_cancelled_and_reports_itself(tmp_path: Path) -> None:
    make(tmp_path, {f"{n}/x": b"" for n in range(50)})
    reports: list[Progress] = []
    cancel = threading.Event()
    with Source(tmp_path) as source:
        source.walk(cancel, reports.append)
        assert reports[-1].done == 100
        assert {report.stage for report in reports} == {"walk"}

        cancel.set()
        with pytest.raises(Cancelled):
            source.walk(cancel)


# R046 R047
def test_the_source_is_left_as_it_was(tmp_path: Path) -> None:
    root = make(tmp_path / "root", {"a/b.bin": b"1" * 70_000, "c.json": b"{}"})
    (root / "link").symlink_to("c.json")
    os.mkfifo(root / "fifo")
    before = picture(root)

    with Source(root) as source:
        inventory = source.walk()
        source.digests(inventory.files)
        for entry in inventory.files:
            with source.open(entry) as file:
                file.pread(0, file.size)
        assert source.recheck(inventory) == []

    assert picture(root) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["root"]


# R047
def test_a_folder_that_nobody_may_write_is_inspected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "root", {"a/b.bin": b"1"})
    for path in (root / "a" / "b.bin", root / "a", root):
        path.chmod(0o444 if path.is_file() else 0o555)
    open_to_all(root)

    with as_nobody():
        monkeypatch.chdir(root)
        with Source(".") as source:
            inventory = source.walk()
            assert paths(inventory) == ["a", "a/b.bin"]
            assert len(source.digests(inventory.files)) == 1
    (root / "a").chmod(0o755)
    root.chmod(0o755)
