"""The staging folder: where it may be, what it takes, what is left of it."""

import errno
import json
import os
import stat
import threading
from pathlib import Path

import msgspec
import pytest

from shardscope.engine.convert.disk.journal import read_journal
from shardscope.engine.convert.disk.leftovers import find_staging, recognise
from shardscope.engine.convert.disk.marker import read_marker
from shardscope.engine.convert.disk.names import JOURNAL, MARKER, is_staging_name, lock_name, staging_name
from shardscope.engine.convert.disk.owner import Life, life
from shardscope.engine.convert.stage import staging as staging_module
from shardscope.engine.convert.stage.promotion import promote
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.progress import Cancelled
from shardscope.engine.model.staging import FileRecord
from tests.convert.targets import (
    ALLOWED,
    NEW,
    OLD,
    convert,
    fault,
    fill,
    hidden,
    make,
    mounted,
    needs_root,
    read,
)
from tests.schemas import validate


def enter(target: Path | str, *, replace: bool = False, sources: tuple[Path, ...] = ()) -> None:
    """Enter and leave."""
    with Staging(target, allowed=ALLOWED, replace=replace, sources=sources):
        pass


# R111
def test_the_staging_folder_is_a_marked_private_sibling(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=ALLOWED) as staging:
        fill(staging)
        (found,) = find_staging(staging.place.parent, b"out")
        folder = tmp_path / os.fsdecode(found.name)
        marker = read_marker(staging.folder)

        assert folder.parent == tmp_path
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert read(folder / "output") == NEW
        assert marker is not None
        assert (marker.target, marker.state, life(marker.owner)) == ("out", "staging", Life.ALIVE)
        text = (folder / os.fsdecode(MARKER)).read_text()
        validate(json.loads(text), "shardscope.staging/1")
        assert str(tmp_path) not in text
        assert staging.control_bytes() == len(text) + (folder / os.fsdecode(JOURNAL)).stat().st_size
        assert not (tmp_path / "out").exists()


def test_what_is_staged_can_be_read_as_a_stranger_would(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=ALLOWED) as staging:
        fill(staging)
        descriptor = staging.open_staged("sub/ranks.json")
        try:
            assert os.read(descriptor, 100) == NEW["sub/ranks.json"]
        finally:
            os.close(descriptor)
        (tmp_path / staging.file).rename(tmp_path / "moved")
        assert read(Path(staging.staged_path())) == NEW


def test_files_have_the_mode_of_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        convert(tmp_path / "out")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "out/sub").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "out/config.json").stat().st_mode) == 0o640


# R112 R113
@pytest.mark.parametrize("error", [Cancelled, KeyboardInterrupt, ValueError])
def test_leaving_without_promotion_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    make(tmp_path / "out", OLD)
    staging = Staging(tmp_path / "out", allowed=ALLOWED, replace=True)

    def work() -> None:
        with staging:
            fill(staging)
            raise error

    with pytest.raises(error):
        work()

    assert [note.code for note in staging.notes] == ["stage.nothing_promoted"]
    assert read(tmp_path / "out") == OLD
    assert hidden(tmp_path) == []


def test_what_was_staged_can_be_kept(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=ALLOWED, keep=True, plan="abc") as staging:
        staging.write_small("config.json", b"{}")

    assert [note.code for note in staging.notes] == ["stage.kept"]
    folder = os.open(tmp_path / staging.file, os.O_RDONLY)
    journal = read_journal(folder)
    os.close(folder)
    assert journal is not None
    assert journal[0].plan == "abc"
    (record,) = journal[1]
    assert (record.file, record.size) == ("config.json", 2)
    assert record.sha256 == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert hidden(tmp_path) == [staging.file]


@pytest.mark.parametrize("name", ["", "/", ".", "..", "x/..", "x/.", "a\0b", "n" * 256])
def test_a_target_needs_a_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with fault("stage.target_name"):
        enter(name)


