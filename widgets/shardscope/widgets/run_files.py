"""The files of a conversion that runs: one line each, done, running with its rate and tile, or waiting."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.segment import Segment
from rich.style import Style

from shardscope.engine.model.course import FileCourse
from shardscope.engine.model.plan import PlannedFile
from shardscope.widgets.figures import size
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.progress_line import Rate
from shardscope.widgets.resources_panel import bar
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone

STATE: Final = 10
DONE: Final = 21
RATE: Final = 11
TILE: Final = 14
BAR: Final = 10
BAR_FROM: Final = 100
"""Cells of a line from which on there is room for a bar and the tile."""


class RunFiles(VirtualRows):
    """Files as they are written. The lines follow the work until the person moves the cursor.

    `RunFiles(files, course, *, glyphs=None, id=None, classes=None)`; `look(now)` as often as there is news: `course` is read
    then, which another thread fills.
    """

    BINDING_GROUP_TITLE = "Files"

    def __init__(
        self,
        files: Sequence[PlannedFile],
        course: Mapping[str, FileCourse],
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """Show `files`, none of which is begun."""
        super().__init__(empty="The plan has no files", glyphs=glyphs, id=id, classes=classes)
        self._files = tuple(files)
        self._lines = {file.name: line for line, file in enumerate(self._files)}
        self._course = course
        self._seen: dict[str, FileCourse] = {}
        self._rates: dict[str, Rate] = {}
        self._follows = True
        self.finished = 0
        """Files that are written and hashed."""

    def look(self, now: float) -> None:
        """Take note of how far each file is at `now` seconds."""
        seen = dict(self._course)
        for name, at in seen.items():
            if not at.finished:
                self._rates.setdefault(name, Rate()).seen(at.done, now)
            else:
                self._rates.pop(name, None)
        self._seen = seen
        self.finished = sum(at.finished for at in seen.values())
        running = [self._lines[name] for name, at in seen.items() if not at.finished and name in self._lines]
        self.rows_changed(min(running) if self._follows and running else None)

    def row_count(self) -> int:
        """Return how many files there are."""
        return len(self._files)

    def is_here(self, line: int) -> bool:
        """Tell whether a line has the cursor; while lines follow the work nobody has put one anywhere."""
        return not self._follows and super().is_here(line)

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return one file in segments."""
        file = self._files[line]
        at = self._seen.get(file.name)
        roomy = self.room >= BAR_FROM
        rate = self._rates.get(file.name)
        speed = None if rate is None else rate.per_second
        parts: list[tuple[Part, int, bool]] = [(self._state(at), STATE, False)]
        tail: list[tuple[Part, int, bool]] = [(self._done(file, at), DONE, True)]
        if roomy:
            drawn = "" if at is None else bar(at.done, at.size, self.glyphs, BAR)
            tail.append(((drawn, Tone.OK if at is not None and at.finished else Tone.HERE), BAR, False))
        tail.append(((f"{size(int(speed))}/s" if speed else "", Tone.MUTED), RATE, True))
        if roomy:
            tile = None if at is None or at.finished else at.tile
            tail.append((("" if tile is None else f"tile {size(tile)}", Tone.MUTED), TILE, True))
        room = self.room - STATE - sum(width + 1 for _, width, _ in tail)
        parts.append((file.name, max(8, room), False))
        space = Segment(" ", style or self.tone_style(Tone.PLAIN))
        segments = [self.segment(part, width, style, right=right, tail=0.6) for part, width, right in parts]
        for part, width, right in tail:
            segments += [space, self.segment(part, width, style, right=right)]
        return segments

    def _state(self, at: FileCourse | None) -> Part:
        glyphs = self.glyphs
        if at is None:
            return f"{glyphs.dot} waiting", Tone.MUTED
        if at.finished:
            return f"{glyphs.ok} done", Tone.OK
        if at.tile is None:
            return f"{glyphs.trail} checking", Tone.HERE
        return f"{glyphs.trail} {'hashing' if at.done >= at.size else 'running'}", Tone.HERE

    def _done(self, file: PlannedFile, at: FileCourse | None) -> Part:
        if at is None or at.finished:
            return size(file.bytes), Tone.MUTED
        return f"{size(at.done)} of {size(at.size)}"

    # A person who moves wants to stay there.

    def action_cursor(self, rows: int) -> None:
        """Move the cursor by some rows."""
        self._follows = False
        super().action_cursor(rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self._follows = False
        super().action_page(pages)

    def action_first(self) -> None:
        """Move the cursor to the first row."""
        self._follows = False
        super().action_first()

    def action_last(self) -> None:
        """Move the cursor to the last row."""
        self._follows = False
        super().action_last()
