"""An output appears whole, or not at all; an old one is exchanged for it, and kept."""

import errno
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from shardscope.engine.convert.disk import leftovers
from shardscope.engine.convert.disk.kernel import exchange, rename_new
from shardscope.engine.convert.disk.leftovers import find_staging
from shardscope.engine.convert.stage import folder as folder_module
from shardscope.engine.convert.stage import promotion
from shardscope.engine.convert.stage.promotion import discard_old, promote
from shardscope.engine.convert.stage.staging import Staging
from tests.convert.targets import ALLOWED, NEW, OLD, convert, fault, fill, hidden, make, needs_root, read


def unsupported(*arguments: object) -> None:
    raise OSError(errno.EINVAL, "invalid argument")


@pytest.fixture
def no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that has the plain rename alone, as NFS."""
    monkeypatch.setattr(leftovers, "rename_new", unsupported)
    monkeypatch.setattr(promotion, "exchange", unsupported)
    monkeypatch.setattr(folder_module, "exchange", unsupported)


@pytest.fixture(params=["exclusive", "plain"])
def rename(request: pytest.FixtureRequest) -> str:
    """Both ways to take a free name."""
    if request.param == "plain":
        request.getfixturevalue("no_flags")
    way: str = request.param
    return way


def test_the_kernel_s_calls_do_what_they_say(tmp_path: Path) -> None:
    make(tmp_path / "a", {"x": b"a"})
    make(tmp_path / "b", {"x": b"b"})
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(FileExistsError):
            rename_new(folder, b"a", folder, b"b")
        exchange(folder, b"a", folder, b"b")
        assert (read(tmp_path / "a"), read(tmp_path / "b")) == ({"x": b"b"}, {"x": b"a"})
        rename_new(folder, b"a", folder, b"c")
        with pytest.raises(FileNotFoundError):
            exchange(folder, b"a", folder, b"c")
    finally:
        os.close(folder)


# R088 R111
def test_a_new_target(tmp_path: Path, rename: str) -> None:
    promoted = convert(tmp_path / "out")

    assert read(tmp_path / "out") == NEW
    assert hidden(tmp_path) == []
    assert promoted.how == f"{rename} rename"
    assert promoted.bytes == sum(map(len, NEW.values()))
    assert [record.file for record in promoted.files] == sorted(NEW)
    assert promoted.previous is None


def test_everything_is_durable_before_the_rename_and_its_folder_after(tmp_path: Path) -> None:
    steps: list[str] = []
    make(tmp_path / "out", OLD)
    convert(tmp_path / "out", replace=True, at=steps.append)
    rename = steps.index("promote.exchange")
    last_write = max(number for number, step in enumerate(steps) if step == "file.write")

    assert steps[last_write:rename].count("file.sync") == len(NEW)
    assert steps[last_write:rename].count("folder.sync") == 3  # sub, output and the staging folder
    assert steps[rename:].count("folder.sync") == 2  # the folder around the target, and the staging folder
    assert steps[rename - 3 : rename] == ["marker.write", "marker.rename", "marker.sync"]


@pytest.mark.parametrize("what", ["folder", "empty folder", "file", "link"])
def test_a_target_that_appears_in_the_middle_stays(tmp_path: Path, rename: str, what: str) -> None:
    with Staging(tmp_path / "out", allowed=ALLOWED) as staging:
        fill(staging)
        if what == "folder":
            make(tmp_path / "out", OLD)
        elif what == "empty folder":
            (tmp_path / "out").mkdir()
        elif what == "file":
            (tmp_path / "out").touch()
        else:
            (tmp_path / "out").symlink_to("nowhere")
        before = os.lstat(tmp_path / "out").st_ino
        with fault("promote.target_appeared"):
            promote(staging)

    assert os.lstat(tmp_path / "out").st_ino == before
    assert read(tmp_path / staging.file / "output") == NEW
    assert [note.code for note in staging.notes] == ["stage.kept"]


@pytest.mark.parametrize("what", ["folder", "empty folder", "file"])
def test_a_target_that_appears_in_the_last_moment_stays(tmp_path: Path, rename: str, what: str) -> None:
    if (rename, what) == ("plain", "empty folder"):
        pytest.skip("the plain rename replaces an empty folder, which loses nothing")

    def appear(step: str) -> None:
        if step == "promote.rename":
            (tmp_path / "out").touch() if what == "file" else (tmp_path / "out").mkdir()
            if what == "folder":
                make(tmp_path / "out", OLD)

    with fault("promote.target_appeared"):
        convert(tmp_path / "out", at=appear)

    assert read(tmp_path / "out") == (OLD if what == "folder" else {})


# R112
def test_an_old_target_is_exchanged_and_kept_until_asked(tmp_path: Path) -> None:
    make(tmp_path / "out", OLD)
    promoted = convert(tmp_path / "out", replace=True)

    assert read(tmp_path / "out") == NEW
    assert promoted.how == "exchange"
    assert promoted.previous is not None
    assert read(tmp_path / promoted.previous) == OLD
    parent = os.open(tmp_path, os.O_RDONLY)
    (left,) = find_staging(parent, b"out")
    os.close(parent)
    assert left.marker is not None
    assert (left.marker.state, left.old_target) == ("replaced", b"previous")


def test_the_old_target_is_removed_when_asked(tmp_path: Path) -> None:
    make(tmp_path / "out", OLD)
    with Staging(tmp_path / "out", allowed=ALLOWED, replace=True) as staging:
        fill(staging)
        promote(staging)
        discard_old(staging)

    assert read(tmp_path / "out") == NEW
    assert hidden(tmp_path) == []


def test_asking_to_remove_the_old_target_means_nothing_before_promotion(tmp_path: Path) -> None:
    make(tmp_path / "out", OLD)
    with Staging(tmp_path / "out", allowed=ALLOWED, replace=True) as staging:
        fill(staging)
        discard_old(staging)

    assert read(tmp_path / "out") == OLD


def test_an_old_target_that_goes_away_makes_room(tmp_path: Path) -> None:
    make(tmp_path / "out", OLD)
    with Staging(tmp_path / "out", allowed=ALLOWED, replace=True) as staging:
        fill(staging)
        (tmp_path / "out").rename(tmp_path / "moved")
        assert promote(staging).how == "exclusive rename"

    assert read(tmp_path / "out") == NEW
    assert read(tmp_path / "moved") == OLD


@pytest.mark.parametrize("when", ["before", "in the last moment"])
def test_another_folder_in_the_old_target_s_place_stays(tmp_path: Path, when: str) -> None:
    make(tmp_path / "out", OLD)
    other = {"other": b"1"}

    def swap(step: str) -> None:
        if step == ("promote.audit" if when == "before" else "promote.exchange"):
            (tmp_path / "out").rename(tmp_path / "moved")
            make(tmp_path / "out", other)

    with fault("promote.target_changed"):
        convert(tmp_path / "out", replace=True, at=swap)

    assert read(tmp_path / "out") == other
    assert read(tmp_path / "moved") == OLD
    (staged,) = [name for name in hidden(tmp_path) if "staging" in name]
    assert read(tmp_path / staged / "output") == NEW


def test_without_exchange_nothing_is_started(tmp_path: Path, no_flags: None) -> None:
    make(tmp_path / "out", OLD)
    steps: list[str] = []
    with fault("stage.no_exchange"):
        convert(tmp_path / "out", replace=True, at=steps.append)

    assert "file.create" not in steps
    assert read(tmp_path / "out") == OLD
    assert hidden(tmp_path) == []


def test_an_exchange_that_is_refused_after_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promotion, "exchange", unsupported)
    make(tmp_path / "out", OLD)
    with fault("promote.no_exchange"):
        convert(tmp_path / "out", replace=True)

    assert read(tmp_path / "out") == OLD


def test_a_gap_where_it_was_allowed(tmp_path: Path, no_flags: None) -> None:
    make(tmp_path / "out", OLD)
    promoted = convert(tmp_path / "out", replace=True, allow_gap=True)

    assert promoted.how == "rename with a gap"
    assert read(tmp_path / "out") == NEW
    assert promoted.previous is not None
    assert read(tmp_path / promoted.previous) == OLD


def test_a_gap_is_not_used_where_folders_can_be_exchanged(tmp_path: Path) -> None:
    make(tmp_path / "out", OLD)

    assert convert(tmp_path / "out", replace=True, allow_gap=True).how == "exchange"


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.EXDEV])
def test_a_failure_in_the_gap_puts_the_old_target_back(
    tmp_path: Path, no_flags: None, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    make(tmp_path / "out", OLD)
    real = os.rename

    def failing(old: bytes, new: bytes, **where: int) -> None:
        if old == b"output":
            raise OSError(number, os.strerror(number))
        real(old, new, **where)

    monkeypatch.setattr(os, "rename", failing)
    with fault("promote.cross_device" if number == errno.EXDEV else "promote.refused"):
        convert(tmp_path / "out", replace=True, allow_gap=True)

    assert read(tmp_path / "out") == OLD


def test_somebody_else_s_folder_in_the_gap_stays_and_so_does_the_old_one(
    tmp_path: Path, no_flags: None
) -> None:
    make(tmp_path / "out", OLD)
    other = {"other": b"1"}

    def jump_in(step: str) -> None:
        if step == "promote.gap_rename":
            make(tmp_path / "out", other)

    with fault("promote.gap_lost") as caught:
        convert(tmp_path / "out", replace=True, allow_gap=True, at=jump_in)

    assert read(tmp_path / "out") == other
    assert read(tmp_path / str(caught.value.finding.params["old"])) == OLD


# R113
@pytest.mark.parametrize("step", ["promote.gap_open", "promote.gap_rename", "promote.settle"])
def test_an_interrupt_around_the_gap(tmp_path: Path, no_flags: None, step: str) -> None:
    make(tmp_path / "out", OLD)

    def interrupt(now: str) -> None:
        if now == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(tmp_path / "out", replace=True, allow_gap=True, at=interrupt)

    assert read(tmp_path / "out") == (NEW if step == "promote.settle" else OLD)


# R113
@pytest.mark.parametrize("gap", [False, True])
def test_an_interrupt_at_every_step(tmp_path: Path, gap: bool, request: pytest.FixtureRequest) -> None:
    if gap:
        request.getfixturevalue("no_flags")
    steps: list[str] = []
    make(tmp_path / "out", OLD)
    convert(tmp_path / "out", replace=True, allow_gap=gap, at=steps.append)
    outcomes = set()
    for number in range(len(steps)):
        folder = tmp_path / str(number)
        make(folder / "out", OLD)
        taken: list[str] = []

        def interrupt(step: str, taken: list[str] = taken, number: int = number) -> None:
            taken.append(step)
            if len(taken) == number + 1:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            convert(folder / "out", replace=True, allow_gap=gap, at=interrupt)
        found = read(folder / "out")
        assert found in (OLD, NEW), steps[number]
        outcomes.add("old" if found == OLD else "new")
        if found == NEW:  # then the old one is kept
            (staged,) = [name for name in hidden(folder) if "staging" in name]
            assert OLD in (read(folder / staged / "previous"), read(folder / staged / "output"))

    assert outcomes == {"old", "new"}


def test_a_name_that_is_not_confirmed_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync
    late = False

    def at(step: str) -> None:
        nonlocal late
        late = late or step == "promote.settle"

    def failing(descriptor: int) -> None:
        if late:
            raise OSError(errno.EIO, "input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with Staging(tmp_path / "out", allowed=ALLOWED, at=at) as staging:
        fill(staging)
        promote(staging)

    assert [note.code for note in staging.notes] == ["promote.not_durable"]
    assert read(tmp_path / "out") == NEW


@needs_root
def test_a_target_in_the_layer_below_is_on_another_device(tmp_path: Path) -> None:
    for name in ("low", "up", "work", "m"):
        (tmp_path / name).mkdir()
    make(tmp_path / "low/out", OLD)
    layers = f"lowerdir={tmp_path}/low,upperdir={tmp_path}/up,workdir={tmp_path}/work,redirect_dir=off"
    done = subprocess.run(
        ["mount", "-t", "overlay", "-o", layers, "none", str(tmp_path / "m")],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("this machine mounts no overlay")
    try:
        for gap in (False, True):
            with fault("promote.cross_device"):
                convert(tmp_path / "m/out", replace=True, allow_gap=gap)
            assert read(tmp_path / "m/out") == OLD
        convert(tmp_path / "m/new")
        convert(tmp_path / "m/new", replace=True)
        assert read(tmp_path / "m/new") == NEW
    finally:
        subprocess.run(["umount", str(tmp_path / "m")], check=True)
