"""How a conversion goes: where it is, how long each stage took, and what became of what it had staged.

Whoever starts a conversion hands one in and reads it afterwards, also where it ended early: what was promoted and what is left
is known only then.
"""

import time
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from shardscope.engine.model.blocker import Blocker, Finding, blocker

STAGES: Final = {
    "target": "making room beside the target",
    "prove": "proving the source",
    "copy": "copying",
    "verify": "verifying what was staged",
    "promote": "promoting",
}
"""What each stage does, in words that follow `while`."""


class FileCourse(Struct, frozen=True):
    """How far one file of the output is."""

    done: int
    """Bytes that are written, or read again where an earlier run had finished it."""
    size: int
    tile: int | None = None
    """Bytes that each worker handles at once; null where a file of an earlier run is read again."""
    finished: bool = False
    """Written and hashed. Until the whole output was verified that proves nothing yet."""


class Course:
    """Filled while a conversion runs, by the thread that runs it."""

    def __init__(self) -> None:
        self.stage: str | None = None
        """Of `STAGES`: the one that runs, or that failed first. Null where nothing was begun."""
        self.seconds: dict[str, float] = {}
        """That the stages took which are over."""
        self.notes: tuple[Blocker, ...] = ()
        """What became of the staging folder."""
        self.files: dict[str, FileCourse] = {}
        """Files of the output that were begun, by name, while this process copies them: read it from any thread."""
        self.earlier: Blocker | None = None
        """What an earlier run of the same plan left, where nobody asked to go on with it: known before anything is confirmed."""
        self._since = 0.0

    @property
    def doing(self) -> str:
        """The stage in words that follow `while`."""
        return "planning" if self.stage is None else STAGES[self.stage]

    def begin(self, stage: str) -> None:
        """Enter a stage; the one before it is over."""
        self.end()
        self.stage = stage

    def end(self) -> None:
        """Take the time of the stage that runs."""
        now = time.monotonic()
        if self.stage is not None:
            self.seconds[self.stage] = round(now - self._since, 3)
        self._since = now

    def note(self, findings: Iterable[Finding]) -> None:
        """Keep what became of the staging folder."""
        self.notes += tuple(blocker(finding) for finding in findings)
