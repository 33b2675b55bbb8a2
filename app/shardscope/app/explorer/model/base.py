"""The question which model an adapter is for: a path, completed as a shell does it."""

import os
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Input

from shardscope.app.explorer.open.completing import PathCompleted, complete_path
from shardscope.app.explorer.shardmap.dialogs import Question

WORDS = "Which model is the adapter for? Headers of it are read; nothing of it is run. tab completes a path."


class AskBase(Question[tuple[str]]):
    """Ends with a path, in a tuple: a text alone would be a complaint; or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "Complete", show=False, id="base.complete", tooltip="Complete the path"),
    ]

    def __init__(self, typed: str) -> None:
        super().__init__("Base", WORDS, "path of the base model", read_path, typed)

    def action_complete(self) -> None:
        """Complete the path."""
        complete_path(self, self.query_one(Input).value)

    @on(PathCompleted)
    def _completed(self, event: PathCompleted) -> None:
        event.fill(self.query_one(Input))


def read_path(text: str) -> tuple[str] | str:
    """Return a path, or what is wrong with it."""
    path = os.path.expanduser(text.strip())
    return (path,) if path else "A path, such as ./base."
