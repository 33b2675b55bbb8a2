"""A file in lines of text, JSON folded: the lines are given, never read here."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType

from shardscope.widgets.figures import plural
from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, elide, visible

FOLDED: Final = 24
"""Blocks with more lines than this are folded at first (the outermost never)."""
WIDEST: Final = 4_096
"""Cells of a line that can be scrolled to."""
_OPENS: Final = re.compile(r"[\[{]\s*$")
_CLOSES: Final = re.compile(r"\s*[\]}]")

Blocks = dict[int, int]
"""By the line that opens a block, the line that closes it."""


def json_blocks(lines: Sequence[str]) -> Blocks:
    """Return the blocks of indented JSON: a line that ends in a bracket opens, one that begins with one closes.

    One pass; a worker may make it for long texts.
    """
    blocks: Blocks = {}
    opened: list[int] = []
    for number, line in enumerate(lines):
        if opened and _CLOSES.match(line):
            blocks[opened.pop()] = number
        if _OPENS.search(line):
            opened.append(number)
    return {begin: end for begin, end in blocks.items() if end > begin + 1}


class PreviewPanel(VirtualRows):
    """Lines of text with their numbers.

    `PreviewPanel(*, empty="...", glyphs=None, id=None, classes=None)`, then
    `show(title, lines, note="", blocks=None)`. With `blocks` (see `json_blocks`), enter folds and unfolds.
    """

    PINNED = 1
    BINDING_GROUP_TITLE = "Preview"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("z", "fold_all", "Fold", tooltip="Fold all blocks, or unfold them", id="preview.fold_all"),
    ]

    def __init__(
        self,
        *,
        empty: str = "Choose a file to see what it says",
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """Make an empty preview."""
        super().__init__(empty=empty, glyphs=glyphs, id=id, classes=classes)
        self._title = ""
        self._note = ""
        self._text: Sequence[str] = ()
        self._blocks: Blocks = {}
        self._folded: set[int] = set()
        self._shown = array("L")
        self._widest = 0

    def show(self, title: str, lines: Sequence[str], note: str = "", blocks: Blocks | None = None) -> None:
        """Show another text; large blocks are folded. `note` says what was left out."""
        self._title, self._note, self._text = title, note, lines
        self._blocks = blocks or {}
        self._folded = {begin for begin, end in self._blocks.items() if begin and end - begin > FOLDED}
        self._widest = max(map(len, lines), default=0)
        self._arrange()
        self.scroll_to(x=0, animate=False)
        self.rows_changed(0)

    @property
    def title(self) -> str:
        """What is shown."""
        return self._title

    def _arrange(self) -> None:
        shown = array("L")
        begin = 0
        for fold in sorted(self._folded):
            if fold >= begin:  # not inside another folded block
                shown.extend(range(begin, fold + 1))
                begin = self._blocks[fold] + 1
        shown.extend(range(begin, len(self._text)))
        self._shown = shown

    # Rows.

    def row_count(self) -> int:
        """Return how many lines are shown."""
        return len(self._shown)

    def source_row(self, line: int) -> int:
        """Return which line of the text it is, from 0."""
        return self._shown[line]

    def least_width(self) -> int:
        """Return the cells of the longest line, as far as it can be scrolled to."""
        return self._margin + min(WIDEST, self._widest)

    @property
    def _margin(self) -> int:
        return len(str(len(self._text))) + 3

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return a line with its number and the sign of its block."""
        number = self._shown[line]
        sign = " "
        parts: list[Part] = [self._text[number]]
        if number in self._blocks:
            folded = number in self._folded
            sign = self.glyphs.closed if folded else self.glyphs.open
            if folded:
                end = self._blocks[number]
                hidden = f" {self.glyphs.ellipsis} {plural(end - number - 1, 'line')} {self.glyphs.ellipsis} "
                parts = [self._text[number], (hidden, Tone.MUTED), self._text[end].lstrip()]
        muted = style or self.tone_style(Tone.MUTED)
        segments = [Segment(f"{number + 1:>{self._margin - 3}} {sign} ", muted)]
        for part in parts:
            text, tone = (part, Tone.PLAIN) if isinstance(part, str) else part
            segments.append(Segment(visible(text, WIDEST), style or self.tone_style(tone)))
        if style is not None:
            segments.append(Segment(" " * self.room, style))
        return segments

    def draw_pinned(self, y: int) -> list[Segment]:  # noqa: ARG002 - there is one such line
        """Return what is shown and what was left out."""
        if not self._title:
            return []
        title = elide(visible(self._title), self.room * 2 // 3, self.glyphs.ellipsis)
        return [
            Segment(f"{title}  ", self.tone_style(Tone.STRONG)),
            Segment(visible(self._note), self.tone_style(Tone.MUTED)),
        ]

    def show_line(self, line: int | None) -> None:
        """Put the cursor on a line of the text (from 0), unfolding what hides it. None, or no such line, changes nothing."""
        if line is None or not 0 <= line < len(self._text):
            return
        hiding = {begin for begin in self._folded if begin < line <= self._blocks[begin]}
        if hiding:
            self._folded -= hiding
            self._arrange()
            self.rows_changed()
        self.move_to(bisect_right(self._shown, line) - 1)

    # Folding.

    def action_select(self) -> None:
        """Fold or unfold the block that begins at the cursor."""
        if self._shown and (number := self._shown[self.cursor]) in self._blocks:
            self._folded ^= {number}
            self._arrange()
            self.rows_changed()

    def action_fold_all(self) -> None:
        """Fold every block, or unfold all where none is left to fold."""
        foldable = {begin for begin in self._blocks if begin}  # the outermost block stays
        number = self._shown[self.cursor] if self._shown else 0
        self._folded = set() if foldable <= self._folded else foldable
        self._arrange()
        self.rows_changed(max(0, bisect_right(self._shown, number) - 1))
