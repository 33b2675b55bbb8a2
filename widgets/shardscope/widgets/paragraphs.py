"""Text in paragraphs, wrapped to the width there is: what the panels that explain something are made of.

A panel says its paragraphs for a width; the lines are drawn as they come in sight. Where paragraphs carry a key they
can be chosen with the cursor, all lines of a key together.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from msgspec import Struct
from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style

from shardscope.widgets.glyphs import Glyphs
from shardscope.widgets.rows import VirtualRows
from shardscope.widgets.safe import Part, Tone, visible

MEASURE: Final = 110
"""Cells of the longest line: longer ones are hard to read."""
_TOKENS: Final = re.compile(r" +|[^ ]+")


class Paragraph(Struct, frozen=True):
    """One paragraph. Texts may be raw."""

    parts: tuple[Part, ...] = ()
    indent: int = 0
    """Cells before the first line."""
    hang: int = 0
    """Cells before the other lines."""
    side: Part = ""
    """A word at the right end of the first line."""
    key: str | None = None
    """What is chosen with it."""


def heading(title: str, aside: str = "") -> Iterator[Paragraph]:
    """Return an empty line and a title."""
    yield Paragraph()
    yield Paragraph(((title, Tone.STRONG), (f"  {aside}", Tone.MUTED)) if aside else ((title, Tone.STRONG),))


def labelled(label: str, *parts: Part, width: int = 12, side: Part = "") -> Paragraph:
    """Return a paragraph that begins with a quiet word, the rest standing beside it."""
    return Paragraph(((f"{label:<{width}}", Tone.MUTED), *parts), hang=width, side=side)


def wrap(paragraph: Paragraph, width: int) -> list[list[tuple[str, Tone]]]:
    """Return the lines of a paragraph: pieces of neutralised text, no line longer than `width` cells.

    Lines break at spaces, not at no-break spaces (which are drawn as spaces).
    """
    side_text, side_tone = _piece(paragraph.side)
    room = max(8, width - (cell_len(side_text) + 2 if side_text else 0))
    lines: list[list[tuple[str, Tone]]] = [[(" " * paragraph.indent, Tone.PLAIN)]]
    start = used = min(paragraph.indent, room - 4)
    hang = min(paragraph.hang, room - 4)
    for word in _words(paragraph.parts):
        cells = sum(cell_len(text) for text, _ in word)
        is_space = word[0][0].startswith(" ")
        if used + cells > room and (is_space or used > start):
            lines.append([(" " * hang, Tone.PLAIN)])
            start = used = hang
            if is_space:
                continue
        if used + cells <= room:
            lines[-1] += [(text.replace("\u00a0", " "), tone) for text, tone in word]
            used += cells
            continue
        for text, tone in word:
            for piece in chop_cells(text, room - max(start, hang)):
                if used + cell_len(piece) > room and used > start:
                    lines.append([(" " * hang, Tone.PLAIN)])
                    start = used = hang
                lines[-1].append((piece.replace("\u00a0", " "), tone))
                used += cell_len(piece)
    lines = [_joined(line) for line in lines]
    if side_text:
        first = sum(cell_len(text) for text, _ in lines[0])
        lines[0] += [(" " * (width - first - cell_len(side_text)), Tone.PLAIN), (side_text, side_tone)]
    return lines


def _joined(line: list[tuple[str, Tone]]) -> list[tuple[str, Tone]]:
    """Return a line with neighbours of one tone as one piece: each piece costs the terminal a style."""
    joined: list[tuple[str, Tone]] = []
    for text, tone in line:
        if joined and joined[-1][1] is tone:
            joined[-1] = (joined[-1][0] + text, tone)
        elif text:
            joined.append((text, tone))
    return joined


def _words(parts: Iterable[Part]) -> Iterator[list[tuple[str, Tone]]]:
    """Yield words, and the spaces between them, in pieces: a word goes on over the border of two parts."""
    word: list[tuple[str, Tone]] = []
    for part in parts:
        text, tone = _piece(part)
        for token in _TOKENS.findall(text):  # a no-break space is part of its word
            if word and (token.startswith(" ") or word[0][0].startswith(" ")):
                yield word
                word = []
            word.append((token, tone))
    if word:
        yield word


def _piece(part: Part) -> tuple[str, Tone]:
    text, tone = (part, Tone.PLAIN) if isinstance(part, str) else part
    return visible(text), tone


class Paragraphs(VirtualRows):
    """A panel of paragraphs. A subclass implements `paragraphs`, and calls `rows_changed` when they change.

    Without keys there is nothing to choose, and the keys scroll.
    """

    PADDING: ClassVar[int] = 1
    """Cells left free at both sides."""

    def __init__(
        self,
        *,
        empty: str = "Nothing to show",
        glyphs: Glyphs | None = None,
        name: str | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """`empty` is said where there are no paragraphs."""
        self._lines: list[list[tuple[str, Tone]]] = []
        self._keys: list[str | None] = []
        self._starts: list[int] = []
        self._marked: int | None = None
        super().__init__(empty=empty, glyphs=glyphs, name=name, id=id, classes=classes)

    def paragraphs(self, width: int) -> Iterable[Paragraph]:
        """Return what there is to say, for lines of `width` cells."""
        raise NotImplementedError

    @property
    def text_lines(self) -> list[str]:
        """The lines as they are wrapped, without styles."""
        return ["".join(text for text, _ in line) for line in self._lines]

    def fit_rows(self, room: int) -> None:
        """Wrap everything anew; the cursor stays on its key."""
        key = self.chosen
        width = max(16, min(MEASURE, room - 2 * self.PADDING))
        self._lines, self._keys = [], []
        for paragraph in self.paragraphs(width):
            lines = wrap(paragraph, width)
            self._lines += lines
            self._keys += [paragraph.key] * len(lines)
        self._starts = [
            line
            for line, key in enumerate(self._keys)
            if key is not None and (line == 0 or self._keys[line - 1] != key)
        ]
        if key is not None and key in self._keys and self.chosen != key:
            self.set_reactive(Paragraphs.cursor, self._keys.index(key))  # in silence: a frame is being drawn

    def row_count(self) -> int:
        """Return how many lines there are."""
        return len(self._lines)

    def draw_row(self, line: int, style: Style | None) -> list[Segment]:
        """Return line `line` in segments. What is chosen has a bar beside it: whole blocks in reverse are hard to read."""
        margin = self.glyphs.here if style is not None else " "
        tone = Tone.HERE if self.has_focus else Tone.MUTED
        mark = self.get_component_rich_style("rows--cursor") if line == self._marked else None
        return [
            Segment(f"{margin:<{self.PADDING}}", self.tone_style(tone)),
            *(Segment(text, mark or self.tone_style(tone)) for text, tone in self._lines[line]),
        ]

    def show_line(self, line: int | None) -> None:
        """Bring a line of `text_lines` into sight and mark it, as a search does; None takes the mark away."""
        self._marked = line
        if line is not None:
            self.scroll_to(y=max(0, line - self.page // 2), animate=False, force=True)
        self._strips.clear()
        self.refresh()

    # Choosing.

    @property
    def chosen(self) -> str | None:
        """The key of the paragraph under the cursor."""
        return self._keys[self.cursor] if self.cursor < len(self._keys) else None

    def line_of(self, key: str) -> int | None:
        """Return the first line of what is chosen with `key`."""
        return self._keys.index(key) if key in self._keys else None

    def is_here(self, line: int) -> bool:
        """Tell whether a line belongs to what is chosen."""
        return self._keys[line] is not None and self._keys[line] == self.chosen

    def move_to(self, line: int) -> None:
        """Put the cursor on the choice that `line` belongs to or comes after, but not back where it comes from."""
        if not self._starts:
            return
        choice = max(0, bisect_right(self._starts, line) - 1)
        if line > self.cursor and self._starts[choice] == self.cursor:
            choice = min(choice + 1, len(self._starts) - 1)
        self.cursor = self._starts[choice]

    def rows_changed(self, cursor: int | None = None) -> None:
        """Draw everything anew; the cursor stays on its key."""
        key = self.chosen
        super().rows_changed(cursor)
        if cursor is None and key is not None and key in self._keys:
            self.cursor = self._keys.index(key)
        elif self.chosen is None:
            self.move_to(self.cursor)

    def watch_cursor(self, before: int, after: int) -> None:
        """Draw the choice that the cursor left and the one that it came to."""
        super().watch_cursor(before, after)
        self.refresh()

    def _show_cursor(self) -> None:
        if self.chosen is None:
            return
        super()._show_cursor()
        end = self.cursor
        while end + 1 < len(self._keys) and self._keys[end + 1] == self.chosen:
            end += 1
        if end >= self.scroll_offset.y + self.page:
            self.scroll_to(y=min(self.cursor, end - self.page + 1), animate=False, force=True)

    def action_cursor(self, rows: int) -> None:
        """Go to the next or the previous choice; scroll where there is none."""
        step = 1 if rows > 0 else -1
        choice = bisect_right(self._starts, self.cursor) - 1 + step
        if 0 <= choice < len(self._starts):
            self.cursor = self._starts[choice]
        else:  # beyond the last choice there may be more to read
            self.scroll_to(y=self.scroll_offset.y + step, animate=False)

    def action_page(self, pages: int) -> None:
        """Go a page further."""
        if self.chosen is None:
            self.scroll_to(y=self.scroll_offset.y + pages * self.page, animate=False)
        else:
            super().action_page(pages)

    def action_first(self) -> None:
        """Go to the beginning."""
        self.move_to(0)
        self.scroll_to(y=0, animate=False)

    def action_last(self) -> None:
        """Go to the end."""
        self.move_to(self.row_count() - 1)
        self.scroll_to(y=self.row_count(), animate=False)

    def line_clicked(self, line: int, x: int) -> None:  # noqa: ARG002 - a row is one thing
        """Choose what was clicked; a click on what is chosen opens it."""
        if self._keys[line] is None:
            return
        if self.is_here(line):
            self.action_select()
        else:
            self.move_to(line)
