"""What there is to write to and to work in, each figure with its basis; what the system does not tell stays null."""

import errno
import os
import resource
from pathlib import Path

import pytest

from shardscope.engine.convert.admitting import space
from shardscope.engine.convert.admitting.space import Figure, memory, space_beside
from shardscope.engine.convert.disk import kernel
from tests.convert.targets import mounted, needs_root


def refuse(number: int) -> None:
    raise OSError(number, os.strerror(number))


def test_this_machine_answers(tmp_path: Path) -> None:
    found = space_beside(tmp_path / "out")

    assert found.free_bytes.value is not None
    assert found.free_bytes.value > 0
    assert "statvfs" in found.free_bytes.basis
    assert memory().ram_available.value is not None


@needs_root
def test_figures_are_those_of_the_file_system_that_holds_the_target(tmp_path: Path) -> None:
    with mounted(tmp_path / "m", "tmpfs", "size=1m,nr_inodes=20") as folder:
        before = space_beside(folder / "out")
        (folder / "filler").write_bytes(bytes(512 << 10))
        after = space_beside(f"{folder}/out/")

    assert before.free_bytes.value == 1 << 20
    assert after.free_bytes.value == 512 << 10
    assert before.free_files.value is not None
    assert after.free_files.value == before.free_files.value - 1


# R109
def test_free_space_that_cannot_be_read_is_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fstatvfs", lambda folder: refuse(errno.EIO))
    found = space_beside(tmp_path / "out")

    assert found.free_bytes == Figure(None, "the file system does not tell: input/output error")
    assert found.free_files.value is None
    assert not found.free_files.unlimited


def test_a_folder_that_cannot_be_opened_tells_nothing(tmp_path: Path) -> None:
    for target in (tmp_path / "absent" / "out", "a\0b/out"):
        found = space_beside(target)
        assert (found.free_bytes.value, found.free_bytes.unlimited) == (None, False)
        assert "cannot be opened" in found.free_bytes.basis


def test_a_file_system_that_does_not_count_files_has_no_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs(tmp_path)
    fields = list(real)
    fields[5] = fields[6] = fields[7] = 0
    monkeypatch.setattr(os, "fstatvfs", lambda folder: os.statvfs_result(fields))

    assert space_beside(tmp_path / "out").free_files.unlimited


@pytest.mark.parametrize(
    ("user", "group", "expected"),
    [
        ((100, 5), (50, 9), (50, 5)),
        ((100, None), (None, None), (100, None)),
        (errno.ESRCH, (7, 8), (7, 8)),
        (errno.ESRCH, errno.ESRCH, (None, None)),
        ((0, 0), (1, 1), (0, 0)),
    ],
)
def test_the_tightest_quota_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    user: tuple[int | None, int | None] | int,
    group: tuple[int | None, int | None] | int,
    expected: tuple[int | None, int | None],
) -> None:
    def answer(folder: int, *, group: bool, answers: tuple[object, object] = (user, group)) -> object:
        found = answers[group]
        if isinstance(found, int):
            refuse(found)
        return found

    monkeypatch.setattr(space, "quota_left", answer)
    found = space_beside(tmp_path / "out")

    assert (found.quota_bytes.value, found.quota_files.value) == expected
    assert found.quota_bytes.unlimited == (expected[0] is None)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_a_quota_that_cannot_be_read_is_null_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(space, "quota_left", lambda folder, group: refuse(number))
    found = space_beside(tmp_path / "out")

    assert found.quota_bytes.value is None
    assert not found.quota_bytes.unlimited
    assert os.strerror(number).lower() in found.quota_bytes.basis


def test_soft_and_hard_quotas() -> None:
    assert kernel._left(0, 0, 5) is None
    assert kernel._left(10, 0, 5) == 5
    assert kernel._left(10, 7, 5) == 2
    assert kernel._left(10, 7, 9) == 0


def test_limits_of_the_process(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, before[1]))
    try:
        assert space_beside(tmp_path / "out").file_bytes == Figure(1 << 40, "RLIMIT_FSIZE of this process")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    left = memory().open_files.value
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        assert left is not None
        assert left < limit
        assert memory().open_files.value == left - 1
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(("used", "expected"), [("1024\n", 3072), ("9999\n", 0), (None, None)])
def test_what_a_control_group_leaves(tmp_path: Path, used: str | None, expected: int | None) -> None:
    group = tmp_path / "sys/fs/cgroup/job"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/job\n")
    (group / "memory.max").write_text("4096\n")
    if used is not None:
        (group / "memory.current").write_text(used)
    found = memory(str(tmp_path))

    assert found.group_available.value == expected
    assert not found.group_available.unlimited
    assert found.ram_available == Figure(None, "MemAvailable of /proc/meminfo cannot be read")


def test_no_control_group_is_no_limit(tmp_path: Path) -> None:
    assert memory(str(tmp_path)).group_available.unlimited
