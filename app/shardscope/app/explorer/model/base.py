"""The question which model an adapter is for: a path, completed as a shell does it."""

import os
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Input

from shardscope.app.explorer.model.messages import PathCompleted
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
        """Complete the path, in a thread: folders may be slow."""
        from shardscope.app.explorer.open.completion import completed

        typed = self.query_one(Input).value
        self.app.run_worker(
            lambda: self.post_message(PathCompleted(typed, completed(typed))),
            group="complete",
            description="completing a path",
            thread=True,
            exclusive=True,
            exit_on_error=False,
        )

    @on(PathCompleted)
    def _completed(self, event: PathCompleted) -> None:
        field = self.query_one(Input)
        if field.value == event.typed:
            field.value = event.path
            field.cursor_position = len(event.path)


def read_path(text: str) -> tuple[str] | str:
    """Return a path, or what is wrong with it."""
    path = os.path.expanduser(text.strip())
    return (path,) if path else "A path, such as ./base."
