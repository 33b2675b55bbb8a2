"""Files as tasks: in threads, in processes that share nothing but the file system, lost and found, stopped, and lied about."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from shardscope.engine import materialize, prepare
from shardscope.engine.convert.disk.journal import read_journal
from shardscope.engine.convert.disk.names import ATTEMPTS
from shardscope.engine.convert.disk.output import OutputFile
from shardscope.engine.convert.executors import dispatch
from shardscope.engine.convert.executors.dispatch import Made
from shardscope.engine.convert.executors.threads import shares
from shardscope.engine.convert.jobs.attempts import drop_attempts
from shardscope.engine.convert.jobs.flag import EVERY, raise_flag
from shardscope.engine.convert.jobs.running import run_task
from shardscope.engine.convert.jobs.tasks import (
    Done,
    FileTask,
    Refused,
    Stopped,
    TaskSource,
    file_tasks,
    packed,
    unpacked,
    unpacked_outcome,
    versions_here,
)
from shardscope.engine.convert.stage.promotion import promote
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.converting.materializing import Converted
from shardscope.engine.converting.preparing import Prepared
from shardscope.engine.inspecting.decoding import Decoding
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.escalation import Intent
from shardscope.engine.model.manifest import RUN_NAME
from shardscope.engine.model.plan import PlanOptions
from shardscope.engine.model.progress import Cancelled, Progress
from shardscope.engine.source.source import Source
from tests.convert.hands import Instead, changing, die, die_once, late, pool

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
ROWS = 128


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty tensors of 64 KiB of fp32 in two files."""
    folder = tmp_path_factory.mktemp("tasks") / "source"
    folder.mkdir()
    random = np.random.default_rng(7)
    for number in range(2):
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        data = b""
        for layer in range(10):
            made = random.standard_normal((ROWS, ROWS)).astype("<f4").tobytes()
            header[f"model.layers.{10 * number + layer}.weight"] = {
                "dtype": "F32", "shape": [ROWS, ROWS], "data_offsets": [len(data), len(data) + len(made)],
            }  # fmt: skip
            data += made
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        (folder / f"model-0000{number + 1}-of-00002.safetensors").write_bytes(
            len(text).to_bytes(8, "little") + text + data
        )
    return folder


OPTIONS = PlanOptions(max_shard_bytes=150_000, verify="full")


def prepared(source: Path, options: PlanOptions = OPTIONS) -> Prepared:
    return prepare(source, options, decoding=Decoding(Intent("convert", "command line"), "all"))


def converted(source: Path, out: Path, options: PlanOptions = OPTIONS, **more: Any) -> Converted:
    return materialize(source, out, prepared(source, options), confirm=lambda _: True, **more)


def read(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.iterdir()) if path.name != RUN_NAME}


@pytest.fixture(scope="module")
def truth(checkpoint: Path) -> dict[str, bytes]:
    """What one process makes, one file after the other and nothing side by side."""
    converted(checkpoint, checkpoint.parent / "truth")
    return read(checkpoint.parent / "truth")


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(Fault) as caught:
        call()
    return caught.value.finding.code


def nothing_is_left(tmp_path: Path) -> None:
    assert [path.name for path in tmp_path.iterdir() if "staging" in path.name or path.name == "out"] == []


# R110 R111
def test_processes_make_what_threads_make(checkpoint: Path, truth: dict[str, bytes], tmp_path: Path) -> None:
    with pool() as processes:
        done = converted(checkpoint, tmp_path / "out", executor=processes)

    assert read(tmp_path / "out") == truth
    assert len(done.plan.files) == 10
    assert done.run.workers_peak_rss_bytes is not None
    assert done.run.workers_peak_rss_bytes > 10 << 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_files_side_by_side_are_the_same_files(
    checkpoint: Path, truth: dict[str, bytes], tmp_path: Path, workers: int
) -> None:
    done = converted(checkpoint, tmp_path / "out", replace(OPTIONS, workers=workers))
    found = read(tmp_path / "out")

    assert {k: v for k, v in found.items() if "manifest" not in k} == {
        k: v for k, v in truth.items() if "manifest" not in k
    }
    assert done.run.workers_peak_rss_bytes is None


