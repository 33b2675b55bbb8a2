"""What tests give to executors in place of `run_task`: workers that die, lie and dawdle. Processes import it by name."""

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from shardscope.engine.convert.disk.names import ATTEMPTS
from shardscope.engine.convert.jobs.attempts import Attempt, entered
from shardscope.engine.convert.jobs.running import run_task
from shardscope.engine.convert.jobs.tasks import Done, packed_outcome, unpacked, unpacked_outcome

Work = Callable[[bytes], bytes]


def pool(workers: int = 2) -> ProcessPoolExecutor:
    """Return processes that share nothing with this one but the file system."""
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


class Instead(Executor):
    """Hands work to another executor, and something else in place of `run_task`."""

    def __init__(self, inner: Executor, work: Work) -> None:
        self.inner = inner
        self.work = work
        self.given = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        assert fn is run_task
        self.given += 1
        return self.inner.submit(self.work, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.inner.shutdown(wait, cancel_futures=cancel_futures)


def die_once(mark: str, data: bytes) -> bytes:
    """Kill this process with half an attempt on the disk, the first time that anybody comes here."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return run_task(data)
    task = unpacked(data)
    assert task.area is not None
    with entered(task.area) as (folder, _), Attempt(task, folder) as output:
        output.write_at(0, b"\xee" * (task.size // 2))
        os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("killed")


def die(_data: bytes) -> bytes:
    """Kill this process, every time."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("killed")


def changed(change: Callable[[Path, Done], Done | None], data: bytes) -> bytes:
    """Do the work, then change what was made or what is said of it."""
    task, outcome = unpacked(data), unpacked_outcome(run_task(data))
    assert isinstance(outcome, Done)
    assert task.area is not None
    file = Path(os.fsdecode(task.area.path)) / os.fsdecode(ATTEMPTS) / outcome.attempt
    return packed_outcome(change(file, outcome) or outcome)


def changing(change: Callable[[Path, Done], Done | None]) -> Work:
    return partial(changed, change)


def late(seconds: float, data: bytes) -> bytes:
    """Do the work later."""
    time.sleep(seconds)
    return run_task(data)
