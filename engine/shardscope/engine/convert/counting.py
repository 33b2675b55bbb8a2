"""How far tasks are, together: that is what a person waits for."""

from collections.abc import Iterable

from shardscope.engine.convert.copying import STAGE
from shardscope.engine.convert.tasks import FileTask
from shardscope.engine.model.progress import OnProgress, Pace, Progress


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
