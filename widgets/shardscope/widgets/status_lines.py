"""The lines at the edges of a screen: where the person is, and what was and was not looked at."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from shardscope.widgets.glyphs import Glyphs, terminal_glyphs
from shardscope.widgets.safe import Part, Tone, content, elide, visible

LEAST: Final = 8
"""Cells in which the last part of a trail can still be told from others."""


class Breadcrumbs(Widget):
    """The path of screens that led here, the last part in the accent of "you are here".

    `Breadcrumbs(*parts, glyphs=None, id=None, classes=None)`; `crumbs.parts = (...)` changes it. Parts may be raw. Where
    the room is short, the middle parts go first, then the middle of the last one; at the very end it stands alone.
    """

    DEFAULT_CSS = "Breadcrumbs { height: 1; width: 1fr; padding: 0 1 0 0; }"
    ALLOW_SELECT = False

    parts: reactive[tuple[str, ...]] = reactive[tuple[str, ...]](())

    def __init__(
        self,
        *parts: str,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """Show `parts`, the outermost first."""
        super().__init__(id=id, classes=classes)
        self.glyphs = glyphs or terminal_glyphs()
        self.set_reactive(Breadcrumbs.parts, parts)

    def render(self) -> Content:
        """Return the trail, as long as there is room."""
        trail = f" {self.glyphs.trail} "
        names = fitted(self.parts, self.size.width, trail, self.glyphs.ellipsis)
        parts: list[Part] = []
        for name in names:
            if parts:
                parts.append((trail, Tone.MUTED))
            parts.append((name, Tone.PLAIN))
        if names:
            parts[-1] = (names[-1], Tone.HERE)
        return content(*parts)


def fitted(names: Sequence[str], width: int, trail: str, ellipsis: str = "…") -> list[str]:
    """Return names that fit into `width` cells with `trail` between them."""
    shown = [visible(name) for name in names]

    def cells(parts: Sequence[str]) -> int:
        return sum(map(cell_len, parts)) + cell_len(trail) * (len(parts) - 1)

    if cells(shown) > width and len(shown) > 3:
        shown = [shown[0], ellipsis, *shown[-2:]]
    if cells(shown) > width and len(shown) > 2:
        shown = [shown[0], ellipsis, shown[-1]]
    if cells(shown) > width and shown:
        room = width - cells(shown) + cell_len(shown[-1])
        if room < LEAST:  # what is looked at says more than the way to it
            shown, room = shown[-1:], width
        shown[-1] = elide(shown[-1], max(1, room), ellipsis)
    return shown


class StatusLine(Widget):
    """What was looked at and what was not, as facts with dots between them, at the right end of a line.

    `StatusLine(*facts, glyphs=None, id=None, classes=None)`; `line.facts = (...)` changes it. A fact is a text, or a text
    with a tone. Where the room is short, the last facts go first.
    """

    DEFAULT_CSS = "StatusLine { height: 1; width: auto; text-align: right; }"
    ALLOW_SELECT = False

    facts: reactive[tuple[Part, ...]] = reactive[tuple[Part, ...]]((), layout=True)

    def __init__(
        self,
        *facts: Part,
        glyphs: Glyphs | None = None,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        """Show `facts`, the most wanted first."""
        super().__init__(id=id, classes=classes)
        self.glyphs = glyphs or terminal_glyphs()
        self.set_reactive(StatusLine.facts, facts)

    def render(self) -> Content:
        """Return as many facts as there is room for."""
        line = content()
        for fact in self.facts:
            text, tone = (fact, Tone.MUTED) if isinstance(fact, str) else fact
            longer = content((f" {self.glyphs.dot} ", Tone.MUTED)) if line else content()
            longer = line + longer + content((text, tone))
            if line and longer.cell_length > self._room:
                break
            line = longer
        return line

    @property
    def _room(self) -> int:
        return self.size.width or (self.parent.size.width if isinstance(self.parent, Widget) else 0) or 1_000
