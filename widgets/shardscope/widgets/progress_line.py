"""One line about running work: the stage, how far, how fast, how long yet."""

import time
from collections.abc import Callable
from typing import Final

from textual.content import Content
from textual.widget import Widget

from shardscope.engine.model.progress import Progress
from shardscope.widgets.figures import duration, size
from shardscope.widgets.glyphs import Glyphs, terminal_glyphs
from shardscope.widgets.resources_panel import bar
from shardscope.widgets.safe import Part, Tone, content, elide, visible

BETWEEN: Final = 1 / 10
"""Seconds between two drawings: faster is not readable, and costs the connection."""
SETTLE: Final = 2.0
"""Seconds that a rate is averaged over."""
WARM: Final = 1.0
"""Seconds of work before a rate is worth saying."""
_BAR: Final = 16
_BAR_FROM: Final = 60
"""Cells of the line from which on there is room for a bar."""


class Rate:
    """How fast work goes: an average that forgets what is older than a few seconds."""

    def __init__(self) -> None:
        self._begun: float | None = None
        self._at = 0.0
        self._done = 0
        self.per_second: float | None = None
        """Units in a second; None while too little was seen."""

    def seen(self, done: int, now: float) -> None:
        """Take note that `done` units are done at `now` seconds."""
        if self._begun is None or done < self._done:
            self._begun, self._at, self._done, self.per_second = now, now, done, None
            return
        passed = now - self._at
        if passed < BETWEEN:
            return
        recent = (done - self._done) / passed
        if self.per_second is None:
            if now - self._begun < WARM:
                return
            self.per_second = recent
        else:
            share = min(1.0, passed / SETTLE)
            self.per_second += share * (recent - self.per_second)
        self._at, self._done = now, done

    def left(self, remaining: int) -> float | None:
        """Return the seconds that `remaining` units will take; None where that cannot be said."""
        return remaining / self.per_second if self.per_second else None


class ProgressLine(Widget):
    """Progress of one stage at a time.

    `ProgressLine(*, clock=time.monotonic, glyphs=None, id=None, classes=None)`; `show(progress)` as often as there is
    news, `clear()` when it is over. It draws at most ten times a second, and the last news always.
    """

    DEFAULT_CSS = "ProgressLine { height: 1; width: 1fr; }"
    ALLOW_SELECT = False

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """Make an empty line."""
        super().__init__(id=id, classes=classes)
        self.glyphs = glyphs or terminal_glyphs()
        self.progress: Progress | None = None
        self._clock = clock
        self._rate = Rate()
        self._drawn = float("-inf")

    def show(self, progress: Progress) -> None:
        """Show how far the work is."""
        now = self._clock()
        if self.progress is None or self.progress.stage != progress.stage:
            self._rate = Rate()
            self._drawn = float("-inf")
        self.progress = progress
        self._rate.seen(progress.done, now)
        if now - self._drawn >= BETWEEN or progress.done == progress.total:
            self._drawn = now
            self.refresh()

    def clear(self) -> None:
        """Show nothing: the work is over."""
        self.progress = None
        self.refresh()

    def render(self) -> Content:
        """Return the line."""
        progress = self.progress
        return content() if progress is None else content(*self._said(progress))

    def _said(self, progress: Progress) -> list[Part]:
        gap: Part = "  "
        is_bytes = progress.unit == "bytes"
        done = size(progress.done) if is_bytes else f"{progress.done:,}"
        parts: list[Part] = [(progress.stage, Tone.STRONG), gap]
        if progress.total is None:
            parts.append(done if is_bytes else f"{done} {progress.unit}")
        else:
            total = size(progress.total) if is_bytes else f"{progress.total:,} {progress.unit}"
            if self.size.width >= _BAR_FROM:
                parts += [(bar(progress.done, progress.total, self.glyphs, _BAR), Tone.HERE), gap]
            parts.append(f"{done} of {total}")
            if progress.total:
                parts.append(f"  {progress.done * 100 // progress.total} %")
        rate = self._rate.per_second
        if rate is not None:
            figure = size(int(rate)) if is_bytes else f"{rate:,.0f} {progress.unit}"
            parts.append((f"  {figure}/s", Tone.MUTED))
            left = None if progress.total is None else self._rate.left(progress.total - progress.done)
            if left is not None:
                parts.append((f"  {duration(left)} left", Tone.MUTED))
        if progress.subject:
            room = self.size.width - content(*parts).cell_length - 2
            if room >= 8:
                name = elide(visible(progress.subject), room, self.glyphs.ellipsis)
                parts.append((f"  {name}", Tone.MUTED))
        return parts
