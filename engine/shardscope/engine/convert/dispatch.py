"""Tasks on executors: the threads of this process, or whatever a `concurrent.futures.Executor` stands for.

Threads share the staging folder and the source that are open here. Anything else gets its tasks as bytes, makes attempts, and may
lose workers: a task that was lost is given out again, a bounded number of times.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from queue import SimpleQueue
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.convert.attempts import drop_attempts
from shardscope.engine.convert.contents import Opener
from shardscope.engine.convert.copying import STAGE, Copied
from shardscope.engine.convert.crew import POLL
from shardscope.engine.convert.flag import raise_flag
from shardscope.engine.convert.running import copy_task, run_task
from shardscope.engine.convert.staging import Staging
from shardscope.engine.convert.tasks import (
    Area,
    Done,
    FileTask,
    Refused,
    TaskSource,
    packed,
    unpacked_outcome,
    versions_here,
)
from shardscope.engine.convert.work import memory
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.progress import Cancelled, OnProgress, Pace, Progress, check

MOST_ATTEMPTS: Final = 3
"""At one task, where the workers that had it were lost; and executors in a row that break before one finishes a task."""
PATIENCE: Final = 5.0
"""Seconds to wait for tasks elsewhere that were told to stop, before their staging folder is removed under them."""


class Executors(Protocol):
    """Where tasks are carried out."""

    def ready(self, source: TaskSource, area: Area) -> None:
        """Make sure that every worker can work there. Raises `Fault`."""
        ...

    def start(self) -> Executor:
        """Return an executor; once more after the last one broke. Raises `Fault` where there is none."""
        ...

    def end(self, executor: Executor) -> None:
        """Take back an executor that is no longer needed, or broke."""
        ...


class Given:
    """One executor, which stays its owner's (`Executors`)."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._started = False

    def ready(self, source: TaskSource, area: Area) -> None:
        """Trust the owner."""

    def start(self) -> Executor:
        """Return it. Raises `Fault` `cluster.broken` the second time."""
        if self._started:
            raise Fault("cluster.broken", times=1)
        self._started = True
        return self._executor

    def end(self, executor: Executor) -> None:
        """Leave it to its owner."""


class Made:
    """Executors that a call makes, one after the other as they break (`Executors`)."""

    def __init__(self, make: Callable[[], Executor]) -> None:
        self._make = make

    def ready(self, source: TaskSource, area: Area) -> None:
        """Trust whoever makes them."""

    def start(self) -> Executor:
        """Make one."""
        return self._make()

    def end(self, executor: Executor) -> None:
        """Shut it down without waiting."""
        executor.shutdown(wait=False, cancel_futures=True)


class Counts:
    """How many bytes of each task are written, and who is told."""

    def __init__(self, tasks: Iterable[FileTask], progress: OnProgress | None) -> None:
        self._total = sum(task.size for task in tasks)
        self._done: dict[str, int] = {}
        self._subject: str | None = None
        self._pace = Pace(progress)

    def set(self, task: FileTask, done: int) -> None:
        """Say how far a task is. Any thread may."""
        self._done[task.id] = done
        self._subject = task.name

    def tell(self, *, always: bool = False) -> None:
        """Hand on how far all tasks are: that is what a person waits for."""
        if always or self._pace.due():
            done = sum(list(self._done.values()))
            self._pace.report(Progress(STAGE, done, self._total, "bytes", self._subject))


class Share(Struct, frozen=True):
    """What one of several files that are made at once may take."""

    workers: int
    budget_bytes: int


