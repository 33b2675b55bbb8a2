"""Searching in what is in front: the line to type into, and the places where the text occurs."""

from collections.abc import Callable, Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from shardscope.app.explorer.checkpoint.panels import Found
from shardscope.widgets.file_tree import FileTree
from shardscope.widgets.paragraphs import Paragraphs
from shardscope.widgets.safe import Tone, content


class Places:
    """The lines of a widget that hold a text, upper and lower case alike, and which of them we are at."""

    def __init__(self, lines: Sequence[str], go: Callable[[int], None]) -> None:
        """`go` takes the number of a line and shows it."""
        self._lines = [line.lower() for line in lines]
        self._go = go
        self._found: list[int] = []
        self._at = 0

    def search(self, text: str) -> None:
        """Find `text` and go to its first place."""
        wanted = text.lower()
        self._found = [number for number, line in enumerate(self._lines) if wanted in line] if wanted else []
        self._at = 0
        self.step(0)

    def step(self, by: int) -> None:
        """Go some places further, around the ends."""
        if self._found:
            self._at = (self._at + by) % len(self._found)
            self._go(self._found[self._at])

    @property
    def count(self) -> int:
        """How many places there are."""
        return len(self._found)

    @property
    def said(self) -> str:
        """Where we are in words."""
        return f"{self._at + 1:,} of {self.count:,}" if self._found else "no match"


def places(widget: Widget, found: Found) -> Places | None:
    """Return where one can search in `widget`, None where one cannot."""
    if isinstance(widget, FileTree):
        entries = widget.files.inventory.entries
        return Places([entry.text for entry in entries], widget.reveal)
    if isinstance(widget, Paragraphs):
        return Places(widget.text_lines, widget.show_line)
    from shardscope.widgets.pickle_panel import PickleTable
    from shardscope.widgets.preview_panel import PreviewPanel
    from shardscope.widgets.record_tree import RecordTree

    if isinstance(widget, PickleTable):
        return Places(widget.text_lines, widget.show_line)
    if isinstance(widget, RecordTree):
        return Places(widget.text_lines, widget.reveal)

    if isinstance(widget, PreviewPanel) and found.preview is not None:
        return Places(found.preview.lines, widget.show_line)
    return None


class SearchBar(Horizontal):
    """One line at the foot of the screen to type a search into. It stays until it is closed."""

    BINDING_GROUP_TITLE = "Search"

    class Left(Message):
        """The person typed enter: the keys belong to what was searched again."""

    def __init__(self) -> None:
        super().__init__(id="search-bar", disabled=True)  # disabled, no focus falls to the hidden line
        self._places: Places | None = None

    def compose(self) -> ComposeResult:
        """Draw the line."""
        yield Static(content(("/", Tone.HERE)), id="slash")
        yield Input(
            compact=True, select_on_focus=False, placeholder="find text, enter, then n and N", max_length=256
        )
        yield Static(id="hits")

    @property
    def is_open(self) -> bool:
        """Whether the line is shown."""
        return self.has_class("-open")

    def open(self, where: Places) -> None:
        """Show the line and search in `where`."""
        self._places = where
        self.disabled = False
        self.add_class("-open")
        field = self.query_one(Input)
        field.value = ""
        self._say("")
        field.focus()

    def close(self) -> None:
        """Hide the line."""
        self._places = None
        self.remove_class("-open")
        self.disabled = True

    def step(self, by: int) -> None:
        """Go some matches further."""
        if self._places is not None:
            self._places.step(by)
            self._say(self._places.said)

    def _say(self, words: str) -> None:
        self.query_one("#hits", Static).update(content((words, Tone.MUTED)))

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._places is not None:
            self._places.search(event.value)
            self._say(self._places.said if event.value else "")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Left())
