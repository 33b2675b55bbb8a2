"""Only what is certainly ours and certainly dead is removed: look-alikes, links, lies and living runs stay."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from shardscope.engine.convert.disk.names import JOURNAL, MARKER, lock_name, staging_name
from shardscope.engine.convert.disk.owner import this_process
from shardscope.engine.convert.stage.cleaning import find, remove
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.model.staging import Marker, Owner
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

ROOT = Path(__file__).parents[2]


def dead() -> Owner:
    """The identity of a process that has ended."""
    here = this_process()
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return msgspec.structs.replace(here, pid=child.pid, started=1)


def left(folder: Path, name: str = "out") -> Path:
    """Leave a staging folder of a dead run."""
    with Staging(folder / name, allowed=ALLOWED, keep=True) as staging:
        fill(staging)
    path = folder / staging.file
    marker = msgspec.json.decode((path / os.fsdecode(MARKER)).read_bytes(), type=Marker)
    changed = msgspec.structs.replace(marker, owner=dead())
    (path / os.fsdecode(MARKER)).write_bytes(msgspec.json.encode(changed))
    return path


def cleaned(folder: Path, *, old: bool = False) -> list[str]:
    """Remove what may be removed; return the names of what is gone."""
    going = [each for each in find(folder, old=old) if each.entry.stays is None]
    return [each.entry.name for each in going if remove(each, old=old) is None]


def test_a_dead_run_is_listed_and_removed(tmp_path: Path) -> None:
    path = left(tmp_path)
    lock = tmp_path / os.fsdecode(lock_name(b"out"))
    lock.write_bytes(msgspec.json.encode(dead()))
    make(tmp_path / "out2", NEW)
    found = {each.entry.name: each.entry for each in find(tmp_path)}

    assert {entry.holds for entry in found.values()} == {"staged files", "lock"}
    assert found[path.name].target == "out"
    assert found[path.name].bytes >= sum(map(len, NEW.values()))
    assert found[path.name].stays is None
    assert path.exists()
    assert set(cleaned(tmp_path)) == {path.name, lock.name}
    assert {each.name for each in tmp_path.iterdir()} == {"out2"}
    assert find(tmp_path) == []


def test_a_target_leads_to_what_lies_beside_it(tmp_path: Path) -> None:
    ours, other = left(tmp_path), left(tmp_path, "other")

    assert [each.entry.name for each in find(tmp_path / "out")] == [ours.name]
    make(tmp_path / "other", NEW)
    assert [each.entry.name for each in find(str(tmp_path / "other") + "/")] == [other.name]
    with fault("clean.unreadable"):
        find(tmp_path / "no" / "such")


@pytest.mark.parametrize(
    "name",
    [
        "out",
        ".out",
        ".out.shardscope-staging-",
        ".out.shardscope-staging-1234567",
        ".out.shardscope-staging-123456789",
        ".out.shardscope-staging-ABCDEF01",
        ".shardscope-staging-12345678",
        "out.shardscope-staging-12345678",
        ".out.shardscope-staging-12345678.bak",
    ],
)
def test_another_name_is_not_ours_whatever_is_in_it(tmp_path: Path, name: str) -> None:
    left(tmp_path).rename(tmp_path / name)

    assert find(tmp_path) == []


def test_look_alikes_without_our_marker_stay(tmp_path: Path) -> None:
    names = [tmp_path / f".out.shardscope-staging-{number:08x}" for number in range(6)]
    make(names[0], {"precious": b"1"})
    make(names[1], {"shardscope-staging.json": b"{}", "precious": b"1"})
    make(names[2], {"shardscope-staging.json": b"[" * 100_000})
    names[3].write_bytes(b"a file")
    make(names[4], {"output/model.safetensors": b"1", "journal.jsonl": b"{}\n"})
    names[5].mkdir()
    os.mkfifo(names[5] / os.fsdecode(MARKER))
    for lock in (b"a", b"b", b"c"):
        (tmp_path / os.fsdecode(lock_name(lock))).write_bytes(b'{"not": "ours"}')
    (tmp_path / os.fsdecode(lock_name(b"d"))).mkdir()

    assert find(tmp_path) == []


def test_links_are_neither_followed_nor_removed(tmp_path: Path) -> None:
    precious = make(tmp_path / "precious", NEW)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    there = left(elsewhere)
    (tmp_path / ".out.shardscope-staging-00000001").symlink_to(there)
    (tmp_path / os.fsdecode(lock_name(b"out"))).symlink_to(precious / "config.json")
    assert find(tmp_path) == []

    (tmp_path / os.fsdecode(lock_name(b"out"))).unlink()
    path = left(tmp_path)
    (path / "attempts").symlink_to(precious)
    (path / "output" / "link").symlink_to(precious / "config.json")
    os.link(precious / "model.safetensors", path / "output" / "hard")
    assert cleaned(tmp_path) == [path.name]
    assert read(precious) == NEW
    assert there.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "other"},
        {"target": "../out"},
        {"target_hex": "6f7574"},
        {"target_hex": "zz"},
        {"target": "out\\x00", "target_hex": "6f757400"},
    ],
)
def test_a_marker_about_another_target_is_not_believed(tmp_path: Path, changes: dict[str, str]) -> None:
    path = left(tmp_path)
    marker = json.loads((path / os.fsdecode(MARKER)).read_bytes())
    (path / os.fsdecode(MARKER)).write_text(json.dumps({**marker, **changes}))

    assert find(tmp_path) == []


def test_a_folder_with_something_strange_stays(tmp_path: Path) -> None:
    path = left(tmp_path)
    make(path, {"thesis.tex": b"years of work"})
    (found,) = find(tmp_path)

    assert found.entry.stays == "it holds something that shardscope does not make"
    assert cleaned(tmp_path) == []
    assert remove(found) is not None
    assert (path / "thesis.tex").exists()


@needs_root
def test_a_folder_with_a_mount_in_it_stays(tmp_path: Path) -> None:
    path = left(tmp_path)
    (path / "output" / "mnt").mkdir()
    with mounted(path / "output" / "mnt", "tmpfs", "size=1m"):
        make(path / "output" / "mnt", {"precious": b"1"})
        (found,) = find(tmp_path)
        assert found.entry.stays == "something is mounted in it"
        assert remove(found) is not None
        assert (path / "output/mnt/precious").exists()


@needs_root
def test_what_another_user_made_stays(tmp_path: Path) -> None:
    path = left(tmp_path)
    os.chown(path, 65534, 65534)

    assert [each.entry.stays for each in find(tmp_path)] == ["it is another user's"]
    assert cleaned(tmp_path) == []


@contextmanager
def running(target: Path) -> Iterator[int]:
    """A process that stages to `target` inside the block; its number."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom shardscope.engine.convert.stage.staging import Staging\n"
        "with Staging(Path(sys.argv[1]), allowed=9) as s:\n    s.write_small('a', b'1')\n    print(flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.communicate(b"")
        assert process.returncode == 0


