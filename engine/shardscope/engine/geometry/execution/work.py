"""Independent pieces of work in order, or on a few threads: stopped at once by a fault or by the person, and reported."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from shardscope.engine.model.progress import OnProgress, Pace, Progress, check

Result = TypeVar("Result")

SMALL = 32 << 20
"""Bytes below which threads are not worth starting: one thread moves them in some 10 ms."""


class Meter:
    """Counts the bytes of a piece of work and reports them."""

    __slots__ = ("_pace", "done", "stage", "total")

    def __init__(self, stage: str, total: int, progress: OnProgress | None) -> None:
        self.stage = stage
        self.total = total
        self.done = 0
        self._pace = Pace(progress)

    def add(self, count: int) -> None:
        """Count bytes that are done."""
        self.done += count
        if self.done >= self.total or self._pace.due():
            self._pace.report(Progress(self.stage, self.done, self.total, "bytes"))


def in_order(
    tasks: Iterable[Callable[[], Result]], workers: int, cancel: threading.Event | None
) -> Iterator[Result]:
    """Yield the results of tasks, in their order. At most `workers` of them run while the last result is looked at.

    The next task is only made once there is room for it, so that what tasks hold stays bounded.
    """
    if workers < 2:
        for task in tasks:
            check(cancel)
            yield task()
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="geometry") as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                check(cancel)
                waiting.append(pool.submit(task))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                check(cancel)
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
