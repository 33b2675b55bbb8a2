"""What disks, users and neighbours do to a conversion: each ends in its code, and the old output is as it was."""

import errno
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from shardscope.engine.convert.stage.promotion import promote
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.model.blocker import Stage
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.exits import ExitCode
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
    unprivileged,
)

MIB = 1 << 20


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


# R106 R112
@needs_root
@pytest.mark.parametrize("allocated", [True, False])
def test_a_full_disk_is_told_with_figures_and_before_copying(tmp_path: Path, allocated: bool) -> None:
    with mounted(tmp_path / "m", "tmpfs", "size=2m") as folder:
        make(folder / "out", OLD)
        with Staging(folder / "out", allowed=9 * MIB, replace=True, allocated=allocated) as staging:
            staging.write_small("config.json", b"{}")
            with fault("stage.no_space") as caught:
                file = staging.create("model.safetensors", 8 * MIB)
                assert not allocated
                for offset in range(0, 8 * MIB, MIB):
                    file.write_at(offset, bytes(MIB))
        params = caught.value.finding.params
        assert params["file"] == "model.safetensors"
        assert params["free"] is not None
        assert int(params["free"]) < int(params["needed"] or 0)
        assert CODES["stage.no_space"].exit is ExitCode.OUTPUT
        assert CODES["stage.no_space"].stage is Stage.MATERIALIZE
        assert read(folder / "out") == OLD
        assert hidden(folder) == []


@needs_root
def test_a_full_disk_at_every_step(tmp_path: Path) -> None:
    """The disk is full from some step on; whatever was first to need room says so."""
    steps: list[str] = []
    make(tmp_path / "out", OLD)
    convert(tmp_path / "out", replace=True, at=steps.append)
    codes = set()
    with mounted(tmp_path / "m", "tmpfs", "size=2m") as folder:
        for number in range(len(steps)):
            make(folder / "out", OLD)
            taken: list[str] = []

            def fill_up(step: str, taken: list[str] = taken, number: int = number) -> None:
                if len(taken) == number:
                    with (folder / "filler").open("wb", buffering=0) as filler, suppress(OSError):
                        while filler.write(bytes(4096)):
                            pass
                taken.append(step)

            try:
                convert(folder / "out", replace=True, at=fill_up)
            except Exception as error:  # noqa: BLE001 - looked at below
                codes.add(getattr(getattr(error, "finding", None), "code", repr(error)))
                assert read(folder / "out") == OLD
            else:
                assert read(folder / "out") == NEW
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    assert codes == {"stage.no_space"}


@needs_root
def test_a_full_table_of_inodes_says_so(tmp_path: Path) -> None:
    with mounted(tmp_path / "m", "tmpfs", "size=2m,nr_inodes=12") as folder:
        with Staging(folder / "out", allowed=ALLOWED) as staging, fault("stage.no_inodes"):
            for number in range(12):
                staging.write_small(str(number), b"")
        assert hidden(folder) == []


def test_a_limit_on_the_size_of_files_says_so(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, limits[1]))
    try:
        with Staging(tmp_path / "out", allowed=2 * MIB) as staging, fault("stage.file_too_large") as caught:
            staging.create("model.safetensors", MIB + 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)

    assert caught.value.finding.params["needed"] == MIB + 1
    assert hidden(tmp_path) == []


CALLS = [
    "pwrite",
    "write",
    "open",
    "mkdir",
    "ftruncate",
    "fdatasync",
    "fsync",
    "rename",
    "stat",
    "fstat",
    "scandir",
]


@pytest.mark.parametrize("number", [errno.EIO, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ESTALE])
@pytest.mark.parametrize("name", CALLS)
def test_every_call_that_fails_ends_in_a_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    """Each use of a system call fails in turn, once: the outcome is the old output or the new one, whole."""
    expected = {
        errno.EIO: {"stage.write_failed"},
        errno.EDQUOT: {"stage.quota"},
        errno.EROFS: {"stage.read_only"},
        errno.EACCES: {"stage.denied", "stage.parent_closed"},
        errno.ESTALE: {"stage.moved"},
    }[number] | {"promote.sync_failed", "promote.refused", "promote.unexpected", "stage.lock_foreign", "stage.parent_closed",
                 "promote.parent_changed"}  # fmt: skip
    real: Callable[..., object] = getattr(os, name)
    failures = 0
    for which in range(200):
        target = tmp_path / f"out-{which}"
        make(target, OLD)
        calls = 0

        def failing(*arguments: object, which: int = which, **named: object) -> object:
            nonlocal calls
            calls += 1
            if calls == which + 1:
                raise OSError(number, os.strerror(number))
            return real(*arguments, **named)

        code = None
        monkeypatch.setattr(os, name, failing)
        try:
            convert(target, replace=True)
        except Exception as error:  # noqa: BLE001 - looked at below
            code = getattr(getattr(error, "finding", None), "code", repr(error))
        finally:
            monkeypatch.setattr(os, name, real)
        if calls <= which:
            break  # it is not called that often
        if code is None:
            assert read(target) == NEW  # a note at most
        else:
            failures += 1
            assert code in expected, (which, code)
            assert read(target) == OLD, (which, code)
    else:
        pytest.fail("it is called more often than the test looks")
    assert failures or name == "ftruncate"


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.EBUSY, errno.EXDEV, errno.EROFS])
@pytest.mark.parametrize("replace", [False, True])
def test_a_rename_that_fails_leaves_the_old_state_and_the_whole_new_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replace: bool, number: int
) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("shardscope.engine.convert.disk.leftovers.rename_new", refuse)
    monkeypatch.setattr("shardscope.engine.convert.stage.promotion.exchange", refuse)
    if replace:
        make(tmp_path / "out", OLD)
    with Staging(tmp_path / "out", allowed=ALLOWED, replace=replace) as staging:
        fill(staging)
        with fault("promote.cross_device" if number == errno.EXDEV else "promote.refused"):
            promote(staging)

    assert read(tmp_path / "out") == (OLD if replace else None)
    assert read(tmp_path / staging.file / "output") == NEW


