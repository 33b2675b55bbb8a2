"""A target as it is typed: what would be refused is told before anything is made, and nothing is made by looking."""

import os
from pathlib import Path

import pytest

from shardscope.engine.convert.admitting.target import look_at_target
from shardscope.engine.convert.stage.staging import Staging
from tests.checkpoints import tree, write_sharded


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_sharded(tmp_path / "source")


def test_a_new_name_in_a_folder_that_is_there_is_taken(source: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    look = look_at_target(tmp_path / "out", source)

    assert look.refused is None
    assert (look.stands, look.beside_source, look.leftovers) == ("nothing", True, 0)
    assert look.free_bytes is not None
    assert look.free_bytes.value is not None
    assert sorted(tmp_path.iterdir()) == before


# R112
@pytest.mark.parametrize(
    ("target", "code", "stands"),
    [
        ("", "stage.target_name", None),
        (".", "stage.target_name", None),
        ("x" * 300, "stage.target_name", None),
        ("none/out", "stage.parent_missing", None),
        ("file/out", "stage.parent_missing", None),
        ("folder", "stage.target_exists", "folder"),
        ("file", "stage.target_not_folder", "something else"),
        ("link", "stage.target_link", "something else"),
        ("source", "stage.target_is_source", "folder"),
        ("source/out", "stage.inside_source", "nothing"),
    ],
)
def test_what_would_be_refused_is_told_with_its_code(
    target: str, code: str, stands: str | None, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("folder")
    before = tree(source)
    look = look_at_target(os.path.join(str(tmp_path), target) if target else "", source)

    assert look.refused is not None
    assert look.refused.code == code
    assert look.stands == stands
    assert tree(source) == before


def test_a_folder_may_be_exchanged_where_that_is_wanted_but_never_one_that_holds_the_source(
    source: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    assert look_at_target(tmp_path / "out", source, replace=True).refused is None
    held = look_at_target(tmp_path, source, replace=True)
    assert held.refused is not None
    assert held.refused.code == "stage.source_inside"


def test_what_earlier_runs_have_left_is_counted(source: Path, tmp_path: Path) -> None:
    with Staging(tmp_path / "out", allowed=10, sources=[source], keep=True):
        pass
    assert look_at_target(tmp_path / "out", source).leftovers == 1
    assert look_at_target(tmp_path / "other", source).leftovers == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_told(source: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    look = look_at_target(closed / "out", source)
    assert look.refused is not None
    assert look.refused.code == "stage.parent_closed"
