"""Folders that change under the walk, or between the walk and the end of the inspection: always noticed, never a crash."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from shardscope.engine.source import walk
from shardscope.engine.source.beneath import open_folder
from shardscope.engine.source.identity import entry_of
from shardscope.engine.source.source import Source
from tests.source.trees import codes, make, walked


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with two folders, and a neighbour that holds the same names."""
    make(tmp_path / "neighbour", {"x.bin": b"other"})
    return make(tmp_path / "root", {"a/x.bin": b"1", "b/y.bin": b"2", "c.bin": b"3"})


def before_opening(monkeypatch: pytest.MonkeyPatch, folder: bytes, act: Callable[[], object]) -> None:
    """Run `act` once, right before the walk opens `folder`."""
    real = open_folder

    def hooked(base: int, path: bytes) -> int:
        if path == folder:
            act()
        return real(base, path)

    monkeypatch.setattr(walk, "open_folder", hooked)


def while_listing(monkeypatch: pytest.MonkeyPatch, folder: bytes, act: Callable[[], object]) -> None:
    """Run `act` once, right after the walk has opened `folder` and before it lists it."""
    real = open_folder

    def hooked(base: int, path: bytes) -> int:
        descriptor = real(base, path)
        if path == folder:
            real_scan = os.scandir

            def scan(target: int) -> "os._ScandirIterator[str]":
                listing = real_scan(target)
                monkeypatch.setattr(os, "scandir", real_scan)
                act()
                return listing

            monkeypatch.setattr(os, "scandir", scan)
        return descriptor

    monkeypatch.setattr(walk, "open_folder", hooked)


# R043
@pytest.mark.parametrize("what", ["link", "other folder", "file", "gone", "grown"])
def test_a_folder_that_changes_before_it_is_listed(
    root: Path, monkeypatch: pytest.MonkeyPatch, resolution: str, what: str
) -> None:
    def act() -> None:
        if what == "grown":
            (root / "a" / "new.bin").touch()
            return
        (root / "a").rename(root.parent / "away")
        if what == "link":
            (root / "a").symlink_to("../neighbour")
        elif what == "other folder":
            (root.parent / "neighbour").rename(root / "a")
        elif what == "file":
            (root / "a").touch()

    before_opening(monkeypatch, b"a", act)
    inventory = walked(root)

    assert "a" in codes(inventory)["source.changed"]
    assert b"b/y.bin" in inventory.by_path
    if what != "grown":
        assert b"a/x.bin" not in inventory.by_path


# R043
@pytest.mark.parametrize("what", ["added", "removed", "renamed", "came and went"])
@pytest.mark.parametrize("folder", ["", "a"])
def test_a_folder_that_changes_while_it_is_listed(
    root: Path, monkeypatch: pytest.MonkeyPatch, what: str, folder: str
) -> None:
    name = "x.bin" if folder else "c.bin"

    def act() -> None:
        if what == "added":
            (root / folder / "new.bin").touch()
        elif what == "removed":
            (root / folder / name).unlink()
        elif what == "renamed":
            (root / folder / name).rename(root / folder / "d.bin")
        else:
            (root / folder / "new.bin").touch()
            (root / folder / "new.bin").unlink()

    while_listing(monkeypatch, folder.encode(), act)

    assert (folder or ".") in codes(walked(root))["source.changed"]


# R043
@pytest.mark.parametrize(
    ("act", "subjects"),
    [
        (lambda root: (root / "a/x.bin").write_bytes(b"12"), ["a/x.bin"]),
        (lambda root: os.truncate(root / "a/x.bin", 0), ["a/x.bin"]),
        (lambda root: os.utime(root / "a/x.bin"), ["a/x.bin"]),
        (lambda root: (root / "a/new.bin").touch(), ["a/new.bin"]),
        (lambda root: (root / "new").mkdir(), ["new"]),
        (lambda root: (root / "a/x.bin").unlink(), ["a/x.bin"]),
        (lambda root: (root / "a/x.bin").rename(root / "a/z.bin"), ["a/x.bin", "a/z.bin"]),
        (lambda root: os.replace(root.parent / "neighbour/x.bin", root / "a/x.bin"), ["a", "a/x.bin"]),
        (lambda root: (root / "a").chmod(0o700), ["a"]),
        (lambda root: root.chmod(0o700), ["."]),
        (lambda root: root.rename(root.parent / "moved"), ["."]),
        (lambda root: (root.rename(root.parent / "was"), make(root, {"a/x.bin": b"1"})), ["."]),
    ],
)
def test_listing_again_tells_what_changed(
    root: Path, act: Callable[[Path], object], subjects: list[str]
) -> None:
    root.chmod(0o755)
    (root / "a").chmod(0o755)
    with Source(root) as source:
        inventory = source.walk()
        assert source.recheck(inventory) == []
        act(root)
        changed = source.recheck(inventory)

    assert codes(changed) == {"source.changed": subjects}


# R043
def test_what_came_and_went_is_told_by_the_folder(root: Path) -> None:
    with Source(root) as source:
        inventory = source.walk()
        (root / "a/temporary").touch()
        (root / "a/temporary").unlink()
        (root / "temporary").touch()
        (root / "temporary").unlink()

        assert codes(source.recheck(inventory)) == {"source.changed": [".", "a"]}


# R043
def test_a_single_file_is_checked_again(root: Path) -> None:
    with Source(root / "c.bin") as source:
        inventory = source.walk()
        (root / "d.bin").touch()
        assert source.recheck(inventory) == []
        (root / "c.bin").write_bytes(b"longer")
        assert codes(source.recheck(inventory)) == {"source.changed": ["c.bin"]}
        (root / "c.bin").unlink()
        assert codes(source.recheck(inventory)) == {"source.changed": ["c.bin"]}


def test_a_file_that_vanishes_between_name_and_status(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = entry_of

    def gone(path: bytes, status: os.stat_result) -> object:
        if path == b"c.bin":
            raise FileNotFoundError(2, "gone")
        return real(path, status)

    monkeypatch.setattr(walk, "entry_of", gone)
    inventory = walked(root)

    assert codes(inventory) == {"source.changed": ["c.bin"]}
    assert "it vanished" in inventory.blockers[0].message


def test_a_link_that_vanishes_before_it_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "link").symlink_to("c.bin")

    def gone(*_: object, **__: object) -> bytes:
        raise FileNotFoundError(2, "gone")

    monkeypatch.setattr(os, "readlink", gone)

    assert codes(walked(root))["source.changed"] == ["link"]