@pytest.mark.parametrize("number", [errno.EIO, errno.EFBIG, errno.EDQUOT])
def test_blocks_that_cannot_be_reserved_leave_the_name_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    from shardscope.engine.convert.disk import output

    def refuse(descriptor: int, size: int) -> None:
        raise OSError(number, os.strerror(number))

    codes = {
        errno.EIO: "stage.write_failed",
        errno.EFBIG: "stage.file_too_large",
        errno.EDQUOT: "stage.quota",
    }
    with Staging(tmp_path / "out", allowed=10) as staging:
        with monkeypatch.context() as patched:
            patched.setattr(output, "allocate", refuse)
            with fault(codes[number]):
                staging.create("a", 10)
        staging.write_small("a", bytes(10))
        promote(staging)

    assert read(tmp_path / "out") == {"a": bytes(10)}


def test_rights_are_missing(open_folder: Path) -> None:
    make(open_folder / "out", OLD)
    with unprivileged(open_folder):
        open_folder.chmod(0o555)
        try:
            with fault("stage.denied"):
                convert(open_folder / "new")
        finally:
            open_folder.chmod(0o755)
        (open_folder / "out").chmod(0o555)
        with fault("stage.target_fixed"):
            convert(open_folder / "out", replace=True)
        (open_folder / "out").chmod(0o755)
        open_folder.chmod(0o333)
        with fault("stage.parent_closed"):
            convert(open_folder / "new")
        open_folder.chmod(0o755)

    assert hidden(open_folder) == []
    assert read(open_folder / "out") == OLD


def test_rights_that_are_taken_away_in_the_middle(open_folder: Path) -> None:
    make(open_folder / "out", OLD)
    with unprivileged(open_folder):
        with Staging(open_folder / "out", allowed=ALLOWED, replace=True) as staging:
            fill(staging)
            open_folder.chmod(0o555)
            with fault("promote.refused"):
                promote(staging)
            open_folder.chmod(0o755)

        assert read(open_folder / "out") == OLD
        assert read(open_folder / staging.file / "output") == NEW  # it is whole, and kept
        assert "stage.kept" in [note.code for note in staging.notes]


@pytest.mark.parametrize("what", ["staging", "parent", "parent replaced"])
def test_folders_that_are_taken_away(tmp_path: Path, what: str) -> None:
    (tmp_path / "p").mkdir()
    with Staging(tmp_path / "p/out", allowed=ALLOWED) as staging:
        if what == "staging":
            staging.write_small("a", b"1")
            shutil.rmtree(tmp_path / "p" / staging.file)
            with fault("stage.moved"):
                staging.write_small("b", b"1")
            with fault("promote.unexpected"):
                promote(staging)
        elif what == "parent":
            shutil.rmtree(tmp_path / "p")
            with fault("stage.moved"):
                staging.create("b", 1)
        else:
            fill(staging)
            (tmp_path / "p").rename(tmp_path / "q")
            (tmp_path / "p").mkdir()
            with fault("promote.parent_changed"):
                promote(staging)

    assert not (tmp_path / "p/out").exists()
    assert not (tmp_path / "q/out").exists()


def test_a_source_that_takes_the_target_s_place_in_the_middle_is_not_replaced(tmp_path: Path) -> None:
    """The folder that was read from is moved to where the output should appear."""
    source = make(tmp_path / "source", {"model.bin": b"1"})
    make(tmp_path / "out", OLD)
    with Staging(tmp_path / "out", allowed=ALLOWED, replace=True, sources=(source,)) as staging:
        fill(staging)
        (tmp_path / "out").rename(tmp_path / "away")
        source.rename(tmp_path / "out")
        with fault("promote.target_changed"):
            promote(staging)

    assert read(tmp_path / "out") == {"model.bin": b"1"}


def test_a_source_that_moves_into_the_target_in_the_middle_is_not_replaced(tmp_path: Path) -> None:
    source = make(tmp_path / "source", {"model.bin": b"1"})
    make(tmp_path / "out", OLD)
    with Staging(tmp_path / "out", allowed=ALLOWED, replace=True, sources=(source,)) as staging:
        fill(staging)
        source.rename(tmp_path / "out" / "source")
        with fault("stage.source_inside"):
            promote(staging)

    assert read(tmp_path / "out") == OLD | {"source/model.bin": b"1"}
