"""What the Open screen offers: names and sizes, nothing opened, nothing followed."""

import os
from pathlib import Path

import pytest

from shardscope.app.explorer import candidates as module
from shardscope.app.explorer.candidates import Candidate, candidates


def test_folders_with_weights_come_first_and_this_one_before_all(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.safetensors").write_bytes(b"12345678")
    (tmp_path / "adapter.bin").write_bytes(b"123")
    (tmp_path / "notes.txt").write_bytes(b"1")
    (tmp_path / ".git").mkdir()

    root = str(tmp_path)
    assert candidates(root) == (
        Candidate(root, 1, 3, is_folder=True),
        Candidate(f"{root}/run", 1, 8, is_folder=True),
        Candidate(f"{root}/adapter.bin", 1, 3, is_folder=False),
        Candidate(f"{root}/docs", 0, 0, is_folder=True),
    )


# R041
def test_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "model.safetensors").write_bytes(b"12345678")
    here = tmp_path / "here"
    here.mkdir()
    (here / "link").symlink_to(elsewhere)
    (here / "model.safetensors").symlink_to(elsewhere / "model.safetensors")

    assert candidates(str(here)) == (Candidate(str(here), 0, 0, is_folder=True),)


def test_a_folder_of_any_length_costs_a_bounded_glance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENTRIES", 3)
    for number in range(9):
        (tmp_path / f"{number}.bin").write_bytes(b"1")

    assert candidates(str(tmp_path))[0].weights == 3


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_offered_without_facts(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)

    assert candidates(str(tmp_path))[1] == Candidate(str(tmp_path / "closed"), 0, 0, is_folder=True)
