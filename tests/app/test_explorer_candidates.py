"""What the Open screen offers: names and sizes, nothing opened, nothing followed."""

import os
from pathlib import Path

import pytest

from shardscope.app.explorer.open import candidates as module
from shardscope.app.explorer.open.candidates import Candidate, Offer, candidates


def test_folders_with_weights_come_first_and_this_one_before_all(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.safetensors").write_bytes(b"12345678")
    (tmp_path / "adapter.bin").write_bytes(b"123")
    (tmp_path / "notes.txt").write_bytes(b"1")
    (tmp_path / ".git").mkdir()

    root = str(tmp_path)
    assert candidates(root).found == (
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

    assert candidates(str(here)).found == (Candidate(str(here), 0, 0, is_folder=True),)


def test_a_folder_of_any_length_costs_a_bounded_glance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENTRIES", 3)
    for number in range(9):
        (tmp_path / f"{number}.bin").write_bytes(b"1")

    offer = candidates(str(tmp_path))
    assert offer.found[0].weights == 3
    assert not offer.whole


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_offered_without_facts(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)

    assert candidates(str(tmp_path)).found[1] == Candidate(str(tmp_path / "closed"), 0, 0, is_folder=True)


def test_saves_of_steps_and_caches_are_told_and_steps_stand_in_their_order(tmp_path: Path) -> None:
    for name in ("global_step2", "global_step10", "checkpoint-300", "iter_0000100", "run_step_5", "steps"):
        (tmp_path / "run" / name).mkdir(parents=True)
    (tmp_path / "hub" / "models--org--tiny").mkdir(parents=True)

    root = str(tmp_path)
    assert candidates(root) == Offer(
        root,
        (
            Candidate(root, 0, 0, is_folder=True),
            Candidate(f"{root}/hub", 0, 0, is_folder=True, is_cache=True),
            Candidate(f"{root}/run", 0, 0, is_folder=True, steps=5),
        ),
        whole=True,
    )
    named = [each.path.rpartition("/")[2] for each in candidates(f"{root}/run").found[1:]]
    assert named == ["checkpoint-300", "global_step2", "global_step10", "iter_0000100", "run_step_5", "steps"]
