"""The only door from checkpoint text to the screen.

Textual and Rich interpret markup in plain strings and let control characters through in every widget, `Content` and
`Text` included. So text becomes visible and harmless here (`display_name`), it reaches widgets only as `Content` or as
segments, and `UnsafeFilter` deletes from every finished line what some widget of the library itself may have let in.
"""

import re
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


_DIGITS: Final = 8
"""Digits of a cut number that are left out; a longer run of them is no number that anybody reads."""

_NUMBER: Final = re.compile(r"(?<![A-Za-z0-9])\d+")
"""A number that stands alone, such as that of a rank: unlike the one of `bf16`, it tells names apart."""


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
    Tone.MUTED: "dim",
    Tone.HERE: "bold $text-primary",
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


def elide(text: str, width: int, ellipsis: str = "…", *, tail: float = 0.5, keep: int = -1) -> str:
    """Return harmless `text` in at most `width` cells: beginning and end stay, the middle goes.

    `tail` is the share of the room that the end gets. `keep` is the index of a character that should stay: the one that
    tells a name from its neighbours; the first number of the name stays with it where both fit, because names that
    differ in two are not told apart by one. A number is left out as a whole rather than shown as another one.
    """
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return ellipsis[:width]
    room = width - 1
    end = int(room * tail)
    if not text.isascii():
        return _elide_cells(text, room, end, ellipsis)
    begin = room - end
    is_left_out = begin <= keep < len(text) - end
    if is_left_out and keep + 2 <= room:
        begin, end = keep + 2, room - keep - 2
    elif keep >= begin:
        number = _NUMBER.search(text)
        first = number.start() if number is not None and begin < number.end() <= keep else keep
        if keep + 3 - first <= room and (is_left_out or first < len(text) - end):
            return ellipsis + elide(text[min(first, max(0, keep - 2)) :], room, ellipsis, tail=0)
        if is_left_out:
            return ellipsis + elide(text[max(0, keep - 2) :], room, ellipsis, tail=0)
    stop, start = begin, len(text) - end
    while stop > 0 and begin - stop < _DIGITS and text[stop - 1 : stop + 1].isdigit():
        stop -= 1
    while start < len(text) and start - len(text) + end < _DIGITS and text[start - 1 : start + 1].isdigit():
        start += 1
    return f"{text[:stop]}{ellipsis}{text[start:]}"


def _elide_cells(text: str, room: int, end: int, ellipsis: str) -> str:
    tail = ""
    for character in reversed(text):
        if cell_len(character + tail) > end:
            break
        tail = character + tail
    head = set_cell_size(text[: 4 * room + 8], room - cell_len(tail)) if room > end else ""
    return f"{head}{ellipsis}{tail}"


def fit(
    text: str, width: int, *, right: bool = False, ellipsis: str = "…", tail: float = 0.5, keep: int = -1
) -> str:
    """Return `text`, neutralised, in exactly `width` cells. See `elide` for `tail` and `keep`."""
    shown = elide(visible(text, max(256, 4 * width)), width, ellipsis, tail=tail, keep=keep)
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
