"""What machines and people do to a whole conversion: it ends in its sentence, and what stands at the target is old or new, whole."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shardscope.engine.convert.disk.leftovers import find_staging
from shardscope.engine.convert.disk.names import is_staging_name
from shardscope.engine.convert.disk.owner import Life, life
from shardscope.engine.model.exits import ExitCode
from shardscope.engine.model.manifest import RUN_NAME
from tests.app.terminal import process, run
from tests.checkpoints import tree, write_safetensors, write_sharded
from tests.convert.large import MIB, safetensors
from tests.convert.targets import OLD, Files, hidden, make, mounted, needs_root, read

LOCK = ".out.shardscope-lock"
SMALL = ("--max-shard-size", "400", "--quiet")
"""Several files of the output, and no plan in the way of what is said."""


class Ended:
    """How an ordered run ended, and what it said."""

    def __init__(self, answer: dict[str, Any], said: Path) -> None:
        self.killed: bool = answer["killed"]
        self.code: int | None = answer["ended"]
        self.seconds: float = answer["seconds"]
        self.said = said.read_text()
        steps = said.with_name(said.name + ".steps")
        self.steps: list[str] = json.loads(steps.read_text()) if steps.exists() else []
        steps.unlink(missing_ok=True)


Order = Callable[..., Ended]


@pytest.fixture(scope="module")
def driver() -> Iterator[subprocess.Popen[str]]:
    running = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.convert.fault_driver"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "LANG": "C.UTF-8"},
    )
    yield running
    running.communicate()


@pytest.fixture
def order(driver: subprocess.Popen[str], tmp_path: Path) -> Order:
    """Give the driver an order for `convert` and return its answer."""
    said = tmp_path / "said"
    said.mkdir()

    def give(source: Path, out: Path, *options: str, **what: object) -> Ended:
        assert driver.stdin is not None
        assert driver.stdout is not None
        arguments = ["convert", str(source), str(out), "--yes", *options]
        driver.stdin.write(json.dumps({"arguments": arguments, "said": str(said / "0"), **what}) + "\n")
        driver.stdin.flush()
        return Ended(json.loads(driver.stdout.readline()), said / "0")

    return give


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_sharded(tmp_path / "source")


@pytest.fixture
def new(order: Order, source: Path, tmp_path: Path) -> Files:
    """What a conversion makes that nothing happens to."""
    out = begin(tmp_path / "whole", None)
    done = order(source, out, *SMALL)
    assert done.code == 0, done.said
    return made(out) or {}


def made(out: Path) -> Files | None:
    """Return what stands at a target, without the file that differs between runs."""
    found = read(out)
    if found is not None:
        found.pop(RUN_NAME, None)
    return found


def begin(folder: Path, old: Files | None) -> Path:
    """Return a target in a folder of its own, with what it holds."""
    folder.mkdir()
    return folder / "out" if old is None else make(folder / "out", old)


def left_behind(folder: Path) -> list[str]:
    """Return the names of staging folders, all of which are known for what they are; nothing else is hidden or visible."""
    parent = os.open(folder, os.O_RDONLY)
    try:
        left = find_staging(parent, b"out")
    finally:
        os.close(parent)
    names = {os.fsdecode(each.name) for each in left}
    assert {path.name for path in folder.iterdir()} <= names | {"out", LOCK}
    assert all(is_staging_name(each.name) for each in left)
    assert all(each.marker is None or life(each.marker.owner) is Life.DEAD for each in left)
    return sorted(names)


def whole(out: Path, old: Files | None, new: Files) -> str:
    """Return which of the two states stands at a target."""
    found = made(out)
    assert found in (old, new)
    return "old" if found == old else "new"


# R088 R112 R113
@pytest.mark.parametrize("old", [None, OLD], ids=["new target", "replace"])
def test_killed_before_every_step(
    order: Order, source: Path, new: Files, tmp_path: Path, old: Files | None
) -> None:
    before = tree(source)
    replace = () if old is None else ("--replace",)
    outcomes = []
    for step in range(0, 200, 2 if old is None else 1):
        out = begin(tmp_path / str(step), old)
        ended = order(source, out, *SMALL, *replace, step=step, signal=signal.SIGKILL)
        if not ended.killed:
            break
        left_behind(out.parent)
        outcomes.append(whole(out, old, new))
    else:
        pytest.fail("there are more steps than the test takes")

    assert ended.code == 0, ended.said
    assert {"prove", "copy", "verify", "promote"} <= set(ended.steps)
    assert len(ended.steps) >= 50
    assert len(outcomes) >= len(ended.steps) // 2
    assert (
        sorted(outcomes, key=["old", "new"].index) == outcomes
    )  # one moment divides the old state from the new one
    assert set(outcomes) == {"old", "new"}
    assert tree(source) == before
    again = order(
        source, tmp_path / "20" / "out", *SMALL, *replace
    )  # what a killed run left is in nobody's way
    assert again.code == 0, again.said
    assert made(tmp_path / "20" / "out") == new


# R112 R113
def test_killed_at_random_moments(order: Order, tmp_path: Path) -> None:
    shape = (1 << 10, 1 << 10)
    source = write_safetensors(
        tmp_path / "source/model.safetensors", {"a": ("F32", shape), "b": ("F32", shape)}
    ).parent
    options = ("--quiet", "--replace", "--dtype", "bf16", "--max-shard-size", "3MB", "--verify", "full")
    out = begin(tmp_path / "target", OLD)
    done = order(source, out, *options)
    assert done.code == 0, done.said
    new = made(out) or {}
    killed = 0
    for seed in range(50):
        shutil.rmtree(out.parent)
        begin(out.parent, OLD)
        ended = order(source, out, *options, seed=seed, seconds=done.seconds)
        killed += ended.killed
        left = left_behind(out.parent)
        if whole(out, OLD, new) == "new":  # the old output is never lost
            assert any(
                read(out.parent / name / "previous") == OLD or read(out.parent / name / "output") == OLD
                for name in left
            )
    assert killed >= 25

    assert order(source, out, *options).code == 0
    assert made(out) == new


# R113
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_a_signal_before_any_step_cancels_or_comes_too_late(
    order: Order, source: Path, new: Files, tmp_path: Path, number: signal.Signals
) -> None:
    stages = ["target", "prove", "copy", "verify", "promote"]
    steps = order(source, tmp_path / "a", *SMALL).steps if number == signal.SIGTERM else stages
    stopped = resumed = 0
    for step in dict.fromkeys(steps):
        out = begin(tmp_path / step, OLD)
        ended = order(source, out, *SMALL, "--replace", step=step, signal=number)
        if ended.code == 0:  # nobody looks between the last check and the rename
            assert made(out) == new
            continue
        stopped += 1
        assert ended.code == ExitCode.CANCELLED, ended.said
        word = "Ctrl-C" if number == signal.SIGINT else number.name
        assert ended.said.startswith(f"shardscope: Stopped by {word} while ")
        assert "Nothing was promoted: out is as it was, and what was staged " in ended.said
        assert read(out) == OLD
        kept = hidden(out.parent)
        assert ("is removed." in ended.said) == (kept == [])
        assert kept == [] or (number == signal.SIGHUP and " --resume\n" in ended.said)
        resumed += bool(kept)
        if kept:  # a lost terminal leaves finished files
            again = order(source, out, *SMALL, "--replace", "--resume")
            assert again.code == 0, again.said
            assert made(out) == new
    assert stopped >= 3
    assert bool(resumed) == (number == signal.SIGHUP)


# R113
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda each: each.name)
def test_a_signal_while_copying_ends_the_command_at_once(tmp_path: Path, number: signal.Signals) -> None:
    """The command as a person starts it, in the middle of many bytes."""
    source = safetensors(tmp_path / "source", 1024 * MIB)
    out = begin(tmp_path / "target", OLD)
    with process(
        "convert", str(source), str(out), "--yes", "--quiet", "--replace", "--dtype", "bf16"
    ) as running:
        copying(running, out)
        began = time.monotonic()
        running.send_signal(number)
        _, said = running.communicate(timeout=30)
    took = time.monotonic() - began

    assert running.returncode == ExitCode.CANCELLED, said
    assert b"while copying" in said
    assert b"Nothing was promoted: out is as it was, and what was staged is removed." in said
    assert read(out) == OLD
    assert hidden(out.parent) == []
    assert took < 5


def copying(running: subprocess.Popen[bytes], out: Path) -> None:
    """Wait until bytes are being copied."""
    end = time.monotonic() + 30
    while not list(out.parent.glob(".out.shardscope-staging-*/output/*.safetensors")):
        assert time.monotonic() < end
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)


# R112
def test_two_conversions_to_one_target_at_once(tmp_path: Path) -> None:
    source = safetensors(tmp_path / "source", 512 * MIB)
    (tmp_path / "target").mkdir()
    out = tmp_path / "target" / "out"
    with process("convert", str(source), str(out), "--yes", "--quiet", "--dtype", "bf16") as first:
        copying(first, out)
        second = run("convert", str(source), str(out), "--yes", "--quiet")
        assert second.code == ExitCode.OUTPUT
        assert f"process {first.pid}" in second.err
        assert "stage.busy" in second.err
        assert not out.exists()
        _, said = first.communicate(timeout=60)

    assert first.returncode == 0, said
    assert {path.name for path in out.parent.iterdir()} == {"out"}
    assert run("verify", str(out), "--against", str(source)).code == 0


# R108
@needs_root
def test_a_disk_that_is_too_small_starts_nothing(order: Order, source: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "m", "tmpfs", "size=64k") as folder:
        ended = order(source, folder / "out", *SMALL)

        assert ended.code == ExitCode.DENIED
        assert "Admission is denied: disk: " in ended.said
        assert ended.steps == []
        assert list(folder.iterdir()) == []


# R087 R112
@needs_root
@pytest.mark.parametrize("step", ["prove", "file.create", "verify", "promote", "promote.audit"])
def test_a_disk_that_others_fill_meanwhile(order: Order, source: Path, tmp_path: Path, step: str) -> None:
    with mounted(tmp_path / "m", "tmpfs", "size=4m") as folder:
        make(folder / "out", OLD)
        ended = order(source, folder / "out", *SMALL, "--replace", step=step, fill=str(folder))

        assert read(folder / "out") == OLD or (ended.code == 0 and step.startswith("promote"))
        if ended.code != 0:
            assert ended.code == ExitCode.OUTPUT, ended.said
            assert "There is no room for" in ended.said
            assert f"It failed while {STAGE_OF[step]}." in ended.said
            assert "Nothing was promoted: out is as it was" in ended.said
            kept = "what was staged stays in" in ended.said  # it was whole
            assert len([name for name in hidden(folder) if name != "filler"]) == kept


STAGE_OF = {
    "prove": "copying",
    "file.create": "copying",
    "verify": "verifying what was staged",
    "promote": "promoting",
    "promote.audit": "promoting",
}


# R112
def test_files_that_may_not_grow(order: Order, source: Path, tmp_path: Path) -> None:
    out = begin(tmp_path / "t", OLD)
    ended = order(source, out, *SMALL, "--replace", step="copy", limit=300)

    assert ended.code == ExitCode.OUTPUT
    assert "stage.file_too_large" in ended.said
    assert "It failed while copying." in ended.said
    assert read(out) == OLD
    assert hidden(out.parent) == []


# R112
@pytest.mark.parametrize("error", ["EIO", "EACCES"])
@pytest.mark.parametrize("call", ["preadv", "pread"])
@pytest.mark.parametrize("step", ["prove", "copy", "verify"])
def test_a_source_that_cannot_be_read_any_more(
    order: Order, source: Path, new: Files, tmp_path: Path, call: str, error: str, step: str
) -> None:
    out = begin(tmp_path / "t", OLD)
    # A digest reads what was staged with the same calls, in a thread of its own: either could be the one that fails.
    options = (*SMALL, "--replace", "--dtype", "bf16", "--verify", "full", "--digest", "none")
    ended = order(source, out, *options, step=step, call=call, error=error, after=1)

    if ended.code == 0:  # it is not called after that
        assert made(out) != OLD
        return
    assert ended.code in (ExitCode.UNREADABLE, ExitCode.CHANGED), ended.said
    assert "It failed while" in ended.said
    assert "Nothing was promoted: out is as it was" in ended.said
    assert "Traceback" not in ended.said
    assert read(out) == OLD
    assert hidden(out.parent) == []


# R112
@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("EIO", "stage.write_failed"),
        ("EACCES", "stage.denied"),
        ("ENOSPC", "stage.no_space"),
        ("EDQUOT", "stage.quota"),
    ],
)
@pytest.mark.parametrize("after", [0, 2])
def test_a_target_that_cannot_be_written_any_more(
    order: Order, source: Path, tmp_path: Path, error: str, code: str, after: int
) -> None:
    out = begin(tmp_path / "t", OLD)
    options = (*SMALL, "--replace", "--dtype", "bf16")
    ended = order(source, out, *options, step="copy", call="pwrite", error=error, after=after)

    assert ended.code == ExitCode.OUTPUT, ended.said
    assert f"[{code}]" in ended.said
    assert "It failed while copying." in ended.said
    assert "Nothing was promoted: out is as it was, and what was staged is removed." in ended.said
    assert read(out) == OLD
    assert hidden(out.parent) == []


# R110
@pytest.mark.parametrize("change", ["touch", "grow", "cut", "swap", "remove"])
@pytest.mark.parametrize(
    ("step", "file"),
    [
        ("prove", "model-00001-of-00002.safetensors"),
        ("copy", "model-00002-of-00002.safetensors"),
        ("file.reserve", "config.json"),
        ("verify", "model-00002-of-00002.safetensors"),
        ("verify", "config.json"),
    ],
)
def test_a_source_that_changes_in_the_middle(
    order: Order, source: Path, tmp_path: Path, change: str, step: str, file: str
) -> None:
    out = begin(tmp_path / "t", OLD)
    ended = order(source, out, *SMALL, "--replace", step=step, **{change: str(source / file)})

    assert ended.code == ExitCode.CHANGED, ended.said
    assert "It failed while" in ended.said
    assert file in ended.said
    assert read(out) == OLD
    assert hidden(out.parent) == []


# R110
def test_a_file_that_is_added_to_the_source_in_the_middle(order: Order, source: Path, tmp_path: Path) -> None:
    out = begin(tmp_path / "t", None)
    ended = order(source, out, *SMALL, step="copy", make=str(source / "more.json"))

    assert ended.code == ExitCode.CHANGED, ended.said
    assert not out.exists()


# R088 R112
@pytest.mark.parametrize("step", ["prove", "copy", "promote.audit", "promote.rename"])
def test_a_target_that_appears_in_the_middle(
    order: Order, source: Path, new: Files, tmp_path: Path, step: str
) -> None:
    out = begin(tmp_path / "t", None)
    ended = order(source, out, *SMALL, step=step, make=str(out))

    assert ended.code == ExitCode.OUTPUT, ended.said
    assert "promote.target_appeared" in ended.said
    assert "It failed while promoting." in ended.said
    assert "what was staged stays in" in ended.said
    assert read(out) == {}
    (left,) = left_behind(out.parent)
    assert made(out.parent / left / "output") == new