@pytest.mark.parametrize("name", ["n" * 255, "é" * 127, "a b", "-x", "..x", "\udcff"])
def test_any_other_name_will_do(name: str, tmp_path: Path) -> None:
    convert(tmp_path / name)
    convert(tmp_path / name, replace=True)

    assert read(tmp_path / name) == NEW
    (left,) = hidden(tmp_path) if not name.startswith(".") else hidden(tmp_path)[:1]
    assert is_staging_name(os.fsencode(left), os.fsencode(name))


def test_names_beside_long_targets_differ() -> None:
    one, other = b"n" * 254 + b"1", b"n" * 254 + b"2"

    assert lock_name(one) != lock_name(other)
    assert not is_staging_name(staging_name(one), other)
    assert len(staging_name(one)) <= 255


def test_the_parent_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with fault("stage.parent_missing"):
        enter(tmp_path / "absent" / "out")
    with fault("stage.parent_missing"):
        enter(tmp_path / "file" / "out")


def test_an_existing_target_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with fault("stage.target_exists") as caught:
        enter(tmp_path / "out")

    assert CODES[caught.value.finding.code].exit is ExitCode.OUTPUT
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("replace", [False, True])
def test_only_a_folder_can_be_replaced(tmp_path: Path, replace: bool) -> None:
    make(tmp_path / "real", OLD)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("nothing")

    with fault("stage.target_not_folder"):
        enter(tmp_path / "file", replace=replace)
    for link in ("link", "dangling", "link/"):
        with fault("stage.target_link"):
            enter(f"{tmp_path}/{link}", replace=replace)
    assert read(tmp_path / "real") == OLD


def test_links_on_the_way_are_followed_once(tmp_path: Path) -> None:
    (tmp_path / "disk-1").mkdir()
    (tmp_path / "disk-2").mkdir()
    (tmp_path / "scratch").symlink_to("disk-1")
    with Staging(tmp_path / "scratch/out", allowed=ALLOWED) as staging:
        fill(staging)
        (tmp_path / "scratch").unlink()
        (tmp_path / "scratch").symlink_to("disk-2")
        with fault("promote.parent_changed"):
            promote(staging)

    assert read(tmp_path / "disk-1/out") is None
    assert hidden(tmp_path / "disk-2") == []


# R110
def test_target_and_source_stay_apart(tmp_path: Path) -> None:
    source = make(tmp_path / "source", {"a/model.bin": b"1"})
    (tmp_path / "door").symlink_to("source/a")

    with fault("stage.inside_source"):
        enter(source / "out", sources=(source,))
    with fault("stage.inside_source"):
        enter(tmp_path / "door" / "out", sources=(source,))
    with fault("stage.target_is_source"):
        enter(source, replace=True, sources=(source,))
    with fault("stage.source_inside"):
        enter(source, replace=True, sources=(source / "a",))
    with fault("stage.source_inside"):
        enter(source, replace=True, sources=(source / "a/model.bin",))
    with fault("stage.source_inside"):
        enter(source, replace=True, sources=(tmp_path / "door" / "model.bin",))
    with fault("source.missing"):
        enter(tmp_path / "out", sources=(tmp_path / "absent",))
    assert hidden(source) == hidden(tmp_path) == []

    enter(source / "a" / "out", sources=(source / "a/model.bin",))  # beside a source that is one file


@needs_root
def test_a_mount_is_no_target(tmp_path: Path) -> None:
    with mounted(tmp_path / "out", "tmpfs", "size=1m"), fault("stage.target_mount"):
        enter(tmp_path / "out", replace=True)


