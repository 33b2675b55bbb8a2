"""Disks, limits, sources, clocks, workers and other runs that do not do what a conversion would like."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shardscope.engine.model.exits import ExitCode
from tests.campaigns.bench import OPTIONS, Bench, expect
from tests.campaigns.common import Tried, attach, done, limited, mounted
from tests.convert.targets import OLD


def fails(bench: Bench, times: int, *codes: str, **what: Any) -> Tried:
    """Let a run with --keep-staging fail at random steps of copying and later ones, and go on when the cause is gone."""
    tried = resumed = 0
    for number in range(times):
        out = bench.target(f"fails-{number}", OLD)
        name, after = random.Random(number).choice([("file.create", 0), ("copy", 2), ("copy", 5)])
        order = {**what, "after": after} if "call" in what else what
        ended = bench.convert(out, "--replace", "--keep-staging", step=name, **order)
        tried += 1
        if ended.code != 0:
            expect(any(f"[{code}]" in ended.said for code in codes), ended.said)
            expect("It failed while" in ended.said, ended.said)
            expect(Bench.made(out) == OLD, "the old output is not what it was")
        resumed += bench.resume(out, OLD)
        done(out)
    return Tried(tried, resumed)


def writes_fail(error: str, code: str) -> Callable[[Bench, int], Tried]:
    """Return the scenario in which writing fails with an error of the system."""
    return lambda bench, times: fails(bench, times, code, call="pwrite", error=error)


def reads_fail(error: str) -> Callable[[Bench, int], Tried]:
    """Return the scenario in which reading fails with an error of the system: of the source, or of what is hashed."""
    codes = ("source.unreadable", "source.read_failed", "stage.denied", "stage.write_failed")
    return lambda bench, times: fails(bench, times, *codes, call="preadv", error=error)


def files_may_not_grow(bench: Bench, times: int) -> Tried:
    """RLIMIT_FSIZE in the middle."""
    return fails(bench, times, "stage.file_too_large", limit=30_000)


def disk_full(bench: Bench, times: int) -> Tried:
    """A small file system that somebody else fills while the conversion runs, and frees again."""
    tried = resumed = 0
    for number in range(times):
        with mounted(bench, "tmpfs", "size=4m") as folder:
            out = folder / "t" / "out"
            out.parent.mkdir()
            step = ("file.create", "prove", "copy")[number % 3]
            ended = bench.convert(out, "--keep-staging", step=step, fill=str(folder))
            tried += 1
            expect("stage.no_space" in ended.said and "It failed while copying" in ended.said, ended.said)
            (folder / "filler").unlink()
            resumed += bench.resume(out)
    return Tried(tried, resumed)


def room_for_the_rest_only(bench: Bench, times: int) -> Tried:
    """A run is killed late, and then there is not room enough for a whole output: what is staged counts."""
    tried = resumed = 0
    for _ in range(times):
        with mounted(bench, "tmpfs", "size=4m") as folder:
            out = folder / "t" / "out"
            out.parent.mkdir()
            killed = bench.convert(out, step="verify", signal=signal.SIGKILL)
            expect(killed.killed, killed.said)
            free = shutil.disk_usage(folder).free
            (folder / "filler").write_bytes(bytes(free - 1_200_000))
            denied = bench.convert(folder / "t" / "other")
            expect(denied.code == ExitCode.DENIED, denied.said)
            tried += 1
            resumed += bench.resume(out)
    return Tried(tried, resumed)


def no_inodes(bench: Bench, times: int) -> Tried:
    """A file system that can hold no more files, from the middle on."""
    tried = resumed = 0
    for number in range(times):
        with mounted(bench, "tmpfs", "size=8m,nr_inodes=64") as folder:
            out = folder / "t" / "out"
            out.parent.mkdir()
            pile = folder / "full"
            ended = bench.convert(
                out, "--keep-staging", step=("prove", "file.create")[number % 2], crowd=str(pile)
            )
            tried += 1
            expect("stage.no_inodes" in ended.said, ended.said)
            shutil.rmtree(pile)
            resumed += bench.resume(out)
    return Tried(tried, resumed)


def few_descriptors(bench: Bench, times: int) -> Tried:
    """RLIMIT_NOFILE 64 from the beginning starts nothing; descriptors that run out in the middle end the run."""
    tried = resumed = 0
    for number in range(times):
        out = bench.target(f"nofile-{number}")
        denied = limited(bench, out, "ulimit -n 64")
        expect(denied.returncode == ExitCode.DENIED, denied.stderr.decode())
        expect(b"open files" in denied.stderr, denied.stderr.decode())
        expect(list(out.parent.iterdir()) == [], "something was written")
        ended = bench.convert(
            out, "--keep-staging", step=("copy", "file.create")[number % 2], descriptors=number % 7
        )
        tried += 2
        expect(ended.code in (0, ExitCode.OUTPUT, ExitCode.UNREADABLE), ended.said)
        resumed += bench.resume(out)
        done(out)
    return Tried(tried, resumed)


def source_changes(bench: Bench, times: int) -> Tried:
    """What is finished then is of another source: it is not gone on with, and a new run is of the source as it is."""
    tried = 0
    for number in range(times):
        source = shutil.copytree(bench.source, bench.folder / "changing")
        file = source / f"model-{1 + number % 8:05d}-of-00008.safetensors"
        out = bench.target(f"changes-{number}")
        change = ("touch", "grow", "cut", "swap", "remove")[number % 5]
        step = ("copy", "file.create", "verify")[number % 3]
        ended = bench.convert(out, "--keep-staging", source=source, step=step, **{change: str(file)})
        expect(ended.code == ExitCode.CHANGED, ended.said)
        expect(list(out.parent.iterdir()) == [], "finished files of another source were kept")
        killed = bench.convert(out, step="verify", signal=signal.SIGKILL)
        expect(killed.killed, killed.said)
        other = bench.convert(out, "--resume", "--exclude", "layers.0.*")
        expect(other.code == ExitCode.OUTPUT and "resume.other_plan" in other.said, other.said)
        tried += 2
        shutil.rmtree(source)
        done(out)
    return Tried(tried, 0)


def wrong_bytes(bench: Bench, times: int) -> Tried:
    """A worker writes a wrong byte and says the digest of what it wrote: --verify full finds it, and nothing is kept."""
    for number in range(times):
        out = bench.target(f"lies-{number}", OLD)
        options = ("--replace", "--verify", "full", "--keep-staging")
        ended = bench.convert(out, *options, step="copy", lie=number)
        expect("verify.value" in ended.said, ended.said)
        expect({path.name for path in out.parent.iterdir()} == {"out"}, "wrong bytes were kept")
        expect(Bench.made(out) == OLD, "the old output is not what it was")
        done(out)
    return Tried(times, 0)


def slow_source(bench: Bench, times: int) -> Tried:
    """Every read takes 20 ms longer, one run is killed in the middle of it, and one is stopped."""
    resumed = 0
    for number in range(times):
        out = bench.target(f"slow-{number}")
        if number % 2:
            ended = bench.convert(out, delay=0.02, step="target", seed=number, seconds=bench.seconds * 2)
        else:
            began = time.monotonic()
            ended = bench.convert(out, delay=0.02, step="target", alarm=0.4)
            expect(time.monotonic() - began < 4, "it does not stop")
            expect(ended.code in (0, ExitCode.CANCELLED), ended.said)
        resumed += bench.resume(out, delay=0.0005, step="target")
        done(out)
    return Tried(times, resumed)


def stalled_source(bench: Bench, times: int) -> Tried:
    """Each read of the source hangs for seconds: SIGKILL always ends it, and what it finished before is gone on with."""
    resumed = 0
    for number in range(times):
        out = bench.target(f"stall-{number}")
        ended = bench.convert(out, delay=5.0, step="file.create", seed=number, seconds=bench.seconds * 2)
        expect(ended.killed, ended.said)
        resumed += bench.resume(out)
        done(out)
    return Tried(times, resumed)


def clock_jumps(bench: Bench, times: int) -> Tried:
    """The clock on the wall jumps by years at every look, and what is staged is dated back and forth."""
    resumed = 0
    for number in range(times):
        out = bench.target(f"clock-{number}")
        ended = bench.convert(out, clock=1e9, step="target", seed=number, seconds=bench.seconds)
        for path in out.parent.rglob("*"):
            os.utime(path, (0, 0) if number % 2 else (4e9, 4e9), follow_symlinks=False)
        if not ended.killed:
            expect(ended.code == 0, ended.said)
        resumed += bench.resume(out, clock=1e9, step="target")
        done(out)
    return Tried(times, resumed)


def read_only_source(bench: Bench, times: int) -> Tried:
    """The source on a mount that is read-only."""
    source = bench.folder / "read-only"
    source.mkdir(exist_ok=True)
    attach("--bind", "-o", "ro", str(bench.source), str(source))
    try:
        return killed_from(bench, times, source)
    finally:
        subprocess.run(["umount", str(source)], check=True)


def killed_from(bench: Bench, times: int, source: Path) -> Tried:
    """Kill runs at random that read another folder."""
    resumed = 0
    for number in range(times):
        out = bench.target(f"from-{number}")
        bench.convert(out, source=source, seed=number, seconds=bench.seconds)
        resumed += bench.resume(out, source=source)
        done(out)
    return Tried(times, resumed)


def other_file_system(bench: Bench, times: int) -> Tried:
    """The target on another file system than the source."""
    resumed = 0
    with mounted(bench, "tmpfs", "size=64m") as folder:
        for number in range(times):
            out = folder / f"t{number}" / "out"
            out.parent.mkdir()
            bench.convert(out, seed=number, seconds=bench.seconds)
            resumed += bench.resume(out)
            done(out)
    return Tried(times, resumed)


def two_conversions(bench: Bench, times: int) -> Tried:
    """Two to one target at the same moment: at least one is refused or finds the other's output; the output is whole."""
    return together(bench, times, "")


def two_resumes(bench: Bench, times: int) -> Tried:
    """Two --resume of the same run at the same moment."""
    return together(bench, times, "--resume")


def together(bench: Bench, times: int, how: str) -> Tried:
    """Start two runs at once."""
    resumed = 0
    for number in range(times):
        out = bench.target(f"both-{number}")
        if how:
            bench.convert(out, step="verify", signal=signal.SIGKILL)
        words = ["convert", str(bench.source), str(out), "--yes", *OPTIONS, *([how] if how else [])]
        pair = [bench.command(*words) for _ in range(2)]
        said = [one.communicate(timeout=60)[1].decode() for one in pair]
        codes = sorted(one.returncode for one in pair)
        expect(codes == [0, ExitCode.OUTPUT], f"{codes}: {said}")
        expect(
            any(
                code in "".join(said)
                for code in ("stage.busy", "stage.target_exists", "promote.target_appeared")
            ),
            "".join(said),
        )
        bench.look(out)
        expect(Bench.made(out) == bench.new, "other bytes")
        resumed += bool(how)
        bench.clean(out)
        done(out)
    return Tried(2 * times, resumed)
