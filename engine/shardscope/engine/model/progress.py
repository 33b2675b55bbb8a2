"""How long work reports itself and how it is stopped: a callback and a plain event."""

import threading
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


class Cancelled(Exception):  # noqa: N818 - an outcome, not an error
    """The person, or a signal, stopped the work."""


def check(cancel: threading.Event | None) -> None:
    """Raise `Cancelled` once `cancel` is set. Loops call this at least every 100 ms."""
    if cancel is not None and cancel.is_set():
        raise Cancelled