def shares(tasks: Sequence[FileTask], workers: int, budget_bytes: int) -> list[Share]:
    """Return how many files are made at once, and with how many of the threads and of the memory each.

    One file gets everything. Several are made side by side, so that their digests are, too, as far as all buffers together take no
    more than one file's at a time would.
    """
    most = max((_buffers(task, workers, budget_bytes) for task in tasks), default=0)
    for count in range(min(len(tasks), workers), 1, -1):
        each = budget_bytes // count
        found = [Share(workers // count + (n < workers % count), each) for n in range(count)]
        if max(_buffers(task, found[0].workers, each) for task in tasks) * count <= max(most, budget_bytes):
            return found
    return [Share(workers, budget_bytes)]


def _buffers(task: FileTask, workers: int, budget_bytes: int) -> int:
    return memory(task.written(), budget_bytes, workers, digest=task.digest, checks=bool(task.checks)).bytes


class Either(threading.Event):
    """Is set once it, or another event, was set."""

    def __init__(self, other: threading.Event | None) -> None:
        super().__init__()
        self._other = other

    def is_set(self) -> bool:
        """Tell whether to stop."""
        return super().is_set() or (self._other is not None and self._other.is_set())


def run_here(
    tasks: Sequence[FileTask],
    staging: Staging,
    opener: Opener,
    *,
    workers: int,
    budget_bytes: int,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> dict[str, Copied]:
    """Carry out tasks in threads of this process; return what became of each file, by its name.

    Raises `Fault`, `Cancelled`: those of `Staging.create` and of `copy_file`. Then no thread is left.
    """
    counts = Counts(tasks, progress)
    stop = Either(cancel)
    free: SimpleQueue[Share] = SimpleQueue()
    found = shares(tasks, workers, budget_bytes)
    for share in found:
        free.put(share)

    def make(task: FileTask) -> Copied:
        share = free.get()
        try:
            own = replace(task, workers=share.workers, budget_bytes=share.budget_bytes)
            with staging.create(task.name, task.size) as output:
                copied = copy_task(
                    own, output, opener=opener, cancel=stop, progress=lambda at: counts.set(task, at.done)
                )
                output.finish(copied.sha256, task.id, copied.overflows)
            return copied
        finally:
            free.put(share)

    with ThreadPoolExecutor(len(found), "file") as pool:
        pending = {pool.submit(make, task): task for task in tasks}
        done: dict[str, Copied] = {}
        try:
            while pending:
                for future in wait(pending, POLL, FIRST_COMPLETED).done:
                    done[pending.pop(future).name] = future.result()
                check(cancel)
                counts.tell()
        except BaseException:
            stop.set()
            for future in pending:
                future.cancel()
            raise
    counts.tell(always=True)
    return done


def run_elsewhere(
    tasks: Sequence[FileTask],
    staging: Staging,
    executors: Executors,
    *,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> dict[str, Done]:
    """Carry out tasks on executors; return what became of each file, by its name. Every file is in the staged output.

    Raises `Fault`: what a task met, `cluster.lost`, `cluster.broken`, `cluster.attempt_differs`, and those of `Executors`;
    `Cancelled`. Then all tasks are told to stop.
    """
    area = staging.area()
    for task in tasks:
        staging.expect(task.name, task.size)
    if tasks:
        executors.ready(tasks[0].source, area)
    versions = versions_here()
    work = _Elsewhere(
        [replace(task, area=area, versions=versions) for task in tasks], staging, executors, progress
    )
    try:
        work.run(cancel)
    except BaseException:
        work.stop()
        raise
    finally:
        work.end()
    return work.done


class _Elsewhere:
    """Tasks that were given out."""

    def __init__(
        self,
        tasks: Sequence[FileTask],
        staging: Staging,
        executors: Executors,
        progress: OnProgress | None,
    ) -> None:
        self.done: dict[str, Done] = {}
        self._to_do = list(tasks)
        self._staging = staging
        self._executors = executors
        self._executor: Executor | None = None
        self._given: dict[Future[bytes], FileTask] = {}
        self._lost: dict[str, int] = {}
        self._breaks = 0
        self._counts = Counts(tasks, progress)

    def run(self, cancel: threading.Event | None) -> None:
        """Give out what is to do, until all of it is done."""
        while self._to_do or self._given:
            check(cancel)
            self._give()
            for future in wait(self._given, POLL, FIRST_COMPLETED).done:
                task = self._given.pop(future, None)
                if task is not None:  # otherwise its executor broke, and it is to be done again
                    self._take(task, future)
            self._counts.tell()
        self._counts.tell(always=True)

    def stop(self) -> None:
        """Tell every task to stop, and wait for those that run, but not for ever: what they write is theirs alone."""
        with suppress(OSError):
            raise_flag(self._staging.folder)
        wait(self._given, PATIENCE)  # those that wait for a worker look at the flag first
        for future in self._given:
            future.cancel()

    def end(self) -> None:
        """Give the executor back."""
        if self._executor is not None:
            self._executors.end(self._executor)
            self._executor = None

    def _give(self) -> None:
        while self._to_do:
            if self._executor is None:
                self._executor = self._executors.start()
            task = self._to_do[0]
            try:
                future = self._executor.submit(run_task, packed(task))
            except BrokenExecutor:
                self._broke()
                return
            self._given[future] = self._to_do.pop(0)

    def _take(self, task: FileTask, future: Future[bytes]) -> None:
        try:
            outcome = unpacked_outcome(future.result())
        except BrokenExecutor:
            self._to_do.append(task)
            self._broke()
        except Exception as error:  # noqa: BLE001 - an executor tells in words of its own that a worker is gone
            self._again(task, error)
        else:
            match outcome:
                case Done():
                    self._finish(task, outcome)
                case Refused():
                    raise Fault(outcome.finding.code, **outcome.finding.params)
                case _:
                    raise Cancelled

    def _finish(self, task: FileTask, outcome: Done) -> None:
        if outcome.task != task.id:
            raise Fault("cluster.attempt_differs", file=task.name, problem="it is of another task")
        self._staging.adopt(task, outcome)
        self._drop(task)
        self.done[task.name] = outcome
        self._breaks = 0
        self._counts.set(task, task.size)

    def _again(self, task: FileTask, error: Exception) -> None:
        """Give out a task whose worker was lost once more."""
        count = self._lost[task.id] = self._lost.get(task.id, 0) + 1
        if count >= MOST_ATTEMPTS:
            raise Fault("cluster.lost", file=task.name, times=count, reason=type(error).__name__) from error
        self._drop(task)
        self._to_do.append(task)

    def _broke(self) -> None:
        """Take what a broken executor had, and get another one."""
        if self._executor is None:
            return  # all that it had fails in the same moment
        self.end()
        self._breaks += 1
        if self._breaks >= MOST_ATTEMPTS:
            raise Fault("cluster.broken", times=self._breaks)
        finished = [future for future in self._given if future.done() and future.exception() is None]
        for future in [future for future in self._given if future not in finished]:
            self._to_do.append(self._given.pop(future))
        for task in self._to_do:
            self._drop(task)

    def _drop(self, task: FileTask) -> None:
        with suppress(OSError):  # a folder that cannot be listed now is removed with the staging folder
            drop_attempts(self._staging.folder, task)
