"""Completing the path in a field, in a thread: folders may be slow."""

from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input


class PathCompleted(Message):
    """A path was completed as far as names of files do."""

    def __init__(self, typed: str, path: str) -> None:
        super().__init__()
        self.typed = typed
        self.path = path

    def fill(self, field: Input) -> None:
        """Put the path into its field, unless something else was typed meanwhile."""
        if field.value == self.typed:
            field.value = self.path
            field.cursor_position = len(self.path)


def complete_path(asker: Widget, typed: str) -> None:
    """Complete what was typed; `asker` hears `PathCompleted`."""
    from shardscope.app.explorer.open.completion import completed

    asker.app.run_worker(
        lambda: asker.post_message(PathCompleted(typed, completed(typed))),
        group="complete",
        description="completing a path",
        thread=True,
        exclusive=True,
        exit_on_error=False,
    )
