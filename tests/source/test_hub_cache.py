"""What lies in a Hugging Face cache: by names, links and sizes alone, never past a link."""

import os
from pathlib import Path
from threading import Event

import pytest

from shardscope.engine.model.progress import Cancelled
from shardscope.engine.source import hub_cache
from shardscope.engine.source.hub_cache import HubCache, Repo, Revision, default_cache, is_cache, read_cache

FIRST, SECOND = "a" * 40, "b" * 40


def write_cache(folder: Path) -> Path:
    """Write a cache with a model of two revisions that share a blob, one of them not downloaded, and a data set."""
    repo = folder / "models--org--tiny"
    for name, content in (("one", b"12345678"), ("two", b"1234"), ("three.incomplete", b"12")):
        (repo / "blobs").mkdir(parents=True, exist_ok=True)
        (repo / "blobs" / name).write_bytes(content)
    for commit, files in (
        (FIRST, {"model.safetensors": "one", "sub/config.json": "two"}),
        (SECOND, {"model.safetensors": "one", "gone.safetensors": "three"}),
    ):
        for name, blob in files.items():
            link = repo / "snapshots" / commit / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to("../" * (2 + name.count("/")) + f"blobs/{blob}")
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(SECOND)
    (repo / "refs" / "pr").mkdir()
    (repo / "refs" / "pr" / "1").write_text(FIRST + "\n")
    data = folder / "datasets--words" / "snapshots" / FIRST
    data.mkdir(parents=True)
    (data / "words.parquet").write_bytes(b"123")  # a cache without links
    (folder / ".locks").mkdir()
    (folder / "version.txt").write_text("1")
    return folder


def revision(cache: HubCache, commit: str) -> Revision:
    return next(each for each in cache.repos[0].revisions if each.commit == commit)


def test_repositories_and_revisions_are_told_with_their_sizes(tmp_path: Path) -> None:
    cache = read_cache(str(write_cache(tmp_path)), Event())

    tiny, words = cache.repos
    assert cache.whole
    assert (tiny.kind, tiny.name, tiny.bytes) == ("model", "org/tiny", 12)
    assert (tiny.incomplete, tiny.incomplete_bytes) == (1, 2)
    assert tiny.revisions == (
        Revision(FIRST, str(tmp_path / "models--org--tiny/snapshots" / FIRST), ("pr/1",), 2, 12, 0, 0),
        Revision(SECOND, str(tmp_path / "models--org--tiny/snapshots" / SECOND), ("main",), 2, 8, 1, 0),
    )
    assert isinstance(words, Repo)
    assert (words.kind, words.name, words.bytes, words.revisions[0].bytes) == ("dataset", "words", 3, 3)


# R041
def test_no_link_is_followed_out_of_its_repository(tmp_path: Path) -> None:
    cache = write_cache(tmp_path / "hub")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").write_bytes(b"0" * 1000)
    first = cache / "models--org--tiny/snapshots" / FIRST
    (first / "out").symlink_to(secret / "file")
    (first / "up").symlink_to("../../../secret/file")
    (first / "folder").symlink_to(secret)
    (cache / "models--linked").symlink_to(secret)
    (cache / "models--org--tiny/refs/evil").symlink_to(secret / "file")

    found = read_cache(str(cache), Event())

    assert [repo.name for repo in found.repos] == ["org/tiny", "words"]
    assert revision(found, FIRST).foreign == 3
    assert revision(found, FIRST).bytes == 12
    assert revision(found, FIRST).refs == ("pr/1",)


def test_the_cache_itself_may_be_a_link(tmp_path: Path) -> None:
    write_cache(tmp_path / "disk")
    (tmp_path / "hub").symlink_to(tmp_path / "disk")

    assert len(read_cache(str(tmp_path / "hub"), Event()).repos) == 2
    assert is_cache(str(tmp_path / "hub"))
    assert not is_cache(str(tmp_path))
    assert read_cache(str(tmp_path / "nothing"), Event()).repos == ()


def test_it_stops_at_its_bounds_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cache(tmp_path)
    for name in ("ENTRIES", "REPOS", "REVISIONS"):
        with monkeypatch.context() as patch:
            patch.setattr(hub_cache, name, 1)
            assert not read_cache(str(tmp_path), Event()).whole, name


def test_it_can_be_stopped(tmp_path: Path) -> None:
    stop = Event()
    stop.set()
    with pytest.raises(Cancelled):
        read_cache(str(write_cache(tmp_path)), stop)


def test_a_pipe_among_the_refs_keeps_nobody_waiting(tmp_path: Path) -> None:
    write_cache(tmp_path)
    os.mkfifo(tmp_path / "models--org--tiny/refs/pipe")

    assert revision(read_cache(str(tmp_path), Event()), SECOND).refs == ("main",)


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"HOME": "/h"}, "/h/.cache/huggingface/hub"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/x", "HF_HOME": "/hf"}, "/hf/hub"),
        ({"HOME": "/h", "HF_HOME": "/hf", "HF_HUB_CACHE": "/c"}, "/c"),
    ],
)
def test_the_default_is_where_the_hub_library_looks(environ: dict[str, str], path: str) -> None:
    assert default_cache(environ) == path
