"""Tasks in threads of this process, which share the staging folder and the source that are open here."""

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from queue import SimpleQueue

from msgspec import Struct
from msgspec.structs import replace

from shardscope.engine.convert.copies.checksums import checkable
from shardscope.engine.convert.copies.contents import Opener
from shardscope.engine.convert.copies.copying import Copied
from shardscope.engine.convert.copies.crew import POLL
from shardscope.engine.convert.copies.work import memory
from shardscope.engine.convert.jobs.counting import Counts
from shardscope.engine.convert.jobs.running import copy_task
from shardscope.engine.convert.jobs.tasks import FileTask
from shardscope.engine.convert.stage.staging import Staging
from shardscope.engine.model.blocker import Finding
from shardscope.engine.model.course import Course
from shardscope.engine.model.progress import OnProgress, check


class Share(Struct, frozen=True):
    """What one of several files that are made at once may take."""

    workers: int
    budget_bytes: int


def shares(tasks: Sequence[FileTask], workers: int, budget_bytes: int) -> list[Share]:
    """Return how many files are made at once, and with how many of the threads and of the memory each.

    One file gets everything. Several are made side by side, so that their digests are, too, as far as all buffers together take no
    more than one file's at a time would.
    """
    items = [task.written() for task in tasks]

    def buffers(workers: int, budget_bytes: int) -> int:
        return max(
            memory(some, budget_bytes, workers, digest=task.digest, checks=bool(task.checks)).bytes
            for task, some in zip(tasks, items, strict=True)
        )

    count = min(len(tasks), workers)
    most = budget_bytes if count < 2 else max(budget_bytes, buffers(workers, budget_bytes))
    while count > 1:
        each = budget_bytes // count
        found = [Share(workers // count + (n < workers % count), each) for n in range(count)]
        if count * buffers(found[0].workers, each) <= most:
            return found
        count //= 2
    return [Share(workers, budget_bytes)]


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
    course: Course | None = None,
) -> dict[str, Copied]:
    """Carry out tasks in threads of this process; return what became of each file, by its name. `course` hears of each file.

    Files that an earlier run finished are read again by other threads meanwhile: that costs the disk nothing that copying waits for.
    Raises `Fault`, `Cancelled`: those of `Staging.take_up`, of `Staging.create` and of `copy_file`. Then no thread is left.
    """
    counts = Counts(tasks, progress, course)
    stop = Either(cancel)
    free: SimpleQueue[Share] = SimpleQueue()
    found = shares(tasks, workers, budget_bytes)
    for share in found:
        free.put(share)

    def make(task: FileTask) -> Copied:
        share = free.get()
        try:
            own = replace(task, workers=share.workers, budget_bytes=share.budget_bytes)
            counts.begin(task, _tile(own))
            with staging.create(task.name, task.size) as output:
                copied = copy_task(
                    own, output, opener=opener, cancel=stop, progress=lambda at: counts.set(task, at.done)
                )
                output.finish(copied.sha256, task.id, copied.overflows)
            counts.finish(task)
            return copied
        finally:
            free.put(share)

    def take(task: FileTask) -> Copied | None:
        return taken_up(task, staging, stop, counts)

    with ThreadPoolExecutor(len(found), "file") as pool, ThreadPoolExecutor(workers, "earlier") as earlier:
        pending: dict[Future[Copied | None], FileTask] = {
            earlier.submit(take, task) if task.name in staging.earlier else pool.submit(make, task): task
            for task in tasks
        }
        done: dict[str, Copied] = {}
        try:
            while pending:
                for future in wait(pending, POLL, FIRST_COMPLETED).done:
                    task, copied = pending.pop(future), future.result()
                    if copied is None:
                        pending[pool.submit(make, task)] = task
                    else:
                        done[task.name] = copied
                check(cancel)
                counts.tell()
        except BaseException:
            stop.set()
            for future in pending:
                future.cancel()
            raise
    counts.tell(always=True)
    return done


def take_up(
    tasks: Sequence[FileTask],
    staging: Staging,
    *,
    workers: int,
    cancel: threading.Event | None = None,
    progress: OnProgress | None = None,
) -> dict[str, Copied]:
    """Take those files that an earlier run finished, after reading all of them; return what had become of each, by its name.

    Raises `Fault`, `Cancelled`: those of `Staging.take_up`. Then no thread is left.
    """
    tasks = [task for task in tasks if task.name in staging.earlier]
    counts = Counts(tasks, progress)
    stop = Either(cancel)
    with ThreadPoolExecutor(workers, "earlier") as pool:
        pending = {pool.submit(taken_up, task, staging, stop, counts): task for task in tasks}
        done: dict[str, Copied] = {}
        try:
            while pending:
                for future in wait(pending, POLL, FIRST_COMPLETED).done:
                    task, copied = pending.pop(future), future.result()
                    if copied is not None:
                        done[task.name] = copied
                check(cancel)
                counts.tell()
        except BaseException:
            stop.set()
            for future in pending:
                future.cancel()
            raise
    return done


def taken_up(
    task: FileTask, staging: Staging, cancel: threading.Event | None, counts: Counts
) -> Copied | None:
    """Take one file that an earlier run finished; null where it has to be made. Raises as `Staging.take_up` does."""
    record = staging.take_up(task, cancel, lambda done: counts.set(task, done))
    if record is None:
        return None
    counts.finish(task)
    checked = sum(1 for item in task.checks if checkable(item))
    return Copied(record.size, record.sha256, record.overflows, checked)


def _tile(task: FileTask) -> int:
    """Return the bytes that each worker of a task handles at once."""
    found = memory(
        task.written(), task.budget_bytes, task.workers, digest=task.digest, checks=bool(task.checks)
    )
    return found.step


def what_was_taken(staging: Staging) -> Finding:
    """Return what to say of a run that was to go on with an earlier one."""
    if not staging.taken:
        return Finding("resume.nothing", {"file": staging.place.file})
    size = sum(record.size for record in staging.taken)
    return Finding("resume.taken", {"staging": staging.file, "files": len(staging.taken), "size": size})
