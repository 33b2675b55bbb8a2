"""A run: its stages, its bytes with rate and time left, memory beside the estimate, and every file."""

import time
from collections.abc import Callable
from typing import Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from shardscope.engine.model.course import STAGES, Course
from shardscope.engine.model.plan import Plan
from shardscope.engine.model.progress import Progress
from shardscope.widgets.figures import plural, size
from shardscope.widgets.progress_line import ProgressLine
from shardscope.widgets.run_files import RunFiles
from shardscope.widgets.safe import Part, Tone, content

EVERY: Final = 0.5
"""Seconds between two looks at memory and files."""


class RunView(Vertical):
    """The running view.

    `memory` measures the most that this process had resident; `before` is what that was when the run began: the explorer is more
    than the command for which plans are made.
    """

    BINDING_GROUP_TITLE = "The run"

    def __init__(
        self,
        plan: Plan,
        course: Course,
        memory: Callable[[], int | None],
        before: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(id="run-view")
        self._plan = plan
        self._course = course
        self._memory = memory
        self._clock = clock
        self._before = before
        self.line = ProgressLine(clock=clock)
        self.files = RunFiles(plan.files, course.files)

    def compose(self) -> ComposeResult:
        """Draw the totals over the files."""
        yield self.line
        yield Static(id="stages")
        yield Static(id="memory")
        yield self.files

    def on_mount(self) -> None:
        """Look again and again, as long as the view is there."""
        self.files.focus()
        self.look()
        self.set_interval(EVERY, self.look)

    def show(self, progress: Progress) -> None:
        """Show how far the stage is."""
        self.line.show(progress)

    def look(self) -> None:
        """Look at the course, at the files, and at the memory."""
        self.query_one("#stages", Static).update(content(*self._stages()))
        measured = self._memory()
        self.query_one("#memory", Static).update(content(*self._memories(measured)))
        self.files.look(self._clock())

    def _stages(self) -> list[Part]:
        glyphs, course = self.files.glyphs, self._course
        parts: list[Part] = []
        for name in STAGES:
            if name == course.stage:
                parts += [(f"{glyphs.trail} {name}", Tone.HERE)]
            elif name in course.seconds:
                parts += [(f"{glyphs.ok} {name}", Tone.OK)]
            else:
                parts += [(f"{glyphs.dot} {name}", Tone.MUTED)]
            parts.append("   ")
        done = f"{self.files.finished:,} of {plural(len(self._plan.files), 'file')} finished"
        return [*parts, (done, Tone.MUTED)]

    def _memories(self, measured: int | None) -> list[Part]:
        needs, before = self._plan.estimates, self._before
        planned, buffers = needs.peak_ram_bytes.bytes, needs.buffer_bytes.bytes
        if measured is None or before is None:
            return [("memory  ", Tone.MUTED), "not measured", (f" of {size(planned)} planned", Tone.MUTED)]
        over = planned is not None and measured > max(planned, before + (buffers or 0))
        return [
            ("memory  ", Tone.MUTED),
            (f"{size(measured)} measured", Tone.CAUTION if over else Tone.PLAIN),
            (f", {size(before)} before it, {size(buffers)} of buffers planned", Tone.MUTED),
        ]
