"""A conversion that is killed at any step or moment leaves the old output or the new one, whole, and nothing that looks like one."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shardscope.engine.convert.disk import leftovers
from shardscope.engine.convert.disk.leftovers import find_staging
from shardscope.engine.convert.disk.names import is_staging_name
from shardscope.engine.convert.disk.owner import Life, life
from shardscope.engine.convert.stage import folder as folder_module
from shardscope.engine.convert.stage import promotion
from shardscope.engine.convert.stage.staging import Staging
from tests.convert.crash_driver import without_flags
from tests.convert.targets import ALLOWED, NEW, OLD, Files, convert, fault, hidden, make, read

Order = Callable[..., dict[str, object]]

WAYS = ["new", "exchange", "gap"]
LOCK = ".out.shardscope-lock"


@pytest.fixture(scope="module")
def order() -> Iterator[Order]:
    """Give the driver an order and return its answer."""
    driver = subprocess.Popen(
        [sys.executable, "-m", "tests.convert.crash_driver"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def give(**what: object) -> dict[str, object]:
        assert driver.stdin is not None
        assert driver.stdout is not None
        driver.stdin.write(json.dumps(what) + "\n")
        driver.stdin.flush()
        answer: dict[str, object] = json.loads(driver.stdout.readline())
        return answer

    yield give
    driver.communicate()


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the output is to appear; the next run, in this process, goes the same way."""
    name: str = request.param
    if name == "gap":
        monkeypatch.setattr(leftovers, "rename_new", without_flags)
        monkeypatch.setattr(promotion, "exchange", without_flags)
        monkeypatch.setattr(folder_module, "exchange", without_flags)
    return name


def begin(folder: Path, way: str) -> tuple[Path, Files | None]:
    """Return a target, with what it holds."""
    folder.mkdir()
    if way == "new":
        return folder / "out", None
    make(folder / "out", OLD)
    return folder / "out", OLD


def visible(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def check(target: Path, old: Files | None, way: str) -> str:
    """Look at what a killed run left, then run to the end. Returns which state was found."""
    folder = target.parent
    parent = os.open(folder, os.O_RDONLY)
    try:
        left = find_staging(parent, b"out")
    finally:
        os.close(parent)
    found = read(target)
    set_aside = [
        os.fsdecode(each.name) + "/" + os.fsdecode(each.old_target) for each in left if each.old_target
    ]

    # What is visible is whole, and what is hidden is known for what it is.
    assert visible(folder) <= {"out"}
    assert {name for name in hidden(folder) if name != LOCK} == {os.fsdecode(each.name) for each in left}
    assert all(is_staging_name(each.name) for each in left)
    assert all(each.marker is None or life(each.marker.owner) is Life.DEAD for each in left)
    in_gap = way == "gap" and found is None
    assert in_gap or found in (old, NEW), found
    if in_gap or (found == NEW and old is not None):  # the old output is never lost
        assert [read(folder / name) for name in set_aside] == [OLD]

    if old is not None:  # without being asked to replace, a run puts back what was set aside, and stops
        with fault("stage.target_exists"), Staging(target, allowed=ALLOWED):
            pass
        assert read(target) == (OLD if in_gap else found)
        assert LOCK not in hidden(folder)
    if old is not None or found is None:
        convert(target, replace=old is not None, allow_gap=way == "gap")
    else:
        with fault("stage.target_exists"):
            convert(target)
    assert read(target) == NEW
    assert LOCK not in hidden(folder)
    return "gap" if in_gap else "new" if found == NEW else "old"


# R112 R113
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_killed_at_every_step(tmp_path: Path, way: str, order: Order) -> None:
    outcomes = []
    for step in range(200):
        target, old = begin(tmp_path / str(step), way)
        answer = order(target=str(target), replace=old is not None, gap=way == "gap", step=step)
        if not answer["killed"]:
            assert answer["ended"] == 0
            break
        outcomes.append(check(target, old, way))
    else:
        pytest.fail("there are more steps than the test takes")

    assert len(outcomes) >= 35
    states = ["old", "gap", "new"] if way == "gap" else ["old", "new"]
    assert sorted(outcomes, key=states.index) == outcomes  # one moment divides the old state from the new one
    assert set(outcomes) == set(states)


# R112 R113
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_killed_at_random_moments(tmp_path: Path, way: str, order: Order) -> None:
    target, old = begin(tmp_path / "whole", way)
    whole = order(target=str(target), replace=old is not None, gap=way == "gap")
    assert whole["ended"] == 0
    killed = 0
    for seed in range(50):
        target, old = begin(tmp_path / str(seed), way)
        answer = order(
            target=str(target), replace=old is not None, gap=way == "gap", seed=seed, seconds=whole["seconds"]
        )
        killed += bool(answer["killed"])
        check(target, old, way)

    assert killed >= 10
