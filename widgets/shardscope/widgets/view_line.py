"""The names of the views of a screen on one line, the one in front in the accent of "you are here"."""

from collections.abc import Sequence

from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from shardscope.widgets.safe import Part, Tone, content

GAP = 3
"""Cells between two names."""


class ViewLine(Widget):
    """`ViewLine(names, id=None)`; `show(front, aside)` says which is in front, and something of ours at the right end.

    Message: `Chosen` with the number of the view whose name was clicked.
    """

    DEFAULT_CSS = "ViewLine { height: 1; width: 1fr; }"
    ALLOW_SELECT = False

    class Chosen(Message):
        """The name of a view was clicked."""

        def __init__(self, view: int) -> None:
            super().__init__()
            self.view = view

    def __init__(
        self,
        names: Sequence[str],
        *,
        id: str | None = None,  # noqa: A002 - the word of Textual
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._names = [f"{number} {name}" for number, name in enumerate(names, start=1)]
        self._front = 0
        self._aside: tuple[Part, ...] = ()

    def show(self, front: int, aside: tuple[Part, ...] = ()) -> None:
        """Say which view is in front."""
        self._front, self._aside = front, aside
        self.refresh()

    def render(self) -> Content:
        """Return the line; what is at its right end goes first where there is no room."""
        parts: list[Part] = []
        for number, name in enumerate(self._names):
            parts.append((name, Tone.HERE if number == self._front else Tone.MUTED))
            parts.append(" " * GAP)
        left, right = content(*parts), content(*self._aside)
        space = self.size.width - left.cell_length - right.cell_length
        return left + content(" " * space) + right if space >= 0 else left

    def on_click(self, event: Click) -> None:
        """Find out which name was clicked."""
        offset = event.get_content_offset(self)
        end = 0
        for number, name in enumerate(self._names):
            end += len(name)
            if offset is not None and offset.x < end:
                self.post_message(self.Chosen(number))
                return
            end += GAP
