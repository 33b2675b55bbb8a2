"""Screens whose work must not be left by a slip of a finger: the application asks them before it ends."""

from typing import TYPE_CHECKING

from textual.screen import Screen

if TYPE_CHECKING:
    from shardscope.engine.model.blocker import Blocker


class Working(Screen[None]):
    """A screen that may be at work. By itself it lets everybody leave."""

    def ask_to_leave(self, *, insist: bool) -> bool:  # noqa: ARG002 - what a screen at work looks at
        """Tell whether the screen asks first; it then does so. `insist` is ctrl+c, which answers a question that stands already."""
        return False

    def leave(self, *, hung_up: bool) -> None:
        """Stop what is at work. `hung_up`: the terminal went away, so what was finished is kept."""

    def broke(self, group: str, error: "Blocker") -> None:
        """An error of our own ended the worker of `group`."""
