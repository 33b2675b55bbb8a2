"""Tasks on whatever a `concurrent.futures.Executor` stands for: it gets them as bytes, and may lose workers.

A task that was lost is given out again, a bounded number of times. What it makes lies among the attempts until it was looked at.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import suppress
from typing import Final, Protocol

from msgspec.structs import replace

from shardscope.engine.convert.copies.copying import Copied
from shardscope.engine.convert.copies.crew import POLL
from shardscope.engine.convert.executors.threads import take_up
from shardscope.engine.convert.jobs.attempts import drop_attempts
from shardscope.engine.convert.jobs.counting import Counts
from shardscope.engine.convert.jobs.flag import raise_flag
from shardscope.engine.convert.jobs.running import run_task
from shardscope.engine.convert.jobs.tasks import (
    Area,
    Done,
    FileTask,
    Refused,
    TaskSource,
    packed,
    unpacked_outcome,
    versions_here,
)
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.model.blocker import Fault
from shardscope.engine.model.progress import Cancelled, OnProgress, check

MOST_ATTEMPTS: Final = 3
"""At one task, where the workers that had it were lost; and executors in a row that break before one finishes a task."""
PATIENCE: Final = 5.0
"""Seconds to wait for tasks that were told to stop, before their staging folder is removed under them."""


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


class Elsewhere:
    """Other processes that work for one staging folder.

    Making one raises `Fault`: those of `Executors.ready`, and what the system refuses.
    """

    def __init__(self, executor: Executor | Executors, staging: Staging, source: TaskSource) -> None:
        self._executors = Given(executor) if isinstance(executor, Executor) else executor
        self._staging = staging
        self._area = staging.area()
        self._executors.ready(source, self._area)
        self.peak_rss: int | None = None
        """The most memory that one of them had resident, as far as it is known."""

    def run(
        self,
        tasks: Sequence[FileTask],
        *,
        cancel: threading.Event | None = None,
        progress: OnProgress | None = None,
    ) -> dict[str, Copied]:
        """Carry out tasks; return what became of each file, by its name. Every file is then in the staged output.

        What an earlier run finished is verified here, first. Raises `Fault`: what a task met, `cluster.lost`, `cluster.broken`, `cluster.attempt_differs`, and those of `Executors`;
        `Cancelled`. Then all tasks are told to stop.
        """
        workers = max((task.workers for task in tasks), default=1)
        taken = take_up(tasks, self._staging, workers=workers, cancel=cancel, progress=progress)
        tasks = [task for task in tasks if task.name not in taken]
        for task in tasks:
            self._staging.expect(task.name, task.size)
        versions = versions_here()
        work = _GivenOut(
            [replace(task, area=self._area, versions=versions) for task in tasks],
            self._staging,
            self._executors,
            progress,
        )
        try:
            work.run(cancel)
        except BaseException:
            work.stop()
            raise
        finally:
            work.end()
        self.peak_rss = max((item.peak_rss_bytes or 0 for item in work.done.values()), default=0) or None
        return taken | {name: item.copied for name, item in work.done.items()}


class _GivenOut:
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
