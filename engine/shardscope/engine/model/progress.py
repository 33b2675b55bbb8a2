"""How long work reports itself and how it is stopped: a callback and a plain event."""

import threading
import time
from collections.abc import Callable

from msgspec import Struct


class Progress(Struct, frozen=True):
    """One report of running work. A newer report replaces an older one of the same `stage`."""

    stage: str
    """What is being done, in one word: `walk`, `headers`, `digests`, ..."""
    done: int
    total: int | None
    """Same unit as `done`; null while it is not known."""
    unit: str
    """`bytes`, `files`, ..."""
    subject: str | None = None
    """What is being worked on, neutralised."""


OnProgress = Callable[[Progress], None]


class Pace:
    """Hands reports on at most 30 times a second, so that a screen can draw each of them."""

    __slots__ = ("_next", "_on_progress")

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._next = 0.0

    def due(self) -> bool:
        """Tell whether the next report would be handed on: ask before building one."""
        return self._on_progress is not None and time.monotonic() >= self._next

    def report(self, progress: Progress) -> None:
        """Hand `progress` on, due or not: the last report of a stage always arrives."""
        if self._on_progress is not None:
            self._next = time.monotonic() + 1 / 30
            self._on_progress(progress)


class Cancelled(Exception):  # noqa: N818 - an outcome, not an error
    """The person, or a signal, stopped the work."""


def check(cancel: threading.Event | None) -> None:
    """Raise `Cancelled` once `cancel` is set. Loops call this at least every 100 ms."""
    if cancel is not None and cancel.is_set():
        raise Cancelled