@pytest.mark.parametrize(
    "name",
    [
        "dcp/dtensor_2d_dp2_tp2", "dcp/fsdp2_zstd_world2", "deepspeed/autotp2-phi3-fused-zero1-fp32", "deepspeed/zero3-w3-fp32",
        "hf/mixtral_moe_sharded", "megatron/legacy_tp2_pp2", "torch/zip_deflated", "torch/zip_big_endian",
    ],
)  # fmt: skip
def test_every_kind_of_source_travels(name: str, tmp_path: Path) -> None:
    source = FIXTURES / name / "checkpoint"
    options = PlanOptions(component="all", ties="both", max_shard_bytes=20_000, dtype="BF16")
    converted(source, tmp_path / "one", options)
    with ThreadPoolExecutor(2) as threads:
        converted(source, tmp_path / "two", options, executor=threads)

    assert read(tmp_path / "one") == read(tmp_path / "two")


def test_a_single_file_travels(checkpoint: Path, tmp_path: Path) -> None:
    source = checkpoint / "model-00001-of-00002.safetensors"
    converted(source, tmp_path / "one")
    with ThreadPoolExecutor(2) as threads:
        converted(source, tmp_path / "two", executor=threads)

    assert read(tmp_path / "one") == read(tmp_path / "two")


def test_a_snapshot_of_a_cache_travels(checkpoint: Path, tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "models--x" / "blobs", tmp_path / "models--x" / "snapshots" / "0123"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, path in enumerate(sorted(checkpoint.iterdir())):
        (blobs / f"{number}").write_bytes(path.read_bytes())
        (snapshot / path.name).symlink_to(f"../../blobs/{number}")
    for name, executor in (("one", None), ("two", ThreadPoolExecutor(2))):
        found = prepare(snapshot, OPTIONS, hf_cache=True)
        materialize(
            snapshot, tmp_path / name, found, confirm=lambda _: True, hf_cache=True, executor=executor
        )
        if executor is not None:
            executor.shutdown()

    assert len(read(tmp_path / "one")) == 12
    assert read(tmp_path / "one") == read(tmp_path / "two")


def test_a_worker_that_is_killed_costs_its_unfinished_tasks(
    checkpoint: Path, truth: dict[str, bytes], tmp_path: Path
) -> None:
    made: list[Instead] = []

    def make() -> Executor:
        made.append(Instead(pool(), partial(die_once, str(tmp_path / "mark"))))
        return made[-1]

    converted(checkpoint, tmp_path / "out", executor=Made(make))

    assert read(tmp_path / "out") == truth
    assert len(made) == 2
    assert sum(each.given for each in made) <= 2 * 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mark", "out"]


def test_a_conversion_on_executors_goes_on_where_it_ended(
    checkpoint: Path, truth: dict[str, bytes], tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as threads:
        executor = Instead(threads, Losing(1000, after=4))
        code = code_of(lambda: converted(checkpoint, tmp_path / "out", executor=executor, resume=True))
    assert code == "cluster.lost"
    with ThreadPoolExecutor(1) as threads:
        again = Instead(threads, run_task)
        done = converted(checkpoint, tmp_path / "out", executor=again, resume=True)

    assert again.given == 10 - 4
    assert done.run.resumed_bytes > 4 * 128 * 128 * 4
    assert read(tmp_path / "out") == truth
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


# R112
def test_an_executor_that_cannot_be_had_again_ends_the_conversion(checkpoint: Path, tmp_path: Path) -> None:
    with pool(1) as processes:
        given = Instead(processes, die)
        assert code_of(lambda: converted(checkpoint, tmp_path / "out", executor=given)) == "cluster.broken"
    nothing_is_left(tmp_path)


def test_executors_that_always_break_are_not_made_for_ever(checkpoint: Path, tmp_path: Path) -> None:
    made = []

    def make() -> Executor:
        made.append(Instead(pool(1), die))
        return made[-1]

    assert code_of(lambda: converted(checkpoint, tmp_path / "out", executor=Made(make))) == "cluster.broken"
    assert len(made) == dispatch.MOST_ATTEMPTS
    nothing_is_left(tmp_path)


class WorkerGoneError(Exception):
    """What an executor says of a worker that it lost (Dask: `KilledWorker`)."""


class Losing:
    """Loses the workers of so many tasks, after some that it does."""

    def __init__(self, times: int, after: int = 0) -> None:
        self.left = times
        self.after = after
        self.turn = threading.Lock()

    def __call__(self, data: bytes) -> bytes:
        with self.turn:
            self.after -= 1
            if self.after < 0:
                self.left -= 1
                if self.left >= 0:
                    raise WorkerGoneError
        return run_task(data)


def test_a_lost_task_is_given_out_again(checkpoint: Path, truth: dict[str, bytes], tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        executor = Instead(threads, Losing(2))
        converted(checkpoint, tmp_path / "out", executor=executor)

    assert executor.given == 12
    assert read(tmp_path / "out") == truth


def test_a_task_that_is_always_lost_is_given_up(checkpoint: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        executor = Instead(threads, Losing(1000))
        assert code_of(lambda: converted(checkpoint, tmp_path / "out", executor=executor)) == "cluster.lost"
    nothing_is_left(tmp_path)


def flip(file: Path, done: Done) -> None:
    with file.open("r+b") as opened:
        opened.seek(done.copied.bytes - 70_001)
        (byte,) = opened.read(1)
        opened.seek(-1, os.SEEK_CUR)
        opened.write(bytes([byte ^ 1]))


# R112
def test_wrong_bytes_are_caught_by_verification(checkpoint: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        executor = Instead(threads, changing(flip))
        assert code_of(lambda: converted(checkpoint, tmp_path / "out", executor=executor)) == "verify.value"
    nothing_is_left(tmp_path)


def test_a_wrong_digest_is_caught_by_verification(checkpoint: Path, tmp_path: Path) -> None:
    def lie(_file: Path, done: Done) -> Done:
        return replace(done, copied=replace(done.copied, sha256="0" * 64))

    with ThreadPoolExecutor(2) as threads:
        executor = Instead(threads, changing(lie))
        assert code_of(lambda: converted(checkpoint, tmp_path / "out", executor=executor)) == "verify.digest"
    nothing_is_left(tmp_path)


def shorten(file: Path, _done: Done) -> None:
    os.truncate(file, 1000)


def lengthen(file: Path, done: Done) -> None:
    os.truncate(file, done.copied.bytes + 1)


def link(file: Path, _done: Done) -> None:
    os.link(file, file.with_name("second-name"))


def exchange(file: Path, _done: Done) -> None:
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    copy.rename(file)


def remove(file: Path, _done: Done) -> None:
    file.unlink()


def climb(file: Path, done: Done) -> Done:
    return replace(done, attempt="../" + file.name)


def other_task(_file: Path, done: Done) -> Done:
    return replace(done, task="0" * 64)


def fewer(_file: Path, done: Done) -> Done:
    return replace(done, copied=replace(done.copied, bytes=1))


# R106
@pytest.mark.parametrize("change", [shorten, lengthen, link, exchange, remove, climb, other_task, fewer])
def test_what_a_worker_says_is_looked_at(
    checkpoint: Path, tmp_path: Path, change: Callable[[Path, Done], Done | None]
) -> None:
    with ThreadPoolExecutor(2) as threads:
        executor = Instead(threads, changing(change))
        code = code_of(lambda: converted(checkpoint, tmp_path / "out", executor=executor))
    assert code == "cluster.attempt_differs"
    nothing_is_left(tmp_path)


def test_a_link_in_place_of_an_attempt_is_not_followed(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")

    def lead(file: Path, _done: Done) -> None:
        file.unlink()
        file.symlink_to(tmp_path / "victim")

    with ThreadPoolExecutor(2) as threads:
        executor = Instead(threads, changing(lead))
        with pytest.raises(Fault):
            converted(checkpoint, tmp_path / "out", executor=executor)
    assert (tmp_path / "victim").read_bytes() == b"precious"
    nothing_is_left(tmp_path)


# R110
def test_a_source_that_changed_before_a_task_opens_it_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for path in checkpoint.iterdir():
        (source / path.name).write_bytes(path.read_bytes())
    done = threading.Event()

    def work(data: bytes) -> bytes:
        if not done.is_set():
            done.set()
            file = source / "model-00002-of-00002.safetensors"
            os.utime(file, ns=(1, 1))
        return run_task(data)

    with ThreadPoolExecutor(1) as threads:
        executor = Instead(threads, work)
        assert code_of(lambda: converted(source, tmp_path / "out", executor=executor)) == "source.changed"
    nothing_is_left(tmp_path)


# --- one task by itself


@contextmanager
def one_task(
    checkpoint: Path, tmp_path: Path, options: PlanOptions = OPTIONS
) -> Iterator[tuple[Staging, FileTask, Any]]:
    """A staging folder that expects the file of one task, and that task as workers get it."""
    found = prepared(checkpoint, options)
    with Source(checkpoint) as source:
        root = source.root
        place = TaskSource(
            root.path, False, root.identity.device, root.identity.inode, found.inspection.inventory.files
        )
    tasks = file_tasks(found.plan, {tensor.name: tensor for tensor in found.catalogue.tensors}, place)
    with Staging(tmp_path / "out", allowed=tasks[0].size) as staging:
        area = staging.area()
        staging.expect(tasks[0].name, tasks[0].size)
        yield staging, replace(tasks[0], area=area, versions=versions_here()), found.plan


def done(task: FileTask) -> Done:
    outcome = unpacked_outcome(run_task(packed(task)))
    assert isinstance(outcome, Done), outcome
    return outcome


def test_two_attempts_at_one_task_have_two_names(
    checkpoint: Path, truth: dict[str, bytes], tmp_path: Path
) -> None:
    with one_task(checkpoint, tmp_path) as (staging, task, _), ThreadPoolExecutor(2) as threads:
        first, second = threads.map(done, [task, task])
        attempts = tmp_path / staging.file / os.fsdecode(ATTEMPTS)
        assert {first.attempt, second.attempt} == {path.name for path in attempts.iterdir()}
        assert first.copied == second.copied
        with (attempts / second.attempt).open("r+b") as presumed_dead:
            staging.adopt(task, first)
            drop_attempts(staging.folder, task)
            presumed_dead.write(b"I am still here")
        assert list(attempts.iterdir()) == []
        head = read_journal(staging.folder)
        assert head is not None
        assert [(r.file, r.task, r.sha256) for r in head[1]] == [(task.name, task.id, first.copied.sha256)]
        promote(staging)
    assert (tmp_path / "out" / task.name).read_bytes() == truth[task.name]


def test_a_file_is_taken_once(checkpoint: Path, tmp_path: Path) -> None:
    with one_task(checkpoint, tmp_path) as (staging, task, _):
        first, second = done(task), done(task)
        staging.adopt(task, first)
        assert code_of(lambda: staging.adopt(task, second)) == "stage.file_exists"


# R106
def test_a_task_of_more_bytes_than_were_admitted_is_not_expected(checkpoint: Path, tmp_path: Path) -> None:
    with one_task(checkpoint, tmp_path) as (staging, task, _):
        assert code_of(lambda: staging.expect("more", 1)) == "stage.over_budget"
        short = replace(task, size=task.size - 1)
        outcome = unpacked_outcome(run_task(packed(short)))
        assert isinstance(outcome, Refused)
        assert outcome.finding.code == "stage.over_budget"
        assert os.listdir(tmp_path / staging.file / os.fsdecode(ATTEMPTS)) == []


def test_a_flag_stops_a_task_between_two_tiles(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_at = OutputFile.write_at
    begun, raised = threading.Event(), threading.Event()
    written_at: list[int] = []

    def held(file: OutputFile, offset: int, data: Any) -> None:
        written_at.append(offset)
        begun.set()
        assert raised.wait(60)
        time.sleep(EVERY)  # after which the flag is looked at
        write_at(file, offset, data)

    monkeypatch.setattr(OutputFile, "write_at", held)
    options = replace(OPTIONS, dtype="BF16", memory_bytes=1, workers=1, max_shard_bytes=10**9)
    with one_task(checkpoint, tmp_path, options) as (staging, task, _), ThreadPoolExecutor(1) as threads:
        future = threads.submit(run_task, packed(task))
        assert begun.wait(60)
        raise_flag(staging.folder)
        raised.set()
        outcome = unpacked_outcome(future.result())
        assert isinstance(outcome, Stopped)
        assert len(written_at) <= 2  # of twenty tensors
        assert os.listdir(tmp_path / staging.file / os.fsdecode(ATTEMPTS)) == []
        assert isinstance(unpacked_outcome(run_task(packed(task))), Stopped)


def test_a_task_whose_staging_folder_is_gone_says_so(checkpoint: Path, tmp_path: Path) -> None:
    with one_task(checkpoint, tmp_path) as (_, task, _plan):
        pass
    outcome = unpacked_outcome(run_task(packed(task)))
    assert isinstance(outcome, Refused)
    assert outcome.finding.code == "cluster.staging_elsewhere"


# R113
def test_a_person_who_stops_stops_every_worker(checkpoint: Path, tmp_path: Path) -> None:
    cancel = threading.Event()
    with ThreadPoolExecutor(2) as threads:
        executor = Instead(threads, partial(late, 0.2))
        timer = threading.Timer(0.3, cancel.set)
        timer.start()
        began = time.monotonic()
        with pytest.raises(Cancelled):
            converted(checkpoint, tmp_path / "out", executor=executor, cancel=cancel)
        assert time.monotonic() - began < 3
    assert executor.given == 10
    nothing_is_left(tmp_path)


@pytest.mark.parametrize("field", ["shardscope", "python", "numpy"])
def test_another_version_refuses(checkpoint: Path, tmp_path: Path, field: str) -> None:
    with one_task(checkpoint, tmp_path) as (_, task, _plan):
        other = replace(task, versions=replace(versions_here(), **{field: "0.0.1"}))
        outcome = unpacked_outcome(run_task(packed(other)))
        assert isinstance(outcome, Refused)
        assert outcome.finding.code == "cluster.versions"
        assert "0.0.1" in str(outcome.finding.params["expected"])


def elsewhere(task: FileTask) -> FileTask:
    """Return a task from a machine that gives the file system another number."""
    there = task.source.device + 1
    entries = tuple(
        replace(entry, identity=replace(entry.identity, device=there)) for entry in task.source.entries
    )
    return replace(task, source=replace(task.source, device=there, entries=entries))


def test_a_shared_file_system_may_have_another_number_on_every_machine(
    checkpoint: Path, truth: dict[str, bytes], tmp_path: Path
) -> None:
    with one_task(checkpoint, tmp_path) as (staging, task, _):
        outcome = done(elsewhere(task))
        attempt = tmp_path / staging.file / os.fsdecode(ATTEMPTS) / outcome.attempt
        assert attempt.read_bytes() == truth[task.name]


def test_another_folder_under_the_path_of_the_source_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    with one_task(checkpoint, tmp_path) as (_, task, _plan):
        other = replace(task, source=replace(task.source, inode=task.source.inode + 1))
        outcome = unpacked_outcome(run_task(packed(other)))
        assert isinstance(outcome, Refused)
        assert outcome.finding.code == "cluster.source_elsewhere"


def test_a_task_is_known_by_what_determines_its_bytes(checkpoint: Path, tmp_path: Path) -> None:
    with one_task(checkpoint, tmp_path) as (_, task, _plan):
        assert unpacked(packed(task)) == task
    with one_task(checkpoint, tmp_path, replace(OPTIONS, workers=7, memory_bytes=1 << 20)) as (
        _,
        same,
        _plan,
    ):
        assert same.id == task.id
    with one_task(checkpoint, tmp_path, replace(OPTIONS, dtype="BF16")) as (_, other, _plan):
        assert other.id != task.id
    with one_task(checkpoint, tmp_path, replace(OPTIONS, max_shard_bytes=80_000)) as (_, other, _plan):
        assert other.id != task.id


def test_only_bytes_and_the_name_of_one_function_travel(checkpoint: Path, tmp_path: Path) -> None:
    seen: list[tuple[Any, ...]] = []

    class Watching(Instead):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
            future = super().submit(fn, *args, **kwargs)
            seen.append((*args, future.result()))
            return future

    with ThreadPoolExecutor(2) as threads:
        converted(checkpoint, tmp_path / "out", executor=Watching(threads, run_task))
    assert {type(item) for items in seen for item in items} == {bytes}
    with pytest.raises(msgspec.MsgspecError):
        run_task(b"\x81\xa2id\xa1x")


def test_memory_is_divided_among_files_made_at_once(checkpoint: Path, tmp_path: Path) -> None:
    with one_task(checkpoint, tmp_path) as (_, task, _plan):
        pass
    many = [task] * 5
    assert [(s.workers, s.budget_bytes) for s in shares(many, 2, 64 << 20)] == [(1, 32 << 20)] * 2
    assert [s.workers for s in shares(many, 8, 256 << 20)] == [2, 2, 2, 1, 1]
    assert [(s.workers, s.budget_bytes) for s in shares([task], 8, 256 << 20)] == [(8, 256 << 20)]
    assert len(shares(many, 4, 1)) == 1


def test_progress_counts_all_files_and_never_falls(checkpoint: Path, tmp_path: Path) -> None:
    for executor in (None, ThreadPoolExecutor(2)):
        reports: list[Progress] = []
        out = tmp_path / str(executor is None)
        found = converted(checkpoint, out, executor=executor, progress=reports.append)
        copying = [report for report in reports if report.stage == "copy"]
        total = sum(file.bytes for file in found.plan.files)
        assert {report.total for report in copying} == {total}
        assert [report.done for report in copying] == sorted(report.done for report in copying)
        assert copying[-1].done == total
        if executor is not None:
            executor.shutdown()
