"""How far tasks are, together: that is what a person waits for. And how far each file is, for those who watch closely."""

from collections.abc import Iterable

from shardscope.engine.convert.copies.copying import STAGE
from shardscope.engine.convert.jobs.tasks import FileTask
from shardscope.engine.model.course import Course, FileCourse
from shardscope.engine.model.progress import OnProgress, Pace, Progress


class Counts:
    """How many bytes of each task are written, and who is told."""

    def __init__(
        self, tasks: Iterable[FileTask], progress: OnProgress | None, course: Course | None = None
    ) -> None:
        self._total = sum(task.size for task in tasks)
        self._done: dict[str, int] = {}
        self._subject: str | None = None
        self._pace = Pace(progress)
        self._files = {} if course is None else course.files
        self._tiles: dict[str, int] = {}

    def begin(self, task: FileTask, tile: int) -> None:
        """Say that a file is made, and how many bytes at once. Any thread may."""
        self._tiles[task.name] = tile
        self.set(task, 0)

    def set(self, task: FileTask, done: int) -> None:
        """Say how far a task is. Any thread may."""
        self._done[task.id] = done
        self._subject = task.name
        self._files[task.name] = FileCourse(done, task.size, self._tiles.get(task.name))

    def finish(self, task: FileTask) -> None:
        """Say that a file is written and hashed. Any thread may."""
        self._files[task.name] = FileCourse(task.size, task.size, self._tiles.get(task.name), finished=True)

    def tell(self, *, always: bool = False) -> None:
        """Hand on how far all tasks are: that is what a person waits for."""
        if always or self._pace.due():
            done = sum(list(self._done.values()))
            self._pace.report(Progress(STAGE, done, self._total, "bytes", self._subject))
