"""Root mean squares as a picture of signs: boxes of a matrix, or one sign for each channel. A letter says it, its colour again."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from shardscope.widgets.cell_picture import CellPicture
from shardscope.widgets.figure_words import LEVELS, NOTHING, ZERO, sign
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.paragraphs import Paragraph, wrap
from shardscope.widgets.safe import Tone

UNREAD = " "
GAP = 2
"""Cells between a label and the signs."""


class HeatSheet(Struct, frozen=True):
    """What is drawn."""

    labels: tuple[str, ...]
    """Beside the lines: digits of ours."""
    lines: tuple[str, ...]
    """Signs, one a box."""
    here: tuple[int, int]
    """The line and the box of the cursor."""


def signs(rms: Sequence[float | None], *, partial: bool) -> str:
    """Return one sign for each root mean square, by their logarithms between the smallest above zero and the largest.

    `partial`: what has none may just not have been read.
    """
    known = [value for value in rms if value]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    found = "".join(sign(value, low, high) for value in rms)
    return found.replace(NOTHING, UNREAD) if partial else found


class HeatMap(CellPicture):
    """The picture. `show(sheet)`, or `say(paragraphs)` where there is none."""

    STYLES = "heat"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"heat--{level}" for level in range(len(LEVELS))),
        *(f"heat--{tone}" for tone in Tone if tone),
        "heat--zero",
        "heat--nothing",
        "heat--cursor",
        "heat--index",
    }
    DEFAULT_CSS = "HeatMap { width: 1fr; height: 1fr; }"

    class Pointed(CellPicture.Pointed):
        """A box was clicked."""

    class Resized(CellPicture.Resized):
        """There is another number of cells."""

    def __init__(
        self,
        *,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        super().__init__(glyphs=glyphs, id=id, classes=classes)
        self.sheet: HeatSheet | None = None
        self._said: tuple[Paragraph, ...] = ()

    def show(self, sheet: HeatSheet) -> None:
        """Draw this."""
        self.sheet = sheet
        self.refresh()

    def say(self, said: Sequence[Paragraph]) -> None:
        """Draw sentences in the place of a picture."""
        self.sheet, self._said = None, tuple(said)
        self.refresh()

    # Drawing.

    def render_line(self, y: int) -> Strip:
        """Return a line: a label and signs."""
        sheet, width = self.sheet, self.size.width
        segments: list[Segment] = []
        if sheet is None:
            lines = [line for each in self._said for line in wrap(each, max(16, width))]
            if y < len(lines):
                segments = [Segment(text, self.style_of(tone)) for text, tone in lines[y]]
        elif y < len(sheet.lines):
            segments = self._line(sheet, y)
        return Strip(segments).crop_extend(0, width, self.rich_style)

    def _line(self, sheet: HeatSheet, line: int) -> list[Segment]:
        label = self._label(sheet)
        found = [
            Segment(f"{sheet.labels[line]:>{label}}", self.style_of("index")),
            Segment(" " * GAP, self.rich_style),
        ]
        letters = sheet.lines[line]
        here = sheet.here[1] if line == sheet.here[0] else None
        begin = 0
        for end in range(1, len(letters) + 1):
            if end == len(letters) or letters[end] != letters[begin] or here in (begin, end):
                name = "cursor" if begin == here else _name(letters[begin])
                found.append(Segment(letters[begin:end], self.style_of(name)))
                begin = end
        return found

    def _label(self, sheet: HeatSheet) -> int:
        return max(map(len, sheet.labels), default=0)

    # The mouse.

    def on_click(self, event: events.Click) -> None:
        """Find out which box was clicked."""
        sheet, offset = self.sheet, event.get_content_offset(self)
        if sheet is None or offset is None:
            return
        box = offset.x - self._label(sheet) - GAP
        if 0 <= offset.y < len(sheet.lines) and 0 <= box < len(sheet.lines[offset.y]):
            self.post_message(self.Pointed(offset.y, box))


def _name(letter: str) -> str:
    """Return the name of the style of a sign."""
    return {ZERO: "zero", NOTHING: "nothing", UNREAD: "index"}.get(letter) or str(LEVELS.index(letter))
