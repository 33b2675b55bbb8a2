"""Symbolic links: none is followed, each is an error, and the message says where it leads."""

import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardscope.engine.model.blocker import Blocks, Severity
from shardscope.engine.model.codes import CODES
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.source import links
from tests.source.trees import codes, make, paths, walked


# R041
@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("good.bin", "source.link"),
        ("./sub/../good.bin", "source.link"),
        ("sub", "source.link"),
        ("sub/", "source.link"),
        ("sub/inner.bin", "source.link"),
        ("other", "source.link"),
        ("fifo", "source.link"),
        ("/etc/passwd", "source.link_outside"),
        ("/", "source.link_outside"),
        ("../neighbour", "source.link_outside"),
        ("sub/../../root/good.bin", "source.link_outside"),
        ("sub/far", "source.link_outside"),
        ("/dev/zero", "source.link_outside"),
        ("nothing", "source.link_broken"),
        ("sub/nothing", "source.link_broken"),
        ("good.bin/x", "source.link_broken"),
        ("good.bin/", "source.link_broken"),
        ("dangling", "source.link_broken"),
        ("link", "source.link_loop"),
        ("sub/../link", "source.link_loop"),
        (".", "source.link_loop"),
        ("sub/up", "source.link_loop"),
        ("pair", "source.link_loop"),
    ],
)
def test_where_a_link_leads(tmp_path: Path, target: str, code: str) -> None:
    root = make(tmp_path / "root", {"good.bin": b"1", "sub/inner.bin": b"2"})
    make(tmp_path, {"neighbour": b"3"})
    os.mkfifo(root / "fifo")
    (root / "other").symlink_to("good.bin")
    (root / "dangling").symlink_to("gone")
    (root / "pair").symlink_to("link")
    (root / "sub" / "up").symlink_to("..")
    (root / "sub" / "far").symlink_to("../../neighbour")
    (root / "link").symlink_to(target)

    assert "link" in codes(walked(root))[code]
    row = CODES[code]
    assert row.severity is Severity.ERROR
    assert Blocks.INSPECT in row.blocks
    assert row.exit is None or row.exit is ExitCode.BLOCKED


# R026 R041
def test_nothing_behind_a_link_is_listed(tmp_path: Path) -> None:
    make(tmp_path / "outside", {"secret.bin": b"1"})
    root = make(tmp_path / "root", {"a/b.bin": b"1"})
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "in").symlink_to("a")
    (root / "a" / "loop").symlink_to("..")

    assert paths(walked(root)) == ["a", "a/b.bin", "a/loop", "in", "out"]


def test_a_chain_beyond_the_systems_limit_is_a_loop(tmp_path: Path) -> None:
    make(tmp_path, {"l00": b"1"})
    for number in range(1, 51):
        (tmp_path / f"l{number:02}").symlink_to(f"l{number - 1:02}")
    found = codes(walked(tmp_path))

    assert found["source.link_loop"] == [f"l{number}" for number in range(41, 51)]
    assert len(found["source.link"]) == 40
    for number in (40, 41):  # the kernel agrees on where the limit is
        assert os.path.exists(tmp_path / f"l{number}") == (number == 40)


def test_a_folder_full_of_links_to_itself_takes_no_time(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"l{number}").symlink_to(".")

    assert len(codes(walked(tmp_path))["source.link_loop"]) == 200


def test_a_link_into_what_was_not_listed_is_not_called_broken(tmp_path: Path) -> None:
    make(tmp_path, {"a/b/c.bin": b"1"})
    (tmp_path / "link").symlink_to("a/b/c.bin")

    assert codes(walked(tmp_path, path_depth=1))["source.link"] == ["link"]


def test_following_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_STEPS", 10)
    for number in range(20):
        (tmp_path / f"l{number:02}").symlink_to("nothing")
    found = codes(walked(tmp_path))

    assert len(found["source.link_broken"]) == 5
    assert len(found["source.link"]) == 15


def test_the_target_is_shown_harmless(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("\x1b]0;owned\x07")
    row = walked(tmp_path).blockers[0]

    assert row.message == "link is a symbolic link to ␛]0;owned␇, where nothing is."
    assert "\x1b" not in str(row)


PLACES = ("a", "b", "d/a", "d/b", "d/e/a")
PARTS = st.sampled_from(["a", "b", "d", "e", "..", ".", "f", ""])


def leads(root: Path, link: Path) -> set[str]:
    """Return the codes that may be said of `link`, after asking the kernel where it leads."""
    try:
        link.stat()
    except OSError as error:
        return (
            {"source.link_loop"}
            if error.errno == errno.ELOOP
            else {"source.link_broken", "source.link_outside"}
        )
    end = link.resolve()
    if not end.is_relative_to(root):
        return {"source.link_outside"}
    return {"source.link_loop" if link.parent.is_relative_to(end) else "source.link", "source.link_outside"}


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(PLACES), st.lists(PARTS, min_size=1, max_size=5).map("/".join), min_size=1
    ),
    st.sampled_from(["f", "d/f", "d/e/f"]),
)
def test_the_text_of_links_tells_what_the_kernel_finds(targets: dict[str, str], file: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = make(Path(folder).resolve() / "r", {file: b"1"})
        (root / "d" / "e").mkdir(parents=True, exist_ok=True)
        for place, target in targets.items():
            (root / place).symlink_to(f"./{target}")
        said = {row.subject: row.code for row in walked(root).blockers}

        climbing = any("/../" in f"/{target}/" for target in targets.values())
        for place in targets:
            assert said[place] in leads(root, root / place)
            if not climbing:
                assert said[place] != "source.link_outside"