def test_a_living_run_keeps_its_folder_and_its_lock(tmp_path: Path) -> None:
    with running(tmp_path / "out") as pid:
        found = find(tmp_path)
        assert [each.entry.stays for each in found] == [f"process {pid} still runs"] * 2
        assert all(remove(each) is not None for each in found)
        os.unlink(tmp_path / os.fsdecode(lock_name(b"out")))  # even without its lock
        assert cleaned(tmp_path) == []
        assert len(hidden(tmp_path)) == 1


def test_a_lock_that_the_kernel_holds_stays(tmp_path: Path) -> None:
    path = left(tmp_path)
    lock = tmp_path / os.fsdecode(lock_name(b"out"))
    lock.write_bytes(msgspec.json.encode(dead()))  # it says so, and is wrong
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert cleaned(tmp_path) == []
    assert set(cleaned(tmp_path)) == {path.name, lock.name}


def test_a_lock_of_another_machine_stays(tmp_path: Path) -> None:
    path = left(tmp_path)
    owner = msgspec.structs.replace(dead(), boot="elsewhere", host="elsewhere")
    (tmp_path / os.fsdecode(lock_name(b"out"))).write_bytes(msgspec.json.encode(owner))

    assert cleaned(tmp_path) == []
    assert path.exists()


def test_a_run_that_begins_between_list_and_removal_is_left_alone(tmp_path: Path) -> None:
    left(tmp_path)
    (found,) = find(tmp_path)
    with running(tmp_path / "out"):
        why = remove(found)

    assert why is not None
    assert "is running" in why


