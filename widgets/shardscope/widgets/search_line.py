"""A line to type a search into, which shows nothing that a terminal would obey."""

from typing import Any

from textual.signal import Signal
from textual.widgets import Input

from shardscope.engine.model.text import UNSAFE


class SearchLine(Input):
    """An `Input` that drops unsafe characters: a name that was copied and pasted into it may carry some."""

    DEFAULT_CSS = "SearchLine { border: none; height: 1; padding: 0 1; }"
    _selections: Signal[Any] | None = None

    def on_mount(self) -> None:
        """Keep the cursor still: a blinking one is traffic on the connection, and says nothing."""
        self.cursor_blink = False
        self._selections = self.screen.text_selection_started_signal

    def on_unmount(self) -> None:
        """Let go of the screen: the callback that an `Input` leaves there would keep it for as long as the screen stands."""
        if self._selections is not None:
            self._selections.unsubscribe(self)

    def validate_value(self, value: str) -> str:
        """Return what was typed or pasted, without what must never reach a terminal."""
        return UNSAFE.sub("", value)
