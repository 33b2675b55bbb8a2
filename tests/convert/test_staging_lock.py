"""One conversion for each target, and locks that were left behind."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from shardscope.engine.convert.disk.owner import Life, life, this_process
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.model.staging import Owner
from tests.convert.targets import ALLOWED, NEW, convert, fault, fill, hidden, read

LOCK = ".out.shardscope-lock"
GONE = 2**22 - 1
"""A process number that no process has here: above what this test starts, and checked before use."""


def enter(target: Path) -> None:
    with Staging(target, allowed=ALLOWED):
        pass


def leave_lock(folder: Path, owner: Owner) -> None:
    (folder / LOCK).write_bytes(msgspec.json.encode(owner))


@pytest.fixture
def no_flock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without the kernel's lock."""

    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)


def here(**changes: int | str | None) -> Owner:
    return msgspec.convert(msgspec.to_builtins(this_process()) | changes, Owner)


def test_an_identity_is_of_this_process_and_names_nobody() -> None:
    me = this_process()

    assert me.pid == os.getpid()
    assert me.started is not None
    assert me.boot is not None
    assert life(me) is Life.ALIVE
    assert os.uname().nodename not in me.host


def test_life_is_told_by_number_and_start() -> None:
    assert not os.path.exists(f"/proc/{GONE}")
    assert life(here(pid=GONE)) is Life.DEAD
    assert life(here(started=1)) is Life.DEAD  # the number is used again
    assert life(here(boot="another")) is Life.DEAD  # this machine, before its last start
    assert life(here(boot="another", host="another")) is Life.ELSEWHERE
    assert life(here(boot=None)) is Life.ELSEWHERE
    assert life(here(namespace=1)) is Life.HIDDEN


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    started = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert life(here(pid=child.pid, started=started)) is Life.DEAD
    child.wait()


@pytest.mark.parametrize("kernel", [True, False])
def test_two_conversions_to_one_target(tmp_path: Path, kernel: bool, request: pytest.FixtureRequest) -> None:
    if not kernel:
        request.getfixturevalue("no_flock")
    with Staging(tmp_path / "out", allowed=ALLOWED) as staging:
        with fault("stage.busy") as caught:
            enter(tmp_path / "out")
        assert caught.value.finding.params == {"file": "out", "pid": os.getpid()}
        enter(tmp_path / "other")
        fill(staging)
    enter(tmp_path / "out")

    assert hidden(tmp_path) == []


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("changes", [{"pid": GONE}, {"started": 1}, {"boot": "another"}])
def test_a_lock_that_was_left_behind_stops_nobody(
    tmp_path: Path, changes: dict[str, int | str | None], kernel: bool, request: pytest.FixtureRequest
) -> None:
    if not kernel:
        request.getfixturevalue("no_flock")
    leave_lock(tmp_path, here(**changes))
    convert(tmp_path / "out")

    assert read(tmp_path / "out") == NEW
    assert hidden(tmp_path) == []


def test_an_empty_lock_was_left_by_one_that_ended_before_it_wrote(tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    convert(tmp_path / "out")

    assert hidden(tmp_path) == []


def test_a_lock_of_another_machine_stays(tmp_path: Path) -> None:
    leave_lock(tmp_path, here(boot="another", host="another"))
    with fault("stage.locked_elsewhere"):
        enter(tmp_path / "out")

    assert hidden(tmp_path) == [LOCK]


def test_a_lock_of_another_container_is_judged_by_the_kernel(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    leave_lock(tmp_path, here(namespace=1))
    enter(tmp_path / "out")
    leave_lock(tmp_path, here(namespace=1))
    request.getfixturevalue("no_flock")
    with fault("stage.locked_elsewhere"):
        enter(tmp_path / "out")


@pytest.mark.parametrize("what", ["text", "large", "no process", "folder", "link", "fifo"])
def test_something_else_of_that_name_stays(tmp_path: Path, what: str) -> None:
    lock = tmp_path / LOCK
    if what == "folder":
        lock.mkdir()
    elif what == "link":
        lock.symlink_to("precious")
        (tmp_path / "precious").touch()
    elif what == "no process":
        lock.write_bytes(msgspec.json.encode(here()).replace(b'"pid":', b'"pid":-'))
    elif what == "fifo":
        os.mkfifo(lock)
    else:
        lock.write_bytes(b"precious" if what == "text" else bytes(5000))
    with fault("stage.lock_foreign"):
        enter(tmp_path / "out")

    assert os.path.lexists(lock)


RACER = """
import sys
from shardscope.engine.model.blocker import Fault
from tests.convert.targets import convert
from pathlib import Path
sys.stdin.readline()
try:
    convert(Path(sys.argv[1]), replace=sys.argv[2] == "replace")
    print("done")
except Fault as fault:
    print(fault.finding.code)
"""


@pytest.mark.parametrize("replace", [False, True])
def test_processes_that_start_at_once(tmp_path: Path, replace: bool) -> None:
    leave_lock(tmp_path, here(pid=GONE))
    arguments = [sys.executable, "-c", RACER, str(tmp_path / "out"), "replace" if replace else "new"]
    racers = [
        subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        for _ in range(6)
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    said = sorted(racer.communicate()[0].strip() for racer in racers)

    assert set(said) <= {"done", "stage.busy", "stage.target_exists"}
    assert "done" in said
    if not replace:
        assert said.count("done") == 1
    assert read(tmp_path / "out") == NEW
    assert LOCK not in hidden(tmp_path)


def test_a_lock_that_changes_hands_while_it_is_judged_stays(tmp_path: Path) -> None:
    """A dead lock was opened; before it is locked, another run has cleared it away and made its own."""
    leave_lock(tmp_path, here(pid=GONE))
    held: list[int] = []

    def change_hands(step: str) -> None:
        if step == "lock.flock" and not held:
            (tmp_path / LOCK).unlink()
            leave_lock(tmp_path, this_process())
            held.append(os.open(tmp_path / LOCK, os.O_RDONLY))
            fcntl.flock(held[0], fcntl.LOCK_EX)

    try:
        with fault("stage.busy"), Staging(tmp_path / "out", allowed=ALLOWED, at=change_hands):
            pass
    finally:
        os.close(held[0])

    assert hidden(tmp_path) == [LOCK]


def test_a_new_lock_that_is_cleared_away_before_it_is_locked_is_made_again(tmp_path: Path) -> None:
    cleared: list[str] = []

    def clear(step: str) -> None:
        if step == "lock.flock" and not cleared:
            (tmp_path / LOCK).unlink()
            cleared.append(step)

    with Staging(tmp_path / "out", allowed=ALLOWED, at=clear):
        assert LOCK in hidden(tmp_path)
        with fault("stage.busy"):
            enter(tmp_path / "out")

    assert hidden(tmp_path) == []
