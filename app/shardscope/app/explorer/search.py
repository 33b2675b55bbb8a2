"""The search line at the foot of the screen, for whichever panel is in front."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static


class SearchBar(Horizontal):
    """One line to type a search into; hidden until it is opened."""

    BINDING_GROUP_TITLE = "Search"

    class Changed(Message):
        """Another text is searched for."""

        def __init__(self, query: str) -> None:
            super().__init__()
            self.query_text = query

    class Submitted(Message):
        """The person is done typing."""

    def compose(self) -> ComposeResult:
        """Draw the line."""
        yield Static("/", id="slash")
        yield Input(compact=True, select_on_focus=False, id="query")
        yield Static(id="hits")

    def open(self, query: str, placeholder: str) -> None:
        """Show the line with the search of before."""
        self.add_class("-open")
        field = self.query_one(Input)
        field.placeholder = placeholder
        with field.prevent(Input.Changed):
            field.value = query
        field.cursor_position = len(query)
        field.focus()

    def close(self) -> None:
        """Hide the line."""
        self.remove_class("-open")

    @property
    def is_open(self) -> bool:
        """Whether the line is shown."""
        return self.has_class("-open")

    def say(self, hits: str) -> None:
        """Say what was found."""
        self.query_one("#hits", Static).update(hits)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Submitted())