def test_what_changed_between_list_and_removal_stays(tmp_path: Path) -> None:
    path = left(tmp_path)
    (found,) = find(tmp_path)
    path.rename(tmp_path / "aside")
    make(path, {"precious": b"1"})

    assert remove(found) == "it is no longer what was listed"
    assert (path / "precious").exists()


# R112
def test_an_old_output_goes_only_when_asked_for_and_never_as_the_last_one(tmp_path: Path) -> None:
    make(tmp_path / "out", OLD)
    convert(tmp_path / "out", replace=True)
    (found,) = find(tmp_path)
    assert found.entry.holds == "old output"
    assert found.entry.stays == "it holds the old output (--old removes it)"
    assert cleaned(tmp_path) == []
    assert remove(found) is not None

    (tmp_path / "out").rename(tmp_path / "away")
    assert cleaned(tmp_path, old=True) == []
    (tmp_path / "away").rename(tmp_path / "out")
    assert cleaned(tmp_path, old=True) == [found.entry.name]
    assert read(tmp_path / "out") == NEW


def test_an_old_output_under_the_name_of_the_new_one_is_known(tmp_path: Path) -> None:
    """As an exchange leaves it whose run was killed right after."""
    make(tmp_path / "out", OLD)

    class Killed(BaseException):
        pass

    def at(step: str) -> None:
        if step == "promote.set_aside":
            raise Killed

    with pytest.raises(Killed):
        convert(tmp_path / "out", replace=True, at=at)
    (found,) = find(tmp_path)

    assert found.entry.holds == "old output"
    assert cleaned(tmp_path) == []
    assert read(tmp_path / found.entry.name / "output") == OLD


def test_a_removal_that_is_killed_at_any_step_is_finished_by_the_next(tmp_path: Path) -> None:
    for step in range(1, 40):
        path = left(tmp_path)
        (found,) = (each for each in find(tmp_path) if each.entry.name == path.name)
        taken = 0

        def at(_: str, stop: int = step) -> None:
            nonlocal taken
            taken += 1
            if taken == stop:
                os.kill(os.getpid(), signal.SIGKILL)

        child = os.fork()
        if child == 0:
            os._exit(0 if remove(found, at=at) is None else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        cleaned(tmp_path)
        assert hidden(tmp_path) == []
        if status == 0:
            break
        assert status == -signal.SIGKILL
    assert 10 < step < 39


def test_a_damaged_journal_does_not_keep_a_folder(tmp_path: Path) -> None:
    path = left(tmp_path)
    (path / os.fsdecode(JOURNAL)).write_bytes(b"not a journal\n")

    assert cleaned(tmp_path) == [path.name]


def test_a_clock_that_was_set_back_makes_no_negative_ages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(tmp_path)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert [each.entry.age_seconds for each in find(tmp_path)] == [0]


def test_names_that_are_cut_or_no_text_are_found(tmp_path: Path) -> None:
    for name in ("x" * 200, os.fsdecode(b"\xff\xfe"), "a b\n"):
        path = left(tmp_path, name)
        assert staging_name(os.fsencode(name))[:9] == os.fsencode(path.name)[:9]
        assert [each.entry.stays for each in find(tmp_path / name)] == [None]
        assert len(cleaned(tmp_path)) == 1
    assert hidden(tmp_path) == []
