"""The path that was given: what it may be, and that nothing else is touched or waited for."""

import os
from pathlib import Path

import pytest

from shardscope.engine.model.blocker import Fault, blocker
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.source import Kind
from shardscope.engine.source.source import Source
from tests.source.trees import as_nobody, make, null_device_at, open_to_all, paths, socket_at, walked


def refusal(path: Path | str, *, hf_cache: bool = False) -> Fault:
    """Return the fault that entering `path` raises."""
    with pytest.raises(Fault) as caught, Source(path, hf_cache=hf_cache):
        pass
    return caught.value


@pytest.mark.parametrize("name", ["nothing", "model.bin/x", "a\0b", ""])
def test_a_path_that_leads_to_nothing_is_missing(tmp_path: Path, name: str) -> None:
    make(tmp_path, {"model.bin": b"x"})
    fault = refusal(str(tmp_path / name) if name else "")

    assert fault.finding.code == "source.missing"
    assert CODES["source.missing"].exit is ExitCode.UNREADABLE


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("mnt/gone/run/ckpt", "gone"),
        ("./gone", "gone"),
        ("mnt//gone//ckpt/", "gone"),
        ("mnt/file/ckpt", "ckpt"),
        ("mnt/dangling/ckpt", "dangling"),
    ],
)
def test_what_is_missing_is_named_by_its_first_part_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, first: str
) -> None:
    make(tmp_path, {"mnt/file": b""})
    (tmp_path / "mnt" / "dangling").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)

    assert refusal(typed).finding.params["file"] == first
    assert refusal(f"{tmp_path}/{typed}").finding.params["file"] == first


@pytest.mark.parametrize(
    ("typed", "code"),
    [("~/ckpt", "tilde"), ("~", "tilde"), ("~nobody/x", "tilde"), ("./~/x", "missing"), ("~a~/x", "missing")],
)
def test_a_tilde_that_no_shell_has_seen_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: str
) -> None:
    monkeypatch.chdir(tmp_path)

    assert refusal(typed).finding.code == f"source.{code}"
    (tmp_path / "~").mkdir()
    assert refusal("~/ckpt").finding.code == "source.missing"


def test_a_name_too_long_for_the_system_says_why(tmp_path: Path) -> None:
    fault = refusal(tmp_path / ("n" * 300))

    assert fault.finding.code == "source.unreadable"
    assert fault.finding.params["reason"] == "File name too long"


# R041
@pytest.mark.parametrize("target", ["folder", "file.bin", "nothing", "link"])
@pytest.mark.parametrize("slash", ["", "/", "//"])
def test_a_root_that_is_a_link_is_refused(tmp_path: Path, target: str, slash: str) -> None:
    make(tmp_path, {"folder/a": b"", "file.bin": b""})
    (tmp_path / "link").symlink_to(target)

    assert refusal(f"{tmp_path}/link{slash}").finding.code == "source.root_link"


def test_links_on_the_way_to_the_root_are_the_callers_own(tmp_path: Path) -> None:
    make(tmp_path, {"real/checkpoint/a.bin": b"1"})
    (tmp_path / "way").symlink_to("real")

    assert paths(walked(tmp_path / "way" / "checkpoint")) == ["a.bin"]
    assert paths(walked(tmp_path / "way" / "checkpoint" / "a.bin")) == ["a.bin"]


# R042: the timeout of the test run ends a read that waits for a writer
def test_roots_that_are_no_files_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    socket_at(tmp_path / "socket")

    for path, what in (("fifo", "a FIFO"), ("socket", "a socket"), ("/dev/zero", "a device")):
        fault = refusal(tmp_path / path)
        assert fault.finding.code == "source.not_regular"
        assert fault.finding.params["what"] == what


def test_a_device_below_the_temporary_folder_is_refused(tmp_path: Path) -> None:
    null_device_at(tmp_path / "null")

    assert refusal(tmp_path / "null").finding.code == "source.not_regular"


def test_a_single_file_is_a_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, {"model.bin": b"12345", "other.bin": b""})
    monkeypatch.chdir(tmp_path)

    for path in (tmp_path / "model.bin", "model.bin", "./model.bin"):
        with Source(path) as source:
            inventory = source.walk()
            assert inventory.root_is_file
            assert [(entry.path, entry.kind, entry.size) for entry in inventory.entries] == [
                (b"model.bin", Kind.FILE, 5)
            ]
            with source.open(inventory.entries[0]) as file:
                assert file.pread(0, 10) == b"12345"
            assert source.recheck(inventory) == []


def test_the_working_folder_is_a_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, {"a/b.bin": b""})
    monkeypatch.chdir(tmp_path / "a")

    assert paths(walked(".")) == ["b.bin"]
    assert paths(walked("..")) == ["a", "a/b.bin"]


def test_a_folder_that_may_not_be_listed_is_unreadable(tmp_path: Path) -> None:
    root = make(tmp_path / "closed", {"a.bin": b""})
    open_to_all(root)
    root.chmod(0o000)

    with as_nobody():
        fault = refusal(root)
        assert fault.finding.code == "source.unreadable"
        assert fault.finding.params["reason"] == "Permission denied"
    root.chmod(0o700)


def test_a_folder_that_is_swapped_while_it_is_opened_is_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, {"root/a": b"", "other/b": b""})
    look = os.lstat

    def look_then_swap(path: bytes) -> os.stat_result:
        status = look(path)
        (tmp_path / "root").rename(tmp_path / "gone")
        (tmp_path / "other").rename(tmp_path / "root")
        return status

    monkeypatch.setattr(os, "lstat", look_then_swap)

    assert refusal(tmp_path / "root").finding.code == "source.changed"


def test_no_absolute_path_is_in_the_message(tmp_path: Path) -> None:
    row = blocker(refusal(tmp_path / "nothing").finding)

    assert row.message == "nothing does not exist."
    assert str(tmp_path) not in str(row)


def test_descriptors_are_closed_whatever_happens(tmp_path: Path) -> None:
    make(tmp_path, {"a/b/c.bin": b"1", "d.bin": b"2"})
    (tmp_path / "link").symlink_to("a")
    before = len(os.listdir("/proc/self/fd"))

    walked(tmp_path)
    walked(tmp_path / "d.bin")
    refusal(tmp_path / "link")
    refusal(tmp_path / "link", hf_cache=True)
    with (
        Source(tmp_path, hf_cache=True) as source,
        pytest.raises(ValueError, match="stop here"),
        source.open(source.walk().by_path[b"a/b/c.bin"]),
    ):
        raise ValueError("stop here")

    assert len(os.listdir("/proc/self/fd")) == before


def test_a_source_that_is_not_open_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="with block"):
        Source(tmp_path).walk()
