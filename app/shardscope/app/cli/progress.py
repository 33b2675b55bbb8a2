"""Progress on standard error: a bar where a person watches, a line every few seconds in a log, nothing otherwise."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from shardscope.app.cli.output import wants_color
from shardscope.app.cli.session import Session
from shardscope.app.cli.words import amount, clock, size
from shardscope.engine.host import peak_rss
from shardscope.engine.model.progress import OnProgress, Progress
from shardscope.engine.model.secrets import shown

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

PATIENCE: Final = 0.4
"""Seconds before a bar is drawn: work that is over by then needs none."""
LOG_EVERY: Final = 5.0
"""Seconds between two lines in a log."""
SUBJECT: Final = 48
"""Characters of what is being worked on."""
ROOMY: Final = 90
"""Columns from which on bars are long."""
MEMORY_EVERY: Final = 0.5
"""Seconds between two looks at the memory of this process."""


@contextmanager
def watch(session: Session, *, person: bool, memory: bool = False) -> Iterator[OnProgress]:
    """Give the callback that shows progress inside the block: bars where a `person` watches, lines otherwise.

    With `memory` the most that this process had resident so far stands beside it, measured.
    """
    if not person:
        yield Log(session.out.narrate, memory=memory).update
        return
    bars = Bars(color=wants_color(session.color, sys.stderr), memory=memory)
    try:
        yield bars.update
    finally:
        bars.close()


class Rate:
    """How fast the stages advance: their start, so that a figure per second and the time left can be told."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._started: dict[str, float] = {}

    def sentence(self, report: Progress) -> str:
        """Return how far the stage is: `1.2 GiB of 4.6 GiB, 1.0 GiB/s, 0:03 left`."""
        now = self.now()
        elapsed = now - self._started.setdefault(report.stage, now)
        words = [amount(report.done, report.unit)]
        if report.total is not None:
            done = words[0] if report.unit == "bytes" else f"{report.done:,}"
            words = [f"{done} of {amount(report.total, report.unit)}"]
        if elapsed > 0 and report.done:
            speed = report.done / elapsed
            if speed >= 1:
                words.append(f"{amount(int(speed), report.unit)}/s")
            if report.total is not None and report.total > report.done:
                words.append(f"{clock((report.total - report.done) / speed)} left")
        return ", ".join(words)


class Beside:
    """What stands beside the figures: what is being worked on, and the measured memory where that was asked for."""

    def __init__(self, *, memory: bool) -> None:
        self._memory = memory
        self._looked = 0.0
        self._peak: int | None = None

    def words(self, report: Progress) -> list[str]:
        """Return a clause each."""
        words = [] if report.subject is None else [shown(report.subject, SUBJECT)]
        if self._memory and time.monotonic() - self._looked >= MEMORY_EVERY:
            self._looked, self._peak = time.monotonic(), peak_rss()
        if self._peak is not None:
            words.append(f"peak memory {size(self._peak)}")
        return words


class Log:
    """A line in a log now and then, the first after `LOG_EVERY` seconds. Engine threads may call it at once."""

    def __init__(
        self, say: Callable[[str], None], now: Callable[[], float] = time.monotonic, *, memory: bool = False
    ) -> None:
        self._say = say
        self._rate = Rate(now)
        self._beside = Beside(memory=memory)
        self._start = self._last = now()
        self._lock = threading.Lock()

    def update(self, report: Progress) -> None:
        """Say how far the stage is, if the last line is old enough."""
        with self._lock:
            sentence = self._rate.sentence(report)
            now = self._rate.now()
            if now - self._last >= LOG_EVERY:
                self._last = now
                words = "; ".join([sentence, *self._beside.words(report)])
                self._say(f"shardscope: {clock(now - self._start)} {report.stage}: {words}")


class Bars:
    """A bar for each stage, drawn by Rich once `PATIENCE` is over, gone when the work is."""

    def __init__(self, *, color: bool, memory: bool = False) -> None:
        self._color = color
        self._begin = time.monotonic()
        self._rate = Rate()
        self._beside = Beside(memory=memory)
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}
        self._progress: RichProgress | None = None
        self._line = ""

    def update(self, report: Progress) -> None:
        """Move the bar of the stage."""
        with self._lock:
            sentence = self._rate.sentence(report)
            if time.monotonic() - self._begin < PATIENCE:
                return
            bars = self._drawn()
            self._line = " · ".join(self._beside.words(report))
            if report.stage not in self._tasks:
                self._tasks[report.stage] = bars.add_task(report.stage, total=report.total, sentence=sentence)
            bars.update(
                self._tasks[report.stage], total=report.total, completed=report.done, sentence=sentence
            )

    def close(self) -> None:
        """Wipe the bars away."""
        with self._lock:
            if self._progress is not None:
                self._progress.stop()

    def _drawn(self) -> "RichProgress":
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn
            from rich.text import Text

            bars = self

            class Stages(Progress):
                """The bars, and below them one line about what is being worked on."""

                def get_renderables(self) -> "Iterator[RenderableType]":
                    yield from super().get_renderables()
                    yield Text(f"  {bars._line}", "dim", no_wrap=True, overflow="ellipsis", end="")

            console = Console(stderr=True, no_color=not self._color, highlight=False)
            self._progress = Stages(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24 if console.width >= ROOMY else 14),
                TextColumn("{task.fields[sentence]}", markup=False),
                console=console,
                transient=True,
            )
            self._progress.start()
        return self._progress
