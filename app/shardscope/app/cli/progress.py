"""Progress on standard error: a bar where a person watches, a line every ten seconds in a log, nothing otherwise."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from shardscope.app.cli.output import wants_color
from shardscope.app.cli.session import Session
from shardscope.app.cli.words import amount, clock
from shardscope.engine.model.progress import OnProgress, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

PATIENCE: Final = 0.4
"""Seconds before a bar is drawn: work that is over by then needs none."""
LOG_EVERY: Final = 10.0
"""Seconds between two lines in a log."""


@contextmanager
def watch(session: Session, *, person: bool) -> Iterator[OnProgress]:
    """Give the callback that shows progress inside the block: bars where a `person` watches, lines otherwise."""
    if not person:
        yield Log(session.out.narrate).update
        return
    bars = Bars(color=wants_color(session.color, sys.stderr))
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


class Log:
    """A line in a log now and then, the first after `LOG_EVERY` seconds. Engine threads may call it at once."""

    def __init__(self, say: Callable[[str], None], now: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._rate = Rate(now)
        self._start = self._last = now()
        self._lock = threading.Lock()

    def update(self, report: Progress) -> None:
        """Say how far the stage is, if the last line is old enough."""
        with self._lock:
            sentence = self._rate.sentence(report)
            now = self._rate.now()
            if now - self._last >= LOG_EVERY:
                self._last = now
                self._say(f"shardscope: {clock(now - self._start)} {report.stage}: {sentence}")


class Bars:
    """A bar for each stage, drawn by Rich once `PATIENCE` is over, gone when the work is."""

    def __init__(self, *, color: bool) -> None:
        self._color = color
        self._begin = time.monotonic()
        self._rate = Rate()
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}
        self._progress: RichProgress | None = None

    def update(self, report: Progress) -> None:
        """Move the bar of the stage."""
        with self._lock:
            sentence = self._rate.sentence(report)
            if time.monotonic() - self._begin < PATIENCE:
                return
            bars = self._drawn()
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

            self._progress = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[sentence]}", markup=False),
                console=Console(stderr=True, no_color=not self._color, highlight=False),
                transient=True,
            )
            self._progress.start()
        return self._progress
