"""Snapshots of the Hugging Face cache: refused by default with the remedy, admitted on request, and nothing else with them."""

import os
from pathlib import Path

import pytest

from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.source import Kind
from shardscope.engine.source.source import Source
from tests.source.trees import codes, make, paths, socket_at, walked

BLOB, CONFIG = "a" * 64, "c" * 40


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository folder of the cache with one snapshot of three files, one of them in a sub-folder."""
    root = make(
        tmp_path / "hub" / "models--x--y",
        {
            f"blobs/{BLOB}": b"weights",
            f"blobs/{CONFIG}": b"{}",
            "refs/main": b"rev",
        },
    )
    link(root, "model.safetensors", f"../../blobs/{BLOB}")
    link(root, "config.json", f"../../blobs/{CONFIG}")
    link(root, "sub/copy.json", f"../../../blobs/{CONFIG}")
    return root


def link(repository: Path, name: str, target: str) -> None:
    """Put a link into the snapshot."""
    path = repository / "snapshots/rev" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize("place", ["snapshots/rev", "snapshots/rev/sub", "snapshots", "."])
def test_links_are_refused_by_default_with_the_remedy(repository: Path, place: str) -> None:
    inventory = walked(repository / place)

    assert set(codes(inventory)) == {"source.link_hf_cache"}
    assert "--hf-cache" in inventory.blockers[0].remedy
    assert all(
        entry.kind is not Kind.FILE or entry.folder in {b"blobs", b"refs"} for entry in inventory.entries
    )


@pytest.mark.parametrize(("place", "named"), [("..", "models--x--y"), ("../..", "hub/models--x--y")])
@pytest.mark.parametrize("hf_cache", [False, True])
def test_the_root_of_a_cache_is_told_to_name_one_of_its_repositories(
    repository: Path, place: str, named: str, hf_cache: bool
) -> None:
    with Source(repository / place, hf_cache=hf_cache) as source:
        inventory = source.walk()

    assert set(codes(inventory)) - {"source.hf_not_cache"} == {"source.link_hf_below"}
    (remedy,) = {each.remedy for each in inventory.blockers if each.code == "source.link_hf_below"}
    assert f"{named}/snapshots/REVISION" in remedy
    assert "--hf-cache" in remedy


@pytest.mark.parametrize("target", ["../blobs/x", "../../../blobs/x", "../../blobs/x/y", "/blobs/x"])
def test_other_links_below_a_cache_are_links_like_any_other(tmp_path: Path, target: str) -> None:
    root = make(tmp_path / "hub" / "models--x--y", {"blobs/x": b""})
    link(root, "file", target)

    assert "source.link_hf_below" not in codes(walked(tmp_path / "hub"))


def test_links_are_admitted_on_request(repository: Path) -> None:
    with Source(repository / "snapshots/rev", hf_cache=True) as source:
        inventory = source.walk()
        entry = inventory.by_path[b"model.safetensors"]
        with source.open(entry) as file:
            content = file.pread(0, 100)
        digests = source.digests(inventory.files)

        assert source.recheck(inventory) == []
    assert inventory.blockers == ()
    assert paths(inventory) == ["config.json", "model.safetensors", "sub", "sub/copy.json"]
    assert entry.kind is Kind.FILE
    assert entry.admitted == b"blobs/" + BLOB.encode()
    assert entry.identity.inode == (repository / "blobs" / BLOB).stat().st_ino
    assert content == b"weights"
    assert len(digests) == 3
    assert digests[b"config.json"] == digests[b"sub/copy.json"]


@pytest.mark.parametrize(
    ("place", "files"),
    [
        ("snapshots/rev/sub", ["copy.json"]),
        ("snapshots/rev/model.safetensors", ["model.safetensors"]),
        ("snapshots", ["rev/config.json", "rev/model.safetensors", "rev/sub/copy.json"]),
        (
            ".",
            ["refs/main"]
            + [f"snapshots/rev/{name}" for name in ("config.json", "model.safetensors", "sub/copy.json")],
        ),
    ],
)
def test_any_folder_of_the_repository_is_a_root(repository: Path, place: str, files: list[str]) -> None:
    with Source(repository / place, hf_cache=True) as source:
        inventory = source.walk()
        for entry in inventory.files:
            with source.open(entry) as file:
                assert file.size == len(file.pread(0, 100))
        assert source.recheck(inventory) == []

    assert [entry.text for entry in inventory.files] == files
    assert inventory.blockers == ()


def test_the_way_to_the_cache_may_lead_through_a_link(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "home").symlink_to("hub")
    inventory = walked(tmp_path / "home" / "models--x--y" / "snapshots" / "rev", hf_cache=True)

    assert inventory.blockers == ()
    assert len(inventory.files) == 3


@pytest.mark.parametrize(
    "target",
    [
        "../../blobs/sub/deep",
        "../../blobs/..",
        "../../blobs/.",
        "../../blobs/",
        "../../blobs//{blob}",
        "../../refs/main",
        "../../../other/blobs/{blob}",
        "../../../models--x--y/blobs/{blob}",
        "./../../blobs/{blob}",
        "../rev/../../blobs/{blob}",
        "/blobs/{blob}",
        "../blobs/{blob}",
    ],
)
def test_nothing_else_is_admitted(repository: Path, target: str) -> None:
    make(repository, {"blobs/sub/deep": b"1"})
    make(repository.parent, {f"other/blobs/{BLOB}": b"1"})
    link(repository, "odd", target.format(blob=BLOB))
    inventory = walked(repository / "snapshots/rev", hf_cache=True)

    assert inventory.by_path[b"odd"].kind is Kind.LINK
    assert [row.subject for row in inventory.blockers] == ["odd"]
    assert inventory.blockers[0].code.startswith("source.link")
    assert len(inventory.files) == 3


def test_a_blob_must_be_a_regular_file(repository: Path) -> None:
    make(repository, {"blobs/folder/x": b""})
    (repository / "blobs/twice").symlink_to(BLOB)
    os.mkfifo(repository / "blobs/fifo")
    socket_at(repository / "blobs/socket")
    for name in ("folder", "twice", "fifo", "socket", "missing"):
        link(repository, name, f"../../blobs/{name}")
    inventory = walked(repository / "snapshots/rev", hf_cache=True)

    assert codes(inventory) == {
        "source.link_hf_refused": ["fifo", "folder", "socket", "twice"],
        "source.link_broken": ["missing"],
    }
    assert "is a symbolic link and not a regular file" in inventory.blockers[-1].message
    assert len(inventory.files) == 3


def test_a_repository_with_linked_blobs_is_no_repository(repository: Path) -> None:
    (repository / "blobs").rename(repository.parent / "elsewhere")
    (repository / "blobs").symlink_to("../elsewhere")
    inventory = walked(repository / "snapshots/rev", hf_cache=True)

    assert set(codes(inventory)) == {"source.hf_not_cache", "source.link_outside"}
    assert inventory.files == ()


def test_outside_of_a_cache_the_switch_admits_nothing(tmp_path: Path) -> None:
    root = make(tmp_path / "root", {"a.bin": b"1"})
    (root / "b.bin").symlink_to("a.bin")
    inventory = walked(root, hf_cache=True)

    assert codes(inventory) == {"source.hf_not_cache": ["."], "source.link": ["b.bin"]}


@pytest.mark.parametrize("target", ["rev", "../refs/main", f"../../blobs/{BLOB}"])
def test_a_root_that_is_another_link_is_refused(repository: Path, target: str) -> None:
    (repository / "snapshots" / "main").symlink_to(target)
    with pytest.raises(Fault) as caught, Source(repository / "snapshots" / "main", hf_cache=True):
        pass

    assert caught.value.finding.code == "source.root_link"


def test_downloads_that_did_not_finish_are_reported(repository: Path) -> None:
    make(repository, {f"blobs/{'d' * 64}.incomplete": b"half"})
    found = walked(repository / "snapshots/rev", hf_cache=True).blockers

    assert [row.code for row in found] == ["source.hf_incomplete"]
    assert "4 bytes are there" in found[0].message


@pytest.mark.parametrize("what", ["content", "retarget"])
def test_a_snapshot_that_changes_is_noticed(repository: Path, what: str) -> None:
    with Source(repository / "snapshots/rev", hf_cache=True) as source:
        inventory = source.walk()
        if what == "content":
            (repository / "blobs" / BLOB).write_bytes(b"other weights")
        else:
            (repository / "snapshots/rev/model.safetensors").unlink()
            link(repository, "model.safetensors", f"../../blobs/{CONFIG}")
        changed = source.recheck(inventory)

    assert "model.safetensors" in codes(changed)["source.changed"]


def test_a_blob_that_becomes_a_link_is_not_opened(repository: Path) -> None:
    with Source(repository / "snapshots/rev", hf_cache=True) as source:
        entry = source.walk().by_path[b"model.safetensors"]
        (repository / "blobs" / BLOB).unlink()
        (repository / "blobs" / BLOB).symlink_to(CONFIG)
        with pytest.raises(Fault) as caught:
            source.open(entry)

    assert caught.value.finding.code == "source.changed"


def test_an_admitted_entry_opens_only_under_the_switch(repository: Path) -> None:
    entry = walked(repository / "snapshots/rev", hf_cache=True).by_path[b"config.json"]
    with Source(repository / "snapshots/rev") as source, pytest.raises(Fault) as caught:
        source.open(entry)

    assert caught.value.finding.code == "source.escape"
