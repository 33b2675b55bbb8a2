"""The names of tensors that were sent to the clipboard, to be read and selected where the terminal refused them."""

from collections.abc import Sequence
from typing import Final

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from shardscope.app.explorer.dialogs import Dialog
from shardscope.engine.model.text import display_name

MOST: Final = 48_000
"""Characters that are sent at once: terminals drop what is much longer."""
SHOWN: Final = 200
"""Names that are shown."""


def names_text(names: Sequence[str]) -> tuple[str, int]:
    """Return names for the clipboard, one a line and harmless where they are pasted, and how many of them there was room for."""
    lines: list[str] = []
    length = 0
    for name in names:
        line = display_name(name)
        length += len(line) + 1
        if length > MOST and lines:
            break
        lines.append(line)
    return "\n".join(lines), len(lines)


class CopiedNames(Dialog):
    """The names, one a line."""

    def __init__(self, text: str, sent: int, wanted: int) -> None:
        super().__init__()
        self.text = text
        self.sent = sent
        self.wanted = wanted

    def compose(self) -> ComposeResult:
        """Draw the names over what became of them."""
        lines = self.text.split("\n")
        said = (
            f"{self.sent:,} of {self.wanted:,} names" if self.sent < self.wanted else f"{self.sent:,} names"
        )
        more = f" The first {SHOWN:,} are shown." if len(lines) > SHOWN else ""
        with Vertical(classes="dialog") as box:
            box.border_title = "Names of tensors"
            box.border_subtitle = "esc closes"
            with VerticalScroll(classes="names"):
                yield Static(Content("\n".join(lines[:SHOWN])))
            note = f"{said} sent to the clipboard (OSC 52), which a terminal may refuse without a word.{more}"
            yield Static(Content.styled(note, "$text-muted"), classes="note")
