"""The only door from checkpoint text to the screen.

Textual and Rich interpret markup in plain strings and let control characters through in every widget, `Content` and
`Text` included. So text becomes visible and harmless here (`display_name`), it reaches widgets only as `Content` or as
segments, and `UnsafeFilter` deletes from every finished line what some widget of the library itself may have let in.
"""

from enum import StrEnum
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.content import Content
from textual.filter import LineFilter

from shardscope.engine.model.text import UNSAFE, display_name

LONGEST: Final = 4_096
"""Characters of one text that are ever drawn: its middle is left out beyond that."""


class Tone(StrEnum):
    """What a text says by its colour, always beside a letter or a word that says it too."""

    PLAIN = ""
    STRONG = "strong"
    MUTED = "muted"
    HERE = "here"
    """You are here: the one accent."""
    OK = "ok"
    CAUTION = "caution"
    STOP = "stop"


Part = str | tuple[str, Tone]
"""A piece of text, plain or with a tone. The text may come from a checkpoint as it is."""

_STYLES: Final = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.MUTED: "$text-muted",
    Tone.HERE: "bold $text-accent",
    Tone.OK: "$text-success",
    Tone.CAUTION: "$text-warning",
    Tone.STOP: "bold $text-error",
}


def visible(text: str, limit: int = LONGEST) -> str:
    """Return `text` harmless and on one line, with its middle left out beyond `limit` characters."""
    return display_name(text, limit)


def content(*parts: Part) -> Content:
    """Return text for a widget of Textual: every part neutralised, none read as markup."""
    return Content.assemble(
        *(visible(part) if isinstance(part, str) else (visible(part[0]), _STYLES[part[1]]) for part in parts)
    )


def elide(text: str, width: int, ellipsis: str = "…") -> str:
    """Return harmless `text` in at most `width` cells: beginning and end stay, the middle goes.

    The end of a name tells more than its middle, so it keeps about half of the room.
    """
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return ellipsis[:width]
    tail_width = (width - 1) // 2
    tail = ""
    for character in reversed(text):
        if cell_len(character + tail) > tail_width:
            break
        tail = character + tail
    return f"{_head(text, width - 1 - cell_len(tail))}{ellipsis}{tail}"


def _head(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    head = set_cell_size(text[: 4 * width + 8], width)
    return head if cell_len(head) == width else head.ljust(width)


def fit(text: str, width: int, *, right: bool = False, ellipsis: str = "…") -> str:
    """Return `text`, neutralised, in exactly `width` cells."""
    shown = elide(visible(text, max(16, 4 * width)), width, ellipsis)
    space = " " * (width - cell_len(shown))
    return space + shown if right else shown + space


class UnsafeFilter(LineFilter):
    """Deletes unsafe characters from finished lines: the last line of defence, for `App.get_line_filters`.

    They have no width, so deleting them moves nothing (a surrogate has one cell, which is given back as a space).
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        """Return `segments` without what must never reach a terminal."""
        search = UNSAFE.search
        if not any(search(segment.text) for segment in segments if not segment.control):
            return segments
        return [
            segment
            if segment.control or not search(segment.text)
            else Segment(_without_unsafe(segment.text), segment.style)
            for segment in segments
        ]


def _without_unsafe(text: str) -> str:
    cleaned = UNSAFE.sub("", text)
    return cleaned + " " * (cell_len(text) - cell_len(cleaned))