@needs_root
def test_a_bind_mount_of_the_same_file_system_is_no_target_and_no_way_into_a_source(tmp_path: Path) -> None:
    import subprocess

    source = make(tmp_path / "source", {"a/model.bin": b"1"})
    other = tmp_path / "other"
    other.mkdir()
    done = subprocess.run(
        ["mount", "--bind", str(source / "a"), str(other)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("this machine does not bind folders")
    try:
        with fault("stage.target_mount"):
            enter(other, replace=True)
        with fault("stage.inside_source"):
            enter(other / "out", sources=(source / "a",))
    finally:
        subprocess.run(["umount", str(other)], check=True)


@needs_root
def test_a_read_only_file_system_says_so(tmp_path: Path) -> None:
    with mounted(tmp_path / "m", "tmpfs", "size=1m,ro") as folder, fault("stage.read_only"):
        enter(folder / "out")


@pytest.mark.parametrize(
    "name", ["", "/abs", "a//b", "../x", "a/../b", ".", "a/.", "x\ny", "n" * 256, "a/" * 9 + "b", "\u202ex"]
)
def test_names_of_files_are_plain(tmp_path: Path, name: str) -> None:
    with Staging(tmp_path / "out", allowed=ALLOWED) as staging, fault("stage.file_name"):
        staging.create(name, 1)


def test_a_file_is_made_once(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=ALLOWED) as staging:
        staging.write_small("a", b"1")
        with fault("stage.file_exists"):
            staging.create("a", 1)
        (tmp_path / staging.file / "output" / "b").symlink_to(tmp_path / "elsewhere")
        with fault("stage.file_exists"):
            staging.create("b", 1)
        (tmp_path / staging.file / "output" / "c").symlink_to(tmp_path)
        with fault("stage.write_failed"):
            staging.create("c/d", 1)

    assert not (tmp_path / "elsewhere").exists()
    assert not (tmp_path / "d").exists()


# R106
def test_more_than_was_announced_is_refused(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=100) as staging:
        file = staging.create("a", 60)
        for offset, count in ((0, 61), (50, 11), (-1, 1), (60, 1)):
            with fault("stage.over_budget"):
                file.write_at(offset, bytes(count))
        file.write_at(0, bytes(60))
        with fault("stage.over_budget"):  # a source that goes on delivering, inside the file
            file.write_at(0, b"x")
        file.finish()
        with fault("stage.over_budget") as caught:
            staging.create("b", 41)
        assert caught.value.finding.params == {"file": "b", "allowed": 100, "wanted": 101}
        staging.write_small("c", bytes(40))

        assert promote(staging).bytes == 100


# R106
def test_what_was_written_past_the_counter_is_found(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=100) as staging:
        file = staging.create("a", 10)
        file.claim(0, 10)
        os.pwrite(file.fileno(), bytes(11), 0)
        with fault("stage.over_budget"):
            file.finish()
        with fault("promote.unfinished"):
            promote(staging)

    assert read(tmp_path / "out") is None


# R106
def test_growth_after_finishing_stops_promotion(tmp_path: Path) -> None:
    make(tmp_path / "out", OLD)
    with Staging(tmp_path / "out", allowed=100, replace=True) as staging:
        staging.write_small("a", bytes(10))
        with (tmp_path / staging.file / "output/a").open("ab") as late:
            late.write(b"more")
        with fault("promote.unexpected"):
            promote(staging)

    assert read(tmp_path / "out") == OLD


@pytest.mark.parametrize("what", ["extra", "gone", "link", "hard link", "fifo"])
def test_the_output_holds_what_was_finished_and_nothing_else(tmp_path: Path, what: str) -> None:
    with Staging(tmp_path / "out", allowed=ALLOWED) as staging:
        fill(staging)
        output = tmp_path / staging.file / "output"
        if what == "extra":
            (output / "x").touch()
        elif what == "gone":
            (output / "config.json").unlink()
        elif what == "link":
            (output / "x").symlink_to("config.json")
        elif what == "hard link":
            (tmp_path / "alias").hardlink_to(output / "config.json")
        else:
            os.mkfifo(output / "x")
        with fault("promote.unexpected"):
            promote(staging)

    assert not (tmp_path / "out").exists()


def test_missing_bytes_are_found_although_the_file_has_its_length(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=100) as staging, staging.create("a", 10) as file:
        file.write_at(0, bytes(4))
        file.write_at(5, bytes(5))
        assert os.fstat(file.fileno()).st_size == 10
        with fault("stage.incomplete") as caught:
            file.finish()

    assert caught.value.finding.params == {"file": "a", "written": 9, "size": 10}


def test_an_unfinished_file_stops_promotion(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=100) as staging:
        with staging.create("a", 10):
            pass
        with fault("promote.unfinished"):
            promote(staging)


def test_a_finished_file_takes_no_more(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=100) as staging, staging.create("a", 0) as file:
        file.finish()
        with pytest.raises(ValueError, match="a is finished"):
            file.fileno()


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOSYS])
def test_file_systems_that_reserve_nothing_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(descriptor: int, size: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("shardscope.engine.convert.disk.output.allocate", refuse)
    convert(tmp_path / "out")

    assert read(tmp_path / "out") == NEW


def test_blocks_are_reserved(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=ALLOWED) as staging, staging.create("a", ALLOWED) as file:
        if os.fstat(file.fileno()).st_blocks == 0:
            pytest.skip("this file system reserves nothing")
        assert os.fstat(file.fileno()).st_blocks * 512 >= ALLOWED


def test_many_threads_make_many_files(tmp_path: Path) -> None:
    count = 40
    with Staging(tmp_path / "out", allowed=count) as staging:

        def work(first: int) -> None:
            for number in range(first, count, 4):
                staging.write_small(f"{number % 3}/{number}", b"x")

        threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held = len(os.listdir("/proc/self/fd"))
        promoted = promote(staging)

    assert held < count  # only so many stay open until they are durable
    assert len(promoted.files) == count
    assert read(tmp_path / "out") == {f"{number % 3}/{number}": b"x" for number in range(count)}


def test_descriptors_are_closed(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    convert(tmp_path / "out")
    convert(tmp_path / "out", replace=True)
    with fault("stage.target_exists"):
        convert(tmp_path / "out")
    with Staging(tmp_path / "x", allowed=9, sources=(tmp_path / "out",)) as staging:
        staging.create("a", 3)

    assert len(os.listdir("/proc/self/fd")) == before


def test_a_torn_last_line_of_a_journal_is_not_read(tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=ALLOWED, keep=True) as staging:
        staging.write_small("a", b"1")
        staging.write_small("b", b"2")
    path = tmp_path / staging.file / os.fsdecode(JOURNAL)
    whole = path.read_bytes()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        for length in range(len(whole) + 1):
            path.write_bytes(whole[:length])
            journal = read_journal(folder)
            lines = whole[:length].count(b"\n")
            assert (journal is None) == (lines == 0)
            if journal is not None:
                assert [record.file for record in journal[1]] == ["a", "b"][: lines - 1]
        path.write_bytes(whole.replace(b'"a"', b'"a'))
        with fault("stage.journal_damaged") as caught:
            read_journal(folder)
        assert caught.value.finding.params["line"] == 2
        again = FileRecord("a", 7, None)
        path.write_bytes(whole + msgspec.json.encode(again) + b"\n")
        journal = read_journal(folder)
        assert journal is not None
        assert journal[1][0] == again
    finally:
        os.close(folder)


def test_only_marked_folders_are_known_for_ours(tmp_path: Path) -> None:
    names = [f".out.shardscope-staging-{number:08x}" for number in range(5)]
    (tmp_path / names[0]).mkdir()
    make(tmp_path / names[1], {"shardscope-staging.json.new": b"{"})
    make(tmp_path / names[2], {"precious": b"1"})
    make(tmp_path / names[3], {"shardscope-staging.json": b"{}", "precious": b"1"})
    (tmp_path / names[4]).symlink_to(names[0])
    make(tmp_path / ".out.shardscope-staging-xyz", {})
    parent = os.open(tmp_path, os.O_RDONLY)
    try:
        assert [os.fsdecode(each.name) for each in find_staging(parent)] == names[:2]
        assert recognise(parent, b"out") is None
    finally:
        os.close(parent)


def test_a_folder_that_cannot_be_removed_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(parent: int, name: bytes, at: object) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(staging_module, "remove_staging", refuse)
    with Staging(tmp_path / "out", allowed=ALLOWED) as staging:
        fill(staging)
        promote(staging)

    assert [note.code for note in staging.notes] == ["stage.not_removed"]
    assert read(tmp_path / "out") == NEW
