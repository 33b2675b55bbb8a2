"""The figures of a machine, read from a made-up /proc and /sys."""

import resource
from pathlib import Path

import pytest

from shardscope.engine.host import Host, probe, process_limits

MEMINFO = "MemTotal:       65536 kB\nMemFree:  1 kB\nMemAvailable:   32768 kB\nHugePages_Total:       0\n"
KIB = 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the root of a machine that tells nothing yet."""
    (tmp_path / "proc/self").mkdir(parents=True)
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_what_cannot_be_read_is_null(root: Path) -> None:
    assert probe(str(root / "absent"), str(root)) == Host(None, None, None, None, None)


def test_memory_is_in_bytes(root: Path) -> None:
    write(root / "proc/meminfo", MEMINFO)

    found = probe(str(root), str(root))

    assert (found.ram_total, found.ram_available) == (65536 * KIB, 32768 * KIB)
    assert found.disk_free is not None
    assert found.disk_free >= 0


def test_the_tightest_group_on_the_way_up_counts(root: Path) -> None:
    write(root / "proc/self/cgroup", "0::/slice/job/step\n")
    groups = root / "sys/fs/cgroup"
    write(groups / "slice/job/step/memory.max", "max\n")
    write(groups / "slice/job/memory.max", "4096\n")
    write(groups / "slice/job/memory.current", "1024\n")
    write(groups / "slice/memory.max", "8192\n")

    found = probe(str(root), str(root))

    assert (found.cgroup_limit, found.cgroup_used) == (4096, 1024)


@pytest.mark.parametrize(("limit", "expected"), [("9223372036854771712", None), ("4096", 4096)])
def test_version_1_writes_a_huge_number_for_no_limit(root: Path, limit: str, expected: int | None) -> None:
    write(root / "proc/self/cgroup", "9:cpu,cpuacct:/x\n4:memory:/docker/abc\n")
    write(root / "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", limit)

    assert probe(str(root), str(root)).cgroup_limit == expected


def test_a_group_path_cannot_climb_out(root: Path) -> None:
    write(root / "proc/self/cgroup", "0::/../../../outside\n")
    write(root / "outside/memory.max", "1\n")

    assert probe(str(root), str(root)).cgroup_limit is None


def test_this_machine_answers(tmp_path: Path) -> None:
    found = probe(str(tmp_path))

    assert found.ram_total is not None
    assert found.ram_available is not None
    assert 0 < found.ram_available <= found.ram_total


def test_limits_of_the_process_are_those_in_force() -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, before[1]))
    try:
        found = process_limits()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert found.file_bytes == 1 << 40
    assert found.open_files == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert process_limits().file_bytes == (None if before[0] == resource.RLIM_INFINITY else before[0])
